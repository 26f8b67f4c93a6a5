/** Which other origins' pages may read the responses (Fetch standard, CORS protocol). No credentials mode. */
import type { IncomingHttpHeaders } from 'node:http'
import { describe } from '../json/describe.ts'

export interface Cors {
  /** The headers of an answer to a page of this origin; undefined when no origin was sent or the request was unreadable. */
  answerHeaders(origin: string | undefined): readonly string[]
  /** The further headers of an answer to OPTIONS. */
  preflightHeaders(allow: string): readonly string[]
}

const exposed = [
  'Access-Control-Expose-Headers',
  'Location, Link, X-Total-Count, X-Data-File-Error, Deprecation, Sunset, WWW-Authenticate, Allow',
]

/** Whether a request with the method OPTIONS asks for a page whether it may send another (Fetch standard). */
export function isPreflight(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined && headers['access-control-request-method'] !== undefined
}

/** Whether a browser would send it so: scheme and host in small letters, no path (RFC 6454 section 6.2). */
export function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

/** What keeps a text from being an origin, if anything, and the origin that was probably meant. */
export function originFault(text: string): string | undefined {
  if (isOrigin(text)) return undefined
  const fault = `expected an origin such as https://example.org, got ${describe(text)}`
  const meant = URL.canParse(text) ? new URL(text).origin : 'null'
  return meant === 'null' ? fault : `${fault}; write ${meant}`
}

/** `*` for any origin, or the origins themselves, none included. */
export function createCors(origins: '*' | readonly string[]): Cors {
  if (origins === '*') {
    const headers = ['Access-Control-Allow-Origin', '*', ...exposed]
    return { answerHeaders: () => headers, preflightHeaders }
  }
  if (origins.length === 0) return { answerHeaders: () => [], preflightHeaders: () => [] }
  // The answer depends on the origin, also when it names none (RFC 9110 section 12.5.5).
  const refused = ['Vary', 'Origin']
  const allowed = new Map(
    origins.map((origin) => [origin, ['Access-Control-Allow-Origin', origin, ...exposed, ...refused]]),
  )
  return { answerHeaders: (origin) => allowed.get(origin ?? '') ?? refused, preflightHeaders }
}

function preflightHeaders(allow: string): readonly string[] {
  return [
    'Access-Control-Allow-Methods',
    allow,
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type',
    'Access-Control-Max-Age',
    '600',
  ]
}

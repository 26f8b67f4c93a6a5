/** Which other origins' pages may read the responses, and the reply to a preflight (Fetch standard, CORS protocol). No credentials mode. */
import type { IncomingHttpHeaders } from 'node:http'
import { describe } from '../messages/describe.ts'
import type { Reply } from './reply.ts'

export interface Cors {
  /** The CORS headers of a response to this origin; undefined when none was sent, or the request could not be parsed. */
  responseHeaders(origin: string | undefined): readonly string[]
  /** The reply to OPTIONS, a preflight or not. `allow`: the value of its Allow header. */
  optionsReply(allow: string): Reply
}

const exposed = [
  'Access-Control-Expose-Headers',
  'Location, Link, X-Total-Count, X-Data-File-Error, Deprecation, Sunset, WWW-Authenticate, Allow',
]

/** Whether an OPTIONS request asks, for a page, if another request may be sent (Fetch standard). */
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
    return { responseHeaders: () => headers, optionsReply: preflightReply }
  }
  if (origins.length === 0) return { responseHeaders: () => [], optionsReply: allowReply }
  // The response depends on the origin, also when it allows none (RFC 9110 section 12.5.5).
  const refused = ['Vary', 'Origin']
  const allowed = new Map(
    origins.map((origin) => [origin, ['Access-Control-Allow-Origin', origin, ...exposed, ...refused]]),
  )
  return { responseHeaders: (origin) => allowed.get(origin ?? '') ?? refused, optionsReply: preflightReply }
}

function allowReply(allow: string): Reply {
  return { status: 204, headers: ['Allow', allow] }
}

function preflightReply(allow: string): Reply {
  const preflight = [
    'Access-Control-Allow-Methods',
    allow,
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type',
    'Access-Control-Max-Age',
    '600',
  ]
  return { status: 204, headers: ['Allow', allow, ...preflight] }
}

/** Which other origins' pages may read the responses, and the reply to a preflight (Fetch standard, CORS protocol). No credentials mode. */
import type { IncomingHttpHeaders } from 'node:http'
import { describe } from '../messages/describe.ts'
import type { Reply } from './reply.ts'

const exposed =
  'Location, Link, X-Total-Count, X-Data-File-Error, Deprecation, Sunset, WWW-Authenticate, Allow'

/** Whether an OPTIONS request asks, for a page, if another request may be sent (Fetch standard). */
export function isPreflight(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined && headers['access-control-request-method'] !== undefined
}

/**
 * What keeps a text from being an origin as a browser sends it (scheme and host in small letters, no path: RFC 6454 section 6.2), if
 * anything, and the origin that was probably meant.
 */
export function originFault(text: string): string | undefined {
  const meant = URL.canParse(text) ? new URL(text).origin : undefined
  if (meant === text) return undefined
  const fault = `expected an origin such as https://example.org, got ${describe(text)}`
  // A URL such as file:///a has no origin, for which the standard has the text "null".
  return meant === undefined || meant === 'null' ? fault : `${fault}; write ${meant}`
}

/** `*` for any origin, or the origins themselves, none included. */
export function createCors(origins: '*' | readonly string[]) {
  const named = origins === '*' ? [] : origins
  const isClosed = origins.length === 0
  // The response depends on the origin, also when it allows none (RFC 9110 section 12.5.5).
  const vary = isClosed ? [] : ['Vary', 'Origin']
  const allowed = new Map(named.map((origin) => [origin, [...allowOrigin(origin), ...vary]]))
  const unnamed = origins === '*' ? allowOrigin('*') : vary
  return {
    /** The CORS headers of a response to this origin; undefined when none was sent, or the request could not be parsed. */
    responseHeaders: (origin = '') => allowed.get(origin) ?? unnamed,
    /** The reply to OPTIONS, a preflight or not. `allow`: the value of its Allow header. */
    optionsReply: (allow: string): Reply => ({
      status: 204,
      headers: ['Allow', allow, ...(isClosed ? [] : preflightHeaders(allow))],
    }),
  }
}

function allowOrigin(origin: string): readonly string[] {
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposed]
}

function preflightHeaders(allow: string): readonly string[] {
  const allowHeaders = ['Access-Control-Allow-Headers', 'Authorization, Content-Type']
  return ['Access-Control-Allow-Methods', allow, ...allowHeaders, 'Access-Control-Max-Age', '600']
}

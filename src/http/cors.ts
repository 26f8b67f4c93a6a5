/**
 * CORS, without credentials (Fetch standard): which pages may read responses, and what a preflight lets
 * through.
 */
import type { Arrival } from './request.ts'
import type { Reply } from './response.ts'

/** A preflight asks if another request may be sent (Fetch standard). */
export function isPreflight({ method, headers }: Arrival): boolean {
  const isAsking = headers['origin'] !== undefined && headers['access-control-request-method'] !== undefined
  return method === 'OPTIONS' && isAsking
}

/** A page of another origin may read these of our headers. */
const exposedHere = ['WWW-Authenticate', 'Allow', 'Preference-Applied', 'Retry-After']

/**
 * `origins` is `*` for any origin, or the origins themselves, none included. They may read `exposedHeaders`,
 * too.
 */
export function createCors(origins: '*' | readonly string[], exposedHeaders: readonly string[] = []) {
  const exposed = [...exposedHeaders, ...exposedHere].join(', ')
  const allowOrigin = (origin: string): readonly string[] => [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Expose-Headers',
    exposed,
  ]
  const named = origins === '*' ? [] : origins
  // A cache must not give a response that allows none to an origin that is allowed (RFC 9110 section 12.5.5).
  const vary = named.length === 0 ? [] : ['Vary', 'Origin']
  const allowed = new Map(named.map((origin) => [origin, [...allowOrigin(origin), ...vary]]))
  const unnamed = origins === '*' ? allowOrigin('*') : vary
  return {
    responseHeaders: (origin = '') => allowed.get(origin) ?? unnamed,
    /**
     * Replies to OPTIONS. A preflight may ask for any method and headers: the page then sees what the real
     * response says of them.
     */
    optionsReply(allow: string, headers: Readonly<NodeJS.Dict<string>>): Reply {
      const { origin = '', 'access-control-request-method': method } = headers
      const isAsked = origins === '*' || allowed.has(origin)
      if (method === undefined || !isAsked) return { status: 204, headers: ['Allow', allow] }
      const wanted = headers['access-control-request-headers'] ?? 'Authorization, Content-Type'
      const given = ['Access-Control-Allow-Methods', method, 'Access-Control-Allow-Headers', wanted]
      return { status: 204, headers: ['Allow', allow, ...given, 'Access-Control-Max-Age', '600'] }
    },
  }
}

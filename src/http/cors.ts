/**
 * CORS, without credentials (Fetch standard): which pages may read responses, what a preflight lets through,
 * and what is wrong with an origin as a person writes it.
 */
import { describe } from '../text/words.ts'
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
export function createCors(origins: '*' | readonly string[], exposedHeaders: readonly string[]) {
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

/**
 * An origin has a host (a name, an address, or the lone dot of Electron's apps) and, if it is not the usual
 * one, a port.
 */
const originPattern = /^[a-z][a-z\d+.-]*:\/\/(?:\[[\da-f:]+\]|[\w-]+(?:\.[\w-]+)*\.?|\.)(?::\d+)?$/

/**
 * Returns what keeps a text from being an origin as a browser sends it (RFC 6454 section 6.2), if anything,
 * and what was probably meant.
 */
export function findOriginFault(text: string): string | undefined {
  const meant = guessOrigin(text)
  // A page in a sandbox, and one that was opened as a file, have the origin null.
  if (text === 'null' || meant === text) return undefined
  const fault = `expected an origin such as https://example.org, got ${describe(text)}`
  if (meant !== undefined) return `${fault}; write ${meant}`
  const several = text.split(/[\s;,]+/).map(guessOrigin)
  if (several.every((origin) => origin !== undefined))
    return `${fault}; give each by itself: ${several.join(', ')}`
  return text.includes('*') ? `${fault}; write out each origin, or * alone for all` : fault
}

/**
 * Finds the origin of an address, if it has one. `localhost`, and what has a port, a dot or brackets, may
 * lack the scheme.
 */
function guessOrigin(text: string): string | undefined {
  const isLocal = /^(?:localhost|127\.|\[::1\])/.test(text)
  const isBare = /^(?:[\w-]+(?:\.[\w-]+)+|localhost|[\w-]+(?=:\d)|\[[\da-f:]+\])(?::\d+)?$/i.test(text)
  const url = isBare ? `${isLocal ? 'http' : 'https'}://${text}` : text
  // A WebSocket has the origin of its page, which has `http` for `ws`.
  const address = url.replace(/^ws(?=s?:)/i, 'http')
  if (!URL.canParse(address)) return undefined
  // `origin` is null for schemes that browsers do not know, such as those of apps.
  const { protocol, host } = new URL(address)
  const origin = `${protocol}//${host}`
  return originPattern.test(origin) ? origin : undefined
}

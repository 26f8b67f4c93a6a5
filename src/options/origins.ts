/**
 * Checks the origins whose pages may read responses, as a person writes them, and says which one was probably
 * meant.
 */
import { describe } from '../json/words.ts'

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

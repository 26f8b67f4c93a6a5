/** Bearer keys (RFC 6750, interface section 5): who may call. */
import crypto from 'node:crypto'
import { maxHeadBytes } from './limits.ts'
import type { Arrival } from './request.ts'
import { HttpError } from './response.ts'

/** What a bearer token may be made of (RFC 6750 section 2.1, b64token). */
const bearerTokenPattern = /^[\w.~+/-]+=*$/

/** This leaves 1 KiB for the request line and the rest of the headers. */
const maxKeyLength = maxHeadBytes - 1_024

/** One key can come in many headers: spaces and the case of the scheme may differ. */
const maxGoodHeaders = 64

const challenge = 'Bearer realm="petstore"'

/** What keeps a text from being a key, if anything. The key is a secret, so that no part of it is shown. */
export function keyFault(key: string): string | undefined {
  if (!bearerTokenPattern.test(key)) return 'expected letters, digits and "-._~+/", with "=" at the end only'
  if (key.length <= maxKeyLength) return undefined
  return `is too long to be sent in ${maxHeadBytes / 1_024} KiB of headers: expected at most ${maxKeyLength} characters, got ${key.length}`
}

/**
 * Makes a check that throws unauthorized unless the request's Authorization header holds one of the keys. The keys given are held as
 * SHA-256 digests, and a token is looked up by its digest: neither the number of keys nor the place where one differs
 * changes the work.
 */
export function createBearerAuth(keys: readonly string[]) {
  const digests = new Set(keys.map((key) => crypto.hash('sha256', key, 'base64')))
  /**
   * Headers that were let in. Most requests come with one of few, and to check it again is some 4 % of the work of a read. They are looked
   * up by their hash, too: `===` would take the longer, the more of a key is right.
   */
  const goodHeaders = new Set<string>()

  return ({ headers, authorizationLines }: Pick<Arrival, 'headers' | 'authorizationLines'>): void => {
    // Of two Authorization lines Node would silently use the first; they count as none.
    const authorization = authorizationLines > 1 ? '' : (headers['authorization'] ?? '')
    if (goodHeaders.has(authorization)) return
    // The scheme is case-insensitive and spaces may follow it (RFC 9110 sections 11.1 and 11.4).
    const token = /^bearer +(.+)$/i.exec(authorization)?.[1]
    if (token === undefined) throw new HttpError('unauthorized', undefined, ['WWW-Authenticate', challenge])
    if (!digests.has(crypto.hash('sha256', token, 'base64'))) {
      const invalidToken = `${challenge}, error="invalid_token"`
      throw new HttpError('unauthorized', 'The API key is not valid.', ['WWW-Authenticate', invalidToken])
    }
    if (goodHeaders.size === maxGoodHeaders) goodHeaders.clear()
    goodHeaders.add(authorization)
  }
}

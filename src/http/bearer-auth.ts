/** Bearer keys (RFC 6750, interface section 5): who may call. Knows the Authorization header and nothing else. */
import { hash } from 'node:crypto'
import { HttpError } from './http-error.ts'

/** What a bearer token may be made of (RFC 6750 section 2.1, b64token). */
export const bearerTokenPattern = /^[\w.~+/-]+=*$/

const challenge = 'Bearer realm="petstore"'

/** Throws unauthorized unless the value of the Authorization header holds one of the keys. */
export type BearerAuth = (authorization: string | undefined) => void

/**
 * Keys are held as SHA-256 digests, and a token is looked up by its digest: neither the number of keys nor the place
 * where one differs changes the work. Throws on a key that no client could send.
 */
export function createBearerAuth(keys: readonly string[]): BearerAuth {
  // The types say that there are some, but not to JavaScript.
  if (!Array.isArray(keys) || keys.length === 0) throw new TypeError('apiKeys: at least one key is required')
  if (!keys.every((key) => bearerTokenPattern.test(key))) {
    throw new TypeError('apiKeys: a key is made of letters, digits, "-._~+/", with "=" at its end only')
  }
  const digests = new Set(keys.map(digest))

  return (authorization) => {
    // The scheme is case-insensitive and spaces may follow it (RFC 9110 sections 11.1 and 11.4).
    const token = authorization === undefined ? undefined : /^bearer +(.+)$/i.exec(authorization)?.[1]
    if (token === undefined) throw new HttpError('unauthorized', undefined, ['WWW-Authenticate', challenge])
    if (digests.has(digest(token))) return
    const refusal = `${challenge}, error="invalid_token"`
    throw new HttpError('unauthorized', 'The API key is not valid.', ['WWW-Authenticate', refusal])
  }
}

function digest(key: string): string {
  // It runs for every request, and takes 0.2 µs where createHash takes 0.6.
  return hash('sha256', key, 'base64')
}

/** Bearer keys (RFC 6750, interface section 5): who may call. */
import crypto from 'node:crypto'
import { maxHeadBytes } from './limits.ts'
import type { Arrival } from './request.ts'
import { HttpError } from './response.ts'

/** A bearer token has to match this (RFC 6750 section 2.1, b64token). */
const bearerTokenPattern = /^[\w.~+/-]+=*$/

/** This leaves 1 KiB for the request line and the rest of the headers. */
const maxKeyLength = maxHeadBytes - 1_024

const challenge = 'Bearer realm="petstore"'

/** Returns what keeps a text from being a key, if anything, without any part of the secret. */
export function findKeyFault(key: string): string | undefined {
  if (!bearerTokenPattern.test(key)) return 'expected letters, digits and "-._~+/", with "=" at the end only'
  if (key.length <= maxKeyLength) return undefined
  return `is too long to be sent in ${maxHeadBytes / 1_024} KiB of headers: expected at most ${maxKeyLength} characters, got ${key.length}`
}

export function missingKey(): HttpError {
  return new HttpError('unauthorized', undefined, { headers: ['WWW-Authenticate', challenge] })
}

export function invalidKey(): HttpError {
  const invalidToken = `${challenge}, error="invalid_token"`
  return new HttpError('unauthorized', 'The API key is not valid.', {
    headers: ['WWW-Authenticate', invalidToken],
  })
}

const digestOf = (key: string): string => crypto.hash('sha256', key)

/** Returns what stands for a key in the log: the first six hexadecimal digits of its SHA-256. */
export const fingerprint = (key: string): string => digestOf(key).slice(0, 6)

/**
 * Makes a check that throws unauthorized, or returns the fingerprint of the key. Keys are looked up by their
 * digests, so that the time does not tell how much of a guess is right.
 */
export function createBearerAuth(keys: readonly string[]) {
  const fingerprints = new Map(keys.map((key) => [digestOf(key), fingerprint(key)]))

  return ({ headers, isRepeated }: Pick<Arrival, 'headers' | 'isRepeated'>): string => {
    // Node would use the first of two Authorization lines. They count as none.
    const authorization = isRepeated('authorization') ? '' : (headers['authorization'] ?? '')
    // The scheme is case-insensitive and spaces may follow it (RFC 9110 sections 11.1 and 11.4).
    const token = /^bearer +(.+)$/i.exec(authorization)?.[1]
    if (token === undefined) throw missingKey()
    const found = fingerprints.get(digestOf(token))
    if (found === undefined) throw invalidKey()
    return found
  }
}

/** The errors of the code that embeds the service, its callbacks and its storage included. */
import { describe } from './json/describe.ts'
import { errorCode, isError } from './system-error.ts'

/** A mistake of that code. A client gets internal_error; the message, which holds no secret, is for onError. */
export class EmbeddingError extends Error {}

/** What a callback or a storage threw, which may be anything. */
export function describeThrown(error: unknown): string {
  return isError(error) ? error.message || errorCode(error) : describe(error)
}

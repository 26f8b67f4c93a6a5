/** Why a store refuses a request. */

/** The code is the one that a client sees (README, error codes). */
export type PetStoreErrorCode =
  | 'data_file_invalid'
  | 'storage_failed'
  | 'insufficient_storage'
  | 'shutting_down'
  | 'internal_error'

/**
 * The message, if it says more than the code, is for a client: it names no path and no library. That of an internal_error
 * is for the person who runs the service instead.
 */
export class PetStoreError extends Error {
  readonly code: PetStoreErrorCode
  constructor(code: PetStoreErrorCode, message = '', cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/** What is known of the pets of a failed creation. */
export const notStored = 'nothing was stored'
export const perhapsStored = 'it is not known whether the pet was stored'

/** The refusal when the disk or the storage fails. The outcome says what that means to the client. */
export function storageFailure(isFull: boolean, outcome: string, cause: unknown): PetStoreError {
  return isFull
    ? new PetStoreError('insufficient_storage', `There is no room left; ${outcome}.`, cause)
    : new PetStoreError('storage_failed', `The storage failed; ${outcome}.`, cause)
}

/** Why the store refuses a pet. */

/** The code is the one that a client sees (README, error codes). */
export type PetStoreErrorCode =
  | 'data_file_invalid'
  | 'storage_failed'
  | 'insufficient_storage'
  | 'shutting_down'

/** The message, if it says more than the code, is for a client: it names no path and no library. */
export class PetStoreError extends Error {
  readonly code: PetStoreErrorCode
  constructor(code: PetStoreErrorCode, message = '', cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

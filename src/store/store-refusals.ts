/** The errors by which a store refuses, with what a client is told. */
import { DataFileUnusable } from '../data-file/data-file-errors.ts'
import { errorCode } from '../system/errors.ts'

/** The code is the one that a client sees (interface section 7.1). */
export type PetStoreErrorCode =
  | 'data_file_invalid'
  | 'storage_failed'
  | 'insufficient_storage'
  | 'shutting_down'

/** The message, if it says more than the code, names no path and no library. */
export class PetStoreError extends Error {
  readonly code: PetStoreErrorCode
  constructor(code: PetStoreErrorCode, message = '', cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/** For a pet for which there is no id. */
export const noIdLeft = 'There is no id left: the highest is 9223372036854775807. Nothing was stored.'

/** What is known of the pets of a failed creation. */
export const notStored = 'nothing was stored'
export const perhapsStored = 'it is not known whether the pet was stored'

/** The refusal when the disk or the storage fails. The outcome says what that means to the client. */
export function storageFailure(isFull: boolean, outcome: string, cause?: unknown): PetStoreError {
  return isFull
    ? new PetStoreError('insufficient_storage', `There is no room left; ${outcome}.`, cause)
    : new PetStoreError('storage_failed', `The storage failed; ${outcome}.`, cause)
}

/** The refusal when the data file, or the disk under it, cannot take a pet. */
export function refusalOfFile(error: unknown, mayBeStored: boolean): PetStoreError {
  const stored = mayBeStored ? perhapsStored : notStored
  if (error instanceof DataFileUnusable)
    return new PetStoreError('data_file_invalid', `The data file is not valid (${error.summary}); ${stored}.`)
  const isFull = ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(errorCode(error))
  return storageFailure(isFull, stored, error)
}

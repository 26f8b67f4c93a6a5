/** Why the store refuses a pet. */
import { errorCode } from '../data-file/system-error.ts'

/** Why the store cannot take a pet now; the code is the one that a client sees (README, error codes). */
export type PetStoreErrorCode =
  | 'data_file_invalid'
  | 'storage_failed'
  | 'insufficient_storage'
  | 'shutting_down'

/** A message, if there is more to say than the code does, is for a client: it names no path and no library. */
export class PetStoreError extends Error {
  readonly code: PetStoreErrorCode
  constructor(code: PetStoreErrorCode, message = '', cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

const diskIsFull = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** The error for a file system call that failed. */
export function storageError(cause: unknown): PetStoreError {
  const code = diskIsFull.has(errorCode(cause)) ? 'insufficient_storage' : 'storage_failed'
  return new PetStoreError(code, '', cause)
}

/** What the operations need of a store, and the errors by which a store refuses. */
import type { Int64 } from '../json/int64.ts'
import type { NewPet, Pet } from '../pet/pet.ts'
import type { PetPage, PetQuery } from './pet-storage.ts'

/** What is in memory comes at once, what is in a storage by a promise. */
export interface Store {
  /** Grows with every change of what is listed, and of dataFileError; absent when others change the pets too. */
  readonly version?: number
  /** Where the data file has an error since its last edit; undefined while it is valid, and without one. */
  readonly dataFileError?: string | undefined
  list(query: PetQuery): PetPage | Promise<PetPage>
  get(id: Int64): Pet | undefined | Promise<Pet | undefined>
  /** Resolves when the pet is durable. Rejects with a PetStoreError, which says whether the pet may be stored. */
  create(newPet: NewPet): Promise<Pet>
  /** Waits for the creations under way: in a storage at most until the deadline (`clock.performanceNow()`), if given. */
  close(deadline?: number): Promise<void>
}

/** The code is the one that a client sees (README, error codes). */
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

/** What is known of the pets of a failed creation. */
export const notStored = 'nothing was stored'
export const perhapsStored = 'it is not known whether the pet was stored'

/** The refusal when the disk or the storage fails. The outcome says what that means to the client. */
export function storageFailure(isFull: boolean, outcome: string, cause: unknown): PetStoreError {
  return isFull
    ? new PetStoreError('insufficient_storage', `There is no room left; ${outcome}.`, cause)
    : new PetStoreError('storage_failed', `The storage failed; ${outcome}.`, cause)
}

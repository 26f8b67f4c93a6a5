/**
 * What the operations ask of a store, and what an embedder's database has to do; the errors by which a store
 * refuses.
 */
import type { Int64 } from '../json/int64.ts'
import type { Pet, PetStatus, PetWithoutId, SeedPet } from '../pet/pet.ts'

export interface Store {
  /** Grows with each change of what is listed; absent when others change the pets too. */
  readonly version?: number
  /** What is wrong with the data file since its last edit. */
  readonly dataFileError?: string | undefined
  list(query: PetQuery): PetPage | Promise<PetPage>
  get(id: Int64): Pet | undefined | Promise<Pet | undefined>
  /** Rejects with a PetStoreError, which says whether the pet may be stored. */
  create(newPet: PetWithoutId): Promise<Pet>
  /**
   * Why no pet can be created, as far as it is known: there is a standing cause, or the last creation has
   * failed, no more than `failureKnownMs` ago.
   */
  whyNoCreation(): NoCreationCode | undefined
  /**
   * Waits for the creations under way, in a storage at most until the deadline (`clock.performanceNow()`).
   */
  close(deadline?: number): Promise<void>
}

/** What health says where no pet can be created: `read_only` has a standing cause. */
export type NoCreationCode = 'read_only' | 'storage_failed'

/** A store that has its pets in this process. */
export interface LocalStore extends Store {
  readonly size: number
  /**
   * Resets to the pets that it began with, or to what its file says now; the store in memory takes others.
   * Throws a TypeError for wrong pets.
   */
  reset(pets?: readonly SeedPet[]): Promise<void>
}

/** A creation that has failed counts for this long, where nothing shows that its cause is gone. */
export const failureKnownMs = 60_000

export interface PetQuery {
  /** 1 to 100. */
  readonly limit: number
  /** Only pets with this status; undefined for all. */
  readonly status?: PetStatus | undefined
  /** Only pets with a higher id; undefined for the first page. */
  readonly after?: Int64 | undefined
}

export interface PetPage {
  /** In ascending order of id, at most `limit`. */
  readonly pets: readonly Pet[]
  /**
   * How many pets have the status, on all pages. Without it, as the count of a large table costs more than a
   * page, there is no X-Total-Count.
   */
  readonly total?: Int64 | undefined
  /** Whether there are more pets with the status after this page. */
  readonly hasMore: boolean
}

/**
 * Your own database, which several servers can share. If a method throws or rejects, the response is 503
 * `storage_failed`, or 507 if the error's `code` is `insufficient_storage`. A client whose creation failed is
 * told that it is not known whether the pet was stored, unless the `code` is that or one of these, each for
 * an error before anything was sent, or after all of it was rolled back:
 * - `nothing_stored`: the same pets could be stored at another time;
 * - `pet_refused`: one of them breaks a rule of the database. Then `create` is called for each by itself.
 *
 * The service sets no time limit, so let a method that hangs reject in time. Of results, the number and each
 * pet are checked. The service never closes the storage.
 */
export interface PetStorage {
  /**
   * Returns pets by ascending id, at most `limit`, only with ids above `after`. Sees every creation that was
   * answered by any server. Calls overlap, those of `get` too.
   */
  list(query: PetQuery): Promise<PetPage>
  /** As fresh as `list`. Undefined when there is no pet with this id, which is from 1 to 2^63-1. */
  get(id: Int64): Promise<Pet | undefined>
  /**
   * Stores 1 to 1000 pets, all durably or none, and returns them in order. Once a list has shown an id, no
   * pet with a lower id may appear later, whichever server created it: a sequence or AUTO_INCREMENT does not
   * give that, a counter row updated in the transaction that stores the pets does. Retry conflicts that were
   * rolled back; reject when the outcome is not known. A server does not call it again before it has ended.
   */
  create(newPets: readonly PetWithoutId[]): Promise<readonly Pet[]>
}

/** A client sees these codes when a store refuses (interface section 7.1). */
export const storeErrorCodes = [
  'data_file_invalid',
  'storage_failed',
  'insufficient_storage',
  'shutting_down',
] as const

/** Its message names no path and no library. */
export class PetStoreError extends Error {
  readonly code: (typeof storeErrorCodes)[number]
  constructor(code: PetStoreError['code'], message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

export const notStored = 'nothing was stored'
export const perhapsStored = 'it is not known whether the pet was stored'
export const notReadable = 'no pet can be read now'
export const stillServed = 'the last valid pets are still served'

export function storageFailure(isFull: boolean, consequence: string, cause?: unknown): PetStoreError {
  return isFull
    ? new PetStoreError('insufficient_storage', `There is no room left; ${consequence}.`, cause)
    : new PetStoreError('storage_failed', `The storage failed; ${consequence}.`, cause)
}

/** A creation gets this once the highest id is given. */
export const noIdLeft = (): PetStoreError =>
  new PetStoreError(
    'insufficient_storage',
    'There is no id left: the highest is 9223372036854775807. Nothing was stored.',
  )

/** A store that is closed, or about to be, rejects with this. */
export const storeClosed = (): PetStoreError => new PetStoreError('shutting_down', 'The store is closed.')

/** What a store is asked for, and the database of their own that embedders can give it. */
import type { Int64 } from '../json/int64.ts'
import type { Pet, PetWithoutId } from '../pet/pet.ts'
import type { PetStatus } from '../pet/pet-status.ts'

/** Which pets to list. */
export interface PetQuery {
  /** At most this many pets: 1 to 100. */
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
   * How many pets have the status, on all pages. May be left out, since a count of a large table costs more than the page; then
   * there is no X-Total-Count.
   */
  readonly total?: Int64 | undefined
  /** Whether there are more pets with the status after this page. */
  readonly hasMore: boolean
}

/**
 * Your own database, which several servers can share. If a method throws or rejects, the response is 503 `storage_failed`, or
 * 507 if the error's `code` is `insufficient_storage`. A client whose creation failed is told that it is not known whether the pet was
 * stored, unless the `code` is that or `nothing_stored`: give the latter only to an error that came before anything was sent, or after all
 * of it was rolled back. The service sets no time limit, so let a method that hangs reject in time. Results are checked. The service never
 * closes the storage.
 */
export interface PetStorage {
  /**
   * By ascending id, at most `limit`, only ids above `after`. Sees every creation that was answered by any server. Calls overlap,
   * those of `get` too.
   */
  list(query: PetQuery): Promise<PetPage>
  /** As fresh as `list`. Undefined when there is no pet with this id, which is from 1 to 2^63-1. */
  get(id: Int64): Promise<Pet | undefined>
  /**
   * 1 to 1000 pets, all durably or none, in order. Once a list has shown an id, no pet with a lower id may appear later,
   * whichever server created it: a sequence or AUTO_INCREMENT does not give that, a counter row updated in the transaction
   * that stores the pets does. Retry conflicts that were rolled back; reject when the outcome is not known. A server does not
   * call it again before it has ended.
   */
  create(newPets: readonly PetWithoutId[]): Promise<readonly Pet[]>
}

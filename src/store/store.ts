/** What the operations need of a store. */
import type { Int64 } from '../json/int64.ts'
import type { Pet, PetWithoutId } from '../pet/pet.ts'
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
  create(newPet: PetWithoutId): Promise<Pet>
  /** Waits for the creations under way: in a storage at most until the deadline (`clock.performanceNow()`), if given. */
  close(deadline?: number): Promise<void>
}

/** What the operations need of a store: what is in memory comes at once, what is in a storage by a promise. */
import type { Int64, NewPet, Pet, PetPage, PetQuery } from '../types.ts'

export interface Store {
  /** Grows with every change of what is listed; absent when others change it too. */
  readonly version?: number
  /** What is wrong with the data file, if there is one. */
  readonly dataFileError?: string | undefined
  list(query: PetQuery): PetPage | Promise<PetPage>
  get(id: Int64): Pet | undefined | Promise<Pet | undefined>
  /** Resolves when the pet is durable; rejects with a PetStoreError. */
  create(newPet: NewPet): Promise<Pet>
  /** Waits for the creations under way: in a storage until the deadline (`performance.now()`), 5 s from now unless given. */
  close(deadline?: number): Promise<void>
}

/**
 * The store in memory has the pets that it was given, and those that were created since. It knows no file.
 */
import type { Int64 } from '../json/int64.ts'
import { describe } from '../json/words.ts'
import { fillIds, type Pet, type PetWithoutId, type SeedPet } from '../pet/pet.ts'
import { completeSeeds } from '../pet/seeds.ts'
import { createCommitQueue } from './commit-queue.ts'
import { PetIndex } from './pet-index.ts'
import {
  noIdLeft,
  storeClosed,
  type PetStoreError,
  type PetPage,
  type PetQuery,
  type LocalStore,
} from './store.ts'

export class MemoryStore implements LocalStore {
  version = 0
  readonly #queue = createCommitQueue<PetWithoutId, Pet>((newPets) => this.#commit(newPets), Infinity)
  readonly #seeds: readonly Pet[]
  #pets: Pet[]
  #index: PetIndex
  #closed: Promise<void> | undefined

  /** Missing ids and statuses are filled in. Throws a TypeError for wrong pets. */
  constructor(seeds: readonly SeedPet[]) {
    this.#seeds = completeSeeds(seeds)
    this.#pets = [...this.#seeds]
    this.#index = new PetIndex(this.#pets)
  }

  get size(): number {
    return this.#index.size
  }

  whyNoCreation(): undefined {
    return undefined
  }

  get(id: Int64): Pet | undefined {
    return this.#index.get(id)
  }

  list(query: PetQuery): PetPage {
    return this.#index.list(query)
  }

  create(newPet: PetWithoutId): Promise<Pet> {
    if (this.#closed !== undefined) return Promise.reject(storeClosed())
    return this.#queue.add(newPet)
  }

  /** Resets to these pets, or to those that it was created with. Throws a TypeError for wrong pets. */
  reset(seeds?: readonly SeedPet[]): Promise<void> {
    if (seeds !== undefined && !Array.isArray(seeds)) {
      // `beforeEach(store.reset)` is a mistake: Vitest and node:test pass a hook an argument of their own.
      const hint = 'as a hook, write () => store.reset()'
      throw new TypeError(`pets: expected an array of pets, got ${describe(seeds)}; ${hint}`)
    }
    const pets = seeds === undefined ? [...this.#seeds] : completeSeeds(seeds)
    return this.#queue.run(async () => {
      this.#pets = pets
      this.#index = new PetIndex(pets)
      this.version++
    })
  }

  close(): Promise<void> {
    this.#closed ??= this.#queue.run(async () => {})
    return this.#closed
  }

  async #commit(newPets: readonly PetWithoutId[]): Promise<readonly (Pet | PetStoreError)[]> {
    const results = fillIds(newPets, this.#index.highestListedId)
    this.#pets.push(...results.filter((pet) => pet !== undefined))
    this.#index.showAdded()
    this.version++
    return results.map((pet) => pet ?? noIdLeft())
  }
}

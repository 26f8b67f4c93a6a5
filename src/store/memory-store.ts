/**
 * The store in memory has the pets that it was given, and those that were created since. It knows no file.
 */
import { nextInt64, type Int64 } from '../json/int64.ts'
import { describe } from '../text/words.ts'
import { fillIds, type Pet, type PetWithoutId, type SeedPet } from '../pet/pet.ts'
import { completeSeeds } from '../pet/seeds.ts'
import { PetIndex } from './pet-index.ts'
import { noIdLeft, storeClosed, type PetPage, type PetQuery, type LocalStore } from './store.ts'

export class MemoryStore implements LocalStore {
  version = 0
  readonly #seeds: readonly Pet[]
  #pets: Pet[]
  #index: PetIndex
  #isClosed = false

  /** Missing ids and statuses are filled in. Throws a TypeError for wrong pets. */
  constructor(seeds: readonly SeedPet[]) {
    this.#seeds = completeSeeds(seeds)
    this.#pets = [...this.#seeds]
    this.#index = new PetIndex(this.#pets)
  }

  get size(): number {
    return this.#index.size
  }

  whyNoCreation(): 'storage_failed' | undefined {
    return nextInt64(this.#index.highestListedId) === undefined ? 'storage_failed' : undefined
  }

  get(id: Int64): Pet | undefined {
    return this.#index.get(id)
  }

  list(query: PetQuery): PetPage {
    return this.#index.list(query)
  }

  async create(newPet: PetWithoutId): Promise<Pet> {
    if (this.#isClosed) throw storeClosed()
    const [pet] = fillIds([newPet], this.#index.highestListedId)
    if (pet === undefined) throw noIdLeft()
    this.#pets.push(pet)
    this.#index.showAdded()
    this.version++
    return pet
  }

  /** Resets to these pets, or to those that it was created with. Throws a TypeError for wrong pets. */
  reset(seeds?: readonly SeedPet[]): Promise<void> {
    if (seeds !== undefined && !Array.isArray(seeds)) {
      // `beforeEach(store.reset)` is a mistake: Vitest and node:test pass a hook an argument of their own.
      const hint = 'as a hook, write () => store.reset()'
      throw new TypeError(`pets: expected an array of pets, got ${describe(seeds)}; ${hint}`)
    }
    this.#pets = seeds === undefined ? [...this.#seeds] : completeSeeds(seeds)
    this.#index = new PetIndex(this.#pets)
    this.version++
    return Promise.resolve()
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }
}

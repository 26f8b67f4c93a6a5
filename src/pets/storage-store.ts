/** The store on an embedder's storage: groups creations, checks every result, and makes refusals of errors. Keeps no pets. */
import * as v from 'valibot'
import { errorCode } from '../data-file/system-error.ts'
import { isInt64 } from '../json/int64.ts'
import type { Int64, NewPet, Pet, PetPage, PetQuery, PetStorage } from '../types.ts'
import { CommitQueue } from './commit-queue.ts'
import { formatPet, PetSchema } from './pet.ts'
import { PetStoreError } from './pet-store-error.ts'
import type { Store } from './store.ts'

/** How many pets one call of `create` brings at most. */
const maxBatchPets = 1000

/** The code of an error of the storage that has no room, or no id, left. */
const fullCode = 'insufficient_storage'

/** What a client is told of any other error: nothing in the storage's own words. */
const failureMessages = {
  reads: 'The storage failed; no pet can be read now.',
  creations: 'The storage failed; it is not known whether the pet was stored.',
}

/** A storage that says so itself has stored nothing: it stores all pets of a call or none. */
const fullMessages = {
  reads: 'There is no room left.',
  creations: 'There is no room left; nothing was stored.',
}

const PageSchema = v.object({
  pets: v.array(PetSchema),
  total: v.custom<Int64>((total) => isInt64(total) && total >= 0, 'expected an integer from 0 to 2^63-1'),
  hasMore: v.boolean(),
})

/** The storage returned what cannot be right. The message is for whoever wrote the storage, not for clients. */
export class WrongStorageResult extends Error {}

export class StorageStore implements Store {
  readonly version = undefined
  readonly #storage: PetStorage
  readonly #onMessage: (message: string) => void
  readonly #queue = new CommitQueue<NewPet, Pet>((newPets) => this.#createAll(newPets), maxBatchPets)
  /** What failed when it was last tried: with a full disk, creations alone. */
  readonly #failing = new Set<keyof typeof failureMessages>()

  constructor(storage: PetStorage, onMessage: (message: string) => void = () => {}) {
    this.#storage = storage
    this.#onMessage = onMessage
  }

  async list(query: PetQuery): Promise<PetPage> {
    const page = parseResult(PageSchema, await this.#call('reads', () => this.#storage.list(query)))
    const { limit, status, after } = query
    const count = page.pets.length
    check(count <= limit, `expected at most ${limit} pets, got ${count}`)
    check(count > 0 || !page.hasMore, 'hasMore: expected false after no pets, got true')
    const other = page.pets.find((pet) => status !== undefined && pet.status !== status)
    check(other === undefined, `expected ${status} pets alone, got one that is ${other?.status}`)
    checkAscending(page.pets, after)
    return page
  }

  async get(id: Int64): Promise<Pet | undefined> {
    const pet = parseResult(v.optional(PetSchema), await this.#call('reads', () => this.#storage.get(id)))
    if (pet !== undefined)
      check(BigInt(pet.id) === BigInt(id), `expected the pet ${id}, got the pet ${pet.id}`)
    return pet
  }

  create(newPet: NewPet): Promise<Pet> {
    return this.#queue.add(newPet)
  }

  /** A storage may never answer, and the process has to end all the same. */
  close(deadline = performance.now() + 5_000): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, deadline - performance.now())
      void this.#queue.run(async () => resolve()).then(() => clearTimeout(timer))
    })
  }

  async #createAll(newPets: readonly NewPet[]): Promise<readonly Pet[]> {
    // Copies, since a storage that changes what it is given would be checked against its own changes.
    const copies = newPets.map((newPet) => ({ ...newPet }))
    const result = await this.#call('creations', () => this.#storage.create(copies))
    const pets = parseResult(v.array(PetSchema), result)
    check(pets.length === newPets.length, `expected ${newPets.length} pets, got ${pets.length}`)
    checkAscending(pets)
    for (const [index, pet] of pets.entries()) {
      const isAsGiven = formatPet(pet) === formatPet({ ...pet, ...newPets[index], id: pet.id })
      check(isAsGiven, `${index}: expected the pet that was given at this place, got another`)
    }
    return pets
  }

  /** Resolves with what the storage returns, unchecked; rejects with a PetStoreError for whatever it throws. */
  async #call(kind: keyof typeof failureMessages, call: () => unknown): Promise<unknown> {
    try {
      const result = await call()
      if (this.#failing.delete(kind) && this.#failing.size === 0) this.#onMessage('the storage works again')
      return result
    } catch (error) {
      const reason = error instanceof Error ? error.message || errorCode(error) : typeof error
      if (this.#failing.size === 0)
        this.#onMessage(`the storage failed: ${reason}; ${kind} are refused until it works`)
      this.#failing.add(kind)
      if (errorCode(error) === fullCode) throw new PetStoreError(fullCode, fullMessages[kind], error)
      throw new PetStoreError('storage_failed', failureMessages[kind], error)
    }
  }
}

function parseResult<Output>(schema: v.GenericSchema<unknown, Output>, result: unknown): Output {
  const { issues, output, success } = v.safeParse(schema, result, { abortEarly: true })
  if (success) return output
  throw new WrongStorageResult(`storage: ${v.getDotPath(issues[0]) ?? 'the result'}: ${issues[0].message}`)
}

function checkAscending(pets: readonly Pet[], after: Int64 = 0): void {
  for (const [index, { id }] of pets.entries()) {
    const last = pets[index - 1]?.id ?? after
    check(id > last, `${index}: expected an id above ${last}, got ${id}`)
  }
}

function check(isRight: boolean, message: string): void {
  if (!isRight) throw new WrongStorageResult(`storage: ${message}`)
}

/** The store on an embedder's storage: groups creations, checks every result, and makes refusals of errors. Keeps no pets. */
import * as v from 'valibot'
import { isInt64, type Int64 } from '../json/json.ts'
import { expected, PetSchema } from '../pet/pet-rules.ts'
import type { Pet, PetWithoutId } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { EmbeddingError, errorCode, isError } from '../system/errors.ts'
import { CommitQueue } from './commit-queue.ts'
import { isSamePet } from './pet-index.ts'
import { notStored, perhapsStored, storageFailure, type Store, type PetStorage } from './store.ts'

const maxPetsPerCall = 1000

const PageSchema = v.object({
  pets: v.array(PetSchema),
  total: v.optional(expected<Int64>('an integer from 0 to 2^63-1', (total) => isInt64(total) && total >= 0)),
  hasMore: v.boolean(),
})

export function createStorageStore(storage: PetStorage, onMessage?: (message: string) => void): Store {
  const queue = new CommitQueue<PetWithoutId, Pet>(createAll, maxPetsPerCall)
  /** The kinds of call whose last attempt failed. One kind can fail alone: with a full disk, reads still work. */
  const failing = new Set<'reads' | 'creations'>()

  async function createAll(newPets: readonly PetWithoutId[]): Promise<readonly Pet[]> {
    // Copies, since a storage that changes what it is given would be checked against its own changes.
    const copies = newPets.map((newPet) => ({ ...newPet }))
    const pets = parseResult(v.array(PetSchema), await call('creations', () => storage.create(copies)))
    if (pets.length !== newPets.length)
      throw wrongResult(`expected ${newPets.length} pets, got ${pets.length}`)
    checkAscending(pets)
    // All but the id has to be as it was given.
    const wrong = pets.findIndex((pet, i) => !isSamePet(pet, { ...pet, ...newPets[i], id: pet.id }))
    if (wrong >= 0) throw wrongResult(`${wrong}: expected the pet that was given at this place, got another`)
    return pets
  }

  /** Resolves with what the storage returns, unchecked; rejects with a PetStoreError for whatever it throws. */
  async function call(kind: 'reads' | 'creations', method: () => unknown): Promise<unknown> {
    try {
      const result = await method()
      if (failing.delete(kind) && failing.size === 0) onMessage?.('the storage works again')
      return result
    } catch (error) {
      // A storage may throw anything.
      const reason = isError(error) ? error.message || errorCode(error) : typeof error
      if (failing.size === 0) onMessage?.(`the storage failed: ${reason}; each request tries it again`)
      failing.add(kind)
      const code = errorCode(error)
      const isFull = code === 'insufficient_storage'
      if (kind === 'reads') throw storageFailure(isFull, 'no pet can be read now', error)
      // A storage stores all pets of a call or none: one that has no room for them has stored none.
      throw storageFailure(isFull, isFull || code === 'nothing_stored' ? notStored : perhapsStored, error)
    }
  }

  return {
    async list({ limit, status, after }) {
      const page = parseResult(PageSchema, await call('reads', () => storage.list({ limit, status, after })))
      const { pets, hasMore } = page
      if (pets.length > limit) throw wrongResult(`expected at most ${limit} pets, got ${pets.length}`)
      if (hasMore && pets.length === 0)
        throw wrongResult('hasMore: expected false on a page without pets, got true')
      const other = pets.find((pet) => status !== undefined && pet.status !== status)
      if (other !== undefined)
        throw wrongResult(`expected only pets with status ${status}, got one with status ${other.status}`)
      checkAscending(pets, after)
      return page
    },
    async get(id) {
      const pet = parseResult(v.optional(PetSchema), await call('reads', () => storage.get(id)))
      if (pet !== undefined && pet.id !== id)
        throw wrongResult(`expected the pet ${id}, got the pet ${pet.id}`)
      return pet
    },
    create: (newPet) => queue.add(newPet),
    /** Resolves when the queue is empty, or at the deadline if one is given: a storage may never answer. */
    close(deadline) {
      return new Promise((resolve) => {
        // The listener may have taken all the time. Newer versions of Node warn of a negative delay.
        const timer = deadline && clock.setTimeout(resolve, Math.max(0, deadline - clock.performanceNow()))
        void queue.run(async () => resolve()).then(() => clock.clearTimeout(timer))
      })
    },
  }
}

function parseResult<Output>(schema: v.GenericSchema<unknown, Output>, result: unknown): Output {
  const { issues, output, success } = v.safeParse(schema, result, { abortEarly: true })
  if (success) return output
  throw wrongResult(`${v.getDotPath(issues[0]) ?? 'the result'}: ${issues[0].message}`)
}

function checkAscending(pets: readonly Pet[], after: Int64 = 0): void {
  for (const [index, { id }] of pets.entries()) {
    const last = pets[index - 1]?.id ?? after
    if (id <= last) throw wrongResult(`${index}: expected an id above ${last}, got ${id}`)
  }
}

/** The storage returned what cannot be right. */
function wrongResult(message: string): EmbeddingError {
  return new EmbeddingError(`storage: ${message}`)
}

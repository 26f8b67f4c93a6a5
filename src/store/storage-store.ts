/**
 * The store on an embedder's storage. It groups creations, checks the pets that come back, makes refusals of
 * errors, and keeps no pets.
 */
import * as v from 'valibot'
import { isInt64, type Int64 } from '../json/int64.ts'
import { expected } from '../text/schemas.ts'
import { nameUnseen } from '../text/words.ts'
import { PetSchema } from '../pet/pet-rules.ts'
import type { Pet, PetWithoutId } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { EmbeddingError, errorCode, isError } from '../system/errors.ts'
import { createCommitQueue } from './commit-queue.ts'
import {
  failureKnownMs,
  notReadable,
  notStored,
  perhapsStored,
  type PetStorage,
  PetStoreError,
  storageFailure,
  storeClosed,
  type Store,
} from './store.ts'

const maxPetsPerCall = 1000
/** The log has at most so many characters of what a storage says. */
const maxReasonLength = 1000
/** A storage gives its error this code if it refuses a pet (PetStorage). */
const petRefused = 'pet_refused'

const isPetRefused = (error: unknown) => isError(error) && errorCode(error.cause) === petRefused

const PageSchema = v.object({
  pets: v.array(PetSchema),
  total: v.optional(expected<Int64>('an integer from 0 to 2^63-1', (total) => isInt64(total) && total >= 0)),
  hasMore: v.boolean(),
})

export function createStorageStore(storage: PetStorage, onMessage?: (message: string) => void): Store {
  const queue = createCommitQueue<PetWithoutId, Pet>(createAll, maxPetsPerCall)
  /**
   * When each kind of call last failed (`clock.performanceNow()`), while none of that kind has succeeded
   * since. The kinds are apart, because reads still work on a full disk.
   */
  const failedAt = new Map<'reads' | 'creations', number>()
  /** A client may send a bad pet again and again. The log is told of a new reason only. */
  let lastRefusal = ''
  let isClosed = false

  function isCreationKnownToFail(): boolean {
    const knownMs = clock.performanceNow() - (failedAt.get('creations') ?? -Infinity)
    return knownMs < failureKnownMs
  }

  /** A database refuses a whole group for one bad pet. Then each is tried by itself. */
  async function createAll(newPets: readonly PetWithoutId[]): Promise<readonly (Pet | Error)[]> {
    try {
      return await createTogether(newPets)
    } catch (error) {
      if (newPets.length === 1 || !isPetRefused(error)) throw error
    }
    const results: (Pet | Error)[] = []
    for (const newPet of newPets) {
      results.push(...(await createTogether([newPet]).catch((error: Error) => [error])))
      const last = results.at(-1)
      // A database that no longer responds would use up its time limit for each pet, so the rest is not
      // tried.
      if (isError(last) && !isPetRefused(last)) break
    }
    return newPets.map((_, i) => results[i] ?? storageFailure(false, notStored))
  }

  async function createTogether(newPets: readonly PetWithoutId[]): Promise<readonly Pet[]> {
    const pets = parseResult(v.array(PetSchema), await call('creations', () => storage.create(newPets)))
    if (pets.length === newPets.length) return pets
    throw new EmbeddingError(`storage: expected ${newPets.length} pets, got ${pets.length}`)
  }

  /** Rejects with a PetStoreError for whatever the storage throws. */
  async function call(kind: 'reads' | 'creations', method: () => unknown): Promise<unknown> {
    const noteSuccess = (): void => {
      if (failedAt.delete(kind) && failedAt.size === 0) onMessage?.('the storage works again')
    }
    try {
      const result = await method()
      noteSuccess()
      return result
    } catch (error) {
      // A trigger of the owner may quote what a client has sent.
      const words = isError(error) ? error.message || errorCode(error) : typeof error
      const reason = nameUnseen(words.slice(0, maxReasonLength))
      const code = errorCode(error)
      if (kind === 'creations' && code === petRefused) {
        noteSuccess()
        if (reason !== lastRefusal) onMessage?.(`the storage refused a pet: ${reason}`)
        lastRefusal = reason
        throw new PetStoreError('storage_failed', `The pet was refused by the database; ${notStored}.`, error)
      }
      // A creation may have failed at nine, and nobody has tried another. Then an outage of reads at noon is
      // told as a new one.
      if (!isCreationKnownToFail()) failedAt.delete('creations')
      if (failedAt.size === 0) onMessage?.(`the storage failed: ${reason}; each request tries it again`)
      failedAt.set(kind, clock.performanceNow())
      const isFull = code === 'insufficient_storage'
      if (kind === 'reads') throw storageFailure(isFull, notReadable, error)
      // A storage stores all pets of a call or none: one that has no room for them has stored none.
      throw storageFailure(isFull, isFull || code === 'nothing_stored' ? notStored : perhapsStored, error)
    }
  }

  return {
    async list({ limit, status, after }) {
      const page = parseResult(PageSchema, await call('reads', () => storage.list({ limit, status, after })))
      if (page.pets.length <= limit) return page
      throw new EmbeddingError(`storage: expected at most ${limit} pets, got ${page.pets.length}`)
    },
    async get(id) {
      return parseResult(v.optional(PetSchema), await call('reads', () => storage.get(id)))
    },
    create: (newPet) => (isClosed ? Promise.reject(storeClosed()) : queue.add(newPet)),
    whyNoCreation: () => (isCreationKnownToFail() ? 'storage_failed' : undefined),
    /** Resolves when the queue is empty, or at the deadline if one is given: a storage may never answer. */
    close(deadline) {
      isClosed = true
      return new Promise((resolve) => {
        // The listener may have taken all the time. Newer versions of Node warn of a negative delay
        // (https://github.com/nodejs/node/pull/46678).
        const timer = deadline && clock.setTimeout(resolve, Math.max(0, deadline - clock.performanceNow()))
        void queue.run(async () => resolve()).then(() => clock.clearTimeout(timer))
      })
    },
  }
}

function parseResult<Output>(schema: v.GenericSchema<unknown, Output>, result: unknown): Output {
  const { issues, output, success } = v.safeParse(schema, result, { abortEarly: true })
  if (success) return output
  throw new EmbeddingError(`storage: ${v.getDotPath(issues[0]) ?? 'the result'}: ${issues[0].message}`)
}

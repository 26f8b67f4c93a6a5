/**
 * The store on a data file. A pet is listed only when it is durable, and hand edits are looked for. They and creations go through one queue,
 * so they cannot interleave.
 */
import { Low } from 'lowdb'
import { AppendFailed, openDataFile, type DataFile, type PetData } from '../data-file/data-file.ts'
import { DataFileChanged, DataFileUnusable, type DiskOptions } from '../data-file/disk.ts'
import { maxAppendPets } from '../data-file/file-text.ts'
import type { Int64 } from '../json/json.ts'
import { fillIds, formatPetCount, type Pet, type PetWithoutId, type SeedPet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { errorCode, isError, isSystemError } from '../system/errors.ts'
import { createCommitQueue } from './commit-queue.ts'
import { PetIndex } from './pet-index.ts'
import { failureKnownMs, noIdLeft, notStored, perhapsStored, PetStoreError } from './store.ts'
import { storageFailure, storeClosed, type PetPage, type PetQuery, type Store } from './store.ts'

const lookEveryMs = 500

/** After so many edits in a row, a creation is refused. */
const maxEdits = 10

interface FileStoreOptions extends DiskOptions {
  /** Called for a bug that shows while nobody waits for an answer. */
  readonly onError?: (message: string) => void
}

export async function openFileStore(path: string, options: FileStoreOptions = {}): Promise<FileStore> {
  const { file, data } = await openDataFile(path, options)
  return new FileStore(new Low<PetData>(file, data), file, options)
}

/** Of the last look at the file or, if that found nothing, of the last creation. */
interface Failure {
  readonly error: unknown
  /** The last that was said, if anything. */
  readonly said: string | undefined
  /** When it is over by itself (`clock.performanceNow()`): never if a look has met it. */
  readonly endMs: number
}

export class FileStore implements Store {
  version = 0
  readonly #low: Low<PetData>
  readonly #file: DataFile
  readonly #say: (message: string) => void
  readonly #queue = createCommitQueue<PetWithoutId, Pet>((newPets) => this.#commit(newPets), maxAppendPets)
  readonly #timer: NodeJS.Timeout
  #index: PetIndex
  #failure: Failure | undefined
  #closed: Promise<void> | undefined

  constructor(low: Low<PetData>, file: DataFile, options: FileStoreOptions) {
    this.#low = low
    this.#file = file
    this.#say = options.onMessage ?? (() => {})
    this.#index = new PetIndex(low.data.pets)
    this.#timer = this.#lookAtIntervals(options)
  }

  get size(): number {
    return this.#index.size
  }

  get dataFileError(): string | undefined {
    const error = this.#failure?.error
    return error instanceof DataFileUnusable ? error.summary : undefined
  }

  whyNoCreation(): 'read_only' | 'storage_failed' | undefined {
    if (this.dataFileError !== undefined || this.#file.isReadOnly()) return 'read_only'
    const isKnown = this.#failure !== undefined && clock.performanceNow() < this.#failure.endMs
    return isKnown ? 'storage_failed' : undefined
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

  /** To what the file says now. Rejects with a PetStoreError after `close`. Throws a TypeError for pets, since those of the file are a person's. */
  reset(seeds?: readonly SeedPet[]): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(storeClosed())
    if (seeds !== undefined)
      throw new TypeError('pets: a store on a data file takes no others; edit the file')
    return this.#queue.run(() => this.#reload())
  }

  close(): Promise<void> {
    clock.clearInterval(this.#timer)
    this.#closed ??= this.#queue.run(async () => {
      // Somebody may have damaged the file since the last look.
      await this.#reload({ isLast: true }).catch(() => {})
      await this.#file.close()
    })
    return this.#closed
  }

  async #commit(newPets: readonly PetWithoutId[]): Promise<readonly (Pet | PetStoreError)[]> {
    const file = this.#file
    // In the file, or in an editor that has read them and may save them again.
    let mayBeStored = false
    let results = fillIds(newPets, file.highestGivenId)
    for (let edits = 0; ; edits++) {
      try {
        await this.#append(results)
        return results.map((pet) => pet ?? noIdLeft())
      } catch (failure) {
        const error = failure instanceof AppendFailed ? failure.cause : failure
        if (failure instanceof AppendFailed && failure.mayBeStored) mayBeStored = true
        // Once a mode is put right, creations are possible at once.
        if (isSystemError(error)) this.#fail(error, file.isReadOnly() ? 0 : failureKnownMs)
        if (!(error instanceof DataFileChanged) || edits === maxEdits) throw toRefusal(error, mayBeStored)
        await this.#reload({ mayBeStored })
        results = this.#giveIdsAgain(newPets, results, mayBeStored)
      }
    }
  }

  /** What a creation that met an edit is to append: pets of which `results` were not stored, unless they are listed. */
  #giveIdsAgain(
    newPets: readonly PetWithoutId[],
    results: readonly (Pet | undefined)[],
    mayBeStored: boolean,
  ): readonly (Pet | undefined)[] {
    // An editor may have read the file while our pets were in it, and have saved them. They are listed then, perhaps with another status,
    // but with their ids, names and categories: anything else is a person's own pet, who took the next id.
    const stored = results.map((pet) => {
      const listed = pet && mayBeStored ? this.#index.get(pet.id) : undefined
      return listed?.name === pet?.name && listed?.categoryId === pet?.categoryId ? listed : undefined
    })
    // The others keep their ids, unless a pet is listed that has one of these or a higher one.
    const { highestListedId } = this.#index
    const areTaken = results.some((pet, index) => {
      return stored[index] === undefined && pet !== undefined && pet.id <= highestListedId
    })
    const kept = areTaken ? stored : results.map((pet, index) => stored[index] ?? pet)
    const pets = newPets.map((newPet, index) => kept[index] ?? newPet)
    return fillIds(pets, this.#file.highestGivenId)
  }

  async #append(results: readonly (Pet | undefined)[]): Promise<void> {
    const { pets } = this.#low.data
    const count = pets.length
    const added = results.filter(
      (pet): pet is Pet => pet !== undefined && this.#index.get(pet.id) === undefined,
    )
    // No id may be left.
    if (added.length === 0) return
    pets.push(...added)
    try {
      await this.#low.write()
    } catch (error) {
      pets.length = count
      throw error
    }
    this.#index.showAdded()
    this.version++
    this.#mend()
  }

  /** Reads the file, if it was edited. Throws a PetStoreError while it cannot be used; `mayBeStored` is for its message. */
  async #reload({ mayBeStored = false, isLast = false } = {}): Promise<void> {
    const file = this.#file
    try {
      const isEdited = await file.look()
      if (isEdited) await this.#low.read()
      // A look at the same file makes no creation possible, and a changed mode may not either.
      if ((isEdited && !file.isReadOnly()) || this.#failure?.endMs === Infinity) this.#mend()
      if (isEdited) this.#reindex()
    } catch (error) {
      const kept = await file.keepPets(isLast)
      const refusal = toRefusal(error, mayBeStored)
      if (refusal instanceof PetStoreError) this.#fail(error, Infinity, kept)
      throw refusal
    }
  }

  #lookAtIntervals({ onError }: FileStoreOptions): NodeJS.Timeout {
    let isLooking = false
    const look = async (): Promise<void> => {
      if (isLooking) return
      isLooking = true
      await this.#queue
        .run(() => this.#reload())
        .catch((error: unknown) => {
          // It was said already.
          if (error instanceof PetStoreError) return
          onError?.(
            `internal_error in a look at the data file: ${isError(error) ? error.name : typeof error}`,
          )
        })
      isLooking = false
    }
    return clock.setInterval(look, lookEveryMs).unref()
  }

  /** Lists the pets that lowdb has now, and says what has changed. */
  #reindex(): void {
    const next = new PetIndex(this.#low.data.pets)
    const { added, removed, changed } = this.#index.changesTo(next)
    this.#say(`reloaded ${formatPetCount(next.size)}: ${added} added, ${removed} removed, ${changed} changed`)
    this.#index = next
    this.version++
  }

  /** Of creations, the first that fails is told. `kept`: what became of the pets. */
  #fail(error: unknown, knownMs: number, kept = ''): void {
    const { dataFileError } = this
    const file = this.#file
    const isLook = knownMs === Infinity
    const last = this.#failure
    if (!isLook && last?.endMs === Infinity) return
    const isFault = error instanceof DataFileUnusable
    const fault = isFault ? error.message : `${file.name}: cannot be used: ${file.describeError(error)}`
    const separator = fault.includes('\n') ? `\n${file.name}: ` : '; '
    const consequence = 'no pet can be added until this is fixed; the last valid pets are still served'
    // While it is being saved it is too early to say anything, unless that goes on.
    const isEarly = error instanceof DataFileChanged && !(last?.error instanceof DataFileChanged)
    const isTold = isEarly || (!isLook && last !== undefined)
    const said = isTold ? last?.said : `${fault}${separator}${consequence}${kept}`
    if (said !== undefined && said !== last?.said) this.#say(said)
    this.#failure = { error, said, endMs: clock.performanceNow() + knownMs }
    // Lists are cached by the version, and carry X-Data-File-Error.
    if (this.dataFileError !== dataFileError) this.version++
  }

  #mend(): void {
    const isFault = this.dataFileError !== undefined
    const state = isFault ? 'is valid again, and the pets come from it' : 'can be used again'
    if (this.#failure?.said !== undefined) this.#say(`${this.#file.name}: ${state}`)
    this.#failure = undefined
  }
}

/** What neither the file nor its system says is a bug, and stays as it is. */
function toRefusal(error: unknown, mayBeStored: boolean): unknown {
  const outcome = mayBeStored ? perhapsStored : notStored
  if (error instanceof DataFileUnusable) {
    const message = `The data file is not valid (${error.summary}); ${outcome}.`
    return new PetStoreError('data_file_invalid', message)
  }
  if (!isSystemError(error)) return error
  return storageFailure(['ENOSPC', 'EDQUOT', 'EFBIG'].includes(errorCode(error)), outcome, error)
}

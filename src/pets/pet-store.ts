/**
 * The store in memory, with or without a data file: with one, only what is durable is listed. Pets come in by `create` and by hand
 * edits of the file; both go through one queue, so that neither overtakes the other. Knows no HTTP.
 */
import { Low, Memory } from 'lowdb'
import {
  type DataFile,
  type DataFileOptions,
  lookEveryMs,
  openDataFile,
  type PetData,
} from '../data-file/data-file.ts'
import { DataFileEdited, DataFileInvalid } from '../data-file/data-file-error.ts'
import { maxAppendPets } from '../data-file/pets-text.ts'
import { errorCode } from '../system-error.ts'
import { nextInt64 } from '../json/int64.ts'
import type { Int64, NewPet, Pet, PetPage, PetQuery, SeedPet } from '../types.ts'
import { CommitQueue } from './commit-queue.ts'
import { isSamePet, PetIndex } from './pet-index.ts'
import { completeSeeds } from './seeds.ts'
import { notStored, perhapsStored, PetStoreError, type Store, storageFailure } from './store.ts'

const noIdLeft = 'There is no id left: the highest is 9223372036854775807. Nothing was stored.'

/** Opens the store on a data file (see openDataFile). */
export async function openPetStore(path: string, options: DataFileOptions = {}): Promise<PetStore> {
  const { file, data } = await openDataFile(path, options)
  return new PetStore(new Low<PetData>(file, data), file, options.onMessage)
}

/** A store in memory, with these pets; missing ids and statuses are filled in. Throws a TypeError on a wrong pet. */
export function createMemoryStore(seeds: readonly SeedPet[]): PetStore {
  return new PetStore(new Low<PetData>(new Memory(), { pets: completeSeeds(seeds) }))
}

export class PetStore implements Store {
  readonly #low: Low<PetData>
  readonly #file: DataFile | undefined
  readonly #onMessage: (message: string) => void
  readonly #queue = new CommitQueue<NewPet, Pet>((newPets) => this.#commit(newPets), maxAppendPets)
  readonly #seeds: readonly Pet[]
  readonly #timer: NodeJS.Timeout | undefined
  #index: PetIndex
  /** Why the file cannot be used since its last edit. */
  #invalid: DataFileInvalid | undefined
  /** Whether the current failure of the disk was reported. */
  #isFailing = false
  #closed: Promise<void> | undefined
  #version = 0

  constructor(low: Low<PetData>, file?: DataFile, onMessage: (message: string) => void = () => {}) {
    this.#low = low
    this.#file = file
    this.#onMessage = onMessage
    this.#index = new PetIndex(low.data.pets)
    this.#seeds = file === undefined ? [...low.data.pets] : []
    if (file !== undefined) this.#timer = this.#lookForEdits(file)
  }

  get size(): number {
    return this.#index.size
  }

  get version(): number {
    return this.#version
  }

  get dataFileError(): string | undefined {
    return this.#invalid?.place
  }

  get(id: Int64): Pet | undefined {
    return this.#index.get(id)
  }

  list(query: PetQuery): PetPage {
    return this.#index.list(query)
  }

  create(newPet: NewPet): Promise<Pet> {
    if (this.#closed !== undefined) return Promise.reject(new PetStoreError('shutting_down'))
    return this.#queue.add(newPet)
  }

  /** Back to the pets that it was created with or, with a data file, to what the file says now. */
  reset(): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(new PetStoreError('shutting_down'))
    return this.#queue.run(async () => {
      if (this.#file === undefined) {
        this.#low.data = { pets: [...this.#seeds] }
        this.#reindex()
      } else {
        await this.#reload(this.#file)
      }
    })
  }

  /** Waits for the creations in flight, and releases the file. Can be called again. */
  close(): Promise<void> {
    clearInterval(this.#timer)
    this.#closed ??= this.#queue.run(async () => this.#file?.close())
    return this.#closed
  }

  /** Stores a batch; gives the pet for each, or an error where no id is left. Throws a PetStoreError for the whole batch. */
  async #commit(newPets: readonly NewPet[]): Promise<readonly (Pet | Error)[]> {
    let results: readonly (Pet | Error)[] = []
    let mayBeStored = false
    // The file may have been fixed since it was last looked at.
    if (this.#file !== undefined && this.#invalid !== undefined) await this.#reload(this.#file)
    for (;;) {
      const { pets } = this.#low.data
      const count = pets.length
      results = this.#assignIds(newPets, results)
      const added = results.filter((pet): pet is Pet => !(pet instanceof Error) && !this.#isStored(pet))
      pets.push(...added)
      try {
        await this.#low.write()
      } catch (error) {
        pets.length = count
        if (this.#file === undefined) throw error
        mayBeStored ||= this.#file.mayHoldLastWrite
        if (!(error instanceof DataFileEdited)) throw this.#reportFailure(this.#file, error, mayBeStored)
        // The edit comes first; the batch is then added to it.
        await this.#reload(this.#file, mayBeStored)
        continue
      }
      for (const pet of added) this.#index.add(pet)
      this.#version++
      if (this.#file !== undefined) this.#reportWorking(this.#file)
      return results
    }
  }

  /** Gives ids, in order. After an edit, a pet of the first attempt that is in the edited file keeps its id. */
  #assignIds(newPets: readonly NewPet[], earlier: readonly (Pet | Error)[]): readonly (Pet | Error)[] {
    let last = this.#file?.highestId ?? this.#index.highestId
    return newPets.map((newPet, index) => {
      const before = earlier[index]
      if (before !== undefined && !(before instanceof Error) && this.#isStored(before)) return before
      const id = nextInt64(last)
      if (id === undefined) return new PetStoreError('insufficient_storage', noIdLeft)
      last = id
      return { id, ...newPet }
    })
  }

  #isStored(pet: Pet): boolean {
    const stored = this.#index.get(pet.id)
    return stored !== undefined && isSamePet(stored, pet)
  }

  /** Swaps in a hand edit, whole, if there is one. Throws a PetStoreError while the file cannot be used. */
  async #reload(file: DataFile, mayBeStored = false): Promise<void> {
    try {
      const isRolledBack = await file.rollBack()
      const isEdited = file.isEdited()
      if (isEdited) {
        await this.#low.read()
        this.#invalid = undefined
        this.#reindex()
      }
      if (isRolledBack || isEdited) this.#reportWorking(file)
    } catch (error) {
      throw this.#reportFailure(file, error, mayBeStored)
    }
    if (this.#invalid !== undefined) throw this.#reportFailure(file, this.#invalid, mayBeStored)
  }

  #reindex(): void {
    const next = new PetIndex(this.#low.data.pets)
    const { added, removed, changed } = this.#index.changesTo(next)
    this.#index = next
    this.#version++
    this.#onMessage(`reloaded ${next.size} pets: ${added} added, ${removed} removed, ${changed} changed`)
  }

  #lookForEdits(file: DataFile): NodeJS.Timeout {
    let isLooking = false
    const look = async (): Promise<void> => {
      if (isLooking) return
      isLooking = true
      // It was reported when it was found, and whoever adds a pet is told too.
      await this.#queue.run(() => this.#reload(file)).catch(() => {})
      isLooking = false
    }
    return setInterval(look, lookEveryMs).unref()
  }

  /** Makes the client's error, and reports the cause once to the person who runs the server. */
  #reportFailure(file: DataFile, error: unknown, mayBeStored: boolean): PetStoreError {
    const outcome = mayBeStored ? perhapsStored : notStored
    if (error instanceof DataFileInvalid) {
      if (error !== this.#invalid) this.#reportInvalid(file, error)
      return new PetStoreError(
        'data_file_invalid',
        `The data file is not valid (${error.place}); ${outcome}.`,
      )
    }
    this.#reportFailing(file, error)
    const isFull = ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(errorCode(error))
    return storageFailure(isFull, outcome, error)
  }

  #reportInvalid(file: DataFile, error: DataFileInvalid): void {
    this.#invalid = error
    this.#version++
    if (!error.isSettled) return
    const consequence = 'the last valid data is still served, and no pet can be added until this is fixed'
    const separator = error.message.includes('\n') ? `\n${file.path}: ` : '; '
    this.#onMessage(`${error.message}${separator}${consequence}`)
  }

  #reportFailing(file: DataFile, error: unknown): void {
    if (this.#isFailing) return
    this.#isFailing = true
    const reason = file.describeError(error)
    this.#onMessage(`${file.path}: cannot be used: ${reason}; pets are still served, but none can be added`)
  }

  #reportWorking(file: DataFile): void {
    if (!this.#isFailing) return
    this.#isFailing = false
    this.#onMessage(`${file.path}: can be used again`)
  }
}

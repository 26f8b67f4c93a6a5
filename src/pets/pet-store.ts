/**
 * The store: what is listed is what is durable. Pets come in by `create` and by hand edits of the file; both go through
 * one queue, so that neither can overtake the other.
 */
import { Low, Memory } from 'lowdb'
import { describeSystemError } from '../data-file/system-error.ts'
import { nextInt64 } from '../json/int64.ts'
import type { Int64, NewPet, Pet, PetPage, PetQuery, SeedPet } from '../types.ts'
import { CommitQueue } from './commit-queue.ts'
import {
  type DataFile,
  DataFileEdited,
  DataFileInvalid,
  type DataFileOptions,
  openDataFile,
  type PetData,
} from '../data-file/data-file.ts'
import { isSamePet, PetIndex } from './pet-index.ts'
import { PetStoreError, storageError } from './pet-store-error.ts'
import type { Store } from './store.ts'
import { maxAppendPets, parsePetsText, PetsFault } from '../data-file/pets-text.ts'

/** How often the file is looked at for hand edits. */
const lookEveryMs = 500

const noIdLeft = 'There is no id left: the highest is 9223372036854775807.'

/** Opens the store on a data file (see openDataFile). */
export async function openPetStore(path: string, options: DataFileOptions = {}): Promise<PetStore> {
  const { file, data } = await openDataFile(path, options)
  return new PetStore(new Low<PetData>(file, data), file, options.say)
}

/** A store in memory, with these pets; ids and statuses are given where they are missing. Throws on a wrong pet. */
export function createMemoryStore(pets: readonly SeedPet[]): PetStore {
  return new PetStore(new Low<PetData>(new Memory(), readSeeds(pets)))
}

export class PetStore implements Store {
  readonly #low: Low<PetData>
  readonly #file: DataFile | undefined
  readonly #say: (line: string) => void
  readonly #queue = new CommitQueue<NewPet, Pet>((newPets) => this.#commit(newPets), maxAppendPets)
  readonly #seeds: readonly Pet[]
  readonly #timer: NodeJS.Timeout | undefined
  #index: PetIndex
  /** Why the file cannot be used since its last edit. */
  #fault: DataFileInvalid | undefined
  #isFailing = false
  #closed: Promise<void> | undefined
  /** Grows with every change of what is listed. */
  version = 0

  constructor(low: Low<PetData>, file?: DataFile, say: (line: string) => void = () => {}) {
    this.#low = low
    this.#file = file
    this.#say = say
    this.#index = new PetIndex(low.data.pets)
    this.#seeds = file === undefined ? [...low.data.pets] : []
    if (file !== undefined) this.#timer = this.#watch()
  }

  get size(): number {
    return this.#index.size
  }

  /** What is wrong with the data file since its last edit; undefined while it is valid. */
  get dataFileError(): string | undefined {
    return this.#fault?.place
  }

  get(id: Int64): Pet | undefined {
    return this.#index.get(id)
  }

  list(query: PetQuery): PetPage {
    return this.#index.list(query)
  }

  /** Resolves when the pet is durable; rejects with a PetStoreError, and then nothing was stored. */
  create(newPet: NewPet): Promise<Pet> {
    if (this.#closed !== undefined) return Promise.reject(new PetStoreError('shutting_down'))
    return this.#queue.add(newPet)
  }

  /** Back to the pets that it was made with; with a file, to what the file says now. */
  reset(): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(new PetStoreError('shutting_down'))
    return this.#queue.run(async () => {
      if (this.#file === undefined) {
        this.#low.data = { pets: [...this.#seeds] }
        this.#reindex()
      } else {
        await this.#takeEdit()
      }
    })
  }

  /** Waits for the creations under way, and releases the file. Can be called again. */
  close(): Promise<void> {
    clearInterval(this.#timer)
    this.#closed ??= this.#queue.run(async () => this.#file?.close())
    return this.#closed
  }

  async #commit(newPets: readonly NewPet[]): Promise<readonly (Pet | Error)[]> {
    let made: readonly (Pet | Error)[] = []
    if (this.#fault !== undefined) await this.#takeEdit()
    for (;;) {
      const { pets } = this.#low.data
      const count = pets.length
      made = this.#withIds(newPets, made)
      const added = made.filter((pet): pet is Pet => !(pet instanceof Error) && !this.#isStored(pet))
      pets.push(...added)
      try {
        // This looks for an edit itself, at the last moment.
        await this.#low.write()
      } catch (error) {
        pets.length = count
        if (!(error instanceof DataFileEdited)) throw this.#refusal(error)
        await this.#takeEdit()
        continue
      }
      for (const pet of added) this.#index.add(pet)
      this.version++
      this.#sayWorking()
      return made
    }
  }

  /** Gives ids, in order. A pet of an earlier try that an edit has taken into the file keeps its own. */
  #withIds(newPets: readonly NewPet[], earlier: readonly (Pet | Error)[]): readonly (Pet | Error)[] {
    let last = this.#index.highestId
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

  /** Swaps in a hand edit, whole, if there is one. Throws while the file is not valid. */
  async #takeEdit(): Promise<void> {
    if (this.#file === undefined) return
    try {
      await this.#file.mend()
      if (this.#file.isEdited()) {
        await this.#low.read()
        this.#fault = undefined
        this.#reindex()
      }
    } catch (error) {
      throw this.#refusal(error)
    }
    if (this.#fault !== undefined) throw new PetStoreError('data_file_invalid')
  }

  #reindex(): void {
    const next = new PetIndex(this.#low.data.pets)
    const { added, removed, changed } = this.#index.changesTo(next)
    this.#index = next
    this.version++
    this.#say(`reloaded ${next.size} pets: ${added} added, ${removed} removed, ${changed} changed`)
  }

  #watch(): NodeJS.Timeout {
    let isLooking = false
    const look = async (): Promise<void> => {
      if (isLooking) return
      isLooking = true
      // What is wrong with the file was said, and is told to whoever wants to add a pet.
      await this.#queue.run(() => this.#takeEdit()).catch(() => {})
      isLooking = false
    }
    return setInterval(look, lookEveryMs).unref()
  }

  /** What a client is told; the person who runs the server is told why, once. */
  #refusal(error: unknown): PetStoreError {
    if (error instanceof DataFileInvalid) {
      if (error.isSettled)
        this.#say(`${error.message}; still serving the pets of before, none can be added until it is fixed`)
      this.#fault = error
      this.version++
      return new PetStoreError('data_file_invalid')
    }
    if (!this.#isFailing && this.#file !== undefined) {
      this.#isFailing = true
      const reason = describeSystemError(error)
      this.#say(`${this.#file.path}: cannot be used: ${reason}; the pets are served, none can be added`)
    }
    return storageError(error)
  }

  #sayWorking(): void {
    if (!this.#isFailing || this.#file === undefined) return
    this.#isFailing = false
    this.#say(`${this.#file.path}: can be used again`)
  }
}

/** Seeds are checked and completed just as if they stood in a data file. */
function readSeeds(seeds: readonly SeedPet[]): PetData {
  const pets = seeds.map((seed) => {
    const members = Object.entries(seed).filter(([, value]) => value !== undefined)
    return `{${members.map(([key, value]) => `${JSON.stringify(key)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`).join()}}`
  })
  try {
    return { pets: parsePetsText(Buffer.from(`{"pets":[${pets.join()}]}`)).pets }
  } catch (error) {
    throw error instanceof PetsFault ? new TypeError(error.message) : error
  }
}

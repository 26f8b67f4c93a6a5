/**
 * The store on a data file. A pet is listed only when it is durable, and hand edits are looked for. Edits and
 * creations go through one queue, so they cannot interleave.
 */
import { Low } from 'lowdb'
import { DataFileUnusable, isChanged } from '../data-file/data-file-errors.ts'
import { AppendFailed, type DataFile, type PetData } from '../data-file/data-file.ts'
import { type Disk, type DiskOptions } from '../data-file/disk.ts'
import { maxAppendPets } from '../data-file/file-text.ts'
import { openDataFile } from '../data-file/start.ts'
import { nextInt64, type Int64 } from '../json/int64.ts'
import { fillIds, formatPetCount, type Pet, type PetWithoutId, type SeedPet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { describeBug, isNoRoom, isSystemError } from '../system/errors.ts'
import { createCommitQueue } from './commit-queue.ts'
import { PetIndex } from './pet-index.ts'
import {
  type LocalStore,
  type NoCreationCode,
  noIdLeft,
  notStored,
  perhapsStored,
  type PetPage,
  type PetQuery,
  PetStoreError,
  stillServed,
  storageFailure,
  storeClosed,
} from './store.ts'
import { Trouble } from './trouble.ts'

const lookEveryMs = 500

/**
 * A stop that still keeps pets says so, this long after the requests in flight had to be finished: soon after
 * it, the program ends itself.
 */
export const sayUnkeptMs = 600

/** After this many edits in a row, a creation is refused. */
const maxEdits = 10

interface FileStoreOptions extends DiskOptions {
  /** Called for a bug that shows while nobody waits for an answer. */
  readonly onError?: (message: string) => void
}

export async function openFileStore(path: string, options: FileStoreOptions = {}): Promise<FileStore> {
  const { disk, file, data } = await openDataFile(path, options)
  return new FileStore(disk, file, new Low<PetData>(file, data), options)
}

export class FileStore implements LocalStore {
  version = 0
  readonly #disk: Disk
  readonly #file: DataFile
  readonly #low: Low<PetData>
  readonly #say: (message: string) => void
  readonly #queue = createCommitQueue<PetWithoutId, Pet>((newPets) => this.#commit(newPets), maxAppendPets)
  readonly #timer: NodeJS.Timeout
  readonly #trouble: Trouble
  #index: PetIndex
  #closed: Promise<void> | undefined

  constructor(disk: Disk, file: DataFile, low: Low<PetData>, options: FileStoreOptions) {
    this.#disk = disk
    this.#file = file
    this.#low = low
    this.#say = options.onMessage ?? (() => {})
    this.#index = new PetIndex(low.data.pets)
    this.#timer = this.#lookAtIntervals(options)
    this.#trouble = new Trouble(disk, this.#say)
  }

  get size(): number {
    return this.#index.size
  }

  get dataFileError(): string | undefined {
    return this.#trouble.dataFileError
  }

  whyNoCreation(): NoCreationCode | undefined {
    const isIdLeft = nextInt64(this.#file.highestGivenId) !== undefined
    return this.#trouble.code ?? (isIdLeft ? undefined : 'storage_failed')
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

  /**
   * Resets to what the file says now. Throws a TypeError for pets, since those of the file are a person's.
   */
  reset(seeds?: readonly SeedPet[]): Promise<void> {
    if (seeds !== undefined)
      throw new TypeError(
        'pets: a store on a data file takes no others, so edit the file; as a hook, write () => store.reset()',
      )
    return this.#queue.run(() => this.#look())
  }

  close(deadline?: number): Promise<void> {
    clock.clearInterval(this.#timer)
    this.#closed ??= this.#closeOnce(deadline)
    return this.#closed
  }

  async #closeOnce(deadline = Infinity): Promise<void> {
    // A program that stops may soon be ended, even while pets are being kept on a slow disk.
    const sayUnkept = (): void => {
      if (this.#trouble.isKeeping) this.#disk.say(`${formatPetCount(this.size)} are not kept beside it yet`)
    }
    // Without a deadline, it is said after 24 days, which is the longest that a timer of Node's can wait.
    const waitMs = Math.min(2 ** 31 - 1, Math.max(0, deadline - clock.performanceNow()) + sayUnkeptMs)
    const timer = clock.setTimeout(sayUnkept, waitMs)
    await this.#queue.run(async () => {
      this.#file.forgetKeepFailure()
      // Somebody may have damaged the file since the last look.
      await this.#look().catch(() => {})
      await this.#file.keepPets().catch((error: unknown) => {
        const fault = `could not be kept beside it: ${this.#disk.describeFailure(error)}`
        this.#disk.say(`${formatPetCount(this.size)} ${fault}`)
      })
      await this.#file.close()
    })
    clock.clearTimeout(timer)
  }

  async #commit(newPets: readonly PetWithoutId[]): Promise<readonly (Pet | PetStoreError)[]> {
    const file = this.#file
    // Our pets may be in the file, or in an editor that has read them and may save them again.
    let mayBeStored = false
    let results = fillIds(newPets, file.highestGivenId)
    for (let edits = 0; ; edits++) {
      try {
        await this.#append(results)
        return results.map((pet) => pet ?? noIdLeft())
      } catch (failure) {
        const error = failure instanceof AppendFailed ? failure.cause : failure
        if (failure instanceof AppendFailed && failure.hasWritten) mayBeStored = true
        if (isSystemError(error)) this.#trouble.creationFailed(error)
        const consequence = mayBeStored ? perhapsStored : notStored
        if (!isChanged(error)) throw toRefusal(error, consequence)
        if (edits === maxEdits)
          throw toRefusal(DataFileUnusable.stillBeingSaved(this.#disk.shownPath), consequence)
        await this.#look(consequence)
        results = this.#giveIdsAgain(newPets, results, mayBeStored)
      }
    }
  }

  /**
   * Returns what a creation that met an edit is to append. Pets that are listed by now count as stored, and
   * are not appended again. If 13 Rex and 14 Mia were half-written, which gives both ids:
   *
   * | The edited file lists  | Rex            | Mia            |
   * | ---------------------- | -------------- | -------------- |
   * | no pet above 12        | appended as 13 | appended as 14 |
   * | 13 Rex                 | stored as 13   | appended as 14 |
   * | 14 Mia                 | appended as 15 | stored as 14   |
   * | 13 Kit, a person's own | appended as 15 | appended as 16 |
   */
  #giveIdsAgain(
    newPets: readonly PetWithoutId[],
    results: readonly (Pet | undefined)[],
    mayBeStored: boolean,
  ): readonly (Pet | undefined)[] {
    // An editor may have read the file while our pets were in it, and have saved them. They are listed then,
    // perhaps with another status, but with their ids, names and categories. Any other pet with such an id is
    // that of a person, who took the next id.
    const stored = results.map((pet) => {
      const listed = pet && mayBeStored ? this.#index.get(pet.id) : undefined
      return listed?.name === pet?.name && listed?.categoryId === pet?.categoryId ? listed : undefined
    })
    // An editor may hold our half-written pet 13 in its buffer. If that pet got id 14 now, a later save of
    // the buffer would bring 13, and remove 14, which was confirmed. So the others keep their ids, unless a
    // pet is listed that has one of these or a higher one.
    const { highestListedId } = this.#index
    const areTaken = results.some((pet, index) => {
      return stored[index] === undefined && pet !== undefined && pet.id <= highestListedId
    })
    const withIds = areTaken ? stored : results.map((pet, index) => stored[index] ?? pet)
    const pets = newPets.map((newPet, index) => withIds[index] ?? newPet)
    return fillIds(pets, this.#file.highestGivenId)
  }

  async #append(results: readonly (Pet | undefined)[]): Promise<void> {
    const { pets } = this.#low.data
    const count = pets.length
    const added = results.filter(
      (pet): pet is Pet => pet !== undefined && this.#index.get(pet.id) === undefined,
    )
    // If no id is left, or all are listed, there is nothing to add.
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
    this.#trouble.creationSucceeded()
  }

  /**
   * Looks at the file, and reads it if it was edited. Throws a PetStoreError while it cannot be used;
   * `consequence` is for its message.
   */
  async #look(consequence = stillServed): Promise<void> {
    try {
      const found = await this.#file.look()
      if (found !== 'same') await this.#low.read()
      this.#trouble.lookSucceeded(found !== 'same')
      if (found !== 'same') this.#reindex(found === 'edited')
    } catch (error) {
      const refusal = toRefusal(error, consequence)
      if (refusal instanceof PetStoreError)
        await this.#trouble.lookFailed(error, () => this.#keepAndDescribe())
      else await this.#keepAndDescribe()
      throw refusal
    }
  }

  /** Keeps the pets, and returns what became of them as the end of a message. */
  async #keepAndDescribe(): Promise<string> {
    try {
      const names = await this.#file.keepPets()
      return names.length === 0 ? '' : `, and are kept in ${names.join(' and ')} until then`
    } catch (error) {
      return `, but cannot be kept beside it: ${this.#disk.describeFailure(error)}`
    }
  }

  #lookAtIntervals({ onError }: FileStoreOptions): NodeJS.Timeout {
    let isLooking = false
    const look = async (): Promise<void> => {
      if (isLooking) return
      isLooking = true
      await this.#queue
        .run(() => this.#look())
        .catch((error: unknown) => {
          // The log has it already.
          if (error instanceof PetStoreError) return
          onError?.(`internal_error in a look at the data file: ${describeBug(error)}`)
        })
      isLooking = false
    }
    return clock.setInterval(look, lookEveryMs).unref()
  }

  /** Lists the pets that lowdb has now. Says what has changed; after an edit, also that nothing has. */
  #reindex(isEdited: boolean): void {
    const next = new PetIndex(this.#low.data.pets)
    const { added, removed, changed } = this.#index.changesTo(next)
    const isNew = isEdited || added + removed + changed > 0
    const changes = `${added} added, ${removed} removed, ${changed} changed`
    if (isNew) this.#say(`reloaded ${formatPetCount(next.size)}: ${changes}`)
    this.#index = next
    this.version++
  }
}

/** An error that comes neither from the file nor from the system is a bug, and stays as it is. */
function toRefusal(error: unknown, consequence: string): unknown {
  if (error instanceof DataFileUnusable) {
    const message = `The data file is not valid (${error.summary}); ${consequence}.`
    return new PetStoreError('data_file_invalid', message)
  }
  if (!isSystemError(error)) return error
  return storageFailure(isNoRoom(error), consequence)
}

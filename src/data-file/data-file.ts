/**
 * The data file as lowdb's adapter. `write` appends in place, and returns when the pets are durable. `read` returns what a person
 * has edited, once the save is complete, and writes missing ids into it. Neither overwrites what somebody else wrote.
 */
import { dirname, join, resolve } from 'node:path'
import type { Adapter } from 'lowdb'
import { clock, delay } from '../clock.ts'
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'
import { errorCode } from '../system-error.ts'
import { Appender } from './appender.ts'
import { DataFileEdited, DataFileUnusable } from './data-file-error.ts'
import { Disk, type FileSystem, type Identity, isSame, unknownIdentity, type WholeFile } from './disk.ts'
import { type FileLock, lockAddresses, lockFile } from './file-lock.ts'
import { describeKeptPets, keepPets, keepTornEnd } from './kept-files.ts'
import { isBlank } from './pets-parser.ts'
import {
  closingBrackets,
  formatFile,
  formatWithIds,
  parsePetsText,
  type PetsText,
  type TextEnd,
} from './pets-text.ts'
import { putBackOldFile, removeLeftovers, replaceFile } from './replace-file.ts'
import { findTornEnd, type TornEnd } from './torn-end.ts'
import { describeFileError, describeUnwritable } from './writability.ts'

/** While a file is being saved, it is looked at again this often. */
const lookAgainMs = 40
/** A file that stays invalid, empty or missing for this long is not being saved any more. */
const settleMs = 400
/** The longest wait for an edited file that keeps changing. */
const maxWaitMs = 1500

const usedByAnother = 'is in use by another server; stop that one, or give this one a file of its own'
const mountedByItself = 'has to be rewritten, but is mounted by itself; mount its folder instead'
const restored = 'restored: a crash had interrupted the server while it replaced this file'
const reclosed = 'repaired: its closing brackets were missing or damaged'
const repaired = 'repaired: its end was cut off by a crash, or it was copied while pets were created'

/** What lowdb holds: the pets by ascending id. */
export interface PetData {
  pets: Pet[]
}

export interface DataFileOptions {
  /** Called with each message for the person who runs the server. */
  readonly onMessage?: (message: string) => void
  readonly fileSystem?: FileSystem
}

/** Opens the data file. Creates a missing one, and repairs one that a crash has damaged. Throws a DataFileUnusable. */
export async function openDataFile(
  path: string,
  { fileSystem, onMessage = () => {} }: DataFileOptions = {},
): Promise<{ file: DataFile; data: PetData }> {
  const disk = new Disk(fileSystem)
  let lock: FileLock | undefined
  try {
    const target = disk.followLinks(resolve(path))
    await disk.makeFolder(dirname(target))
    lock = await lockFile(lockAddresses(target, disk.statIdentity(dirname(target))))
    if (lock === undefined) throw DataFileUnusable.ofFile(path, usedByAnother)
    const file = new DataFile(path, disk, lock, onMessage)
    const data = await file.open()
    const unwritable = describeUnwritable(disk, path)
    if (unwritable !== undefined) onMessage(unwritable)
    return { file, data }
  } catch (error) {
    await lock?.release()
    // An error without a code is not the file system's.
    if (error instanceof DataFileUnusable || errorCode(error) === '') throw error
    throw DataFileUnusable.ofFile(path, `cannot be opened: ${describeFileError(disk, path, error)}`)
  }
}

export class DataFile implements Adapter<PetData> {
  readonly path: string
  readonly #disk: Disk
  readonly #lock: FileLock
  readonly #onMessage: (message: string) => void
  /** Knows the file as it was last read or written. */
  #appender: Appender
  /** How many of the pets are in the file. */
  #count = 0
  #highestId: Int64 = 0
  /**
   * A sync of what an editor wrote has failed. Linux then marks the bytes as written although the disk does not have them, and the
   * next sync succeeds. So the text is written anew before a pet is added to it.
   */
  #hasFailedSync = false

  constructor(path: string, disk: Disk, lock: FileLock, onMessage: (message: string) => void) {
    this.path = path
    this.#disk = disk
    this.#lock = lock
    this.#onMessage = onMessage
    this.#appender = new Appender(disk, path, unknownIdentity)
  }

  /** The highest id so far, also of pets that an edit has removed since: no id is given twice in a run. */
  get highestId(): Int64 {
    return this.#highestId
  }

  /** After a failed `write`: whether its pets may still be in the file, or in an editor's copy of it. */
  get mayBeStored(): boolean {
    return this.#appender.mayBeStored
  }

  /** Whether somebody else has written or replaced the file since it was read or written here. */
  isEdited(): boolean {
    return this.#appender.isEdited()
  }

  /** For openDataFile. Throws a DataFileUnusable, or the file system's error. */
  async open(): Promise<PetData> {
    if (await putBackOldFile(this.#disk, this.#followLinks())) this.#say(restored)
    return this.#readUntilWhole(true, Infinity)
  }

  /**
   * Reads an edited file. Throws the file system's error, or a DataFileUnusable if the file is not valid or is still being saved
   * after `maxWaitMs`. After success, and for a file that is not valid, isEdited() is false until somebody changes the file
   * again. Otherwise it stays true, so that the next look reads the file again.
   */
  read(): Promise<PetData> {
    return this.#readUntilWhole(false, clock.performanceNow() + maxWaitMs)
  }

  async #readUntilWhole(isStart: boolean, deadline: number): Promise<PetData> {
    for (;;) {
      try {
        return await this.#readOnce(isStart)
      } catch (error) {
        if (!(error instanceof DataFileEdited)) throw error
      }
      if (clock.performanceNow() > deadline)
        throw DataFileUnusable.ofFile(this.path, 'is being written', 'being saved')
      await delay(lookAgainMs)
    }
  }

  /** Throws a DataFileEdited when the file has to be read again in a moment. */
  async #readOnce(isStart: boolean): Promise<PetData> {
    const whole = this.#disk.read(this.path)
    const { bytes, identity } = whole
    try {
      if (identity !== undefined) return await this.#adopt(whole, this.#parse(whole))
      if (!isStart) throw DataFileUnusable.ofFile(this.path, 'is missing', 'lost')
      this.#refuseBesideKeptPets('is missing')
      return await this.#rewrite(identity, this.#formatNewFile([]))
    } catch (error) {
      if (!(error instanceof DataFileUnusable)) throw error
      // An editor that saves in place empties the file first, and may take its time to write the rest. At a start, that can only
      // be so if the file was written just now.
      const ageMs = clock.now() - Number((identity?.mtimeNs ?? 0n) / 1_000_000n)
      if (!isStart || ageMs < settleMs) await this.#waitForSave(identity)
      // A replacement that failed halfway may have left the file aside.
      if (await putBackOldFile(this.#disk, this.#followLinks())) throw new DataFileEdited()
      if (isStart && error.reason === 'lost') this.#refuseBesideKeptPets('is empty')
      // A backup that was made during an append may be copied back while the server runs. An unfinished save never looks like that.
      // All other damage may be an unfinished save, and is repaired at a start only.
      const tornEnd = findTornEnd(bytes)
      if (tornEnd !== undefined && (isStart || tornEnd.cause === 'copy')) return this.#repair(whole, tornEnd)
      this.#remember(identity)
      throw error
    }
  }

  /**
   * Adds the pets that are not in the file yet, and returns when they are durable. Throws the file system's error, a
   * DataFileEdited when the file has to be read first, or a DataFileUnusable when there is a folder, say, in its place; see
   * `mayBeStored` for what is then in the file.
   */
  async write({ pets }: PetData): Promise<void> {
    const added = pets.slice(this.#count)
    const last = added.at(-1)
    if (last === undefined) return
    await this.#appender.append(added, this.#count === 0)
    this.#count += added.length
    this.#highestId = last.id
  }

  /** Tries again to undo a failed append, if that did not succeed at once. See Appender.rollBack. */
  rollBack(): Promise<boolean> {
    return this.#appender.rollBack()
  }

  /** A system error in words. Names the folder when that is what cannot be written. */
  describeError(error: unknown): string {
    return describeFileError(this.#disk, this.path, error)
  }

  /** Releases the file. What was acknowledged is durable already; `pets` are those that were served. */
  async close({ pets }: PetData): Promise<void> {
    try {
      await this.rollBack()
      // A failed replacement may have left the file aside.
      await putBackOldFile(this.#disk, this.#followLinks())
    } catch {
      // Opening the file again does the same.
    }
    this.#appender.close()
    if (pets.length > 0) await this.#keepIfLost(pets)
    await this.#lock.release()
  }

  /** Somebody may have emptied or removed the file, as `jq … pets.json > pets.json` does. Then only this process has the pets. */
  async #keepIfLost(pets: readonly Pet[]): Promise<void> {
    try {
      const { bytes, identity } = this.#disk.read(this.path)
      if (identity !== undefined && !isBlank(bytes)) return
      const kept = await keepPets(this.#disk, this.#followLinks(), this.#formatNewFile(pets))
      this.#say(`is ${identity === undefined ? 'missing' : 'empty'}; its ${pets.length} pets ${kept}`)
    } catch (error) {
      // Somebody is writing it.
      if (error instanceof DataFileEdited) return
      this.#say(`the pets that were served cannot be kept: ${this.describeError(error)}`)
    }
  }

  /** The file is missing or empty, but the last server has kept its pets: to start without them would hide the loss. */
  #refuseBesideKeptPets(what: string): void {
    const kept = describeKeptPets(this.#disk, this.#followLinks())
    if (kept !== undefined) throw DataFileUnusable.ofFile(this.path, `${what}; its pets ${kept}`)
  }

  /** Waits for `settleMs`. Throws a DataFileEdited as soon as somebody writes to the file, or replaces it. */
  async #waitForSave(identity: Identity): Promise<void> {
    const start = clock.performanceNow()
    while (clock.performanceNow() - start < settleMs) {
      await delay(lookAgainMs)
      if (!isSame(this.#disk.read(this.path).identity, identity)) throw new DataFileEdited()
    }
  }

  #parse({ bytes }: WholeFile): PetsText {
    return parsePetsText(this.path, bytes, this.#highestId)
  }

  /**
   * Makes this the current state: writes missing ids into the file, syncs it, and remembers where to append. `isRewritten`: this
   * server has just written it.
   */
  async #adopt(whole: WholeFile, text: PetsText, isRewritten = false): Promise<PetData> {
    const isIncomplete = text.filledIds.length > 0 || this.#hasFailedSync
    if (isIncomplete && !isRewritten) return this.#rewrite(whole.identity, formatWithIds(text))
    try {
      // It is served and appended to from now on, so it has to be durable, whoever wrote it.
      await this.#disk.syncFile(this.path)
      this.#hasFailedSync = false
    } catch (error) {
      if (errorCode(error) === 'ENOENT') throw new DataFileEdited()
      // After an error, Linux makes a file system read-only. What is there can be served; nothing can be added to it.
      if (errorCode(error) !== 'EROFS') {
        this.#hasFailedSync = true
        if (isRewritten) throw error
        return this.#rewrite(whole.identity, formatWithIds(text))
      }
    }
    removeLeftovers(this.#disk, this.#followLinks())
    this.#remember(whole.identity, text.end)
    this.#count = text.pets.length
    const highestId = text.pets.at(-1)?.id ?? 0
    if (highestId > this.#highestId) this.#highestId = highestId
    return { pets: text.pets }
  }

  /** Replaces the text that was read, and adopts the new one. Throws a DataFileEdited when the file has changed since. */
  async #rewrite(expected: Identity, next: Buffer): Promise<PetData> {
    try {
      if (!(await replaceFile(this.#disk, this.#followLinks(), expected, next))) throw new DataFileEdited()
    } catch (error) {
      if (errorCode(error) === 'EBUSY') throw DataFileUnusable.ofFile(this.path, mountedByItself)
      throw error
    }
    const after = this.#disk.read(this.path)
    if (!after.bytes.equals(next)) throw new DataFileEdited()
    return this.#adopt(after, this.#parse(after), true)
  }

  /** Cuts off the damaged end, and keeps its bytes beside the file, unless they are only brackets. */
  async #repair({ bytes, identity }: WholeFile, { petsEnd, cause }: TornEnd): Promise<PetData> {
    const tail = bytes.subarray(petsEnd)
    const kept = cause === 'brackets' ? undefined : await keepTornEnd(this.#disk, this.#followLinks(), tail)
    try {
      const data = await this.#rewrite(identity, Buffer.concat([bytes.subarray(0, petsEnd), closingBrackets]))
      this.#say(kept === undefined ? reclosed : `${repaired}; ${kept.words}`)
      return data
    } catch (error) {
      // Nothing was cut off.
      kept?.remove()
      throw error
    }
  }

  /** A new file names its schema, if it lies in the same folder. */
  #formatNewFile(pets: readonly Pet[]): Buffer {
    const schema = 'pets.schema.json'
    const hasSchema = this.#disk.statIdentity(join(dirname(this.#followLinks()), schema)) !== undefined
    return formatFile(pets, hasSchema ? `./${schema}` : undefined)
  }

  /** The file is known in this state: isEdited() is false until it changes. `end` is where the next pet goes. */
  #remember(identity: Identity, end?: TextEnd): void {
    this.#appender.close()
    this.#appender = new Appender(this.#disk, this.path, identity, end)
  }

  #say(message: string): void {
    this.#onMessage(`${this.path}: ${message}`)
  }

  /** The path behind all symbolic links. */
  #followLinks(): string {
    return this.#disk.followLinks(resolve(this.path))
  }
}

/**
 * The data file as lowdb's adapter. `write` appends in place (after an edit in another layout it first rewrites the file), and
 * returns when the pets are durable. `read` returns what a person has edited, once the save is complete, and writes missing ids
 * into it. Neither overwrites what somebody else wrote.
 */
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Adapter } from 'lowdb'
import { errorCode } from '../system-error.ts'
import { Appender } from './appender.ts'
import { DataFileEdited, DataFileUnusable, rethrowMissingAsEdited, unlessEdited } from './data-file-error.ts'
import { Disk, type FileSystem, type Identity, isSame, unknownIdentity, type WholeFile } from './disk.ts'
import { type FileLock, lockFile } from './file-lock.ts'
import { isBlank } from './pets-parser.ts'
import { formatAppendable, formatEmptyText, parsePetsText, type PetsText } from './pets-text.ts'
import { finishOverwrite, keepDamagedEnd } from './recovery.ts'
import {
  hasReplacedFile,
  removeLeftovers,
  replaceFile,
  restoreOverEmptyFile,
  restoreReplacedFile,
} from './replace-file.ts'
import { type RepairedText, repairTornAppend } from './torn-append.ts'
import { describeFileError, describeUnwritable } from './writability.ts'
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'

/** How often a store looks whether its file was edited. */
export const lookEveryMs = 500
/** While a file is being saved, it is looked at again this often. */
const lookAgainMs = 40
/** A file that stays invalid, empty or missing for this long is not being saved any more. */
const settleMs = 400
/** The longest wait for an edited file that keeps changing. */
const maxWaitMs = 1500

const usedByAnother = 'is in use by another server; stop that one, or give this one a file of its own'

const restored = 'restored: a crash had interrupted the server while it replaced this file'
const rewritten = 'rewritten: a crash had interrupted the server while it overwrote this file'
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
    lock = await lockFile(disk.statIdentity(dirname(target)), basename(target))
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
  #isAppendable = false
  #highestId: Int64 = 0

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
    if (await restoreReplacedFile(this.#disk, this.#followLinks())) this.#say(restored)
    for (;;) {
      const data = await unlessEdited(this.#openOnce())
      if (data !== undefined) return data
      await delay(lookAgainMs)
    }
  }

  /** Returns undefined when somebody is writing the file: then it has to be read again in a moment. */
  async #openOnce(): Promise<PetData | undefined> {
    const whole = this.#readWhole()
    if (whole === undefined) return undefined
    if (whole.identity === undefined) return this.#replace(whole, this.#formatEmptyText())
    // The server crashed while it replaced the file: nothing was at the path, and the pets were in `.petstore-old`. Before this
    // start somebody created an empty file at the path. Put the old file in its place.
    if (isBlank(whole.bytes) && hasReplacedFile(this.#disk, this.#followLinks())) {
      if (await this.#isBeingSaved(whole.identity)) return undefined
      await restoreOverEmptyFile(this.#disk, this.#followLinks())
      this.#say(restored)
      return this.#openOnce()
    }
    try {
      return await this.#adopt(whole, this.#parse(whole))
    } catch (error) {
      if (!(error instanceof DataFileUnusable)) throw error
      // Somebody may still be copying or saving it, unless it was last written more than `settleMs` ago.
      const ageMs = Date.now() - Number(whole.identity.mtimeNs / 1_000_000n)
      if (ageMs < settleMs && (await this.#isBeingSaved(whole.identity))) return undefined
      const keptName = await finishOverwrite(this.#disk, this.#followLinks(), whole)
      if (keptName !== undefined) {
        this.#say(`${rewritten}; the damaged content is kept in ${keptName}`)
        return this.#openOnce()
      }
      const repair = repairTornAppend(whole.bytes)
      if (repair === undefined) throw error
      return this.#repair(whole, repair)
    }
  }

  /**
   * Reads an edited file. Throws the file system's error, or a DataFileUnusable if the file is not valid or is still being saved
   * after `maxWaitMs`. After success, and for a file that is not valid, isEdited() is false until somebody changes the file
   * again. Otherwise it stays true, so that the next look reads the file again.
   */
  async read(): Promise<PetData> {
    const deadline = performance.now() + maxWaitMs
    for (;;) {
      const data = await unlessEdited(this.#readOnce())
      if (data !== undefined) return data
      if (performance.now() > deadline) throw DataFileUnusable.beingSaved(this.path)
      await delay(lookAgainMs)
    }
  }

  /** Returns undefined when the file has to be read again in a moment. */
  async #readOnce(): Promise<PetData | undefined> {
    const whole = this.#readWhole()
    if (whole === undefined) return undefined
    try {
      if (whole.identity === undefined) throw DataFileUnusable.ofFile(this.path, 'is missing')
      if (isBlank(whole.bytes)) throw DataFileUnusable.ofFile(this.path, 'is empty')
      return await this.#adopt(whole, this.#parse(whole))
    } catch (error) {
      if (!(error instanceof DataFileUnusable)) throw error
      // An editor that saves in place empties the file first, and may take its time to write the rest.
      if (await this.#isBeingSaved(whole.identity)) return undefined
      // A replacement that failed halfway may have left the file under `.petstore-old`.
      const isMissing = whole.identity === undefined
      if (isMissing && (await restoreReplacedFile(this.#disk, this.#followLinks()))) return undefined
      // A backup that was made during an append may have been copied back (case 3 in torn-append.ts). An unfinished save never
      // looks like that, so it is repaired. All other damage may be an unfinished save, and is left alone.
      const repair = repairTornAppend(whole.bytes)
      if (repair?.isCopy === true) return this.#repair(whole, repair)
      this.#remember(whole.identity)
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
    if (!this.#isAppendable) await this.#makeAppendable()
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

  /** Releases the file. What was acknowledged is durable already. */
  async close(): Promise<void> {
    try {
      await this.rollBack()
      // A failed replacement may have left the file under `.petstore-old`.
      await restoreReplacedFile(this.#disk, this.#followLinks())
    } catch {
      // Opening the file again does the same.
    }
    this.#appender.close()
    await this.#lock.release()
  }

  /** A consistent snapshot of the file; undefined when somebody is writing it. Throws a DataFileUnusable on anything but a file. */
  #readWhole(): WholeFile | undefined {
    try {
      return this.#disk.read(this.path)
    } catch (error) {
      // A folder, say. isEdited() is false until something else is there.
      if (error instanceof DataFileUnusable) this.#remember(this.#disk.statIdentity(this.path))
      throw error
    }
  }

  /** Whether somebody writes to the file, or replaces it, within `settleMs`. */
  async #isBeingSaved(identity: Identity): Promise<boolean> {
    const start = performance.now()
    while (performance.now() - start < settleMs) {
      await delay(lookAgainMs)
      const whole = this.#readWhole()
      if (whole === undefined || !isSame(whole.identity, identity)) return true
    }
    return false
  }

  #parse({ bytes }: WholeFile): PetsText {
    return parsePetsText(this.path, bytes, this.#highestId)
  }

  /** Makes this the current state: fills in missing ids, syncs, remembers where to append. */
  async #adopt(whole: WholeFile, text: PetsText): Promise<PetData> {
    // #replace calls this once more, with a text that has all ids.
    if (text.filledIds.length > 0) return this.#replace(whole, formatAppendable(text))
    // It is served and appended to from now on, so it has to be durable, whoever wrote it.
    await this.#disk.syncFile(this.path).catch(rethrowMissingAsEdited)
    // If the file is blank, the leftovers stay: `.petstore-old` may hold the only copy of the pets.
    if (!isBlank(whole.bytes)) removeLeftovers(this.#disk, this.#followLinks())
    this.#remember(whole.identity, text.end)
    this.#count = text.pets.length
    this.#isAppendable = text.isAppendable
    const highestId = text.pets.at(-1)?.id ?? 0
    if (highestId > this.#highestId) this.#highestId = highestId
    return { pets: text.pets }
  }

  /** Replaces the text that was read, and adopts the new one. Throws a DataFileEdited when the file has changed since. */
  async #replace(whole: WholeFile, next: Buffer): Promise<PetData> {
    if (!(await replaceFile(this.#disk, this.#followLinks(), whole, next))) throw new DataFileEdited()
    const after = this.#readWhole()
    if (after === undefined || !after.bytes.equals(next)) throw new DataFileEdited()
    return this.#adopt(after, this.#parse(after))
  }

  /** Rewrites a file that does not end exactly with our closing brackets, so that pets can be appended to it. */
  async #makeAppendable(): Promise<void> {
    const whole = this.#readWhole()
    if (whole === undefined || this.isEdited()) throw new DataFileEdited()
    await this.#replace(whole, formatAppendable(this.#parse(whole)))
  }

  async #repair(whole: WholeFile, { bytes, damagedAt }: RepairedText): Promise<PetData> {
    const keptName = await keepDamagedEnd(this.#disk, this.#followLinks(), whole, damagedAt)
    const data = await this.#replace(whole, bytes)
    const size = whole.bytes.length - damagedAt
    this.#say(`${repaired}; the last ${size} bytes of the damaged file are kept in ${keptName}`)
    return data
  }

  /** A new file names its schema, if it lies in the same folder. */
  #formatEmptyText(): Buffer {
    const schema = 'pets.schema.json'
    const hasSchema = this.#disk.statIdentity(join(dirname(this.#followLinks()), schema)) !== undefined
    return formatEmptyText(hasSchema ? `./${schema}` : undefined)
  }

  /** The file is known in this state: isEdited() is false until it changes. `end` is where the next pet goes. */
  #remember(identity: Identity, end?: number): void {
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

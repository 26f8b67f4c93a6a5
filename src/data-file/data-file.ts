/**
 * The data file as lowdb's adapter. `write` appends in place, and returns when the pets are durable. `read` returns what a person
 * has edited, once the save is complete, and writes missing ids into it. Both leave alone what somebody else has written meanwhile.
 */
import { basename, dirname, join, resolve } from 'node:path'
import type { Adapter } from 'lowdb'
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'
import { errorCode } from '../system/errors.ts'
import { Appender } from './appender.ts'
import {
  DataFileChanged,
  DataFileUnusable,
  describeFileError,
  describeUnwritable,
} from './data-file-errors.ts'
import { Disk, type FileSystem, type Identity, unknownIdentity, type WholeFile } from './disk.ts'
import { type FileLock, lockAddresses, lockFile } from './file-lock.ts'
import { keepPetsIfLost, keepTornEnd, throwIfPetsAreKept } from './kept-files.ts'
import {
  closingBrackets,
  formatFile,
  formatWithIds,
  parseFileText,
  type FileText,
  type TextEnd,
} from './file-text.ts'
import { putBackOldFile, removeLeftovers, replaceFile } from './replace-file.ts'
import { findTornEnd, type TornEnd } from './torn-end.ts'
import { maxEditWaitMs, readUntilWhole, waitForSave } from './wait-for-save.ts'

const mountedByItself = 'has to be rewritten, but is a mount of its own; mount its folder instead'
const restoredMessage = 'restored: a crash had interrupted the server while it replaced this file'
const reclosedMessage = 'repaired: its closing brackets were missing'
const repairedMessage = 'repaired: its end was cut off by a crash, or it was copied while pets were created'

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
    // It is locked under several names (see lockAddresses): a second server finds one of them taken, also through links and mounts.
    lock = await lockFile(path, lockAddresses(target, disk.statIdentity(dirname(target))))
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
  #appender: Appender
  /** How many of the pets are in the file. */
  #count = 0
  #highestId: Int64 = 0
  /**
   * The last #sync has failed. Linux reports such an error only once: the next sync would succeed, although the bytes are not on the
   * disk. So the text has to be written into a new file.
   */
  #hasFailedSync = false

  constructor(path: string, disk: Disk, lock: FileLock, onMessage: (message: string) => void) {
    this.path = path
    this.#disk = disk
    this.#lock = lock
    this.#onMessage = onMessage
    this.#appender = new Appender(disk, path, unknownIdentity)
  }

  /** The highest id that was read or acknowledged, even if an edit has removed it since: it is not given again in this run. */
  get highestId(): Int64 {
    return this.#highestId
  }

  /** After a failed `write`: whether its pets may still be in the file, or be saved again by an editor that has read them. */
  get mayBeStored(): boolean {
    return this.#appender.mayBeStored
  }

  /** Whether somebody else has written or replaced the file since it was read or written here. True if that is not known. */
  isEdited(): boolean {
    return this.#appender.isEdited()
  }

  /** For openDataFile. Throws a DataFileUnusable, or the file system's error. */
  open(): Promise<PetData> {
    return readUntilWhole(this.path, Infinity, () => this.#readOnce(true))
  }

  /**
   * Reads an edited file. Throws a DataFileUnusable if it cannot be used, or is still being saved after `maxEditWaitMs`; or a system error.
   * After an invalid file, isEdited() is false until somebody changes it. After one that is being saved or cannot be read, it stays true,
   * so that the next look reads it again.
   */
  read(): Promise<PetData> {
    return readUntilWhole(this.path, maxEditWaitMs, () => this.#readOnce(false))
  }

  /** Throws a DataFileChanged when the file has to be read again in a moment. */
  async #readOnce(isStart: boolean): Promise<PetData> {
    // Until it is read, the file counts as edited: if reading it fails, the next look tries again.
    this.#remember(unknownIdentity)
    const whole = this.#disk.read(this.path)
    let text: FileText
    try {
      text = this.#parse(whole)
    } catch (error) {
      if (!(error instanceof DataFileUnusable)) throw error
      return this.#recover(whole, error, isStart)
    }
    return this.#serveOrRewrite(whole, text)
  }

  /**
   * For a file that cannot be used. First waits for a save that may be going on (at a start, only if the file was written just now), and
   * throws a DataFileChanged if the file changes. Then:
   *
   * | The file                                      | At a start                           | While the server runs |
   * | --------------------------------------------- | ------------------------------------ | --------------------- |
   * | was moved aside by a replacement              | is put back                          | is put back           |
   * | is missing or empty, with pets kept beside it | is an error (see throwIfPetsAreKept) | is an error           |
   * | is missing otherwise                          | is created                           | is an error           |
   * | has a damaged end (see torn-end.ts)           | is repaired                          | is an error           |
   * | was copied during an append                   | is repaired                          | is repaired           |
   * | is empty, or wrong otherwise                  | is an error                          | is an error           |
   */
  async #recover(whole: WholeFile, error: DataFileUnusable, isStart: boolean): Promise<PetData> {
    const { bytes, identity } = whole
    await waitForSave(this.#disk, this.path, identity, isStart)
    if (await putBackOldFile(this.#disk, this.#followLinks())) {
      if (isStart) this.#say(restoredMessage)
      throw new DataFileChanged()
    }
    const isMissing = identity === undefined
    if (isStart && error.reason === 'lost') throwIfPetsAreKept(this.#disk, this.path, isMissing)
    if (isStart && isMissing)
      return this.#serveRewritten(await this.#replace(undefined, this.#formatNewFile([])))
    const tornEnd = findTornEnd(bytes)
    if (tornEnd !== undefined && (isStart || tornEnd.cause === 'copy')) return this.#repair(whole, tornEnd)
    this.#remember(identity)
    throw error
  }

  /**
   * Appends the pets that are not in the file yet: those from #count on. Returns when they are durable. Throws the file system's
   * error, or a DataFileChanged when the file has to be read first; see `mayBeStored` for what is then in the file.
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
      // The next start repairs what is left, if it can, and puts the file back.
    }
    this.#appender.close()
    const said = await keepPetsIfLost(this.#disk, this.path, pets.length, () => this.#formatNewFile(pets))
    if (said !== undefined) this.#say(said)
    await this.#lock.release()
  }

  #parse({ bytes, identity }: WholeFile): FileText {
    if (identity === undefined) throw DataFileUnusable.ofFile(this.path, 'is missing', 'lost')
    return parseFileText(this.path, bytes, this.#highestId)
  }

  /** Makes the file that was read durable, and serves it. Writes it anew if ids are missing, or if this sync or the last has failed. */
  async #serveOrRewrite({ identity }: WholeFile, text: FileText): Promise<PetData> {
    const canStay = text.filledIds.length === 0 && !this.#hasFailedSync
    if (canStay && (await this.#sync()) === undefined) return this.#serve(identity, text)
    return this.#serveRewritten(await this.#replace(identity, formatWithIds(text)))
  }

  /** Serves what #replace has just written. */
  async #serveRewritten(written: Buffer): Promise<PetData> {
    const whole = this.#disk.read(this.path)
    if (!whole.bytes.equals(written)) throw new DataFileChanged()
    const text = this.#parse(whole)
    const failure = await this.#sync()
    if (failure !== undefined) throw failure
    return this.#serve(whole.identity, text)
  }

  /** Makes the file durable, whoever wrote it. Returns the error of a sync that failed. Throws a DataFileChanged if the file is gone. */
  async #sync(): Promise<unknown> {
    const error: unknown = await this.#disk.syncFile(this.path).catch((failure: unknown) => failure)
    const code = errorCode(error)
    if (code === 'ENOENT') throw new DataFileChanged()
    // EROFS does not count: nothing can be written anew on a file system that is read-only (Linux makes it so after an error), so what is
    // there is served.
    this.#hasFailedSync = error !== undefined && code !== 'EROFS'
    return this.#hasFailedSync ? error : undefined
  }

  /** From now on the pets of this text are served, and appended to. */
  #serve(identity: Identity, { pets, end }: FileText): PetData {
    removeLeftovers(this.#disk, this.#followLinks())
    this.#remember(identity, end)
    this.#count = pets.length
    const highestId = pets.at(-1)?.id ?? 0
    if (highestId > this.#highestId) this.#highestId = highestId
    return { pets }
  }

  /** Replaces the file, if it is still as `expected`, and returns its new content. Otherwise throws a DataFileChanged. */
  async #replace(expected: Identity, next: Buffer): Promise<Buffer> {
    try {
      if (await replaceFile(this.#disk, this.#followLinks(), expected, next)) return next
      throw new DataFileChanged()
    } catch (error) {
      if (errorCode(error) !== 'EBUSY') throw error
      // Remembered, so that this is not tried again until somebody edits the file.
      this.#remember(expected)
      throw DataFileUnusable.ofFile(this.path, mountedByItself)
    }
  }

  /** Cuts off the damaged end, and keeps its bytes beside the file, unless they are only brackets. */
  async #repair({ bytes, identity }: WholeFile, { petsEnd, cause }: TornEnd): Promise<PetData> {
    const tail = bytes.subarray(petsEnd)
    const closed = Buffer.concat([bytes.subarray(0, petsEnd), closingBrackets])
    const repairedText = formatWithIds(this.#parse({ bytes: closed, identity }))
    const isKept = cause !== 'brackets'
    const keptPath = isKept ? await keepTornEnd(this.#disk, this.#followLinks(), tail) : ''
    await this.#replace(identity, repairedText).catch((error: unknown) => {
      if (isKept) this.#disk.removeQuietly(keptPath)
      throw error
    })
    const kept = `the last ${tail.length} bytes of the damaged file are kept in ${basename(keptPath)}`
    this.#say(isKept ? `${repairedMessage}; ${kept}` : reclosedMessage)
    return this.#serveRewritten(repairedText)
  }

  /** A new file names its schema, if it lies in the same folder. */
  #formatNewFile(pets: readonly Pet[]): Buffer {
    const schema = 'pets.schema.json'
    const hasSchema = this.#disk.statIdentity(join(dirname(this.#followLinks()), schema)) !== undefined
    return formatFile(pets, hasSchema ? `./${schema}` : undefined)
  }

  /** From now on isEdited() tells whether the file is in a different state. `end` is where the next pet goes. */
  #remember(identity: Identity, end?: TextEnd): void {
    this.#appender.close()
    this.#appender = new Appender(this.#disk, this.path, identity, end)
  }

  #say(message: string): void {
    this.#onMessage(`${this.path}: ${message}`)
  }

  /** The path to which all symbolic links lead. */
  #followLinks(): string {
    return this.#disk.followLinks(resolve(this.path))
  }
}

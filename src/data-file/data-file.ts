/**
 * The data file as lowdb's adapter. `write` appends in place, and returns when the pets are durable. `read` returns what a person
 * has edited, once the save is complete, and writes missing ids into it. Both leave alone what somebody else has written meanwhile. While the
 * file cannot be used, the pets that are served are kept beside it.
 */
import { basename, dirname, join, resolve } from 'node:path'
import type { Adapter } from 'lowdb'
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'
import { describeSystemError, errorCode, isSystemError } from '../system/errors.ts'
import { Appender } from './appender.ts'
import { DataFileChanged, DataFileUnusable } from './data-file-errors.ts'
import { Disk, type FileSystem, hasSameContent, type Identity, type WholeFile } from './disk.ts'
import { type FileLock, lockFile } from './file-lock.ts'
import { findKeptPets, keepPets, keepTornEnd, listKeptPets, refuseBesideKeptPets } from './kept-files.ts'
import { LastSeen } from './last-seen.ts'
import {
  closingBrackets,
  formatFile,
  formatWithIds,
  isBlank,
  parseFileText,
  parsePets,
  type FileText,
} from './file-text.ts'
import { putBackOldFile, removeLeftovers, replaceFile } from './replace-file.ts'
import { findTornEnd, type TornEnd } from './torn-end.ts'
import { maxEditWaitMs, readUntilWhole, waitForSave } from './wait-for-save.ts'
import { describeFileError, describeUnwritable, RewriteFailed } from './write-access.ts'

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
  /** The system whose ways the file system has, for tests. */
  readonly platform?: NodeJS.Platform
}

/** Opens the data file. Creates a missing one, and repairs one that a crash has damaged. Throws a DataFileUnusable. */
export async function openDataFile(
  path: string,
  { fileSystem, onMessage = () => {}, platform }: DataFileOptions = {},
): Promise<{ file: DataFile; data: PetData }> {
  const disk = new Disk(fileSystem, onMessage, platform)
  let lock: FileLock | undefined
  try {
    const target = disk.followLinks(resolve(path))
    await disk.makeFolder(dirname(target)).catch((error: unknown) => {
      const fault = `cannot be created, nor its folder: ${describeSystemError(error)}`
      throw isSystemError(error) ? DataFileUnusable.ofFile(path, fault) : error
    })
    lock = await lockFile(disk, path, target)
    const file = new DataFile(path, disk, lock, onMessage)
    const data = await file.open()
    const unwritable = describeUnwritable(disk, path)
    if (unwritable !== undefined) onMessage(unwritable)
    return { file, data }
  } catch (error) {
    await lock?.release()
    if (!isSystemError(error)) throw error
    throw DataFileUnusable.ofFile(path, `cannot be opened: ${describeFileError(disk, path, error)}`)
  }
}

export class DataFile implements Adapter<PetData> {
  readonly path: string
  readonly #disk: Disk
  readonly #lock: FileLock
  readonly #onMessage: (message: string) => void
  readonly #seen: LastSeen
  /** Undefined while the file is not as it is served: nothing may be appended then. */
  #appender: Appender | undefined
  /** The pets that are served: the first #count of these, and how the file was that has them. */
  #served: PetData = { pets: [] }
  #count = 0
  #servedIdentity: Identity
  #highestId: Int64 = 0
  /**
   * The last #sync has failed. Linux reports such an error only once: the next sync would succeed, although the bytes are not on the
   * disk. So the text has to be written into a new file.
   */
  #hasFailedSync = false
  /** The file with the served pets, if this run has kept them, and why they could not be kept. */
  #keptPath: string | undefined
  #keepFailure: unknown

  constructor(path: string, disk: Disk, lock: FileLock, onMessage: (message: string) => void) {
    this.path = path
    this.#disk = disk
    this.#lock = lock
    this.#onMessage = onMessage
    this.#seen = new LastSeen(disk, path)
  }

  /** The highest id that was read or acknowledged, even if an edit has removed it since: it is not given again in this run. */
  get highestId(): Int64 {
    return this.#highestId
  }

  /** After a failed `write`: whether its pets may still be in the file, or be saved again by an editor that has read them. */
  get mayBeStored(): boolean {
    return this.#appender?.mayBeStored ?? false
  }

  /** Whether somebody else has written or replaced the file since it was read or written here. True if that is not known. */
  isEdited(): boolean {
    return this.#seen.isEdited()
  }

  /** For openDataFile. Throws a DataFileUnusable, or the file system's error. */
  async open(): Promise<PetData> {
    const data = await readUntilWhole(this.path, Infinity, () => this.#readOnce(true))
    for (const line of listKeptPets(this.#disk, this.#followLinks(), data.pets)) this.#say(line)
    return data
  }

  /**
   * Reads an edited file. Throws a DataFileUnusable if it cannot be used, or is still being saved after `maxEditWaitMs`; or a system error.
   * The pets that are served are then kept. After an invalid file, isEdited() is false until somebody changes it. After one that is being
   * saved or cannot be read, it stays true, so that the next look reads it again.
   */
  async read(): Promise<PetData> {
    try {
      return await readUntilWhole(this.path, maxEditWaitMs, () => this.#readOnce(false))
    } catch (error) {
      await this.keepPets()
      throw error
    }
  }

  /** Throws a DataFileChanged when the file has to be read again in a moment. */
  async #readOnce(isStart: boolean): Promise<PetData> {
    // Until it is read, the file counts as edited: if reading it fails, the next look tries again.
    this.#stopAppending()
    this.#seen.forget()
    const whole = await this.#disk.retryWhileHeld(() => this.#disk.read(this.path))
    const parsed = parsePets(whole.bytes, this.#highestId)
    let text: FileText
    try {
      text = this.#check(whole, parsed)
    } catch (error) {
      if (!(error instanceof DataFileUnusable)) throw error
      return this.#recover(whole, error, findTornEnd(whole.bytes, parsed), isStart)
    }
    return this.#serveOrRewrite(whole, text)
  }

  /**
   * For a file that cannot be used. First waits for a save that may be going on (at a start, only if the file was written just now), and
   * throws a DataFileChanged if the file changes. Then:
   *
   * | The file                                  | At a start                | While the server runs |
   * | ----------------------------------------- | ------------------------- | --------------------- |
   * | was moved aside by a replacement          | is put back               | is put back           |
   * | lies beside kept pets                     | is an error with a choice | is an error           |
   * | is missing                                | is created                | is an error           |
   * | has a damaged end (see torn-end.ts)       | is repaired               | is an error           |
   * | was copied during an append               | is repaired               | is repaired           |
   * | is empty, or wrong otherwise              | is an error               | is an error           |
   */
  async #recover(
    whole: WholeFile,
    error: DataFileUnusable,
    tornEnd: TornEnd | undefined,
    isStart: boolean,
  ): Promise<PetData> {
    const { bytes, identity } = whole
    await waitForSave(this.#disk, this.path, identity, isStart)
    const target = this.#followLinks()
    if (await putBackOldFile(this.#disk, target)) {
      if (isStart) this.#say(restoredMessage)
      throw new DataFileChanged()
    }
    const mayRepair = tornEnd !== undefined && (isStart || tornEnd.cause === 'copy')
    const kept = isStart || mayRepair ? findKeptPets(this.#disk, target) : []
    if (isStart && kept.length > 0) {
      const left = isBlank(bytes) ? 'nothing' : mayRepair ? 'part' : 'mistake'
      throw refuseBesideKeptPets(this.#disk, target, error, kept, left)
    }
    if (isStart && identity === undefined)
      return this.#serveRewritten(await this.#replace(undefined, this.#formatNewFile([])))
    if (mayRepair && kept.length === 0) return this.#repair(whole, tornEnd)
    this.#seen.identity = identity
    throw error
  }

  /**
   * Appends the pets that are not in the file yet: those from #count on. Returns when they are durable. Throws the file system's
   * error, or a DataFileChanged when the file has to be read first; see `mayBeStored` for what is then in the file. Throws a TypeError if
   * the pets are others than those that were read, or if none was added: only a person changes and removes pets.
   */
  async write(data: PetData): Promise<void> {
    const added = data.pets.slice(this.#count)
    const last = added.at(-1)
    if (data !== this.#served || last === undefined)
      throw new TypeError('only new pets can be written, behind those that were read')
    if (this.#appender === undefined) throw new DataFileChanged()
    await this.#appender.append(added, this.#count === 0)
    this.#count += added.length
    this.#servedIdentity = this.#seen.identity
    this.#highestId = last.id
  }

  /** Tries again to undo a failed append, if that did not succeed at once. See Appender.rollBack. */
  async rollBack(): Promise<boolean> {
    return (await this.#appender?.rollBack()) ?? false
  }

  /**
   * Writes the pets that are served beside the file, unless they are there, or in the file: it may be unreadable, and still the same. Never
   * throws: what became of it is in `keptName` and `keepFailure`.
   */
  async keepPets(): Promise<void> {
    try {
      const isInFile = hasSameContent(this.#disk.statIdentity(this.path), this.#servedIdentity)
      const isKept = this.#keptPath !== undefined && this.#disk.statIdentity(this.#keptPath) !== undefined
      if (this.#count === 0 || isInFile || isKept) return
      this.#keptPath = await keepPets(
        this.#disk,
        this.#followLinks(),
        this.#formatNewFile(this.#served.pets.slice(0, this.#count)),
      )
      this.#keepFailure = undefined
    } catch (error) {
      this.#keptPath = undefined
      this.#keepFailure = error
    }
  }

  /** The name of the file that has the served pets while the data file cannot be used. */
  get keptName(): string | undefined {
    return this.#keptPath === undefined ? undefined : basename(this.#keptPath)
  }

  /** Why they cannot be kept, in words. */
  get keepFailure(): string | undefined {
    return this.#keepFailure === undefined ? undefined : this.describeError(this.#keepFailure)
  }

  /** A system error in words. Names the folder when that is what cannot be written. */
  describeError(error: unknown): string {
    return describeFileError(this.#disk, this.path, error)
  }

  /** What of the file or its folder cannot be written, in words. */
  describeUnwritable(): string | undefined {
    return describeUnwritable(this.#disk, this.path)
  }

  /** Releases the file. What was acknowledged is durable already. */
  async close(): Promise<void> {
    try {
      await this.rollBack()
      // A failed replacement may have left the file aside.
      await putBackOldFile(this.#disk, this.#followLinks())
    } catch {
      // The next start repairs what is left, if it can, and puts the file back.
    }
    this.#stopAppending()
    await this.#lock.release()
  }

  #check({ bytes, identity, notFile }: WholeFile, parsed = parsePets(bytes, this.#highestId)): FileText {
    const fault = identity === undefined ? 'is missing' : notFile
    if (fault !== undefined) throw DataFileUnusable.ofFile(this.path, fault)
    return parseFileText(this.path, bytes, parsed)
  }

  /** Makes the file that was read durable, and serves it. Writes it anew if ids are missing, or if this sync or the last has failed. */
  async #serveOrRewrite({ identity }: WholeFile, text: FileText): Promise<PetData> {
    const lacksIds = text.filledIds.length > 0
    const canStay = !lacksIds && !this.#hasFailedSync
    if (canStay && (await this.#sync())) return this.#serve(identity, text)
    const why = lacksIds ? 'to fill in ids' : 'because it could not be synced'
    return this.#serveRewritten(await this.#replace(identity, formatWithIds(text), why))
  }

  /** Serves what #replace has just written. */
  #serveRewritten(written: Buffer): PetData {
    const whole = this.#disk.read(this.path)
    if (!whole.bytes.equals(written)) throw new DataFileChanged()
    this.#hasFailedSync = false
    return this.#serve(whole.identity, this.#check(whole))
  }

  /** Makes the file durable, whoever wrote it, and tells whether that succeeded. Throws a DataFileChanged if the file is gone. */
  async #sync(): Promise<boolean> {
    const syncing = this.#disk.retryWhileHeld(() => this.#disk.syncFile(this.path))
    const error: unknown = await syncing.catch((failure: unknown) => failure)
    const code = errorCode(error)
    if (code === 'ENOENT') throw new DataFileChanged()
    // EROFS does not count: nothing can be written anew on a file system that is read-only (Linux makes it so after an error), so what is
    // there is served. Neither does a file that may not be opened for writing, without which Windows syncs nothing.
    this.#hasFailedSync = error !== undefined && code !== 'EROFS' && !this.#disk.mayBeHeld(error)
    return !this.#hasFailedSync
  }

  /** From now on the pets of this text, which is durable, are served and appended to. */
  #serve(identity: Identity, { pets, end }: FileText): PetData {
    removeLeftovers(this.#disk, this.#followLinks())
    if (this.#keptPath !== undefined) this.#disk.removeQuietly(this.#keptPath)
    this.#keptPath = undefined
    this.#keepFailure = undefined
    this.#seen.identity = this.#servedIdentity = identity
    this.#appender = new Appender(this.#disk, this.path, this.#seen, end)
    this.#count = pets.length
    const highestId = pets.at(-1)?.id ?? 0
    if (highestId > this.#highestId) this.#highestId = highestId
    return (this.#served = { pets })
  }

  /** Replaces the file, if it is still as `expected`, and returns its new content. Otherwise throws a DataFileChanged. */
  async #replace(expected: Identity, next: Buffer, why = ''): Promise<Buffer> {
    try {
      const replace = () => replaceFile(this.#disk, this.#followLinks(), expected, next)
      if (await this.#disk.retryWhileHeld(replace)) return next
    } catch (error) {
      if (expected === undefined && isSystemError(error)) {
        const folder = dirname(this.#followLinks())
        const fault = `cannot be created in ${folder}: ${describeSystemError(error)}`
        throw DataFileUnusable.ofFile(this.path, fault)
      }
      if (errorCode(error) !== 'EBUSY' || this.#disk.isWindows)
        throw isSystemError(error) && why ? new RewriteFailed(why, error) : error
      // Remembered, so that this is not tried again until somebody edits the file.
      this.#seen.identity = expected
      throw DataFileUnusable.ofFile(this.path, mountedByItself)
    }
    throw new DataFileChanged()
  }

  /** Cuts off the damaged end, and keeps its bytes beside the file, unless they are only brackets. */
  async #repair({ bytes, identity }: WholeFile, { petsEnd, cause }: TornEnd): Promise<PetData> {
    const tail = bytes.subarray(petsEnd)
    const closed = Buffer.concat([bytes.subarray(0, petsEnd), closingBrackets])
    const repairedText = formatWithIds(this.#check({ bytes: closed, identity }))
    const isKept = cause !== 'brackets'
    const keptPath = isKept ? await keepTornEnd(this.#disk, this.#followLinks(), tail) : ''
    await this.#replace(identity, repairedText, 'to be repaired').catch((error: unknown) => {
      const isAsBefore = hasSameContent(this.#disk.statIdentity(this.path), identity)
      if (isKept && isAsBefore) this.#disk.removeQuietly(keptPath)
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

  #stopAppending(): void {
    this.#appender?.close()
    this.#appender = undefined
  }

  #say(message: string): void {
    this.#onMessage(`${this.path}: ${message}`)
  }

  /** The path to which all symbolic links lead. */
  #followLinks(): string {
    return this.#disk.followLinks(resolve(this.path))
  }
}

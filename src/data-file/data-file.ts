/**
 * The data file as lowdb's adapter. `write` appends: it overwrites only the closing brackets, and returns when the pets are
 * durable. `read` gives what a person has edited, once it is wholly saved. Neither overwrites what somebody else wrote.
 */
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Adapter } from 'lowdb'
import type { Int64, Pet } from '../types.ts'
import { Appender } from './appender.ts'
import { DataFileEdited, DataFileInvalid, throwEditedIfMissing } from './data-file-error.ts'
import { Disk, type FileSystem, type Identity, isSame, unknownIdentity, type WholeFile } from './disk.ts'
import { type FileLock, lockFile } from './file-lock.ts'
import { isBlank } from './pets-parser.ts'
import { formatAppendable, formatEmptyText, parsePetsText, type PetsText } from './pets-text.ts'
import { readUnfinishedOverwrite, removeLeftovers, replaceFile, restoreReplacedFile } from './replace-file.ts'
import { describeSystemError, errorCode } from '../system-error.ts'
import { type RepairedText, repairTornAppend } from './torn-append.ts'

/** How often a running store looks whether the file was edited. */
export const lookEveryMs = 500
/** While a file is being saved, it is looked at this often. */
const lookAgainMs = 40
/** A file that is invalid, empty or missing for this long is meant to be so: nobody is in the middle of saving it. */
const settleMs = 400
/** A file that keeps changing for longer than this is not waited for. */
const patienceMs = 1500

/** What lowdb holds: the pets by ascending id. */
export interface PetData {
  pets: Pet[]
}

export interface DataFileOptions {
  /** Called with each message for the person who runs the server. */
  readonly onMessage?: (message: string) => void
  readonly fileSystem?: FileSystem
}

/** Opens the data file. Creates a missing one, and repairs one that a crash has damaged. Throws a DataFileInvalid. */
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
    if (lock === undefined) {
      const remedy = 'stop the other server, or give this one a file of its own'
      throw DataFileInvalid.ofFile(
        path,
        `is used by another server, and a file belongs to one server; ${remedy}`,
      )
    }
    const file = new DataFile(path, disk, lock, onMessage)
    const data = await file.open()
    return { file, data }
  } catch (error) {
    await lock?.release()
    if (error instanceof DataFileInvalid || errorCode(error) === '') throw error
    throw DataFileInvalid.ofFile(path, `cannot be opened: ${describeFileError(disk, path, error)}`)
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
  #mayHoldLastWrite = false

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

  /** Whether the pets of the last `write`, which failed, may still be in the file or in an editor's copy of it. */
  get mayHoldLastWrite(): boolean {
    return this.#mayHoldLastWrite
  }

  /** Whether somebody else has written or replaced the file since it was read or written here. */
  isEdited(): boolean {
    return this.#appender.isEdited()
  }

  /** For openDataFile. Throws a DataFileInvalid, or the file system's error. */
  async open(): Promise<PetData> {
    if (await restoreReplacedFile(this.#disk, this.#target)) {
      this.#onMessage(`${this.path}: restored; a crash had interrupted its replacement`)
    }
    for (;;) {
      try {
        const data = await this.#openOnce()
        this.#reportUnwritable()
        return data
      } catch (error) {
        // Somebody saves the file just now: it is read again.
        if (!(error instanceof DataFileEdited)) throw error
      }
      await delay(lookAgainMs)
    }
  }

  async #openOnce(): Promise<PetData> {
    const whole = await this.#readWhole()
    if (whole.identity === undefined) return this.#adopt(await this.#replace(whole, this.#emptyText()))
    try {
      return await this.#adopt(whole)
    } catch (error) {
      if (!(error instanceof DataFileInvalid)) throw error
      // It may still be copied here, or saved: an invalid file that was just written is read again.
      const ageMs = Date.now() - Number(whole.identity.mtimeNs / 1_000_000n)
      if (ageMs >= 0 && ageMs < settleMs) throw new DataFileEdited()
      if (await this.#finishOverwrite(whole)) return await this.#openOnce()
      const repaired = repairTornAppend(whole.bytes)
      if (repaired === undefined) throw error
      return await this.#repair(whole, repaired)
    }
  }

  /** Writes the new text again if a crash has interrupted the overwriting of a mounted file. Returns whether it did. */
  async #finishOverwrite(whole: WholeFile): Promise<boolean> {
    const next = readUnfinishedOverwrite(this.#disk, this.#target)
    if (next === undefined) return false
    const kept = await this.#keepDamaged(whole, 0)
    await this.#disk.overwriteFile(this.#target, next)
    this.#onMessage(
      `${this.path}: rewritten; a crash had interrupted that. What was left of it is kept in ${kept}`,
    )
    return true
  }

  async #repair(whole: WholeFile, { bytes, damagedAt }: RepairedText): Promise<PetData> {
    const kept = await this.#keepDamaged(whole, damagedAt)
    const data = await this.#adopt(await this.#replace(whole, bytes))
    const size = whole.bytes.length - damagedAt
    const cause = 'its end was cut off by a crash, or it was copied while pets were created'
    this.#onMessage(
      `${this.path}: repaired: ${cause}; the last ${size} bytes as they were are kept in ${kept}`,
    )
    return data
  }

  /** Reads an edited file. Throws a DataFileInvalid; isEdited() is then false until the file changes again. */
  async read(): Promise<PetData> {
    const start = performance.now()
    let unchangedSince = start
    let last: Identity = unknownIdentity
    let text: PetsText | DataFileInvalid | undefined
    for (;;) {
      const whole = await this.#readWhole()
      const now = performance.now()
      if (!isSame(whole.identity, last)) {
        last = whole.identity
        unchangedSince = now
        text = this.#check(whole)
      }
      try {
        if (!(text instanceof DataFileInvalid)) return await this.#adopt(whole, text)
        // An editor that saves in place empties the file first, and may take its time to write the rest.
        if (now - unchangedSince >= settleMs) return await this.#recover(whole, text)
      } catch (error) {
        if (!(error instanceof DataFileEdited)) throw error
      }
      if (now - start > patienceMs) throw this.#beingWritten()
      await delay(lookAgainMs)
    }
  }

  /** An invalid file that no longer changes is restored or repaired, if that is possible. Otherwise throws the error. */
  async #recover(whole: WholeFile, error: DataFileInvalid): Promise<PetData> {
    // A replacement that failed halfway has left the file under its other name.
    const isMissing = whole.identity === undefined
    if (isMissing && (await restoreReplacedFile(this.#disk, this.#target))) throw new DataFileEdited()
    // A backup may have been copied back. Any other damage may be an editor that has stopped halfway.
    const repaired = repairTornAppend(whole.bytes)
    if (repaired?.isCopy === true) return this.#repair(whole, repaired)
    this.#replaceAppender(new Appender(this.#disk, this.path, whole.identity))
    throw error
  }

  /**
   * Adds the pets that are not in the file yet, and returns when they are durable. Throws the file system's error, or a
   * DataFileEdited when the file has to be read first; see `mayHoldLastWrite` for what is then in the file.
   */
  async write({ pets }: PetData): Promise<void> {
    this.#mayHoldLastWrite = false
    const added = pets.slice(this.#count)
    const last = added.at(-1)
    if (last === undefined) return
    await this.rollBack()
    if (!this.#isAppendable) await this.#makeAppendable()
    try {
      await this.#appender.append(added, this.#count === 0)
    } catch (error) {
      this.#mayHoldLastWrite = this.#appender.mayHoldAppend
      throw error
    }
    this.#count += added.length
    this.#highestId = last.id
  }

  /** Removes what a failed append has left, if that could not be done at once. See Appender.rollBack. */
  rollBack(): Promise<boolean> {
    return this.#appender.rollBack()
  }

  /** A system error for a person. Names the folder when that is what cannot be written. */
  describeError(error: unknown): string {
    return describeFileError(this.#disk, this.path, error)
  }

  /** Releases the file. What was acknowledged is durable already. */
  async close(): Promise<void> {
    try {
      await this.rollBack()
      await restoreReplacedFile(this.#disk, this.#target)
    } catch {
      // Opening the file again does the same.
    }
    this.#appender.close()
    await this.#lock.release()
  }

  /** Rewrites a file in another layout so that it ends with our closing brackets; the rest stays as it is written. */
  async #makeAppendable(): Promise<void> {
    const whole = await this.#readWhole()
    if (!isSame(whole.identity, this.#appender.identity)) throw new DataFileEdited()
    await this.#adopt(await this.#replace(whole, formatAppendable(this.#parse(whole))))
  }

  /**
   * Takes a valid text as the current one: syncs it, and remembers where to append. If ids are to be filled in, they are
   * written to the file first, and the result is adopted.
   */
  async #adopt(whole: WholeFile, text = this.#parse(whole)): Promise<PetData> {
    if (text.filledIds.length > 0) {
      return this.#adopt(await this.#replace(whole, formatAppendable(text)))
    }
    // It is served and appended to from now on, so it has to be durable too, whoever wrote it.
    await this.#disk.syncFile(this.path).catch(throwEditedIfMissing)
    removeLeftovers(this.#disk, this.#target)
    this.#replaceAppender(new Appender(this.#disk, this.path, whole.identity, text.end))
    this.#count = text.pets.length
    this.#isAppendable = text.isAppendable
    const highestId = text.pets.at(-1)?.id ?? 0
    if (highestId > this.#highestId) this.#highestId = highestId
    return { pets: text.pets }
  }

  #parse({ bytes }: WholeFile): PetsText {
    return parsePetsText(this.path, bytes, this.#highestId)
  }

  /** What an edited file says, or what is wrong with it. An emptied file is as invalid as a missing one. */
  #check(whole: WholeFile): PetsText | DataFileInvalid {
    if (whole.identity === undefined) return DataFileInvalid.ofFile(this.path, 'is missing')
    if (isBlank(whole.bytes)) return DataFileInvalid.ofFile(this.path, 'is empty')
    try {
      return this.#parse(whole)
    } catch (error) {
      if (error instanceof DataFileInvalid) return error
      throw error
    }
  }

  /** Replaces the text that was read, and gives the file as it is then. Throws a DataFileEdited when it has changed. */
  async #replace(whole: WholeFile, next: Buffer): Promise<WholeFile> {
    if (!(await replaceFile(this.#disk, this.#target, whole, next))) throw new DataFileEdited()
    const after = await this.#readWhole()
    if (!after.bytes.equals(next)) throw new DataFileEdited()
    return after
  }

  /** Keeps the damaged end of the file beside it, as private as the file. Gives the name. */
  async #keepDamaged({ bytes, identity }: WholeFile, damagedAt: number): Promise<string> {
    // Named after the last write: if the repair is interrupted, the next one keeps the same bytes under the same name.
    const lastWrite = new Date(Number((identity?.mtimeNs ?? 0n) / 1_000_000n))
    const kept = `${this.#target}.torn-${lastWrite.toISOString().replaceAll(':', '-')}`
    this.#disk.fs.rmSync(kept, { force: true })
    await this.#disk.createFile(kept, bytes.subarray(damagedAt), this.#disk.fs.statSync(this.#target))
    await this.#disk.syncFolder(dirname(kept))
    return basename(kept)
  }

  /** A new file names its schema, if it lies in the same folder. */
  #emptyText(): Buffer {
    const schema = 'pets.schema.json'
    const hasSchema = this.#disk.statIdentity(join(dirname(this.#target), schema)) !== undefined
    return formatEmptyText(hasSchema ? `./${schema}` : undefined)
  }

  /** The file in one state, even while somebody writes it. */
  async #readWhole(): Promise<WholeFile> {
    const start = performance.now()
    for (;;) {
      try {
        const whole = this.#disk.read(this.path)
        if (whole !== undefined) return whole
      } catch (error) {
        // A folder, say. Its identity is remembered, so that isEdited() is false until something else is there.
        if (error instanceof DataFileInvalid) {
          const identity = this.#disk.statIdentity(this.path)
          this.#replaceAppender(new Appender(this.#disk, this.path, identity))
        }
        throw error
      }
      if (performance.now() - start > patienceMs) throw this.#beingWritten()
      await delay(lookAgainMs)
    }
  }

  /** The file was seen in another state: what was open is closed. */
  #replaceAppender(appender: Appender): void {
    this.#appender.close()
    this.#appender = appender
  }

  #reportUnwritable(): void {
    const file = findUnwritable(this.#disk, this.#target)
    const folder = findUnwritable(this.#disk, dirname(this.#target))
    if (file !== undefined) {
      this.#onMessage(`${this.path}: cannot be written: ${file}; pets can be listed, but not added`)
    } else if (folder !== undefined) {
      const consequence = 'pets can be added, but the file cannot be rewritten to fill in ids'
      this.#onMessage(
        `${resolve(dirname(this.path))}: this folder cannot be written: ${folder}; ${consequence}`,
      )
    }
  }

  /** The path behind all symbolic links. */
  get #target(): string {
    return this.#disk.followLinks(resolve(this.path))
  }

  #beingWritten(): DataFileInvalid {
    return DataFileInvalid.ofFile(this.path, 'is being written', false)
  }
}

function describeFileError(disk: Disk, path: string, error: unknown): string {
  const isRefused = ['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error))
  const folder = resolve(dirname(path))
  const isFolder = isRefused && findUnwritable(disk, folder) !== undefined
  return `${isFolder ? `the folder ${folder} cannot be written: ` : ''}${describeSystemError(error)}`
}

/** Why the file or folder cannot be written; undefined when it can. */
function findUnwritable(disk: Disk, path: string): string | undefined {
  try {
    disk.checkWritable(path)
    return undefined
  } catch (error) {
    return describeSystemError(error)
  }
}

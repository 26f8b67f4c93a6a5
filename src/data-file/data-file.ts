/**
 * The data file as lowdb's adapter. `write` appends in place, and returns when the pets are durable. `read` returns what a person
 * has edited, once the save is complete, and writes missing ids into it. Both leave alone what somebody else has written meanwhile. While the
 * file cannot be used, the pets that are served are kept beside it.
 */
import { basename, dirname, join } from 'node:path'
import type { Adapter } from 'lowdb'
import type { Int64 } from '../json/json.ts'
import type { Pet } from '../pet/pet.ts'
import { errorCode, isSystemError } from '../system/errors.ts'
import { Appender } from './appender.ts'
import {
  DataFileChanged,
  DataFileUnusable,
  Disk,
  hasSameContent,
  isSame,
  unknownIdentity,
  tryAgain,
  waitForSave,
  wasJustWritten,
  describeFileError,
  describeUnwritable,
  RewriteFailed,
  type DiskOptions,
  type Identity,
} from './disk.ts'
import { lockFile, type FileLock } from './file-lock.ts'
import { closingBrackets, FileText, formatFile } from './file-text.ts'
import {
  findKeptPets,
  keepBeside,
  listKeptPets,
  refuseBesideKeptPets,
  putBackOldFile,
  removeLeftovers,
  replaceFile,
} from './new-files.ts'
import { findTornEnd, type TornEnd } from './torn-end.ts'

/** For how long an edited file that keeps changing is read again and again. */
const maxEditWaitMs = 1500

const isChanged = (error: unknown): boolean => error instanceof DataFileChanged

/** What lowdb holds: the pets by ascending id. */
export interface PetData {
  pets: Pet[]
}

/** Opens the data file. Creates a missing one, and repairs one that a crash has damaged. Throws a DataFileUnusable. */
export async function openDataFile(
  path: string,
  options?: DiskOptions,
): Promise<{ file: DataFile; data: PetData }> {
  const disk = new Disk(path, options)
  let release: FileLock | undefined
  try {
    await disk.makeFolder(dirname(disk.target))
    release = await lockFile(disk)
    const file = new DataFile(disk, release)
    const data = await file.read()
    for (const line of [...listKeptPets(disk, data.pets), describeUnwritable(disk)])
      if (line !== undefined) disk.say(line)
    return { file, data }
  } catch (error) {
    await release?.()
    if (!isSystemError(error)) throw error
    const fault = `cannot be opened or created: ${describeFileError(disk, error)}`
    throw refuseBesideKeptPets(disk, DataFileUnusable.ofFile(path, fault), false)
  }
}

export class DataFile implements Adapter<PetData> {
  readonly path: string
  /** The highest id that was read or acknowledged, even if an edit has removed it since: it is not given again in this run. */
  highestId: Int64 = 0
  readonly #disk: Disk
  readonly #release: FileLock
  /** For the file with the pets that are served; undefined until there is one. */
  #appender: Appender | undefined
  /** How the file was when it was found to be another one: it cannot be used, or is to be read. Nothing may be appended then. */
  #found: { readonly identity: Identity } | undefined = { identity: unknownIdentity }
  /** The pets that are served: the first #count of these. */
  #served: PetData = { pets: [] }
  #count = 0
  /**
   * A #sync has failed, and the file was not replaced since. Linux reports such an error only once: the next sync would succeed, although
   * the bytes are not on the disk. So the text has to be written into a new file.
   */
  #hasFailedSync = false
  /** The file with the served pets, if this run has kept them. */
  #keptPath: string | undefined

  constructor(disk: Disk, release: FileLock) {
    this.path = disk.path
    this.#disk = disk
    this.#release = release
  }

  /** After a failed `write`: whether its pets may still be in the file, or be saved again by an editor that has read them. */
  get mayBeStored(): boolean {
    return this.#found === undefined && this.#appender?.mayBeStored === true
  }

  /**
   * Whether the file has to be read: somebody else has written or replaced it since it was read or written here, or that is not known, or a
   * failed append was undone only now.
   */
  async isEdited(): Promise<boolean> {
    if (await this.#appender?.rollBack()) return true
    return !isSame(this.#disk.statIdentity(), (this.#found ?? this.#appender)?.identity)
  }

  /**
   * Reads the file: at a start, and when it was edited. Throws a DataFileUnusable if it cannot be used, which is a DataFileChanged if an edit is
   * still being saved after `maxEditWaitMs`; or a system error. After an invalid file, isEdited() is false until somebody changes it. After one
   * that is being saved or cannot be read, it stays true, so that the next look reads it again.
   */
  read(): Promise<PetData> {
    const maxWaitMs = this.#appender === undefined ? Infinity : maxEditWaitMs
    return tryAgain(maxWaitMs, isChanged, () => this.#readOnce())
  }

  /**
   * Reads the file, makes it durable and serves it. One that cannot stay as it is (a damaged end, missing ids, a failed sync) is replaced,
   * and then read once more: `written` is what it has to have then, and is durable. Throws a DataFileChanged when the file has to be read again
   * in a moment.
   */
  async #readOnce(written?: Buffer): Promise<PetData> {
    this.#appender?.close()
    // Until it is read, the file counts as edited: if reading it fails, the next look tries again.
    this.#found = { identity: unknownIdentity }
    const { bytes, identity, fault } = await this.#disk.read()
    if (written !== undefined && !bytes.equals(written)) throw new DataFileChanged()
    const text = new FileText(bytes, this.highestId)
    const unusable =
      fault === undefined ? text.describeFaults(this.path) : DataFileUnusable.ofFile(this.path, fault)
    if (unusable !== undefined) return this.#readOnce(await this.#recover(identity, text, unusable))
    const canStay = text.filledIds.length === 0 && (written !== undefined || (await this.#sync()))
    if (canStay) return this.#serve(identity, text)
    return this.#readOnce(await this.#replace(identity, text.formatWithIds(text.tail)))
  }

  /**
   * For a file that cannot be used. First waits for a save that may be going on (at a start, only if the file was written just now), and
   * throws a DataFileChanged if the file changes. Then returns what the file was replaced with, or throws `unusable`:
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
  async #recover(identity: Identity, text: FileText, unusable: DataFileUnusable): Promise<Buffer> {
    const isStart = this.#appender === undefined
    if (!isStart || wasJustWritten(identity?.mtimeNs ?? 0n))
      await waitForSave(() => !isSame(this.#disk.statIdentity(), identity))
    if (await putBackOldFile(this.#disk)) {
      if (isStart) this.#disk.say('restored: a crash had interrupted the server while it replaced this file')
      throw new DataFileChanged()
    }
    const tornEnd = findTornEnd(text)
    const mayRepair = tornEnd !== undefined && (isStart || tornEnd === 'copy')
    const kept = isStart || mayRepair ? findKeptPets(this.#disk) : []
    if (isStart && kept.length > 0) throw refuseBesideKeptPets(this.#disk, unusable, text.isBlank)
    if (isStart && identity === undefined) return this.#replace(undefined, this.#formatNewFile([]))
    if (mayRepair && kept.length === 0) return this.#repair(identity, text, tornEnd)
    this.#found = { identity }
    throw unusable
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
    if (this.#found !== undefined || this.#appender === undefined) throw new DataFileChanged()
    await this.#appender.append(added, this.#count === 0)
    this.#count += added.length
    this.highestId = last.id
  }

  /**
   * For a file that cannot be used: writes the pets that are served beside it, unless they are there, or in the file: it may be unreadable,
   * and still the same. Returns what became of them, as the end of a message.
   */
  async keepPets(): Promise<string> {
    try {
      const isInFile = hasSameContent(this.#disk.statIdentity(), this.#appender?.identity)
      if (this.#count === 0 || isInFile) return ''
      if (this.#keptPath === undefined || this.#disk.statIdentity(this.#keptPath) === undefined) {
        const text = this.#formatNewFile(this.#served.pets.slice(0, this.#count))
        this.#keptPath = await keepBeside(this.#disk, 'kept', text)
      }
      return `, and are kept in ${basename(this.#keptPath)} until then`
    } catch (error) {
      return `, but cannot be kept beside it: ${this.describeError(error)}`
    }
  }

  /** A system error in words. Names the folder when that is what cannot be written. */
  describeError(error: unknown): string {
    return describeFileError(this.#disk, error)
  }

  /** Releases the file. What was acknowledged is durable already. */
  async close(): Promise<void> {
    try {
      await this.#appender?.rollBack()
      // A failed replacement may have left the file aside.
      await putBackOldFile(this.#disk)
    } catch {
      // The next start repairs what is left, if it can, and puts the file back.
    }
    this.#appender?.close()
    await this.#release()
  }

  /** Makes the file durable, whoever wrote it, and tells whether that succeeded. Throws a DataFileChanged if the file is gone. */
  async #sync(): Promise<boolean> {
    if (this.#hasFailedSync) return false
    try {
      await this.#disk.syncFile()
    } catch (error) {
      const code = errorCode(error)
      if (code === 'ENOENT') throw new DataFileChanged()
      // EROFS does not count: nothing can be written anew on a file system that is read-only (Linux makes it so after an error), so what is
      // there is served. Neither does a file that may not be opened for writing, without which Windows syncs nothing.
      this.#hasFailedSync = code !== 'EROFS' && !this.#disk.mayBeHeld(error)
    }
    return !this.#hasFailedSync
  }

  /** From now on the pets of this text, which is durable, are served and appended to. */
  #serve(identity: Identity, text: FileText): PetData {
    removeLeftovers(this.#disk)
    if (this.#keptPath !== undefined) this.#disk.remove(this.#keptPath)
    this.#keptPath = undefined
    this.#appender = new Appender(this.#disk, identity, text)
    this.#found = undefined
    const { pets } = text
    this.#count = pets.length
    const highestId = pets.at(-1)?.id ?? 0
    if (highestId > this.highestId) this.highestId = highestId
    return (this.#served = { pets })
  }

  /** Replaces the file, if it is still as `expected`, and returns its new content. Otherwise throws a DataFileChanged. */
  async #replace(expected: Identity, next: Buffer): Promise<Buffer> {
    try {
      await this.#disk.retryWhileHeld(() => replaceFile(this.#disk, expected, next))
    } catch (error) {
      if (expected === undefined || !isSystemError(error)) throw error
      if (errorCode(error) !== 'EBUSY' || this.#disk.isWindows) throw new RewriteFailed(error)
      // Remembered, so that this is not tried again until somebody edits the file.
      this.#found = { identity: expected }
      const fault = 'has to be rewritten, but is a mount of its own; mount its folder instead'
      throw DataFileUnusable.ofFile(this.path, fault)
    }
    this.#hasFailedSync = false
    return next
  }

  /** Cuts off the damaged end, and keeps its bytes beside the file, unless they are only brackets. Returns the new content. */
  async #repair(identity: Identity, text: FileText, cause: TornEnd): Promise<Buffer> {
    const isKept = cause !== 'brackets'
    const keptPath = isKept ? await keepBeside(this.#disk, 'torn', text.tail) : ''
    const repaired = text.formatWithIds(closingBrackets)
    await this.#replace(identity, repaired).catch((error: unknown) => {
      const isAsBefore = hasSameContent(this.#disk.statIdentity(), identity)
      if (isKept && isAsBefore) this.#disk.remove(keptPath)
      throw error
    })
    const why = 'its end was cut off by a crash, or it was copied while pets were created'
    const kept = `the last ${text.tail.length} bytes of the damaged file are kept in ${basename(keptPath)}`
    this.#disk.say(`repaired: ${isKept ? `${why}; ${kept}` : 'its closing brackets were missing'}`)
    return repaired
  }

  /** A new file names its schema, if it lies in the same folder. */
  #formatNewFile(pets: readonly Pet[]): Buffer {
    const schema = 'pets.schema.json'
    const hasSchema = this.#disk.statIdentity(join(dirname(this.#disk.target), schema)) !== undefined
    return formatFile(pets, hasSchema ? `./${schema}` : undefined)
  }
}

/**
 * Appends pets to the data file in place, and rolls back what fails. Knows where the last pet ends and in which state the
 * file was last seen; does not parse it.
 */
import type { Pet } from '../pet/pet.ts'
import { errorCode } from '../system-error.ts'
import { DataFileChanged } from './data-file-error.ts'
import { type Disk, type Identity, isSame, unknownIdentity } from './disk.ts'
import { closingBrackets, formatAppend, type TextEnd } from './pets-text.ts'

export class Appender {
  readonly #disk: Disk
  readonly #path: string
  /** The file as it was last read or written. */
  #identity: Identity
  /** -1 in a file that is not valid. */
  #petsEnd: number
  #isClosedByUs: boolean
  /** Open for appends; undefined until the first one. */
  #descriptor: number | undefined
  /** Whether our closing brackets are still to be put after the last pet: over a failed append, or over a person's brackets. */
  #needsBrackets = false
  #mayBeStored = false

  /** A file without an end is not valid, and is not appended to. */
  constructor(disk: Disk, path: string, identity: Identity, end?: TextEnd) {
    this.#disk = disk
    this.#path = path
    this.#identity = identity
    this.#petsEnd = end?.petsEnd ?? -1
    this.#isClosedByUs = end?.isClosedByUs ?? false
  }

  /** After a failed append: whether its pets may still be in the file, or in an editor's copy of it. */
  get mayBeStored(): boolean {
    return this.#mayBeStored
  }

  /** Whether somebody else has written or replaced the file since it was read or written here. */
  isEdited(): boolean {
    return !isSame(this.#disk.statIdentity(this.#path), this.#identity)
  }

  /**
   * Adds pets after the last one or, with `isFirst`, to an empty list, and returns when they are durable. Throws the file
   * system's error, or a DataFileChanged when the file has to be read first; see `mayBeStored` for what is then in it.
   */
  async append(added: readonly Pet[], isFirst: boolean): Promise<void> {
    this.#mayBeStored = false
    if (this.#petsEnd === -1) throw new DataFileChanged()
    await this.rollBack()
    const bytes = formatAppend(added, isFirst)
    const descriptor = (this.#descriptor ??= this.#openForAppend())
    if (!this.#isClosedByUs) await this.#closeByUs(descriptor)
    // 1. Check: nobody has edited the file. The write follows at once, which leaves almost no time for an edit in between.
    if (this.isEdited()) throw new DataFileChanged()
    let written: Identity = undefined
    try {
      // 2. Overwrite the closing brackets with the pets and new closing brackets.
      this.#needsBrackets = true
      this.#mayBeStored = true
      this.#disk.write(descriptor, bytes, this.#petsEnd)
      // 3. Check: no editor has saved in place at this very moment.
      written = this.#disk.fstatIdentity(descriptor)
      if (!this.#hasLanded(descriptor, written, this.#petsEnd, bytes)) throw new DataFileChanged()
      // 4. Sync, which makes it durable. That takes milliseconds, in which the file can be edited.
      await this.#disk.sync('fdatasync', descriptor)
      // 5. Check: it is still the file at the path, and nobody has written into it.
      if (!isSame(this.#disk.statIdentity(this.#path), written)) throw new DataFileChanged()
    } catch (error) {
      await this.#handleFailedAppend(descriptor, written, error)
      throw error
    }
    this.#needsBrackets = false
    this.#mayBeStored = false
    this.#identity = written
    this.#petsEnd += bytes.length - closingBrackets.length
  }

  #openForAppend(): number {
    // By now the file may be gone, or replaced with a folder.
    if (this.isEdited()) throw new DataFileChanged()
    try {
      return this.#disk.fs.openSync(this.#path, 'r+')
    } catch (error) {
      // Some editors remove the file and write it again.
      throw errorCode(error) === 'ENOENT' ? new DataFileChanged() : error
    }
  }

  /**
   * A person may close the file in any way (`]}`, say). A crash in the middle of an append over such an end could leave anything. So
   * first our closing brackets take the place of whatever follows the last pet. They are written in place, since a new file would need
   * a folder that can be written.
   */
  async #closeByUs(descriptor: number): Promise<void> {
    if (this.isEdited()) throw new DataFileChanged()
    // An end that is shorter than our brackets first grows by line feeds, which leave the text valid. So a full disk fails before
    // anything is overwritten. And whenever we crash, at least 7 bytes (the length of our brackets) follow the last pet: findTornEnd
    // relies on that.
    const size = Number(this.#identity?.size)
    const missing = this.#petsEnd + closingBrackets.length - size
    if (missing > 0) {
      const lineFeeds = Buffer.alloc(missing, '\n')
      this.#disk.write(descriptor, lineFeeds, size)
      this.#identity = this.#disk.fstatIdentity(descriptor)
      if (!this.#hasLanded(descriptor, this.#identity, size, lineFeeds)) throw this.#forget()
      await this.#disk.sync('fdatasync', descriptor)
      if (this.isEdited()) throw new DataFileChanged()
    }
    const isLonger = missing < 0
    this.#needsBrackets = true
    await this.#writeClosingBrackets(descriptor, isLonger)
    if (!this.#hasLanded(descriptor, this.#identity, this.#petsEnd, closingBrackets)) throw this.#forget()
  }

  /**
   * Whether the file ends with what was just written at `position`. If an editor has emptied it before the write, the length is right,
   * but there are NULs up to `position`.
   */
  #hasLanded(descriptor: number, written: Identity, position: number, bytes: Buffer): boolean {
    if (written?.size !== BigInt(position + bytes.length)) return false
    const found = Buffer.alloc(1 + bytes.length)
    this.#disk.fs.readSync(descriptor, found, 0, found.length, position - 1)
    return found[0] !== 0 && found.subarray(1).equals(bytes)
  }

  /** An editor has saved: from now on the file counts as edited, whatever `stat` says. Returns the error to throw. */
  #forget(): DataFileChanged {
    this.close()
    this.#identity = unknownIdentity
    return new DataFileChanged()
  }

  /** Removes the append, unless the file is an editor's by now. `written`: its state in step 3; undefined if it did not get that far. */
  async #handleFailedAppend(descriptor: number, written: Identity, error: unknown): Promise<void> {
    try {
      // In case the next lines throw: rollBack compares the file with this state, which has the append in it.
      if (written !== undefined) this.#identity = written
      // A check has found an edit, or the file has changed since step 3: it is left alone, to be read again.
      const isEditedSince = written !== undefined && !isSame(this.#disk.fstatIdentity(descriptor), written)
      if (error instanceof DataFileChanged || isEditedSince) this.#forget()
      else await this.#writeClosingBrackets(descriptor, true)
    } catch {
      // The file system failed here too: the next append or look for edits tries again.
    }
  }

  /**
   * Puts our closing brackets after the last pet. If the process dies in the middle, the next start repairs the file. With `cutsOff`, an
   * append or the rest of a person's end may follow, so the file is first cut to the length that it will have. Without, it has that length
   * already; if it is longer, an editor has just saved: nothing is cut off, and #hasLanded notices.
   */
  async #writeClosingBrackets(descriptor: number, cutsOff: boolean): Promise<void> {
    try {
      if (cutsOff) this.#disk.fs.ftruncateSync(descriptor, this.#petsEnd + closingBrackets.length)
      this.#disk.write(descriptor, closingBrackets, this.#petsEnd)
    } finally {
      // Before the sync, so that an edit that is made during it is noticed.
      this.#identity = this.#disk.fstatIdentity(descriptor)
    }
    await this.#disk.sync('fdatasync', descriptor)
    this.#isClosedByUs = true
    this.#needsBrackets = false
    this.#mayBeStored = false
  }

  /**
   * Puts our closing brackets back after a failure, if that did not succeed at once. Does nothing if somebody else has written to the
   * file since. Returns whether it has put them back. Throws the file system's error.
   */
  async rollBack(): Promise<boolean> {
    const descriptor = this.#descriptor
    if (!this.#needsBrackets || descriptor === undefined) return false
    if (!isSame(this.#disk.fstatIdentity(descriptor), this.#identity)) return false
    await this.#writeClosingBrackets(descriptor, true)
    return true
  }

  /** Closes the file, and gives up a rollback that is still due. */
  close(): void {
    if (this.#descriptor !== undefined) this.#disk.closeQuietly(this.#descriptor)
    this.#descriptor = undefined
    this.#needsBrackets = false
  }
}

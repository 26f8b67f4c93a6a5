/**
 * Appends pets to the data file in place, and rolls back what fails. Knows where the last pet ends and in which state the
 * file was last seen; does not parse it.
 */
import type { Pet } from '../pet/pet.ts'
import { errorCode } from '../system-error.ts'
import { DataFileChanged } from './data-file-error.ts'
import { type Disk, type Identity, isSame, unknownIdentity } from './disk.ts'
import { closingBrackets, formatAppend, type TextEnd } from './file-text.ts'

export class Appender {
  readonly #disk: Disk
  readonly #path: string
  /** The file as it was last read or written here. */
  #identity: Identity
  /** -1: the file is not valid, and is not appended to. */
  #petsEnd: number
  #isClosedByUs: boolean
  /** Open for appends; undefined until the first one. */
  #descriptor: number | undefined
  /** Perhaps our closing brackets do not follow the last pet: something is being written there, or a write has failed. */
  #mayLackBrackets = false
  #mayBeStored = false

  /** `end` is that of a valid file, and undefined for any other. */
  constructor(disk: Disk, path: string, identity: Identity, end?: TextEnd) {
    this.#disk = disk
    this.#path = path
    this.#identity = identity
    this.#petsEnd = end?.petsEnd ?? -1
    this.#isClosedByUs = end?.isClosedByUs ?? false
  }

  /** After a failed append: whether its pets may still be in the file, or in an editor that has read it and may save it again. */
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
    this.#throwIfEdited()
    try {
      // 2. Overwrite the closing brackets with the pets and new closing brackets.
      this.#mayBeStored = true
      try {
        this.#overwriteEnd(descriptor, bytes)
      } catch (error) {
        // rollBack, below, does nothing if the file is not as #identity says, which is out of date if the fstat in #overwriteEnd has failed
        // too. So the write is undone here without that check: the one in step 1 was just now.
        await this.#writeClosingBrackets(descriptor, true).catch(() => {})
        throw error
      }
      // 3. Check: no editor has saved in place at this very moment.
      this.#throwUnlessLanded(descriptor, bytes, this.#petsEnd)
      // 4. Sync, which makes it durable. That takes milliseconds, in which the file can be edited.
      await this.#disk.sync('fdatasync', descriptor)
      // 5. Check: it is still the file at the path, and nobody has written into it.
      this.#throwIfEdited()
    } catch (error) {
      // An edited file is left alone, to be read again. Anything else is rolled back, unless it is undone already. If the rollback fails
      // too, the next append or look for edits tries it again.
      if (error instanceof DataFileChanged) this.#forget()
      else await this.rollBack().catch(() => {})
      throw error
    }
    this.#mayLackBrackets = false
    this.#mayBeStored = false
    this.#petsEnd += bytes.length - closingBrackets.length
  }

  #throwIfEdited(): void {
    if (this.isEdited()) throw new DataFileChanged()
  }

  #openForAppend(): number {
    // By now the file may be gone, or replaced with a folder.
    this.#throwIfEdited()
    try {
      return this.#disk.fs.openSync(this.#path, 'r+')
    } catch (error) {
      // Some editors remove the file and write it again.
      throw errorCode(error) === 'ENOENT' ? new DataFileChanged() : error
    }
  }

  /**
   * A person may close the file in any way (`]}`, say), and a crash in the middle of an append over such an end could leave a mixture that
   * nobody can tell from a mistake. So before the first append our closing brackets take the place of whatever follows the last pet. They
   * are written in place, without replaceFile, which has to be allowed to write into the folder.
   */
  async #closeByUs(descriptor: number): Promise<void> {
    this.#throwIfEdited()
    const size = Number(this.#identity?.size)
    const missing = this.#petsEnd + closingBrackets.length - size
    if (missing > 0) {
      // A person's end that is shorter than ours first grows to 7 bytes by line feeds, which leave the text valid. So if the disk is full,
      // nothing is overwritten yet. And findTornEnd knows that no crash after this leaves fewer than 7 bytes.
      const lineFeeds = Buffer.alloc(missing, '\n')
      this.#disk.write(descriptor, lineFeeds, size)
      this.#identity = this.#disk.fstatIdentity(descriptor)
      this.#throwUnlessLanded(descriptor, lineFeeds, size)
      await this.#disk.sync('fdatasync', descriptor)
      this.#throwIfEdited()
    }
    // Cuts the file only if it is too long: a cut would also remove what an editor adds at this very moment, before it is noticed.
    const cutsOff = missing < 0
    await this.#writeClosingBrackets(descriptor, cutsOff)
    this.#throwUnlessLanded(descriptor, closingBrackets, this.#petsEnd)
  }

  /**
   * After a write at `position`, the file (whose state is #identity now) has to end with what was written. If it does not, an editor has
   * saved at the same time.
   */
  #throwUnlessLanded(descriptor: number, bytes: Buffer, position: number): void {
    const found = Buffer.alloc(1 + bytes.length)
    this.#disk.fs.readSync(descriptor, found, 0, found.length, position - 1)
    // If an editor has emptied the file before our write, the length is right all the same: there are NULs up to `position`.
    const isAtEnd = this.#identity?.size === BigInt(position + bytes.length)
    if (isAtEnd && found[0] !== 0 && found.subarray(1).equals(bytes)) return
    this.#forget()
    throw new DataFileChanged()
  }

  /** From now on the file counts as edited, whatever `stat` says. */
  #forget(): void {
    this.close()
    this.#identity = unknownIdentity
  }

  /** Writes over what follows the last pet; with `cutsOff`, first cuts the file to the length that it will have. */
  #overwriteEnd(descriptor: number, bytes: Buffer, cutsOff = false): void {
    this.#mayLackBrackets = true
    try {
      if (cutsOff) this.#disk.fs.ftruncateSync(descriptor, this.#petsEnd + bytes.length)
      this.#disk.write(descriptor, bytes, this.#petsEnd)
    } finally {
      // Even a write that fails may have changed the file.
      this.#identity = this.#disk.fstatIdentity(descriptor)
    }
  }

  /** Puts our closing brackets after the last pet. If the process dies in the middle, the next start repairs the file. */
  async #writeClosingBrackets(descriptor: number, cutsOff: boolean): Promise<void> {
    this.#overwriteEnd(descriptor, closingBrackets, cutsOff)
    await this.#disk.sync('fdatasync', descriptor)
    this.#isClosedByUs = true
    this.#mayLackBrackets = false
    this.#mayBeStored = false
  }

  /**
   * If a write has failed, puts our closing brackets back. Does nothing if somebody else has written to the file since. Returns whether it
   * has put them back. Throws the file system's error.
   */
  async rollBack(): Promise<boolean> {
    const descriptor = this.#descriptor
    if (!this.#mayLackBrackets || descriptor === undefined) return false
    const isOurs = isSame(this.#disk.fstatIdentity(descriptor), this.#identity)
    if (isOurs) await this.#writeClosingBrackets(descriptor, true)
    return isOurs
  }

  /** Closes the file, and gives up a rollback that is still due. */
  close(): void {
    if (this.#descriptor !== undefined) this.#disk.closeQuietly(this.#descriptor)
    this.#descriptor = undefined
    this.#mayLackBrackets = false
  }
}

/** Appends pets to the data file in place, and rolls back what fails. Knows where the last pet ends and what follows it; does not parse it. */
import type { Pet } from '../pet/pet.ts'
import { errorCode, isSystemError } from '../system/errors.ts'
import { DataFileChanged, isSame, unknownIdentity, type Disk, type Identity } from './disk.ts'
import { closingBrackets, formatAppend, type FileText } from './file-text.ts'

export class Appender {
  readonly #disk: Disk
  /** How the file was when it was last read or written here. */
  identity: Identity
  /** Where the next pet goes: after the last one or, if there is none, after the `[`. */
  #petsEnd: number
  /** What follows there: closing brackets, which are ours or a person's, with white space. */
  #closing: Buffer
  /** Open for appends; undefined until the first one. */
  #descriptor: number | undefined
  /** Perhaps the file does not end as it should: something is being written there, or a write has failed. */
  #mayBeTorn = false
  /** Whether the pets of a failed append may be in the file: either it could not be undone, or an editor was saving at the same time. */
  mayBeStored = false

  constructor(disk: Disk, identity: Identity, { petsEnd, tail }: FileText) {
    this.#disk = disk
    this.identity = identity
    this.#petsEnd = petsEnd
    // Copied, since a part of the text would keep all of it in memory.
    this.#closing = Buffer.from(tail)
  }

  /**
   * Adds pets after the last one or, with `isFirst`, to an empty list, and returns when they are durable. Throws the file
   * system's error, or a DataFileChanged when the file has to be read first; see `mayBeStored` for what is then in it.
   */
  async append(added: readonly Pet[], isFirst: boolean): Promise<void> {
    this.mayBeStored = false
    await this.rollBack()
    const bytes = formatAppend(added, isFirst)
    const descriptor = (this.#descriptor ??= await this.#openForAppend())
    // 1. Check: nobody has edited the file. The write follows at once, which leaves almost no time for an edit in between.
    this.#throwIfEdited()
    // 2. Overwrite what follows the last pet with the pets and our closing brackets, and note how the file is now.
    this.mayBeStored = true
    // A person may have left more after the last pet (white space and brackets) than the new bytes take, and the rest would remain behind
    // them. Only then is the file cut, since a cut would also remove what an editor adds at this very moment.
    const isCut = this.#closing.length > bytes.length
    try {
      this.#writeEnd(descriptor, bytes, isCut)
    } catch (error) {
      // Not rollBack(), which first looks for an edit. If the `fstat` in #writeEnd has failed, the file was last seen before the write, and
      // our own bytes would pass for somebody's edit.
      await this.#restoreEnd(descriptor).catch(() => {})
      throw error
    }
    try {
      // 3. Check: no editor has saved in place at this very moment.
      this.#throwUnlessLanded(descriptor, bytes)
      // 4. Sync, which makes it durable. That takes milliseconds, in which the file can be edited.
      await this.#disk.sync('fdatasync', descriptor)
      // 5. Check: it is still the file at the path, and nobody has written into it.
      if (this.#disk.isWindows) await this.#closeAndLook(bytes)
      else this.#throwIfEdited()
    } catch (error) {
      if (error instanceof DataFileChanged) {
        // Gives up the rollback, which would overwrite the edit.
        this.close()
        // The edit may have come within step 2, between the write and the `fstat`; step 3 has found it by its content. Then it is the
        // edited file that was last seen, and would pass for ours.
        this.identity = unknownIdentity
      } else {
        // If this fails too, the next append or look for edits tries it again.
        await this.rollBack().catch(() => {})
      }
      throw error
    }
    this.#mayBeTorn = false
    this.mayBeStored = false
    this.#petsEnd += bytes.length - closingBrackets.length
    this.#closing = closingBrackets
  }

  /**
   * On Windows, an editor cannot rename its file over one that we have open, and other programs cannot read one that they do not share for
   * writing. And a file's times are certain only when it is closed (MSDN, File Times). So it is closed after each append, and seen anew; a
   * save that has come meanwhile shows in its end.
   */
  async #closeAndLook(bytes: Buffer): Promise<void> {
    this.close()
    try {
      this.identity = this.#disk.statIdentity()
      await this.#disk.withFile(this.#disk.path, 'r', async (descriptor) =>
        this.#throwUnlessLanded(descriptor, bytes),
      )
    } catch (error) {
      // It may also be held, or gone. Then it has to be read before the next append.
      throw isSystemError(error) ? new DataFileChanged() : error
    }
  }

  #throwIfEdited(): void {
    if (!isSame(this.#disk.statIdentity(), this.identity)) throw new DataFileChanged()
  }

  async #openForAppend(): Promise<number> {
    // By now the file may be gone, or replaced with a folder.
    this.#throwIfEdited()
    try {
      return await this.#disk.open(this.#disk.path, 'r+')
    } catch (error) {
      // Some editors remove the file and write it again.
      throw errorCode(error) === 'ENOENT' ? new DataFileChanged() : error
    }
  }

  /** Writes a new end of the file, from the last pet on. With `isCut`, first gives the file its new length. */
  #writeEnd(descriptor: number, bytes: Buffer, isCut: boolean): void {
    this.#mayBeTorn = true
    try {
      if (isCut) this.#disk.fs.ftruncateSync(descriptor, this.#petsEnd + bytes.length)
      this.#disk.write(descriptor, bytes, this.#petsEnd)
    } finally {
      // Even a write that fails may have changed the file.
      this.identity = this.#disk.fstatIdentity(descriptor)
    }
  }

  /** After a write, the file has to end with what was written. If it does not, an editor has saved at the same time. */
  #throwUnlessLanded(descriptor: number, bytes: Buffer): void {
    const found = Buffer.alloc(bytes.length)
    this.#disk.fs.readSync(descriptor, found, 0, found.length, this.#petsEnd)
    const isAtEnd = this.identity?.size === BigInt(this.#petsEnd + bytes.length)
    if (!isAtEnd || !found.equals(bytes)) throw new DataFileChanged()
  }

  /** Undoes an append: puts back what followed the last pet before. */
  async #restoreEnd(descriptor: number): Promise<void> {
    this.#writeEnd(descriptor, this.#closing, true)
    await this.#disk.sync('fdatasync', descriptor)
    this.#mayBeTorn = false
    this.mayBeStored = false
  }

  /**
   * Undoes a failed append, if it is not undone yet, and if nobody else has written to the file since. Returns whether it has done so.
   * Throws the file system's error.
   */
  async rollBack(): Promise<boolean> {
    const descriptor = this.#descriptor
    if (!this.#mayBeTorn || descriptor === undefined) return false
    const isOurs = isSame(this.#disk.fstatIdentity(descriptor), this.identity)
    if (isOurs) await this.#restoreEnd(descriptor)
    return isOurs
  }

  /** Closes the file, and gives up a rollback that is still due. */
  close(): void {
    if (this.#descriptor !== undefined) this.#disk.close(this.#descriptor)
    this.#descriptor = undefined
  }
}

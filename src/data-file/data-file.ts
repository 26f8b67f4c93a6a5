/**
 * The data file as lowdb's adapter. `write` appends: it overwrites only the closing brackets, syncs, and then makes sure
 * that it is still the file at that path; a failed one leaves the file as it was. `read` takes no half-saved file, and
 * nothing that is not durable. Nothing that somebody else wrote is ever overwritten.
 */
import { basename, dirname, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Adapter } from 'lowdb'
import { Disk, type FileSystem, type Identity, isSame, NotAFile, type WholeFile } from './disk.ts'
import { type FileLock, lockFile } from './file-lock.ts'
import type { Pet } from '../types.ts'
import { describeSystemError, errorCode } from './system-error.ts'
import {
  closingText,
  formatAppend,
  formatPetsText,
  healPetsText,
  parsePetsText,
  PetsFault,
  type PetsText,
} from './pets-text.ts'

/** What lowdb holds: the pets by ascending id. */
export interface PetData {
  pets: Pet[]
}

export interface DataFileOptions {
  /** Takes a line for the person who runs the server. */
  readonly say?: (line: string) => void
  readonly fileSystem?: FileSystem
}

/** The file cannot be used as it is; the message says where and why, and names the file. */
export class DataFileInvalid extends Error {
  /** False while somebody may still be in the middle of saving it. */
  readonly isSettled: boolean
  /** Where or what the error is, for clients too: it names no path and quotes nothing from the file. */
  readonly place: string
  constructor(message: string, place = 'it cannot be read', isSettled = true) {
    super(message)
    this.place = place
    this.isSettled = isSettled
  }
}

/** Somebody else wrote the file: it has to be read before it can be written. */
export class DataFileEdited extends Error {}

/** An invalid, empty or missing file that stays so for this long is meant, not half-saved. */
const settleMs = 400
/** A file that changes for longer than this is not waited for. */
const patienceMs = 1500
const lookAgainMs = 40

/** Opens the data file, made if missing, healed if its last append is torn. Throws a DataFileInvalid. */
export async function openDataFile(
  path: string,
  options: DataFileOptions = {},
): Promise<{ file: DataFile; data: PetData }> {
  const disk = new Disk(options.fileSystem)
  let lock: FileLock | undefined
  try {
    await disk.makeFolder(dirname(disk.followLinks(resolve(path))))
    lock = await lockFile(disk.followLinks(resolve(path)))
    if (lock === undefined)
      throw new DataFileInvalid(`${path}: another server has this file open; stop it, or choose another file`)
    const file = new DataFile(path, disk, lock, options.say)
    for (;;) {
      const data = await file.open()
      if (data !== undefined) return { file, data }
      await delay(lookAgainMs)
    }
  } catch (error) {
    await lock?.release()
    if (error instanceof DataFileInvalid || errorCode(error) === '') throw error
    throw new DataFileInvalid(`${path}: cannot be opened: ${describeSystemError(error)}`)
  }
}

export class DataFile implements Adapter<PetData> {
  readonly path: string
  readonly #disk: Disk
  readonly #lock: FileLock
  readonly #say: (line: string) => void
  /** The file as it was when it was last read or written, valid or not. */
  #identity: Identity
  /** Whether it was seen to be edited in the middle of a write, so that it has to be read whatever `stat` says. */
  #isUnknown = false
  /** How many of the pets are in the file. */
  #count = 0
  /** Where the next pet goes, if it can go there in place. */
  #end = 0
  #isAppendable = false
  /** Open for appends; undefined until the next one. */
  #descriptor: number | undefined
  /** Whether a failed append could not be taken back yet. */
  #isTorn = false
  /** An append that may have fallen behind the text of an editor that was just saving in place. */
  #stray: { readonly at: number; readonly bytes: Buffer } | undefined

  constructor(path: string, disk: Disk, lock: FileLock, say: (line: string) => void = () => {}) {
    this.path = path
    this.#disk = disk
    this.#lock = lock
    this.#say = say
  }

  /** For openDataFile alone. Undefined when somebody wrote the file meanwhile, and it has to be opened again. */
  async open(): Promise<PetData | undefined> {
    const { bytes, identity } = await this.#readWhole()
    try {
      const text = parsePetsText(bytes)
      return await this.#take(bytes, text, identity, identity === undefined)
    } catch (error) {
      if (error instanceof DataFileEdited) return undefined
      if (!(error instanceof PetsFault)) throw error
      if (error.tornAt === undefined) throw this.#invalid(error)
      return await this.#heal(bytes, error.tornAt, identity)
    }
  }

  /** Whether the file at the path is another one, or was written by somebody else, since it was read or written here. */
  isEdited(): boolean {
    return this.#isUnknown || !isSame(this.#disk.look(this.path), this.#identity)
  }

  /** Reads an edited file. Throws a DataFileInvalid, and then is not edited until it changes again. */
  async read(): Promise<PetData> {
    const start = performance.now()
    let steadySince = start
    let last: (Understood & { readonly identity: Identity }) | undefined
    for (;;) {
      const { bytes, identity } = await this.#readWhole()
      const now = performance.now()
      if (last === undefined || !isSame(identity, last.identity)) {
        steadySince = now
        last = { identity, ...this.#understand(bytes) }
      }
      // An editor that saves in place empties the file first, and may take its time with the rest.
      const isEmpty = last.text?.end === last.bytes.length
      if (last.text !== undefined && !isEmpty) {
        const isStrayed = last.bytes.length < bytes.length
        try {
          return await this.#take(last.bytes, last.text, identity, isStrayed)
        } catch (error) {
          if (!(error instanceof DataFileEdited)) throw error
        }
      } else if (now - steadySince >= settleMs) {
        this.#leave(identity)
        if (last.fault !== undefined) throw this.#invalid(last.fault)
        const state = identity === undefined ? 'missing' : 'empty'
        throw new DataFileInvalid(`${this.path}: is ${state}`, `it is ${state}`)
      }
      if (now - start > patienceMs) throw this.#beingWritten()
      await delay(lookAgainMs)
    }
  }

  /**
   * Adds the pets that are not in the file yet, and returns when they are on disk. Throws the file system's error, and
   * then the file is as it was, or DataFileEdited when it has to be read first, and then they may be in it or not.
   */
  async write({ pets }: PetData): Promise<void> {
    const added = pets.slice(this.#count)
    if (added.length === 0) return
    await this.mend()
    if (!this.#isAppendable) await this.#makeAppendable()
    await this.#append(added)
    this.#count += added.length
  }

  /** Takes back what a failed append left, if it could not be taken back then. Throws the file system's error. */
  async mend(): Promise<void> {
    if (this.#isTorn && this.#isUntouched()) await this.#takeBack()
  }

  /** Releases the file. What was acknowledged is durable already. */
  async close(): Promise<void> {
    // What cannot be taken back now heals when the file is opened again.
    await this.mend().catch(() => {})
    this.#forget()
    await this.#lock.release()
  }

  async #append(added: readonly Pet[]): Promise<void> {
    const bytes = formatAppend(added, this.#count === 0)
    let written: Identity
    try {
      const descriptor = (this.#descriptor ??= this.#openForAppend())
      // The look and the write follow each other without a pause: an edit in between would be overwritten.
      if (this.isEdited()) throw new DataFileEdited()
      this.#isTorn = true
      this.#disk.write(descriptor, bytes, this.#end)
      written = this.#disk.identify(descriptor)
      if (written?.size !== BigInt(this.#end + bytes.length) || !this.#hasGround(descriptor, bytes)) {
        this.#stray = { at: this.#end, bytes }
        throw new DataFileEdited()
      }
      await this.#disk.syncData(descriptor)
      if (!isSame(this.#disk.look(this.path), written)) throw new DataFileEdited()
    } catch (error) {
      if (error instanceof DataFileEdited) this.#forget()
      else await this.#giveUp(written)
      throw error
    }
    this.#isTorn = false
    this.#identity = written
    this.#end += bytes.length - closingText.length
  }

  #openForAppend(): number {
    // It may be missing, or a folder by now.
    if (this.isEdited()) throw new DataFileEdited()
    return this.#disk.fs.openSync(this.path, 'r+')
  }

  /** Whether the append stands where it belongs: an editor may have written in place in the same instant. */
  #hasGround(descriptor: number, bytes: Buffer): boolean {
    const there = Buffer.alloc(1 + bytes.length)
    this.#disk.fs.readSync(descriptor, there, 0, there.length, this.#end - 1)
    const ground = there.toString('latin1', 0, 1)
    return ground === (this.#count === 0 ? '[' : '}') && there.subarray(1).equals(bytes)
  }

  /** After a failed append: the file is put back as it was, unless somebody else has written into it meanwhile. */
  async #giveUp(written: Identity): Promise<void> {
    if (!this.#isTorn) return
    try {
      if (written !== undefined) {
        this.#identity = written
        if (!this.#isUntouched()) return this.#forget()
      }
      await this.#takeBack()
    } catch {
      // When the disk fails in this too, the next write and the next look try again.
    }
  }

  /** Whether nobody else wrote into the file that is open for appends, be it the one at the path or not. */
  #isUntouched(): boolean {
    return this.#descriptor !== undefined && isSame(this.#disk.identify(this.#descriptor), this.#identity)
  }

  async #takeBack(): Promise<void> {
    const descriptor = this.#descriptor
    if (descriptor === undefined) return
    try {
      // In this order each state between is a torn append, which heals when opened.
      this.#disk.fs.ftruncateSync(descriptor, this.#end + closingText.length)
      this.#disk.write(descriptor, closingText, this.#end)
    } finally {
      // Not after the sync: an edit may fall into it.
      this.#identity = this.#disk.identify(descriptor)
    }
    await this.#disk.syncData(descriptor)
    this.#isTorn = false
  }

  /** Brings a layout that is not ours into a form that pets can be appended to; what stands there stays as it is. */
  async #makeAppendable(): Promise<void> {
    if (this.isEdited()) throw new DataFileEdited()
    const { bytes, identity } = await this.#readWhole()
    if (!isSame(identity, this.#identity)) throw new DataFileEdited()
    await this.#rewrite(bytes, parsePetsText(bytes), identity)
  }

  /** Makes a text that was read the state here; first gives ids where they are missing, in the file as well. */
  async #take(bytes: Buffer, text: PetsText, identity: Identity, mustRewrite = false): Promise<PetData> {
    if (mustRewrite || text.assigned.length > 0) return this.#rewrite(bytes, text, identity)
    // What was read is served and built upon from now on, so it must not be lost either.
    await this.#disk.syncFile(this.path)
    this.#leave(identity)
    this.#stray = undefined
    this.#count = text.pets.length
    this.#end = text.end
    this.#isAppendable = text.isAppendable
    return { pets: text.pets }
  }

  /** Puts a text that was read into the file again, with ids and appendable, unless the file is another by now. */
  async #rewrite(bytes: Buffer, text: PetsText, identity: Identity): Promise<PetData> {
    const next = formatPetsText(bytes, text)
    const isExpected = (): boolean => isSame(this.#disk.look(this.path), identity)
    const target = this.#disk.followLinks(resolve(this.path))
    if (!(await this.#disk.replace(target, next, isExpected))) throw new DataFileEdited()
    const after = await this.#readWhole()
    if (!after.bytes.equals(next)) throw new DataFileEdited()
    return this.#take(next, parsePetsText(next), after.identity)
  }

  async #heal(bytes: Buffer, tornAt: number, identity: Identity): Promise<PetData | undefined> {
    const healed = healPetsText(bytes, tornAt)
    // When it was torn: if healing fails as well, the next try keeps the same bytes under the same name.
    const time = new Date(Number((identity?.mtimeNs ?? 0n) / 1_000_000n)).toISOString().replaceAll(':', '-')
    const target = this.#disk.followLinks(resolve(this.path))
    const torn = `${target}.torn-${time}`
    try {
      const text = parsePetsText(healed)
      this.#disk.fs.rmSync(torn, { force: true })
      // As private as the file that it comes from.
      await this.#disk.make(torn, bytes.subarray(tornAt), this.#disk.fs.statSync(target))
      await this.#disk.syncFolder(dirname(torn))
      const data = await this.#rewrite(healed, text, identity)
      const kept = `${bytes.length - tornAt} bytes behind the last whole pet are kept in ${basename(torn)}`
      this.#say(`${this.path}: the last write was cut off; ${kept}`)
      return data
    } catch (error) {
      if (error instanceof DataFileEdited) return undefined
      throw error instanceof PetsFault ? this.#invalid(error) : error
    }
  }

  /** The file in one state, even while somebody writes it. */
  async #readWhole(): Promise<WholeFile> {
    const start = performance.now()
    for (;;) {
      try {
        const whole = this.#disk.read(this.path)
        if (whole !== undefined) return whole
      } catch (error) {
        if (!(error instanceof NotAFile)) throw error
        this.#leave(this.#disk.look(this.path))
        throw new DataFileInvalid(`${this.path}: ${error.message}`)
      }
      if (performance.now() - start > patienceMs) throw this.#beingWritten()
      await delay(lookAgainMs)
    }
  }

  #understand(bytes: Buffer): Understood {
    try {
      return { bytes, text: parsePetsText(bytes) }
    } catch (error) {
      if (!(error instanceof PetsFault)) throw error
      const rest = this.#withoutStray(bytes)
      const text = rest.length < bytes.length ? this.#understand(rest).text : undefined
      return text === undefined ? { bytes, fault: error } : { bytes: rest, text }
    }
  }

  /** What an editor saved, without the append that fell behind it and the hole between them. */
  #withoutStray(bytes: Buffer): Buffer {
    if (this.#stray === undefined || bytes.length !== this.#stray.at + this.#stray.bytes.length) return bytes
    const { at, bytes: stray } = this.#stray
    let end = bytes.length
    while (end > at && bytes[end - 1] === stray[end - 1 - at]) end--
    if (end === at) while (end > 0 && bytes[end - 1] === 0) end--
    return bytes.subarray(0, end)
  }

  /** What is known of the file is no longer true of the one at the path. */
  #forget(): void {
    this.#leave(undefined)
    this.#isUnknown = true
  }

  /** Lets go of what was open; the file was seen in this state. */
  #leave(identity: Identity): void {
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    this.#identity = identity
    this.#isTorn = false
    this.#isUnknown = false
    if (descriptor !== undefined) this.#disk.closeQuietly(descriptor)
  }

  #invalid({ message, line, column }: PetsFault): DataFileInvalid {
    return new DataFileInvalid(`${this.path}:${line}:${column}: ${message}`, `line ${line}, column ${column}`)
  }

  #beingWritten(): DataFileInvalid {
    return new DataFileInvalid(`${this.path}: is being written`, 'it is being written', false)
  }
}

/** A text that was read: what it says, or what is wrong with it. */
interface Understood {
  /** Without an append of ours that does not belong there. */
  readonly bytes: Buffer
  readonly text?: PetsText
  readonly fault?: PetsFault
}

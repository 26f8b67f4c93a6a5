/**
 * The data file as lowdb's adapter. `write` appends: it overwrites only the closing brackets, syncs, and then makes sure
 * that it is still the file at that path; a failed one leaves the file as it was. `read` never takes a half-saved file.
 * Every file system call goes through `FileSystem`, the seam at which tests record them and make them fail.
 */
import nodeFs from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Adapter } from 'lowdb'
import { type FileLock, lockFile } from './file-lock.ts'
import type { Pet } from './pet.ts'
import { errorCode } from './pet-store-error.ts'
import {
  closingLength,
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

export type FileSystem = Pick<
  typeof nodeFs,
  | 'closeSync'
  | 'fchmodSync'
  | 'fchownSync'
  | 'fdatasync'
  | 'fstatSync'
  | 'fsync'
  | 'ftruncateSync'
  | 'mkdirSync'
  | 'openSync'
  | 'readFileSync'
  | 'readSync'
  | 'readlinkSync'
  | 'realpathSync'
  | 'renameSync'
  | 'rmSync'
  | 'statSync'
  | 'writeSync'
>

export interface DataFileOptions {
  /** Takes a line for the person who runs the server. */
  readonly say?: (line: string) => void
  readonly fileSystem?: FileSystem
}

/** The file cannot be used as it is; the message says where and why, and names the file. */
export class DataFileInvalid extends Error {
  /** False while somebody may still be in the middle of saving it. */
  readonly isSettled: boolean
  constructor(message: string, isSettled = true) {
    super(message)
    this.isSettled = isSettled
  }
}

/** Somebody else wrote the file: it has to be read before it can be written. */
export class DataFileEdited extends Error {}

/** What tells one state of a file from another, as far as `stat` can. */
type Identity = Pick<nodeFs.BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs'> | undefined

/** An invalid or empty file that stays the same for so long is meant, not half-saved. */
const settleMs = 400
/** A file that changes for longer than this is not waited for. */
const patienceMs = 1500
const lookAgainMs = 40

/** Opens the data file, made if missing, healed if its last append is torn. Throws a DataFileInvalid. */
export async function openDataFile(path: string, options: DataFileOptions = {}): Promise<DataFile> {
  const fs = options.fileSystem ?? nodeFs
  let lock: FileLock | undefined
  try {
    await makeFolder(fs, dirname(resolve(path)))
    lock = await lockFile(followLinks(fs, resolve(path)))
    if (lock === undefined) throw new DataFileInvalid(`${path}: another server has this file open`)
    const file = new DataFile(path, fs, lock, options.say)
    await file.open()
    return file
  } catch (error) {
    await lock?.release()
    if (error instanceof DataFileInvalid || errorCode(error) === '') throw error
    throw new DataFileInvalid(`${path}: cannot be opened (${errorCode(error)})`)
  }
}

export class DataFile implements Adapter<PetData> {
  readonly path: string
  readonly #fs: FileSystem
  readonly #lock: FileLock
  readonly #say: (line: string) => void
  #pets: Pet[] = []
  /** The file as it was when it was last read or written, valid or not. */
  #identity: Identity
  /** Whether it was seen to be edited in the middle of a write, so that it has to be read whatever `stat` says. */
  #isUnknown = false
  /** Where the next pet goes, if it can go there in place. */
  #end = 0
  #isAppendable = false
  /** How many of the pets are in the file. */
  #count = 0
  /** Open for appends; undefined until the next one. */
  #descriptor: number | undefined
  /** Whether a failed append could not be taken back yet. */
  #isTorn = false

  constructor(path: string, fs: FileSystem, lock: FileLock, say: (line: string) => void = () => {}) {
    this.path = path
    this.#fs = fs
    this.#lock = lock
    this.#say = say
  }

  /** For openDataFile alone. */
  async open(): Promise<void> {
    const { bytes, identity } = this.#readBytes()
    this.#identity = identity
    try {
      const text = parsePetsText(bytes)
      if (identity === undefined) await this.#replace(formatPetsText(bytes, text))
      await this.#take(bytes, text, this.#look())
    } catch (error) {
      // oxlint-disable-next-line typescript/return-await
      if (error instanceof DataFileEdited) return this.open()
      if (!(error instanceof PetsFault)) throw error
      if (error.tornAt === undefined) throw this.#invalid(error)
      await this.#heal(bytes, error.tornAt)
    }
  }

  /** The pets as they were last read, for lowdb to begin with. */
  get data(): PetData {
    return { pets: this.#pets }
  }

  /** Whether the file at the path is another one, or was written by somebody else, since it was read or written here. */
  isEdited(): boolean {
    return this.#isUnknown || !isSame(this.#look(), this.#identity)
  }

  /** Reads an edited file. Throws a DataFileInvalid, and then is not edited until it changes again. */
  async read(): Promise<PetData> {
    const start = performance.now()
    let steadySince = start
    let last: { identity: Identity; text?: PetsText; fault?: PetsFault } | undefined
    for (;;) {
      const now = performance.now()
      const { bytes, identity } = this.#readBytes()
      if (last === undefined || !isSame(identity, last.identity)) {
        steadySince = now
        last = { identity, ...understand(bytes) }
      }
      const isSteady = now - steadySince >= settleMs
      try {
        // An editor that saves in place empties the file first.
        const isWhole = last.text !== undefined && bytes.length > 0
        if (last.text !== undefined && (isWhole || (isSteady && identity !== undefined))) {
          await this.#take(bytes, last.text, identity)
          return this.data
        }
      } catch (error) {
        if (!(error instanceof DataFileEdited)) throw error
      }
      if (isSteady) {
        this.#identity = identity
        this.#isUnknown = false
        throw last.fault === undefined
          ? new DataFileInvalid(`${this.path}: is missing`)
          : this.#invalid(last.fault)
      }
      if (now - start > patienceMs) throw new DataFileInvalid(`${this.path}: is being written`, false)
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
    if (this.isEdited()) throw new DataFileEdited()
    if (this.#isAppendable) await this.#append(added)
    else await this.#rewrite(added)
    this.#count = pets.length
  }

  /** Takes back what a failed append left, if it could not be taken back then. Throws the file system's error. */
  async mend(): Promise<void> {
    if (!this.#isTorn || this.#descriptor === undefined || this.isEdited()) return
    const fs = this.#fs
    try {
      // In this order each state between is a torn append, which heals when opened.
      fs.ftruncateSync(this.#descriptor, this.#end + closingLength)
      this.#writeAll(this.#descriptor, closingText, this.#end)
      await this.#syncData(this.#descriptor)
      this.#isTorn = false
    } finally {
      this.#identity = fs.fstatSync(this.#descriptor, { bigint: true })
    }
  }

  async close(): Promise<void> {
    try {
      if (this.#descriptor !== undefined && !this.#isTorn) await this.#syncData(this.#descriptor)
    } finally {
      this.#closeDescriptor()
      await this.#lock.release()
    }
  }

  async #append(added: readonly Pet[]): Promise<void> {
    const fs = this.#fs
    const bytes = formatAppend(added)
    let written: Identity
    try {
      const descriptor = this.#openForAppend()
      // The look and the write follow each other without a pause: an edit in between would be overwritten.
      if (this.isEdited()) throw new DataFileEdited()
      this.#isTorn = true
      this.#writeAll(descriptor, bytes, this.#end)
      written = fs.fstatSync(descriptor, { bigint: true })
      this.#checkGround(descriptor)
      await this.#syncData(descriptor)
    } catch (error) {
      if (error instanceof DataFileEdited) this.#forget()
      else if (written === undefined || isSame(this.#look(), written)) await this.#takeBack()
      throw error
    }
    this.#isTorn = false
    if (!isSame(this.#look(), written)) {
      this.#forget()
      throw new DataFileEdited()
    }
    this.#identity = written
    this.#end += bytes.length - closingLength
  }

  async #takeBack(): Promise<void> {
    if (!this.#isTorn || this.#descriptor === undefined) return
    this.#identity = this.#fs.fstatSync(this.#descriptor, { bigint: true })
    // When the disk fails in this too, the next write and the next look try again.
    await this.mend().catch(() => {})
  }

  /** An editor that emptied the file in the instant before our write would find a hole and our pets behind it. */
  #checkGround(descriptor: number): void {
    const before = Buffer.alloc(1)
    this.#fs.readSync(descriptor, before, 0, 1, this.#end - 1)
    if (before.toString() === '}') return
    const hole = this.#readBytes().bytes.indexOf(0)
    if (hole !== -1) this.#fs.ftruncateSync(descriptor, hole)
    throw new DataFileEdited()
  }

  /** The first pet of a file, or the first behind a layout that is not ours: the rest stays as it was written. */
  async #rewrite(added: readonly Pet[]): Promise<void> {
    try {
      const { bytes, identity } = this.#readBytes()
      if (!isSame(identity, this.#identity)) throw new DataFileEdited()
      const next = formatPetsText(bytes, parsePetsText(bytes), added)
      await this.#replace(next, bytes)
      const after = this.#readBytes()
      if (!after.bytes.equals(next)) throw new DataFileEdited()
      this.#identity = after.identity
      this.#end = next.length - closingLength
      this.#isAppendable = true
    } catch (error) {
      if (!(error instanceof DataFileEdited || error instanceof PetsFault)) throw error
      this.#forget()
      throw new DataFileEdited()
    }
  }

  /** Makes a text that was read the file's state here; gives ids where they are missing, in the file as well. */
  async #take(bytes: Buffer, text: PetsText, identity: Identity): Promise<void> {
    if (text.assigned.length > 0) {
      this.#identity = identity
      const next = formatPetsText(bytes, text)
      await this.#replace(next, bytes)
      const after = this.#readBytes()
      if (!after.bytes.equals(next)) throw new DataFileEdited()
      await this.#take(next, parsePetsText(next), after.identity)
      return
    }
    this.#closeDescriptor()
    // What was read is served and built upon from now on, so it must not be lost either.
    await this.#withFile(this.path, 'r', (descriptor) => this.#syncData(descriptor))
    this.#identity = identity
    this.#pets = text.pets
    this.#count = text.pets.length
    this.#end = text.end
    this.#isAppendable = text.isAppendable
    this.#isTorn = false
    this.#isUnknown = false
  }

  async #heal(bytes: Buffer, tornAt: number): Promise<void> {
    const next = healPetsText(bytes, tornAt)
    let text: PetsText
    try {
      text = parsePetsText(next)
    } catch (error) {
      throw error instanceof PetsFault ? this.#invalid(error) : error
    }
    const torn = `${followLinks(this.#fs, resolve(this.path))}.torn-${new Date().toISOString().replaceAll(':', '-')}`
    await this.#withFile(torn, 'wx', async (descriptor) => {
      this.#writeAll(descriptor, bytes.subarray(tornAt), 0)
      await this.#syncAll(descriptor)
    })
    await this.#replace(next, bytes)
    const kept = `${bytes.length - tornAt} bytes behind the last whole pet are kept in ${basename(torn)}`
    this.#say(`${this.path}: the last write was cut off; ${kept}`)
    await this.#take(next, text, this.#look())
  }

  /**
   * Puts another text in the file's place, all of it or nothing: written beside it, synced, renamed over it. Keeps mode
   * and owner and follows a symbolic link. If the rename cannot be made durable, the previous text is put back.
   */
  async #replace(next: Buffer, previous?: Buffer): Promise<void> {
    const fs = this.#fs
    const target = followLinks(fs, resolve(this.path))
    const temporary = `${target}.tmp`
    const old = fs.statSync(target, { throwIfNoEntry: false })
    const write = async (bytes: Buffer): Promise<void> => {
      fs.rmSync(temporary, { force: true })
      await this.#withFile(temporary, 'wx', async (descriptor) => {
        if (old !== undefined) keepOwner(fs, descriptor, old)
        this.#writeAll(descriptor, bytes, 0)
        await this.#syncAll(descriptor)
      })
    }
    try {
      await write(next)
      if (this.isEdited()) throw new DataFileEdited()
      await this.#moveOver(temporary, target, next)
    } catch (error) {
      fs.rmSync(temporary, { force: true })
      throw error
    }
    try {
      await syncFolder(fs, dirname(target))
    } catch (error) {
      if (previous !== undefined) {
        await write(previous)
        fs.renameSync(temporary, target)
        this.#identity = this.#look()
      }
      throw error
    }
  }

  async #moveOver(temporary: string, target: string, bytes: Buffer): Promise<void> {
    const fs = this.#fs
    try {
      fs.renameSync(temporary, target)
    } catch (error) {
      // A single file that is mounted into a container cannot be renamed over. The copy stays until it is written.
      if (errorCode(error) !== 'EBUSY') throw error
      await this.#withFile(target, 'r+', async (descriptor) => {
        this.#writeAll(descriptor, bytes, 0)
        fs.ftruncateSync(descriptor, bytes.length)
        await this.#syncAll(descriptor)
      })
      fs.rmSync(temporary, { force: true })
    }
  }

  #openForAppend(): number {
    const fs = this.#fs
    if (this.#descriptor !== undefined) return this.#descriptor
    this.#descriptor = fs.openSync(this.path, 'r+')
    return this.#descriptor
  }

  #closeDescriptor(): void {
    if (this.#descriptor !== undefined) this.#fs.closeSync(this.#descriptor)
    this.#descriptor = undefined
  }

  /** What is known of the file is no longer true of the one at the path. */
  #forget(): void {
    this.#closeDescriptor()
    this.#isTorn = false
    this.#isUnknown = true
  }

  #look(): Identity {
    return this.#fs.statSync(this.path, { bigint: true, throwIfNoEntry: false })
  }

  /** The whole file in one state; no bytes and no identity when it is missing. */
  #readBytes(): { bytes: Buffer; identity: Identity } {
    const fs = this.#fs
    for (;;) {
      let descriptor: number
      try {
        descriptor = fs.openSync(this.path, 'r')
      } catch (error) {
        if (errorCode(error) === 'ENOENT') return { bytes: Buffer.alloc(0), identity: undefined }
        throw error
      }
      try {
        const identity = fs.fstatSync(descriptor, { bigint: true })
        const bytes = fs.readFileSync(descriptor)
        if (isSame(fs.fstatSync(descriptor, { bigint: true }), identity)) return { bytes, identity }
      } finally {
        fs.closeSync(descriptor)
      }
    }
  }

  #invalid({ message, line, column }: PetsFault): DataFileInvalid {
    return new DataFileInvalid(`${this.path}:${line}:${column}: ${message}`)
  }

  async #withFile(path: string, flags: string, use: (descriptor: number) => Promise<void>): Promise<void> {
    const descriptor = this.#fs.openSync(path, flags)
    try {
      await use(descriptor)
    } finally {
      this.#fs.closeSync(descriptor)
    }
  }

  #writeAll(descriptor: number, bytes: Buffer, position: number): void {
    for (let done = 0; done < bytes.length;) {
      done += this.#fs.writeSync(descriptor, bytes, done, bytes.length - done, position + done)
    }
  }

  #syncData(descriptor: number): Promise<void> {
    return new Promise((done, fail) => {
      this.#fs.fdatasync(descriptor, (error) => (error ? fail(error) : done()))
    })
  }

  #syncAll(descriptor: number): Promise<void> {
    return sync(this.#fs, descriptor)
  }
}

function understand(bytes: Buffer): { text: PetsText } | { fault: PetsFault } {
  try {
    return { text: parsePetsText(bytes) }
  } catch (error) {
    if (error instanceof PetsFault) return { fault: error }
    throw error
  }
}

function isSame(a: Identity, b: Identity): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs && a.dev === b.dev
}

function sync(fs: FileSystem, descriptor: number): Promise<void> {
  return new Promise((done, fail) => {
    fs.fsync(descriptor, (error) => (error ? fail(error) : done()))
  })
}

/** Makes the names in a folder durable. Windows has no such call, and needs none. */
async function syncFolder(fs: FileSystem, folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const descriptor = fs.openSync(folder, 'r')
  try {
    await sync(fs, descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

async function makeFolder(fs: FileSystem, folder: string): Promise<void> {
  const first = fs.mkdirSync(folder, { recursive: true })
  if (first === undefined) return
  const parents = [dirname(first)]
  for (let made = folder; made.startsWith(first); made = dirname(made)) parents.push(dirname(made))
  await Promise.all(parents.map((parent) => syncFolder(fs, parent)))
}

/** Where the path leads, through symbolic links, whether there is a file yet or not. */
function followLinks(fs: FileSystem, path: string): string {
  try {
    return fs.realpathSync(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
  try {
    return followLinks(fs, resolve(dirname(path), fs.readlinkSync(path)))
  } catch {
    return join(fs.realpathSync(dirname(path)), basename(path))
  }
}

function keepOwner(fs: FileSystem, descriptor: number, { mode, uid, gid }: nodeFs.Stats): void {
  try {
    fs.fchownSync(descriptor, uid, gid)
  } catch {
    // Only root may give a file away; the file is then the server's.
  }
  fs.fchmodSync(descriptor, mode & 0o7777)
}

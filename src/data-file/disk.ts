/**
 * The disk under a data file: the identity of the file, its bytes in one state, complete writes, syncs, and new
 * files with their folders. Does not depend on what a file contains. Every call on the data file, and on what lies beside it, goes through
 * `FileSystem`, the seam where tests record the calls, delay them and make them fail.
 */
import nodeFs from 'node:fs'
import { constants, type BigIntStats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { placeOf } from '../json/json.ts'
import { clock, delay } from '../system/clock.ts'
import { errorCode, describeSystemError } from '../system/errors.ts'

export type FileSystem = typeof nodeFs

/** For so long, a call is made again that a virus scanner or an indexer on Windows may have made fail. */
const maxHeldMs = 1000

/**
 * What tells one state of a file from another, as far as `stat` can; undefined for a missing file. The change time
 * (ctime) is part of it because a program can set the modification time (mtime) back, as `cp -p` and `touch` do.
 */
export type Identity = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'> | undefined

export interface WholeFile {
  readonly bytes: Buffer
  readonly identity: Identity
  /** Why there are none, if that is so: `is missing`, or `is a folder, not a file`. */
  readonly fault?: string
}

export interface DiskOptions {
  /** Called with each message for the person who runs the server. */
  readonly onMessage?: (message: string) => void
  readonly fileSystem?: FileSystem
  /** The system whose ways the file system has, for tests. */
  readonly platform?: NodeJS.Platform
}

export class Disk {
  /** The path of the data file as it was given, for messages. */
  readonly name: string
  /** The same, however the working directory of the process changes. */
  readonly path: string
  readonly fs: FileSystem
  readonly platform: NodeJS.Platform
  readonly isWindows: boolean
  readonly #onMessage: (message: string) => void
  #hasUnsyncedFolder = false

  constructor(
    path: string,
    { fileSystem = nodeFs, onMessage = () => {}, platform = process.platform }: DiskOptions = {},
  ) {
    this.name = path
    this.path = resolve(path)
    this.fs = fileSystem
    this.platform = platform
    this.isWindows = platform === 'win32'
    this.#onMessage = onMessage
  }

  /** Tells the person who runs the server something about the data file. */
  say(message: string): void {
    this.#onMessage(`${this.name}: ${message}`)
  }

  /** Where the path leads, through all symbolic links, whether there is a file yet or not. */
  get target(): string {
    return this.#followLinks(this.path)
  }

  /** The identity of the data file, or of the one at this path. */
  statIdentity(path = this.path): Identity {
    return this.#identify(this.fs.statSync(path, { bigint: true, throwIfNoEntry: false }))
  }

  /** The identity of an open file, be it still at its path or not. */
  fstatIdentity(descriptor: number): Identity {
    return this.#identify(this.fs.fstatSync(descriptor, { bigint: true }))
  }

  /** On Windows without the device: Node 22.12 to 22.16 and 24.0 to 24.1 do not get the same one by path and by descriptor there. */
  #identify(stats: BigIntStats | undefined): Identity {
    return stats && this.isWindows ? { ...stats, dev: 0n } : stats
  }

  /** Whether the call may have failed because another program holds the file, which only Windows lets it do. */
  mayBeHeld(error: unknown): boolean {
    return this.isWindows && ['EBUSY', 'EPERM', 'EACCES'].includes(errorCode(error))
  }

  /** Makes the call, on Windows again for up to a second while another program may hold the file. */
  retryWhileHeld<T>(call: () => T | Promise<T>): Promise<T> {
    return tryAgain(maxHeldMs, (error) => this.mayBeHeld(error), call)
  }

  open(path: string, flags: string | number): Promise<number> {
    return this.retryWhileHeld(() => this.fs.openSync(path, flags))
  }

  /** For a descriptor whose bytes are synced or of no use; Linux frees it whatever close(2) returns. */
  close(descriptor: number): void {
    quietly(() => this.fs.closeSync(descriptor))
  }

  /** Opens the file, and closes it when `use` has settled. */
  async withFile<T>(
    path: string,
    flags: string | number,
    use: (descriptor: number) => Promise<T>,
  ): Promise<T> {
    const descriptor = await this.open(path, flags)
    try {
      return await use(descriptor)
    } finally {
      this.close(descriptor)
    }
  }

  /** The whole data file in one state. Throws a DataFileChanged when it was written to meanwhile. */
  async read(): Promise<WholeFile> {
    try {
      // Without O_NONBLOCK, opening a pipe would wait for a writer.
      const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)
      return await this.withFile(this.path, flags, async (descriptor) => {
        const before = this.fs.fstatSync(descriptor, { bigint: true })
        const identity = this.#identify(before)
        const fault = before.isDirectory() ? 'is a folder, not a file' : 'is not a regular file'
        if (!before.isFile()) return { bytes: Buffer.alloc(0), identity, fault }
        const bytes = this.fs.readFileSync(descriptor)
        if (!isSame(identity, this.fstatIdentity(descriptor))) throw new DataFileChanged(this.name)
        return { bytes, identity }
      })
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
      return { bytes: Buffer.alloc(0), identity: undefined, fault: 'is missing' }
    }
  }

  /** What the file has from there on, at most so many bytes. */
  readAt(descriptor: number, position: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, this.fs.readSync(descriptor, bytes, 0, length, position))
  }

  /** Writes all of it: one call may write less than it was asked to. Throws EIO when one writes nothing. */
  write(descriptor: number, bytes: Buffer, position: number): void {
    for (let done = 0; done < bytes.length;) {
      const count = this.fs.writeSync(descriptor, bytes, done, bytes.length - done, position + done)
      if (count === 0) throw systemFailure('EIO')
      done += count
    }
  }

  /** `fdatasync` makes a file's bytes and its length durable, `fsync` all that is known of it. */
  sync(call: 'fdatasync' | 'fsync', descriptor: number): Promise<void> {
    // promisify would make a function for each sync, which is some 3 % of the work of a creation.
    return new Promise((done, fail) => {
      this.fs[call](descriptor, (error) => (error === null ? done() : fail(error)))
    })
  }

  /** Makes the names in a folder durable. Windows has no such call, and where there is none otherwise, that is said once. */
  async syncFolder(folder: string): Promise<void> {
    if (this.isWindows) return
    try {
      await this.withFile(folder, 'r', (descriptor) => this.sync('fsync', descriptor))
    } catch (error) {
      // A folder that may be used but not listed (mode 0311), and file systems, often of a network, that sync files alone.
      if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EBADF'].includes(errorCode(error))) throw error
      if (!this.#hasUnsyncedFolder)
        this.say('its folder cannot be synced: a new file in it may not survive a power cut')
      this.#hasUnsyncedFolder = true
    }
  }

  /** Makes the data file durable, whoever wrote it: its bytes and its name. Windows syncs only what may be written. */
  async syncFile(): Promise<void> {
    const flags = this.isWindows ? 'r+' : 'r'
    await this.withFile(this.path, flags, (descriptor) => this.sync('fdatasync', descriptor))
    await this.syncFolder(dirname(this.target))
  }

  /** Creates a folder and those above it, as far as they are missing. */
  async makeFolder(folder: string): Promise<void> {
    if (this.statIdentity(folder) !== undefined) return
    // The topmost folder, such as that of a drive that is not there, is its own parent.
    if (dirname(folder) !== folder) await this.makeFolder(dirname(folder))
    // One by one: Node's `recursive` option never returns below a folder that accepts none, such as /proc.
    try {
      this.fs.mkdirSync(folder)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    await this.syncFolder(dirname(folder))
  }

  /** How much room there is for files beside the data file; Infinity if the system does not tell. */
  freeBytes(): number {
    try {
      const { bavail, bsize } = this.fs.statfsSync(dirname(this.target))
      return bavail * bsize
    } catch {
      return Infinity
    }
  }

  /** Throws the system's error when this process may not write the data file; EPERM also for one that only takes appends (chattr +a). */
  checkFileWritable(): void {
    this.close(this.fs.openSync(this.path, 'r+'))
  }

  #followLinks(path: string): string {
    try {
      return this.fs.realpathSync(path)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
    }
    let folder = resolve(dirname(path))
    try {
      folder = this.fs.realpathSync(folder)
      return this.#followLinks(resolve(folder, this.fs.readlinkSync(path)))
    } catch (error) {
      // EINVAL: not a link. ENOENT: a folder or the file is still to be created.
      if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'EINVAL') throw error
      return join(folder, basename(path))
    }
  }

  /**
   * Removes the file, if there is one. It is of no use: what went wrong before must not be hidden by what goes wrong here. (On Windows,
   * `rmSync` of Node 23 to 24.13 removes none whose path has letters beyond ASCII.)
   */
  remove(path: string): void {
    quietly(() => this.fs.unlinkSync(path))
  }
}

/** An error as a system call would give it. */
export function systemFailure(code: 'EFBIG' | 'ENOSPC' | 'EIO'): Error {
  return Object.assign(new Error(code), { code })
}

/** Makes the call. If it throws, nothing is done about it. */
export function quietly(call: () => void): void {
  try {
    call()
  } catch {}
}

const contentMembers = ['dev', 'ino', 'size', 'mtimeNs'] as const

export function isSame(a: Identity, b: Identity): boolean {
  return hasSameContent(a, b) && a?.ctimeNs === b?.ctimeNs
}

/** The same but for the ctime, which changes when a file is renamed or gets another mode, and its bytes do not. */
export function hasSameContent(a: Identity, b: Identity): boolean {
  return contentMembers.every((member) => a?.[member] === b?.[member])
}

/** So many faults of a text are named; further ones are only counted. */
export const maxFaults = 10

/** What is wrong at a byte of the text. `firstAt`: where the pet is that had the id before. */
export interface TextFault {
  readonly message: string
  readonly offset: number
  readonly firstAt?: number | undefined
}

/** The file cannot be used as it is. The message names the file, and what is wrong. */
export class DataFileUnusable extends Error {
  /** What is wrong, for clients too: it names no path. */
  readonly summary: string
  constructor(message: string, summary: string) {
    super(message)
    this.summary = summary
  }

  /** For a file as a whole, such as `is a folder`. */
  static ofFile(path: string, what: string): DataFileUnusable {
    return new DataFileUnusable(`${path}: ${what}`, `it ${what}`)
  }

  /** Names the faults of a text with line and column for the person who edits it, and the first one for clients. `count` has all. */
  static ofText(path: string, bytes: Buffer, faults: readonly TextFault[], count: number): DataFileUnusable {
    const places = faults.map(({ offset, message, firstAt }) => {
      const first = firstAt === undefined ? undefined : placeOf(bytes, firstAt)
      const where = first === undefined ? '' : `, first in line ${first.line}, column ${first.column}`
      return { ...placeOf(bytes, offset), message: message + where }
    })
    const lines = places.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`)
    if (count > faults.length) lines.push(`${path}: and ${count - faults.length} more errors`)
    const [first] = places
    const others = count === 1 ? '' : ` (and ${count - 1} more error${count === 2 ? '' : 's'})`
    const summary = `line ${first?.line}, column ${first?.column}: ${first?.message}${others}`
    return new DataFileUnusable(lines.join('\n'), summary)
  }
}

/**
 * The file is no longer as it was read: somebody else has written it, or is writing it, or it was put back. It has to be read again, and it
 * is too early to report anything.
 */
export class DataFileChanged extends DataFileUnusable {
  constructor(path: string) {
    super(`${path}: is being written, again and again`, 'it is being written, again and again')
  }
}

/** What may be over in a moment is looked at again this often. */
const lookAgainMs = 40
/** When a file has stayed invalid, empty or missing for this long, nobody is saving it any more. */
const settleMs = 400

/** Makes the call, and again for at most so long while it fails in a way that `mayPass`. */
export async function tryAgain<T>(
  maxMs: number,
  mayPass: (error: unknown) => boolean,
  call: () => T | Promise<T>,
): Promise<T> {
  const deadline = clock.performanceNow() + maxMs
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!mayPass(error) || clock.performanceNow() > deadline) throw error
    }
    await delay(lookAgainMs)
  }
}

/**
 * For a file that cannot be used: an editor may have emptied it, and take its time to write the rest. Waits until it was left alone for
 * `settleMs`. Throws a DataFileChanged as soon as somebody writes to it, or replaces it.
 */
export async function waitForSave(path: string, isEdited: () => boolean): Promise<void> {
  const start = clock.performanceNow()
  while (clock.performanceNow() - start < settleMs) {
    await delay(lookAgainMs)
    if (isEdited()) throw new DataFileChanged(path)
  }
}

/** Whether somebody may still be writing a file that was last written then. */
export function wasJustWritten(mtimeNs: bigint): boolean {
  return clock.now() - Number(mtimeNs / 1_000_000n) < settleMs
}

/** The file has to be written anew, which the system refuses with `cause`. The error has the code of that. */
export class RewriteFailed extends Error {
  readonly code: string
  constructor(cause: unknown) {
    super('', { cause })
    this.code = errorCode(cause)
  }
}

/** A system error in words. */
export function describeFileError(disk: Disk, error: unknown): string {
  if (error instanceof RewriteFailed) {
    const why = describeFileError(disk, error.cause)
    return `it has to be rewritten, for missing ids or a repair, in a folder that can be written: ${why}`
  }
  const fault = describeSystemError(error)
  return disk.mayBeHeld(error) ? `it may not be written, or another program holds it: ${fault}` : fault
}

/** Why no pets can be added, if the system lets nobody write the file. */
export function describeUnwritable(disk: Disk): string | undefined {
  try {
    disk.checkFileWritable()
    return undefined
  } catch (error) {
    return `cannot be written: ${describeSystemError(error)}; pets can be listed, but not added`
  }
}

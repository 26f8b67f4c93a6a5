/**
 * The disk under a data file, whatever the file contains, with its failures in words. Each call on the data
 * file and the files beside it, but not those that make the sockets of the lock, goes through
 * `FileSystem`, so that tests can record it, delay it and make it fail.
 */
import nodeFs, { constants, type BigIntStats, type OpenMode } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { tryAgain } from '../system/clock.ts'
import { attempt, describeSystemError, errorCode, isWriteRefused, systemFailure } from '../system/errors.ts'
import { nameUnseen } from '../text/words.ts'
import { DataFileChanged, DataFileUnusable } from './data-file-errors.ts'

export type FileSystem = typeof nodeFs

/** A virus scanner or an indexer on Windows may hold a file for this long. */
const maxInUseMs = 1000

/** A disk with less room than this counts as full, even if a small pet still fits. */
const minFreeBytes = 2 ** 20

/**
 * One state of a file, as far as `stat` tells. The ctime is needed, since `cp -p` and `touch` set the mtime
 * back.
 */
export type Identity = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'>

export interface DiskOptions {
  /** Takes messages for the person who runs the server. */
  readonly onMessage?: (message: string) => void
  readonly fileSystem?: FileSystem
  /** The system that a test simulates; by default the real one. */
  readonly platform?: NodeJS.Platform
}

export class Disk {
  /**
   * The path of the data file as it was given, for messages: nothing in it reaches a terminal as a command.
   */
  readonly shownPath: string
  /** The same path made absolute, since the working directory may change. */
  readonly path: string
  readonly fs: FileSystem
  readonly platform: NodeJS.Platform
  readonly isWindows: boolean
  readonly #onMessage: DiskOptions['onMessage']
  #hasUnsyncedFolder = false

  constructor(path: string, options: DiskOptions = {}) {
    this.shownPath = nameUnseen(path)
    this.path = resolve(path)
    // Node puts this character in the place of bytes that are not UTF-8, and would create another file.
    if (this.path.includes('\uFFFD'))
      throw DataFileUnusable.ofFile(
        this.shownPath,
        'is no path in UTF-8; give the file, or its folder, another name',
      )
    this.fs = options.fileSystem ?? nodeFs
    this.platform = options.platform ?? process.platform
    this.isWindows = this.platform === 'win32'
    this.#onMessage = options.onMessage
  }

  say(message: string): void {
    this.#onMessage?.(`${this.shownPath}: ${message}`)
  }

  /** Returns where the path leads through all symbolic links, whether there is a file yet or not. */
  findTarget(): string {
    return this.#followLinks(this.path)
  }

  /**
   * Returns the path itself with the links of its folder resolved, whatever lies there; undefined if the
   * folder cannot be found.
   */
  findGivenPlace(): string | undefined {
    return attempt(() => join(this.#followLinks(dirname(this.path)), basename(this.path)))
  }

  /** Returns the path and where it leads: kept pets lie beside both. */
  findPlaces(): readonly string[] {
    const places = new Set([this.findGivenPlace(), attempt(() => this.findTarget())])
    return [...places].filter((place) => place !== undefined)
  }

  isFolder(path: string): boolean {
    return attempt(() => this.fs.statSync(path).isDirectory()) === true
  }

  /** Undefined for a missing file. */
  statIdentity(path = this.path): Identity | undefined {
    const stats = this.fs.statSync(path, { bigint: true, throwIfNoEntry: false })
    return stats && this.#identify(stats)
  }

  fstatIdentity(descriptor: number): Identity {
    return this.#identify(this.fs.fstatSync(descriptor, { bigint: true }))
  }

  /**
   * On Windows, Node 22.12 to 22.16 and 24.0 to 24.1 give a file another device by its path than by a
   * descriptor (https://github.com/libuv/libuv/pull/4698). So the device is left out there.
   */
  #identify(stats: BigIntStats): Identity {
    return this.isWindows ? { ...stats, dev: 0n } : stats
  }

  /** Returns whether another program may hold the file, which only Windows lets it do. */
  mayBeInUse(error: unknown): boolean {
    return this.isWindows && ['EBUSY', 'EPERM', 'EACCES'].includes(errorCode(error))
  }

  describeFailure(error: unknown): string {
    const fault = describeSystemError(error)
    return this.mayBeInUse(error) ? `it may not be written, or another program holds it: ${fault}` : fault
  }

  describeReadOnly(error: unknown): string {
    return `cannot be written: ${this.describeFailure(error)}; pets can be listed, but not added`
  }

  describeRewriteFailure(error: unknown): string {
    return `it or its folder cannot be written: ${this.describeFailure(error)}`
  }

  rewriteRefusal(obstacle: string): DataFileUnusable {
    return DataFileUnusable.ofFile(this.shownPath, `has to be rewritten, but ${obstacle}`)
  }

  retryWhileInUse<T>(call: () => T | Promise<T>): Promise<T> {
    return tryAgain(maxInUseMs, (error) => this.mayBeInUse(error), call)
  }

  open(path: string, flags: OpenMode, mode?: number): Promise<number> {
    return this.retryWhileInUse(() => this.fs.openSync(path, flags, mode))
  }

  /**
   * Closes a descriptor whose bytes are synced or of no use. An error of close(2) tells nothing then, and
   * Linux frees the descriptor all the same (https://man7.org/linux/man-pages/man2/close.2.html).
   */
  close(descriptor: number): void {
    attempt(() => this.fs.closeSync(descriptor))
  }

  async withFile<T>(
    path: string,
    flags: OpenMode,
    use: (descriptor: number) => Promise<T>,
    mode?: number,
  ): Promise<T> {
    const descriptor = await this.open(path, flags, mode)
    try {
      return await use(descriptor)
    } finally {
      this.close(descriptor)
    }
  }

  /**
   * Reads the data file. If no regular file is there, `fault` says so. Throws a DataFileChanged when it was
   * written to meanwhile.
   */
  async read(): Promise<{ bytes: Buffer; identity: Identity | undefined; fault?: string }> {
    try {
      // Without O_NONBLOCK, the open of a pipe would wait for a writer
      // (https://man7.org/linux/man-pages/man7/fifo.7.html).
      const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)
      return await this.withFile(this.path, flags, async (descriptor) => {
        const before = this.fs.fstatSync(descriptor, { bigint: true })
        const identity = this.#identify(before)
        const fault = before.isDirectory() ? 'is a folder, not a file' : 'is not a regular file'
        if (!before.isFile()) return { bytes: Buffer.alloc(0), identity, fault }
        const bytes = this.fs.readFileSync(descriptor)
        if (!isSame(identity, this.fstatIdentity(descriptor))) throw new DataFileChanged()
        return { bytes, identity }
      })
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
      return { bytes: Buffer.alloc(0), identity: undefined, fault: 'is missing' }
    }
  }

  readAt(descriptor: number, position: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, this.fs.readSync(descriptor, bytes, 0, length, position))
  }

  write(descriptor: number, bytes: Buffer, position: number): void {
    for (let done = 0; done < bytes.length;) done += this.writeSome(descriptor, bytes, done, position + done)
  }

  /**
   * Writes the bytes from `from` on, perhaps not all of them. Returns how many it has written. If it is none,
   * throws EIO.
   */
  writeSome(descriptor: number, bytes: Buffer, from: number, position: number): number {
    const count = this.fs.writeSync(descriptor, bytes, from, bytes.length - from, position)
    if (count === 0) throw systemFailure('EIO')
    return count
  }

  sync(call: 'fdatasync' | 'fsync', descriptor: number): Promise<void> {
    return new Promise((done, fail) => {
      this.fs[call](descriptor, (error) => (error === null ? done() : fail(error)))
    })
  }

  /**
   * Makes the names in a folder durable, for which Windows has no call. Where another system cannot, that is
   * said once.
   */
  async syncFolder(folder: string): Promise<void> {
    if (this.isWindows) return
    try {
      await this.withFile(folder, 'r', (descriptor) => this.sync('fsync', descriptor))
    } catch (error) {
      // The folder may not be listed (mode 0311), or the file system syncs files alone.
      if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EBADF'].includes(errorCode(error))) throw error
      if (!this.#hasUnsyncedFolder)
        this.say('its folder cannot be synced: a new file in it may not survive a power cut')
      this.#hasUnsyncedFolder = true
    }
  }

  /**
   * Makes the bytes and the name of the data file durable, whoever wrote it. Windows syncs only a file that
   * is open for writing (https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers).
   */
  async syncFile(): Promise<void> {
    const flags = this.isWindows ? 'r+' : 'r'
    await this.withFile(this.path, flags, (descriptor) => this.sync('fdatasync', descriptor))
    await this.syncFolder(dirname(this.findTarget()))
  }

  async makeFolder(folder = dirname(this.findTarget())): Promise<void> {
    if (this.statIdentity(folder) !== undefined) return
    // On Windows, the root of a drive is missing where the drive is, and is its own parent. So mkdir fails
    // below.
    if (dirname(folder) !== folder) await this.makeFolder(dirname(folder))
    // Node's `recursive` option tries for ever below /proc, whose folders are there and take no new ones
    // (MKDirpSync in https://github.com/nodejs/node/blob/main/src/node_file.cc).
    try {
      this.fs.mkdirSync(folder)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    await this.syncFolder(dirname(folder))
  }

  /** Returns the room in the file system of a folder; Infinity if the system does not tell. */
  measureRoom(folder: string): { freeBytes: number; totalBytes: number } {
    const stats = attempt(() => this.fs.statfsSync(folder))
    // Some network shares report zeros.
    if (stats === undefined || stats.blocks === 0) return { freeBytes: Infinity, totalBytes: Infinity }
    return { freeBytes: stats.bavail * stats.bsize, totalBytes: stats.blocks * stats.bsize }
  }

  /** Returns whether the disk is known to have so little room that pets soon find none. */
  isFull(): boolean {
    const { freeBytes, totalBytes } = this.measureRoom(dirname(attempt(() => this.findTarget()) ?? this.path))
    // A small file system, such as one in memory, may never have so much room.
    return freeBytes < Math.min(minFreeBytes, totalBytes / 4)
  }

  /**
   * Returns why the data file may not be written, as far as that shows without a write; undefined also while
   * it is missing. If `triesToOpen`, opens it for writing, too, since access(2) does not show `chattr +a`.
   * That is not done at each look, since it wakes programs that watch the file (IN_CLOSE_WRITE in
   * https://man7.org/linux/man-pages/man7/inotify.7.html).
   */
  findWriteError(triesToOpen: boolean): unknown {
    const accessError = errorOf(() => this.fs.accessSync(this.path, constants.W_OK))
    const open = (): void => this.close(this.fs.openSync(this.path, 'r+'))
    const error = accessError ?? (triesToOpen ? errorOf(open) : undefined)
    return isWriteRefused(error) || this.mayBeInUse(error) ? error : undefined
  }

  /**
   * Returns the system's error if this process has no right to write the data file and its folder, which a
   * rewrite needs. A rewrite that has failed halfway has left no data file.
   */
  findRewriteError(): unknown {
    return errorOf(() => {
      const target = this.findTarget()
      if (this.statIdentity(target) !== undefined) this.fs.accessSync(target, constants.W_OK)
      this.fs.accessSync(dirname(target), constants.W_OK)
    })
  }

  #followLinks(path: string): string {
    try {
      return this.fs.realpathSync(path)
    } catch (error) {
      // On Windows, the root of a drive is missing where the drive is, and has no folder above it.
      if (errorCode(error) !== 'ENOENT' || dirname(path) === path) throw error
    }
    const folder = this.#followLinks(dirname(path))
    const name = join(folder, basename(path))
    const isLink = this.fs.lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink() === true
    return isLink ? this.#followLinks(resolve(folder, this.fs.readlinkSync(name))) : name
  }

  /**
   * Removes a file of no use. On Windows, `rmSync` of Node 23 to 24.13 removes no file whose path has letters
   * beyond ASCII (https://github.com/nodejs/node/issues/56049); `unlinkSync` does.
   */
  remove(path: string): void {
    attempt(() => this.fs.unlinkSync(path))
  }
}

function errorOf(call: () => unknown): unknown {
  try {
    call()
    return undefined
  } catch (error) {
    return error
  }
}

const contentMembers = ['dev', 'ino', 'size', 'mtimeNs'] as const

export function isSame(a: Identity | undefined, b: Identity | undefined): boolean {
  return seemsUnedited(a, b) && a?.ctimeNs === b?.ctimeNs
}

/** Compares all but the ctime, which a rename and another mode change. */
export function seemsUnedited(a: Identity | undefined, b: Identity | undefined): boolean {
  return contentMembers.every((member) => a?.[member] === b?.[member])
}

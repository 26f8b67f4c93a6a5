/**
 * What the data file needs of a disk: the identity of a file, its bytes in one state, complete writes, syncs, and new files
 * with their folders. Does not depend on what a file contains. Every file system call goes through `FileSystem`, the seam
 * where tests record the calls, delay them and make them fail.
 */
import nodeFs, { type BigIntStats, constants, type Stats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { DataFileUnusable } from './data-file-error.ts'
import { errorCode } from '../system-error.ts'

/** The calls that go through the seam. */
export type FileSystem = Pick<
  typeof nodeFs,
  | 'accessSync'
  | 'closeSync'
  | 'fchmodSync'
  | 'fchownSync'
  | 'fdatasync'
  | 'fstatSync'
  | 'fsync'
  | 'ftruncateSync'
  | 'linkSync'
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

/**
 * What tells one state of a file from another, as far as `stat` can; undefined for a missing file. The change time
 * (ctime) is part of it because a program can set the modification time (mtime) back, as `cp -p` and `touch` do.
 */
export type Identity = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'> | undefined

/** The identity of no file: equal to that of none, not even of a missing one. */
export const unknownIdentity: Identity = { dev: -1n, ino: -1n, size: -1n, mtimeNs: -1n, ctimeNs: -1n }

/** What a file begins with while it is overwritten (see overwriteFile). JSON never begins with it. */
export const overwriteMark = Buffer.from('\0')

export interface WholeFile {
  /** Empty when the file is missing. */
  readonly bytes: Buffer
  readonly identity: Identity
}

export class Disk {
  readonly fs: FileSystem
  constructor(fs: FileSystem = nodeFs) {
    this.fs = fs
  }

  /** The identity of the file at the path. */
  statIdentity(path: string): Identity {
    return this.fs.statSync(path, { bigint: true, throwIfNoEntry: false })
  }

  /** The identity of an open file, be it still at its path or not. */
  fstatIdentity(descriptor: number): Identity {
    return this.fs.fstatSync(descriptor, { bigint: true })
  }

  /** Returns the whole file; undefined when it was written to meanwhile. Throws a DataFileUnusable on anything but a file. */
  read(path: string): WholeFile | undefined {
    let descriptor: number
    try {
      // Without O_NONBLOCK, opening a pipe would wait for a writer.
      descriptor = this.fs.openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return { bytes: Buffer.alloc(0), identity: undefined }
      throw error
    }
    try {
      const before = this.fs.fstatSync(descriptor, { bigint: true })
      if (before.isDirectory()) throw DataFileUnusable.ofFile(path, 'is a folder, not a file')
      if (!before.isFile()) throw DataFileUnusable.ofFile(path, 'is not a regular file')
      const bytes = this.fs.readFileSync(descriptor)
      return isSame(this.fstatIdentity(descriptor), before) ? { bytes, identity: before } : undefined
    } finally {
      this.fs.closeSync(descriptor)
    }
  }

  /** Writes all of it: one call may write less than it was asked to. */
  write(descriptor: number, bytes: Buffer, position: number): void {
    for (let done = 0; done < bytes.length;) {
      done += this.fs.writeSync(descriptor, bytes, done, bytes.length - done, position + done)
    }
  }

  /** Makes a file's bytes and its length durable. */
  syncData(descriptor: number): Promise<void> {
    return this.#sync('fdatasync', descriptor)
  }

  /** Makes the names in a folder durable. Windows and some file systems have no such call. */
  async syncFolder(folder: string): Promise<void> {
    if (process.platform === 'win32') return
    try {
      await this.withFile(folder, 'r', (descriptor) => this.#sync('fsync', descriptor))
    } catch (error) {
      if (errorCode(error) !== 'EINVAL') throw error
    }
  }

  /** Makes the file at the path durable, whoever wrote it: its bytes and its name. */
  async syncFile(path: string): Promise<void> {
    const flags = process.platform === 'win32' ? 'r+' : 'r'
    await this.withFile(path, flags, (descriptor) => this.syncData(descriptor))
    await this.syncFolder(dirname(this.followLinks(path)))
  }

  /** Creates a folder and those above it, as far as they are missing. */
  async makeFolder(folder: string): Promise<void> {
    if (this.statIdentity(folder) !== undefined) return
    await this.makeFolder(dirname(folder))
    // One by one: Node's `recursive` option never returns below a folder that accepts none, such as /proc.
    try {
      this.fs.mkdirSync(folder)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    await this.syncFolder(dirname(folder))
  }

  /** Creates a file of these bytes, with the mode and, if we may, the owner of `like`. Durable but for its name. */
  async createFile(path: string, bytes: Buffer, like?: Stats): Promise<void> {
    await this.withFile(path, 'wx', async (descriptor) => {
      try {
        if (like !== undefined) this.#copyOwnerAndMode(descriptor, like)
        this.write(descriptor, bytes, 0)
        await this.#sync('fsync', descriptor)
      } catch (error) {
        this.removeQuietly(path)
        throw error
      }
    })
  }

  /**
   * Overwrites a file in place, durably. A crash in the middle leaves a mixture of both contents, which may be a valid text: so
   * the file begins with a NUL until it is whole. Returns false, and stops, if somebody else writes to the file meanwhile.
   */
  async overwriteFile(path: string, bytes: Buffer): Promise<boolean> {
    // Each is durable before the next begins.
    const steps = [
      // 1. Mark the file.
      (descriptor: number) => this.write(descriptor, overwriteMark, 0),
      // 2. Write everything but the first byte.
      (descriptor: number) => {
        this.write(descriptor, bytes.subarray(1), 1)
        this.fs.ftruncateSync(descriptor, bytes.length)
      },
      // 3. Write the first byte, in the place of the mark.
      (descriptor: number) => this.write(descriptor, bytes.subarray(0, 1), 0),
    ]
    let isOurs = true
    await this.withFile(path, 'r+', async (descriptor) => {
      for (const step of steps) {
        step(descriptor)
        const written = this.fstatIdentity(descriptor)
        const isStillOurs = (): boolean => isSame(this.fstatIdentity(descriptor), written)
        // Somebody may write to the file during the sync. Then it is theirs, even if the sync has failed.
        await this.#sync('fsync', descriptor).catch((error: unknown) => {
          if (isStillOurs()) throw error
        })
        isOurs = isStillOurs()
        if (!isOurs) return
      }
    })
    return isOurs
  }

  /** Throws the system's error (EACCES, EROFS) when this process may not write the file, or into the folder. */
  checkWritable(path: string): void {
    this.fs.accessSync(path, constants.W_OK)
  }

  /** Where the path leads, through symbolic links, whether there is a file yet or not. */
  followLinks(path: string): string {
    try {
      return this.fs.realpathSync(path)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
    }
    let folder = resolve(dirname(path))
    try {
      folder = this.fs.realpathSync(folder)
      return this.followLinks(resolve(folder, this.fs.readlinkSync(path)))
    } catch (error) {
      // EINVAL: not a link. ENOENT: a folder or the file is still to be created.
      if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'EINVAL') throw error
      return join(folder, basename(path))
    }
  }

  /** Opens the file, and closes it when `use` has settled. */
  async withFile(path: string, flags: string, use: (descriptor: number) => Promise<void>): Promise<void> {
    const descriptor = this.fs.openSync(path, flags)
    try {
      await use(descriptor)
    } finally {
      this.fs.closeSync(descriptor)
    }
  }

  /** For a descriptor whose bytes are synced or of no use; Linux frees it whatever close(2) returns. */
  closeQuietly(descriptor: number): void {
    try {
      this.fs.closeSync(descriptor)
    } catch {}
  }

  /** For a file that is of no use: what went wrong before must not be hidden by what goes wrong here. */
  removeQuietly(path: string): void {
    try {
      this.fs.rmSync(path, { force: true })
    } catch {}
  }

  #sync(call: 'fdatasync' | 'fsync', descriptor: number): Promise<void> {
    return new Promise((done, fail) => {
      this.fs[call](descriptor, (error) => (error ? fail(error) : done()))
    })
  }

  #copyOwnerAndMode(descriptor: number, { mode, uid, gid }: Stats): void {
    try {
      this.fs.fchownSync(descriptor, uid, gid)
    } catch {
      // Only root may give a file away; otherwise it belongs to the user of this process.
    }
    this.fs.fchmodSync(descriptor, mode & 0o7777)
  }
}

export function isSame(a: Identity, b: Identity): boolean {
  if (a === undefined || b === undefined) return a === b
  return (
    a.ino === b.ino &&
    a.size === b.size &&
    a.mtimeNs === b.mtimeNs &&
    a.ctimeNs === b.ctimeNs &&
    a.dev === b.dev
  )
}

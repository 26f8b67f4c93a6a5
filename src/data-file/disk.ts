/**
 * What the data file asks of a disk: a file's identity, its whole text in one state, writes that are complete, and a
 * replacement of which a crash leaves the old text or the new (`replace` names the exception). Knows no pets. Every file
 * system call goes through `FileSystem`, the seam at which tests record the calls and make them fail.
 */
import nodeFs, { type BigIntStats, constants, type Stats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { errorCode } from './system-error.ts'

/** The calls that go through the seam. */
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

/** What tells one state of a file from another, as far as `stat` can; undefined for a missing file. */
export type Identity = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs'> | undefined

export interface WholeFile {
  /** Empty when the file is missing. */
  readonly bytes: Buffer
  readonly identity: Identity
}

/** The path leads to something that cannot hold text, such as a folder or a pipe. */
export class NotAFile extends Error {}

export class Disk {
  readonly fs: FileSystem
  constructor(fs: FileSystem = nodeFs) {
    this.fs = fs
  }

  look(path: string): Identity {
    return this.fs.statSync(path, { bigint: true, throwIfNoEntry: false })
  }

  identify(descriptor: number): Identity {
    return this.fs.fstatSync(descriptor, { bigint: true })
  }

  /** The whole file; undefined when it was written to meanwhile. Throws NotAFile. */
  read(path: string): WholeFile | undefined {
    let descriptor: number
    try {
      // Opening a pipe would otherwise wait for whoever writes into it.
      descriptor = this.fs.openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return { bytes: Buffer.alloc(0), identity: undefined }
      throw error
    }
    try {
      const before = this.fs.fstatSync(descriptor, { bigint: true })
      if (!before.isFile())
        throw new NotAFile(before.isDirectory() ? 'is a folder, not a file' : 'is not a regular file')
      const bytes = this.fs.readFileSync(descriptor)
      return isSame(this.identify(descriptor), before) ? { bytes, identity: before } : undefined
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

  /** Makes a file's bytes durable, and its length. */
  syncData(descriptor: number): Promise<void> {
    return this.#sync('fdatasync', descriptor)
  }

  /** Makes the names in a folder durable. Windows and some file systems have no such call. */
  async syncFolder(folder: string): Promise<void> {
    if (process.platform === 'win32') return
    try {
      await this.use(folder, 'r', (descriptor) => this.#sync('fsync', descriptor))
    } catch (error) {
      if (errorCode(error) !== 'EINVAL') throw error
    }
  }

  /** Makes the file at the path durable, whoever wrote it: its bytes and its name. */
  async syncFile(path: string): Promise<void> {
    await this.use(path, process.platform === 'win32' ? 'r+' : 'r', (descriptor) => this.syncData(descriptor))
    await this.syncFolder(dirname(this.followLinks(path)))
  }

  async makeFolder(folder: string): Promise<void> {
    if (this.look(folder) !== undefined) return
    await this.makeFolder(dirname(folder))
    // One by one: Node's own `recursive` never ends below a folder that takes none, such as /proc.
    try {
      this.fs.mkdirSync(folder)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    await this.syncFolder(dirname(folder))
  }

  /** Makes a new file of these bytes, durable but for its name; an unfinished one is removed. */
  async make(path: string, bytes: Buffer, owner?: Stats): Promise<void> {
    await this.use(path, 'wx', async (descriptor) => {
      try {
        if (owner !== undefined) this.#keepOwner(descriptor, owner)
        this.write(descriptor, bytes, 0)
        await this.#sync('fsync', descriptor)
      } catch (error) {
        this.#removeQuietly(path)
        throw error
      }
    })
  }

  /**
   * Puts another text in the file's place, all of it or nothing: written beside it, synced, renamed over it; its name is
   * then still to be synced. Keeps mode and owner. False, and nothing done, when `isExpected` says no just before. Where
   * the system cannot rename, a crash in the middle may leave the whole text only in the file beside it.
   */
  async replace(target: string, bytes: Buffer, isExpected: () => boolean): Promise<boolean> {
    const temporary = `${target}.petstore-tmp`
    const old = this.fs.statSync(target, { throwIfNoEntry: false })
    this.fs.rmSync(temporary, { force: true })
    await this.make(temporary, bytes, old)
    try {
      if (isExpected()) {
        this.fs.renameSync(temporary, target)
        return true
      }
    } catch (error) {
      if (errorCode(error) !== 'EBUSY') {
        this.#removeQuietly(temporary)
        throw error
      }
      await this.#overwrite(target, bytes)
      this.#removeQuietly(temporary)
      return true
    }
    this.#removeQuietly(temporary)
    return false
  }

  /**
   * A single file that is mounted into a container cannot be renamed over. When this fails, the copy beside it is the
   * only whole one, and stays.
   */
  #overwrite(target: string, bytes: Buffer): Promise<void> {
    return this.use(target, 'r+', (descriptor) => {
      this.write(descriptor, bytes, 0)
      this.fs.ftruncateSync(descriptor, bytes.length)
      return this.#sync('fsync', descriptor)
    })
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
      // EINVAL is not a link; what is missing is made.
      if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'EINVAL') throw error
      return join(folder, basename(path))
    }
  }

  async use(path: string, flags: string, use: (descriptor: number) => Promise<void>): Promise<void> {
    const descriptor = this.fs.openSync(path, flags)
    try {
      await use(descriptor)
    } finally {
      this.fs.closeSync(descriptor)
    }
  }

  /** For a descriptor whose bytes are synced or of no use; Linux frees it whatever close(2) says. */
  closeQuietly(descriptor: number): void {
    try {
      this.fs.closeSync(descriptor)
    } catch {}
  }

  #sync(call: 'fdatasync' | 'fsync', descriptor: number): Promise<void> {
    return new Promise((done, fail) => {
      this.fs[call](descriptor, (error) => (error ? fail(error) : done()))
    })
  }

  #keepOwner(descriptor: number, { mode, uid, gid }: Stats): void {
    try {
      this.fs.fchownSync(descriptor, uid, gid)
    } catch {
      // Only root may give a file away; the file is then the server's.
    }
    this.fs.fchmodSync(descriptor, mode & 0o7777)
  }

  /** For a copy that is of no use; another fault must not hide the first, and the next one is written over it. */
  #removeQuietly(path: string): void {
    try {
      this.fs.rmSync(path, { force: true })
    } catch {}
  }
}

export function isSame(a: Identity, b: Identity): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs && a.dev === b.dev
}

/**
 * One server per data file. What holds the lock is a listening local socket or, on macOS and the BSDs, the lock of an open file: the OS
 * releases it when the process exits, so no crash, power cut or reused process id can leave it behind.
 */
import { hash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, closeSync, constants, mkdirSync, openSync, readdirSync } from 'node:fs'
import { renameSync, rmdirSync, rmSync, statSync, unlinkSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { describeSystemError, errorCode, isSystemError } from '../system/errors.ts'
import { DataFileUnusable, quietly, type Disk } from './disk.ts'

export type FileLock = () => Promise<void>

const usedByAnother = 'is in use by another server; stop that one, or give this one a file of its own'

/** `O_EXLOCK` of macOS and the BSDs, for which Node has no name: opens and locks in one step (open(2)). */
const lockedFlag = 0x20

/**
 * Locks the data file, whose folder is there. Throws a DataFileUnusable when a living process holds the lock. Where none can be had, says
 * so, and goes on without.
 */
export async function lockFile(disk: Disk): Promise<FileLock> {
  const locks: FileLock[] = []
  const release = async (): Promise<void> => {
    for (const each of locks) await each()
  }
  try {
    if (['linux', 'android', 'win32'].includes(disk.platform)) {
      const { path, folder } = lockAddresses(disk)
      locks.push(await listen(path))
      const beside = disk.isWindows ? undefined : await lockBeside(disk)
      locks.push(beside ?? (await listen(folder)))
    } else locks.push(openLocked(disk))
  } catch (error) {
    await release()
    // Of listen(2), and of open(2) for a lock.
    const isTaken = ['EADDRINUSE', 'EAGAIN'].includes(errorCode(error))
    if (isTaken) throw DataFileUnusable.ofFile(disk.name, usedByAnother)
    if (!isSystemError(error)) throw error
    disk.say(`cannot be locked: ${describeSystemError(error)}; start no second server on it`)
  }
  return release
}

/**
 * Addresses that are no files: of the path, with the mounts that it is seen through, since a container has its own (namespaces(7)); and of
 * the folder, which is the same through a bind mount. A new folder may get the inode of one that was removed, but not its birth time.
 */
function lockAddresses({ fs, isWindows, target }: Disk): { readonly path: string; readonly folder: string } {
  const { dev, ino, birthtimeNs } = fs.statSync(dirname(target), { bigint: true })
  let mounts = 0
  quietly(() => {
    mounts = statSync('/proc/self/ns/mnt').ino
  })
  const format = (locked: string): string => {
    // On Windows, `PETS.JSON` is the same file.
    const name = `petstore-${hash('sha256', isWindows ? locked.toLowerCase() : locked).slice(0, 32)}`
    // Linux has names without a file (unix(7), abstract), Windows has named pipes.
    return process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : `\0${name}`
  }
  return {
    path: format(`${mounts}:${target}`),
    folder: format(`${dev}:${ino}:${birthtimeNs}:${basename(target)}`),
  }
}

async function listen(path: string): Promise<FileLock> {
  const server = createServer((socket) => socket.destroy())
  // `exclusive`: a worker of node:cluster would share it with the others. `writableAll`: whoever may see a socket's file has to be able to ask.
  await once(server.listen({ path, exclusive: true, writableAll: path.startsWith('/') }), 'listening')
  server.unref()
  return async () => {
    await once(server.close(), 'close')
  }
}

/**
 * On Linux, takes a folder beside the data file, with a socket in it: containers that share the data may share no network. Undefined where
 * the file system has no sockets (FAT), or the folder may not be written.
 *
 * Two starts may find the socket of a dead process at the same time. Its name is used once, so that whoever removes it removes no living
 * one; and a folder can be renamed over an empty one only (rename(2)), so that one of the two is first.
 */
async function lockBeside({ name, target }: Disk): Promise<FileLock | undefined> {
  const folder = `${target}.petstore-lock`
  for (let tries = 0; tries < 5; tries++) {
    try {
      if (await isHeld(folder)) throw DataFileUnusable.ofFile(name, usedByAnother)
      return await moveIn(folder)
    } catch (error) {
      // Whoever comes too late fails in several ways, and finds at the next try who was first.
      if (!isSystemError(error)) throw error
    }
  }
  return undefined
}

/** Removes the sockets of the dead, too. */
async function isHeld(path: string): Promise<boolean> {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false
  const descriptor = openSync(path, 'r')
  // The address of a socket has at most 107 bytes.
  const folder = `/proc/self/fd/${descriptor}`
  try {
    for (const name of readdirSync(folder)) {
      const socket = connect(`${folder}/${name}`)
      const [failure] = await once(socket, 'connect').catch((error: unknown) => [error])
      socket.destroy()
      // EAGAIN: too many are waiting to be let in.
      if (failure === undefined || errorCode(failure) === 'EAGAIN') return true
      if (errorCode(failure) !== 'ECONNREFUSED') throw failure
      unlinkSync(`${folder}/${name}`)
    }
    return false
  } finally {
    closeSync(descriptor)
  }
}

/** Throws if there is a folder with a socket at the path. */
async function moveIn(path: string): Promise<FileLock> {
  const id = randomUUID()
  const own = `${path}-${id}`
  mkdirSync(own)
  const descriptor = openSync(own, 'r')
  let removeSocket: FileLock | undefined
  const release = async (): Promise<void> => {
    await removeSocket?.()
    for (const folder of [own, path]) quietly(() => rmdirSync(folder))
    closeSync(descriptor)
  }
  try {
    // Whoever may write into the folder of the data may have to remove our socket some day.
    chmodSync(own, statSync(dirname(path)).mode | 0o700)
    removeSocket = await listen(`/proc/self/fd/${descriptor}/${id}`)
    renameSync(own, path)
  } catch (error) {
    await release()
    throw error
  }
  // Others come too late now, or were killed before they could move in.
  quietly(() => {
    for (const name of readdirSync(dirname(path)))
      if (name.startsWith(`${basename(path)}-`)) rmSync(join(dirname(path), name), { recursive: true })
  })
  return release
}

/**
 * Locks a file beside the data file, which stays: if it was removed, two servers could lock two of them. Where none can be made, the data
 * file is never replaced, and so can be locked itself.
 */
function openLocked(disk: Disk): FileLock {
  const { platform, target } = disk
  if (!['darwin', 'freebsd', 'netbsd', 'openbsd'].includes(platform))
    throw Object.assign(new Error('no lock'), { code: 'ENOSYS' })
  const flags = constants.O_NONBLOCK | lockedFlag
  let descriptor: number
  try {
    descriptor = disk.fs.openSync(`${target}.petstore-lock`, flags | constants.O_CREAT, 0o644)
  } catch (error) {
    const isRefused = ['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error))
    if (!isRefused || disk.statIdentity() === undefined) throw error
    descriptor = disk.fs.openSync(target, flags)
  }
  return async () => disk.close(descriptor)
}

/**
 * One server per data file. A listening local socket holds the lock or, on macOS and the BSDs, an open file: the system closes both, however
 * the process ends.
 */
import crypto from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, closeSync, constants, mkdirSync, openSync, readdirSync } from 'node:fs'
import { renameSync, rmdirSync, statSync, unlinkSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { basename, dirname } from 'node:path'
import { describeSystemError, errorCode, isSystemError } from '../system/errors.ts'
import { DataFileUnusable, quietly, type Disk } from './disk.ts'

export type FileLock = () => Promise<void>

const usedByAnother = 'is in use by another server; stop that one, or give this one a file of its own'

/** `O_EXLOCK` of open(2) on macOS and the BSDs, for which Node has no name. */
const lockedFlag = 0x20

/** Throws a DataFileUnusable when a living process holds the lock. Where there is none, says so, and goes on. */
export async function lockFile(disk: Disk): Promise<FileLock> {
  const locks: FileLock[] = []
  const release = async (): Promise<void> => {
    for (const each of locks) await each()
  }
  try {
    if (['linux', 'android', 'win32'].includes(disk.platform)) {
      for (const address of addressesOf(disk)) locks.push(await listen(address))
      if (!disk.isWindows) locks.push(await lockBeside(disk))
    } else locks.push(openLocked(disk))
  } catch (error) {
    // Of listen(2), and of open(2).
    const isTaken = ['EADDRINUSE', 'EAGAIN'].includes(errorCode(error))
    if (isTaken || !isSystemError(error)) {
      await release()
      throw isTaken ? DataFileUnusable.ofFile(disk.name, usedByAnother) : error
    }
    disk.say(`cannot be locked: ${describeSystemError(error)}; start no second server on it`)
  }
  return release
}

/**
 * Of the folder, which is the same through a bind mount: a new one may get the inode of one that was removed, but not its birth time. And of
 * the path, with the mounts that it is seen through, since the folder may be moved while its server goes on at the path.
 */
function addressesOf({ fs, isWindows, target }: Disk): readonly string[] {
  const { dev, ino, birthtimeNs } = fs.statSync(dirname(target), { bigint: true })
  let mounts = 0
  quietly(() => {
    mounts = statSync('/proc/self/ns/mnt').ino
  })
  return [`${dev}:${ino}:${birthtimeNs}:${basename(target)}`, `${mounts}:${target}`].map((locked) => {
    const id = crypto.hash('sha256', isWindows ? locked.toLowerCase() : locked).slice(0, 32)
    // A named pipe, or an abstract name (unix(7)): no file of either is left behind.
    return process.platform === 'win32' ? `\\\\.\\pipe\\petstore-${id}` : `\0petstore-${id}`
  })
}

async function listen(path: string): Promise<FileLock> {
  const server = createServer((socket) => socket.destroy())
  // Not shared with other workers of node:cluster; and who runs as another user has to be able to connect.
  await once(server.listen({ path, exclusive: true, writableAll: path.startsWith('/') }), 'listening')
  server.unref()
  return async () => {
    await once(server.close(), 'close')
  }
}

/**
 * Containers that share the data may share no network. So on Linux a folder beside the data file has a socket in it, too, unless
 * that cannot be made (FAT, a folder that may not be written).
 *
 * Two starts may find the socket of a dead process at the same time. Its name is used once, so whoever removes it removes no living one;
 * and a folder is renamed over an empty one only (rename(2)), so one of the two is first.
 */
async function lockBeside({ name, target }: Disk): Promise<FileLock> {
  const folder = `${target}.petstore-lock`
  for (let tries = 0; tries < 5; tries++) {
    try {
      if (await isHeld(folder)) throw DataFileUnusable.ofFile(name, usedByAnother)
      return await moveIn(folder)
    } catch (error) {
      // Whoever comes too late fails in several ways, and finds at the next try who holds it.
      if (!isSystemError(error)) throw error
    }
  }
  return async () => {}
}

/** Removes the sockets of the dead. */
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

async function moveIn(path: string): Promise<FileLock> {
  const id = crypto.randomUUID()
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
    // Another user, who may write there too, has to be able to remove what is left of us.
    chmodSync(own, statSync(dirname(path)).mode | 0o700)
    removeSocket = await listen(`/proc/self/fd/${descriptor}/${id}`)
    renameSync(own, path)
  } catch (error) {
    await release()
    throw error
  }
  return release
}

/**
 * Locks a file beside the data file, which stays: were it removed, two servers could lock one each. Where none can be made, the data file is
 * never replaced, and is locked itself.
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

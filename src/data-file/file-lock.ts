/**
 * One server per data file. What holds the lock is a listening local socket or, where these are files, the lock of an open file: the OS
 * releases it when the process exits, so no crash, power cut or reused process id can leave it behind.
 */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { constants, statSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { basename, dirname } from 'node:path'
import { errorCode } from '../system/errors.ts'
import { DataFileUnusable, type Disk } from './disk.ts'

/** Releases the lock. */
export type FileLock = () => Promise<void>

const usedByAnother = 'is in use by another server; stop that one, or give this one a file of its own'

/** `O_EXLOCK` of macOS and the BSDs, for which Node has no name: opens and locks in one step (open(2)). */
const lockedFlag = 0x20

/**
 * Locks the data file, whose folder is there. Throws a DataFileUnusable when a living
 * process holds the lock.
 */
export async function lockFile(disk: Disk): Promise<FileLock> {
  const hasSockets = disk.platform === 'linux' || disk.isWindows
  try {
    return hasSockets ? await listenAt(lockAddresses(disk)) : openLocked(disk)
  } catch (error) {
    // Of listen(2), and of open(2) for a lock.
    const isTaken = ['EADDRINUSE', 'EAGAIN'].includes(errorCode(error))
    throw isTaken ? DataFileUnusable.ofFile(disk.name, usedByAnother) : error
  }
}

/**
 * The addresses of the locks of a file, whose folder counts in two ways: by its device and inode, so that it is the same one
 * through a bind mount; and by its path, since the inode may change on exFAT and overlays. A container has mounts, and so paths,
 * of its own (namespaces(7)). On Windows, `PETS.JSON` is the same file.
 */
function lockAddresses(disk: Disk): readonly string[] {
  const { target } = disk
  const { dev, ino } = disk.fs.statSync(dirname(target), { bigint: true })
  const mounts = disk.isWindows ? '' : statSync('/proc/self/ns/mnt', { throwIfNoEntry: false })?.ino
  return [`${dev}:${ino}:${basename(target)}`, `${mounts}:${target}`].map((locked) => {
    const name = `petstore-${hash('sha256', disk.isWindows ? locked.toLowerCase() : locked).slice(0, 32)}`
    // Linux has names without a file (unix(7), abstract), Windows has named pipes.
    return process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : `\0${name}`
  })
}

/** Listens at all of these addresses. */
async function listenAt(addresses: readonly string[]): Promise<FileLock> {
  const servers: Server[] = []
  const release = async (): Promise<void> => {
    for (const server of servers) await once(server.close(), 'close')
  }
  try {
    for (const address of addresses) {
      const server = createServer((socket) => socket.destroy())
      // In a worker of node:cluster it would otherwise be shared with the other workers.
      await once(server.listen({ path: address, exclusive: true }), 'listening')
      servers.push(server.unref())
    }
  } catch (error) {
    await release()
    throw error
  }
  return release
}

/**
 * Locks a file beside the data file, which stays: if it was removed, two servers could lock two of them. Where none can be made, the data
 * file is never replaced, and so can be locked itself.
 */
function openLocked(disk: Disk): FileLock {
  const { target } = disk
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

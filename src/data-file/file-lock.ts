/**
 * Locks the data file for one server. A listening local socket holds the lock or, on macOS and the BSDs, an
 * open file: the system closes both, however the process ends.
 */
import crypto from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, closeSync, constants, openSync, readdirSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { basename, dirname } from 'node:path'
import { attempt, describeSystemError, errorCode, isSystemError, systemFailure } from '../system/errors.ts'
import { DataFileUnusable } from './data-file-errors.ts'
import { type Disk } from './disk.ts'

/** Gives a lock back. */
export type Release = () => Promise<void>

export class DataFileInUse extends DataFileUnusable {
  constructor({ shownPath }: Disk) {
    const what = 'is in use by another server; stop that one, or give this one a file of its own'
    super(`${shownPath}: ${what}`, `it ${what}`)
  }
}

/**
 * This is `O_EXLOCK` of open(2) on macOS and the BSDs
 * (https://developer.apple.com/documentation/system/filedescriptor/openoptions/exclusivelock), for which Node
 * has no name.
 */
const lockedFlag = 0x20

/**
 * Throws a DataFileInUse when a living process holds the lock. On a system without locks, says so, and goes
 * on.
 */
export async function lockFile(disk: Disk): Promise<Release> {
  const releases: Release[] = []
  const release = async (): Promise<void> => {
    for (const each of releases.toReversed()) await each()
  }
  try {
    if (['linux', 'android', 'win32'].includes(disk.platform)) {
      for (const address of addressesOf(disk)) releases.push(await listen(address))
      if (!disk.isWindows) await lockBeside(disk, releases)
    } else releases.push(openLocked(disk))
  } catch (error) {
    // EADDRINUSE says that the address of a socket is taken, and EAGAIN that the file is locked.
    const isTaken = ['EADDRINUSE', 'EAGAIN'].includes(errorCode(error))
    if (isTaken || !isSystemError(error)) {
      await release()
      throw isTaken ? new DataFileInUse(disk) : error
    }
    disk.say(`cannot be locked: ${describeSystemError(error)}; start no second server on it`)
  }
  return release
}

/**
 * Returns two addresses, since neither is enough. That of the folder is the same through a bind mount, but an
 * overlay (of a container) or FAT may give the folder another inode, and it may be moved while its server
 * goes on at the path. So there is that of the path, too, with the mounts that it is seen through. A new
 * folder may get the inode of one that was removed, but not its birth time.
 */
function addressesOf(disk: Disk): readonly string[] {
  const { fs, isWindows } = disk
  const target = disk.findTarget()
  const { dev, ino, birthtimeNs } = fs.statSync(dirname(target), { bigint: true })
  const mounts = statSync('/proc/self/ns/mnt', { throwIfNoEntry: false })?.ino
  return [`${dev}:${ino}:${birthtimeNs}:${basename(target)}`, `${mounts}:${target}`].map((locked) => {
    const id = idOf(isWindows ? locked.toLowerCase() : locked)
    // The address has to be one of the real system, whichever a test simulates: a named pipe, or an abstract
    // name (https://man7.org/linux/man-pages/man7/unix.7.html). No file of either is left behind.
    return process.platform === 'win32' ? `\\\\.\\pipe\\petstore-${id}` : `\0petstore-${id}`
  })
}

const idOf = (text: string): string => crypto.hash('sha256', text).slice(0, 32)

async function listen(path: string): Promise<Release> {
  const server = createServer((socket) => socket.destroy())
  // Workers of node:cluster would share the socket otherwise
  // (https://nodejs.org/docs/latest-v20.x/api/net.html#serverlistenoptions-callback).
  await once(server.listen({ path, exclusive: true }), 'listening')
  // A connection may fail to be accepted (EMFILE). The socket holds the lock all the same.
  server.on('error', () => {})
  server.unref()
  return async () => {
    await once(server.close(), 'close')
  }
}

/**
 * Containers that share the data may share no network. So on Linux each server also listens on a socket in
 * the folder, unless none can be made there (FAT, a read-only folder).
 *
 * A start listens before it looks for others, so of two starts at least one sees the other, and gives way.
 * One that finds nobody stays, and then removes the sockets that have refused it: those of dead servers, or
 * of starts that listen only now, and will see it.
 */
async function lockBeside(disk: Disk, releases: Release[]): Promise<void> {
  // The name of the file is hashed, since the address of a socket has at most 107 bytes (unix(7)).
  const prefix = `.petstore-lock-${idOf(basename(disk.findTarget()))}-`
  const own = `${prefix}${crypto.randomUUID()}`
  const refusing: string[] = []
  try {
    const descriptor = openSync(dirname(disk.findTarget()), 'r')
    releases.push(async () => closeSync(descriptor))
    const folder = `/proc/self/fd/${descriptor}`
    releases.push(await listen(`${folder}/${own}`))
    // Servers of other users have to be able to connect. Another start may have removed the socket already.
    attempt(() => chmodSync(`${folder}/${own}`, 0o777))
    for (const name of readdirSync(folder)) {
      if (!name.startsWith(prefix) || name === own) continue
      const socket = connect(`${folder}/${name}`)
      const [failure] = await once(socket, 'connect').catch((error: unknown) => [error])
      socket.destroy()
      // EAGAIN says that a server is there, but too many wait to be let in
      // (https://man7.org/linux/man-pages/man2/connect.2.html).
      if (failure === undefined || errorCode(failure) === 'EAGAIN') throw new DataFileInUse(disk)
      if (errorCode(failure) === 'ECONNREFUSED') refusing.push(`${folder}/${name}`)
    }
    for (const path of refusing) disk.remove(path)
  } catch (error) {
    if (!isSystemError(error)) throw error
  }
}

/** Locks a file beside the data file. It is never removed, since two servers could then lock one each. */
function openLocked(disk: Disk): Release {
  if (!['darwin', 'freebsd', 'netbsd', 'openbsd'].includes(disk.platform)) throw systemFailure('ENOSYS')
  const flags = constants.O_CREAT | constants.O_NONBLOCK | lockedFlag
  const descriptor = disk.fs.openSync(`${disk.findTarget()}.petstore-lock`, flags, 0o644)
  return async () => disk.close(descriptor)
}

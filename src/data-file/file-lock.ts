/**
 * One server per data file. The lock is a listening local socket, which the OS closes when the process exits: no crash, power cut
 * or reused process id can leave it behind.
 */
import { hash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Identity } from './disk.ts'

export interface FileLock {
  release(): Promise<void>
}

/**
 * Takes the lock of the file `name` in this folder; returns undefined when a living process holds it. The folder counts by its
 * device and inode, so that it is the same one through a symbolic link or a bind mount.
 */
export async function lockFile(folder: Identity, name: string): Promise<FileLock | undefined> {
  const lockName = `petstore-${hash('sha256', `${folder?.dev}:${folder?.ino}:${name}`).slice(0, 32)}`
  const address = lockAddress(lockName)
  const server = await listen(address)
  if (server !== undefined) return { release: () => close(server) }
  // A socket in the file system outlives its process, but then nobody answers there.
  if (!address.endsWith('.sock') || (await isAnswered(address))) return undefined
  rmSync(address, { force: true })
  const second = await listen(address)
  return second && { release: () => close(second) }
}

/** Linux has names without a file (unix(7), abstract), Windows has named pipes; elsewhere it is a file. */
function lockAddress(name: string): string {
  if (process.platform === 'linux') return `\0${name}`
  if (process.platform === 'win32') return `\\\\.\\pipe\\${name}`
  return join(tmpdir(), `${name}.sock`)
}

function listen(address: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    // In a worker of node:cluster it would otherwise be shared with the other workers.
    server.listen({ path: address, exclusive: true }, () => resolve(server.unref()))
  })
}

function isAnswered(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('close', () => socket.destroy())
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
  })
}

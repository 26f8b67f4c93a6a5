/**
 * One server per data file. The lock is a listening local socket, which the OS closes when the process exits: no crash, power cut
 * or reused process id can leave it behind.
 */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { rmSync, statSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DataFileUnusable } from './data-file-errors.ts'
import type { Identity } from './disk.ts'

export interface FileLock {
  release(): Promise<void>
}

const usedByAnother = 'is in use by another server; stop that one, or give this one a file of its own'

/** Takes all locks at these addresses, for the file at the path. Throws a DataFileUnusable when a living process holds one of them. */
export async function lockFile(path: string, addresses: readonly string[]): Promise<FileLock> {
  const servers: Server[] = []
  const release = async (): Promise<void> => {
    for (const server of servers) await once(server.close(), 'close')
  }
  for (const address of addresses) {
    const server = await listenAlone(address)
    if (server === undefined) {
      await release()
      throw DataFileUnusable.ofFile(path, usedByAnother)
    }
    servers.push(server)
  }
  return { release }
}

/**
 * The addresses of the locks of a file, whose folder counts in two ways: by its device and inode, so that it is the same one
 * through a bind mount; and by its path, since the inode may change on exFAT and overlays. A container has mounts, and so paths,
 * of its own (namespaces(7)).
 */
export function lockAddresses(target: string, folder: Identity): readonly string[] {
  const mounts = statSync('/proc/self/ns/mnt', { throwIfNoEntry: false })?.ino
  return [`${folder?.dev}:${folder?.ino}:${basename(target)}`, `${mounts}:${target}`].map(lockAddress)
}

/** Linux has names without a file (unix(7), abstract), Windows has named pipes; elsewhere it is a file. */
function lockAddress(locked: string): string {
  const name = `petstore-${hash('sha256', locked).slice(0, 32)}`
  if (process.platform === 'linux') return `\0${name}`
  if (process.platform === 'win32') return `\\\\.\\pipe\\${name}`
  return join(tmpdir(), `${name}.sock`)
}

async function listenAlone(address: string): Promise<Server | undefined> {
  const server = await listen(address)
  // A socket in the file system outlives its process, but then nobody answers there.
  if (server !== undefined || !address.endsWith('.sock') || (await isAnswered(address))) return server
  rmSync(address, { force: true })
  return listen(address)
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

async function isAnswered(address: string): Promise<boolean> {
  const socket = connect(address)
  const connected = once(socket, 'connect').then(() => true)
  return connected.catch(() => false).finally(() => socket.destroy())
}

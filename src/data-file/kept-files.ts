/**
 * The files beside the data file that keep what would otherwise be lost: the damaged end that a repair cuts off, and the pets of
 * a file that somebody has emptied or removed. Each is durable before it is told of, and none is ever written over. `target` is
 * the path that all symbolic links lead to.
 */
import { basename, dirname } from 'node:path'
import { clock } from '../clock.ts'
import { errorCode } from '../system-error.ts'
import type { Disk } from './disk.ts'

const howToRestore = 'give that file the name of this one'

/** Keeps a damaged end as `pets.json.torn-<time>`. Returns what to say of it, and a way to remove it again. */
export async function keepTornEnd(
  disk: Disk,
  target: string,
  bytes: Buffer,
): Promise<{ words: string; remove(): void }> {
  const path = await keep(disk, `${target}.torn-`, target, bytes)
  const words = `the last ${bytes.length} bytes of the damaged file are kept in ${basename(path)}`
  return { words, remove: () => disk.removeQuietly(path) }
}

/** Keeps the text of a whole file as `pets.json.kept-<time>`, in a folder that may be gone too. Returns what to say of it. */
export async function keepPets(disk: Disk, target: string, bytes: Buffer): Promise<string> {
  await disk.makeFolder(dirname(target))
  const path = await keep(disk, `${target}.kept-`, target, bytes)
  return `are kept in ${basename(path)}: ${howToRestore}`
}

/** What to say of the files that keep pets, the oldest first; undefined if there is none. */
export function describeKeptPets(disk: Disk, target: string): string | undefined {
  const prefix = `${basename(target)}.kept-`
  const names = disk.fs.readdirSync(dirname(target)).filter((name) => name.startsWith(prefix))
  if (names.length === 0) return undefined
  const kept = names.toSorted().join(' and in ')
  return `are kept in ${kept}: ${howToRestore}, or move it away to start without any`
}

/** Writes a new file, as private as the data file. Returns its path. */
async function keep(disk: Disk, prefix: string, target: string, bytes: Buffer): Promise<string> {
  const like = disk.fs.statSync(target, { throwIfNoEntry: false })
  const time = new Date(clock.now()).toISOString().replaceAll(':', '-')
  for (let count = 1; ; count++) {
    const path = `${prefix}${time}${count === 1 ? '' : `-${count}`}`
    try {
      await disk.createFile(path, bytes, like)
      await disk.syncFolder(dirname(path))
      return path
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
  }
}

/**
 * The files beside the data file that keep what would otherwise be lost: the damaged end that a repair cuts off, and the pets of
 * a file that somebody has emptied or removed. Each is durable when its name is returned, and none is ever written over.
 * `target` is the path that all symbolic links lead to.
 */
import { basename, dirname } from 'node:path'
import { clock } from '../clock.ts'
import { errorCode } from '../system-error.ts'
import type { Disk } from './disk.ts'

/** Keeps the bytes as `pets.json.torn-<time>` or `pets.json.kept-<time>`, as private as the data file. Returns the path. */
export async function keepBytes(
  disk: Disk,
  target: string,
  kind: 'torn' | 'kept',
  bytes: Buffer,
): Promise<string> {
  const like = disk.fs.statSync(target, { throwIfNoEntry: false })
  const time = new Date(clock.now()).toISOString().replaceAll(':', '-')
  for (let count = 1; ; count++) {
    const path = `${target}.${kind}-${time}${count === 1 ? '' : `-${count}`}`
    try {
      await disk.createFile(path, bytes, like)
      await disk.syncFolder(dirname(path))
      return path
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
  }
}

/** The names of the files that keep the pets of a lost data file, the oldest first. */
export function findKeptPets(disk: Disk, target: string): readonly string[] {
  const prefix = `${basename(target)}.kept-`
  return disk.fs
    .readdirSync(dirname(target))
    .filter((name) => name.startsWith(prefix))
    .toSorted()
}

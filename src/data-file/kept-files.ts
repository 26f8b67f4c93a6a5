/**
 * The files beside the data file that keep what would otherwise be lost: the damaged end that a repair cuts off, and the pets of
 * a file that somebody has emptied or removed. Each is durable when its name is returned, and none is ever written over.
 * `target` is the path that all symbolic links lead to.
 */
import type { Stats } from 'node:fs'
import { basename, dirname } from 'node:path'
import { errorCode } from '../system-error.ts'
import type { Disk } from './disk.ts'

type Kind = 'torn' | 'kept'

/** Keeps the bytes as `pets.json.torn-<time>` or `pets.json.kept-<time>`, as private as `like`. Returns the path. */
export async function keepBytes(
  disk: Disk,
  target: string,
  kind: Kind,
  bytes: Buffer,
  like?: Stats,
): Promise<string> {
  const time = new Date().toISOString().replaceAll(':', '-')
  for (let count = 1; ; count++) {
    const path = `${prefixOf(target, kind)}${time}${count === 1 ? '' : `-${count}`}`
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
  const prefix = basename(prefixOf(target, 'kept'))
  return disk.fs
    .readdirSync(dirname(target))
    .filter((name) => name.startsWith(prefix))
    .toSorted()
}

function prefixOf(target: string, kind: Kind): string {
  return `${target}.${kind}-`
}

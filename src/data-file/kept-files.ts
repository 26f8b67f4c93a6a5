/**
 * The files beside the data file that keep what would otherwise be lost: the damaged end that a repair cuts off, and the pets of
 * a file that somebody has emptied or removed. Each is durable before a message names it, and none is ever written over. `target` is
 * the path that all symbolic links lead to.
 */
import { basename, dirname, resolve } from 'node:path'
import { clock } from '../system/clock.ts'
import { errorCode } from '../system/errors.ts'
import { DataFileChanged, DataFileUnusable, describeFileError } from './data-file-errors.ts'
import type { Disk } from './disk.ts'
import { isBlank } from './file-text.ts'

/** Keeps a damaged end as `pets.json.torn-<time>`. Returns the path. */
export function keepTornEnd(disk: Disk, target: string, bytes: Buffer): Promise<string> {
  return keep(disk, `${target}.torn-`, target, bytes)
}

/**
 * Somebody may have emptied or removed the file, as `jq … pets.json > pets.json` does. Then only this process has the `count` pets:
 * keeps their text as `pets.json.kept-<time>`, in a folder that may be gone too. Returns what to say of it, if anything.
 */
export async function keepPetsIfLost(
  disk: Disk,
  path: string,
  count: number,
  format: () => Buffer,
): Promise<string | undefined> {
  try {
    const { bytes, identity } = disk.read(path)
    if (count === 0 || (identity !== undefined && !isBlank(bytes))) return undefined
    const target = disk.followLinks(resolve(path))
    await disk.makeFolder(dirname(target))
    const name = basename(await keep(disk, `${target}.kept-`, target, format()))
    const what = identity === undefined ? 'is missing; its' : 'is empty; its'
    const pets = count === 1 ? 'pet is' : `${count} pets are`
    return `${what} ${pets} kept in ${name}; to get them back, rename that to ${basename(target)}`
  } catch (error) {
    // Somebody is writing it.
    if (error instanceof DataFileChanged) return undefined
    return `the pets that were served cannot be kept: ${describeFileError(disk, path, error)}`
  }
}

/** The file is missing or empty. If a server has kept its pets, throws: to start without them would hide the loss. */
export function throwIfPetsAreKept(disk: Disk, path: string, isMissing: boolean): void {
  const target = disk.followLinks(resolve(path))
  const isKept = (name: string): boolean => name.startsWith(`${basename(target)}.kept-`)
  const names = disk.fs.readdirSync(dirname(target)).filter(isKept).toSorted()
  if (names.length === 0) return
  const [one, all] = names.length === 1 ? ['that', 'it'] : ['one of them', 'them']
  const [what, alsoDelete] = isMissing ? ['is missing', ''] : ['is empty', `, and delete ${basename(target)}`]
  const remedy = `to get them back, rename ${one} to ${basename(target)}; to start without any, move ${all} away${alsoDelete}`
  throw DataFileUnusable.ofFile(path, `${what}; its pets are kept in ${names.join(' and ')}; ${remedy}`)
}

/** Writes a new file, as private as the data file; if that is gone, for its owner alone. Returns its path. */
async function keep(disk: Disk, prefix: string, target: string, bytes: Buffer): Promise<string> {
  const like = disk.fs.statSync(target, { throwIfNoEntry: false }) ?? { mode: 0o600, uid: -1, gid: -1 }
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

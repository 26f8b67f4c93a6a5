/**
 * The files beside the data file that keep what would otherwise be lost: the damaged end that a repair cuts off, and the pets that are
 * served while the file cannot be used. Each is whole and durable when it has its name, and none is ever written over.
 */
import { basename, dirname, join } from 'node:path'
import { formatPet, type Pet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { DataFileUnusable } from './data-file-errors.ts'
import type { Disk } from './disk.ts'
import { parseFileText } from './file-text.ts'
import { createWhole, linkIfMissing } from './replace-file.ts'

/**
 * Keeps the bytes as `pets.json.torn-<time>` or `pets.json.kept-<time>`, in a folder that may be gone too: as private as the data file or, if
 * that is gone, for its owner alone. But the owner can read them, even if somebody has taken that from the data file. Returns the path.
 */
export async function keepBeside(disk: Disk, kind: 'torn' | 'kept', bytes: Buffer): Promise<string> {
  const { target } = disk
  await disk.makeFolder(dirname(target))
  const old = disk.fs.statSync(target, { throwIfNoEntry: false })
  const like = old?.isFile() === true ? { ...old, mode: old.mode | 0o600 } : { mode: 0o600, uid: -1, gid: -1 }
  const path = `${target}.${kind}-${new Date(clock.now()).toISOString().replaceAll(':', '-')}`
  return createWhole(disk, bytes, like, (newPath) => {
    let free = path
    for (let count = 2; !linkIfMissing(disk, newPath, free); count++) free = `${path}-${count}`
    return free
  })
}

/** The paths of all files with kept pets, the oldest first. */
export function findKeptPets(disk: Disk): readonly string[] {
  const { target } = disk
  const paths = disk.fs.readdirSync(dirname(target)).map((name) => join(dirname(target), name))
  return paths.filter((path) => path.startsWith(`${target}.kept-`)).toSorted()
}

/** The same, but none if the folder may be used and not listed, or is not there. */
function findListedKeptPets(disk: Disk): readonly string[] {
  try {
    return findKeptPets(disk)
  } catch {
    return []
  }
}

/** A line for each, for a start on a usable data file with these pets. */
export function listKeptPets(disk: Disk, pets: readonly Pet[]): readonly string[] {
  return findListedKeptPets(disk).map(
    (path) => `${countPets(disk, path, pets)} in ${basename(path)} alone, which may be deleted`,
  )
}

/**
 * A start finds the data file unusable. Beside kept pets, the error names the fault and the kept files, with a command for each choice: to
 * go on with the pets that were kept last, or with the data file. The commands remove nothing.
 */
export function refuseBesideKeptPets(
  disk: Disk,
  unusable: DataFileUnusable,
  isEmpty: boolean,
): DataFileUnusable {
  const kept = findListedKeptPets(disk)
  const last = kept.at(-1)
  if (last === undefined) return unusable
  const { target } = disk
  // A folder may lie at the path, and a move would then go into it.
  const isThere = disk.statIdentity() !== undefined
  const setAside = isThere ? [formatMove(target, last.replace('.kept-', '.damaged-'))] : []
  const giveUp = kept.map((path) => formatMove(path, path.replace('.kept-', '.unused-')))
  const lines = [
    unusable.message,
    ...kept.map((path) => `${path}: ${countPets(disk, path)} kept here`),
    'To go on with the kept pets:',
    `  ${[...setAside, formatMove(last, target)].join(' && ')}`,
    'To go on with what is left in the data file, once no mistake is in it:',
    // An empty one is a fault, and a missing one is created.
    `  ${[...(isEmpty ? setAside : []), ...giveUp].join(' && ')}`,
  ]
  return new DataFileUnusable(lines.join('\n'), unusable.summary)
}

/** How many pets are in a kept file and not among these, in words. */
function countPets(disk: Disk, path: string, others: readonly Pet[] = []): string {
  try {
    const known = new Set(others.map(formatPet))
    const { pets } = parseFileText(path, disk.fs.readFileSync(path))
    const count = pets.filter((pet) => !known.has(formatPet(pet))).length
    return count === 1 ? '1 pet is' : `${count} pets are`
  } catch {
    return 'an unknown number of pets is'
  }
}

/** A command for the shell of this system. */
function formatMove(from: string, to: string): string {
  const isWindows = process.platform === 'win32'
  const quote = (path: string): string =>
    isWindows ? `"${path}"` : `'${path.replaceAll("'", String.raw`'\''`)}'`
  return `${isWindows ? 'move' : 'mv'} ${quote(from)} ${quote(to)}`
}

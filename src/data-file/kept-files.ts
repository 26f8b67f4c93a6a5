/**
 * The files beside the data file that keep what would otherwise be lost: the damaged end that a repair cuts off, and the pets that are
 * served while the file cannot be used. Each is whole and durable when it has its name, and none is ever written over. `target` is the
 * path of the data file that all symbolic links lead to.
 */
import { basename, dirname, join } from 'node:path'
import { formatPet, type Pet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { DataFileUnusable } from './data-file-errors.ts'
import type { Disk } from './disk.ts'
import { parseFileText } from './file-text.ts'
import { linkIfMissing, newName } from './replace-file.ts'

/** Keeps a damaged end as `pets.json.torn-<time>`. Returns the path. */
export function keepTornEnd(disk: Disk, target: string, bytes: Buffer): Promise<string> {
  return keep(disk, `${target}.torn-`, target, bytes)
}

/** Keeps the text of the pets that are served as `pets.json.kept-<time>`, in a folder that may be gone too. Returns the path. */
export async function keepPets(disk: Disk, target: string, text: Buffer): Promise<string> {
  await disk.makeFolder(dirname(target))
  return keep(disk, `${target}.kept-`, target, text)
}

/** The paths of all files with kept pets, the oldest first. */
export function findKeptPets(disk: Disk, target: string): readonly string[] {
  const names = disk.fs.readdirSync(dirname(target))
  const kept = names.filter((name) => name.startsWith(`${basename(target)}.kept-`))
  return kept.toSorted().map((name) => join(dirname(target), name))
}

/** A line for each, for a start on a usable data file with these pets. */
export function listKeptPets(disk: Disk, target: string, pets: readonly Pet[]): readonly string[] {
  let paths: readonly string[]
  try {
    paths = findKeptPets(disk, target)
  } catch {
    // A folder that may be used but not listed: the file in it is good nevertheless.
    return []
  }
  if (paths.length === 0) return []
  const served = new Set(pets.map(formatPet))
  return paths.map((path) => {
    const count = describeCount(disk, path, (pet) => !served.has(formatPet(pet)))
    return `${count} in ${basename(path)} alone, which may be deleted`
  })
}

/** How to go on with the data file itself, by what is left in it. */
const choices = {
  nothing: 'To start without any pets:',
  part: 'To go on with what is left in the data file:',
  mistake: 'To go on with the data file, once it is correct:',
}

/**
 * A start finds the data file unusable beside kept pets. The error names the fault and the kept files, with a command for each choice: to
 * go on with the pets that were kept last, or with the data file, of which this much is left. The commands remove nothing.
 */
export function refuseBesideKeptPets(
  disk: Disk,
  target: string,
  { message, summary }: DataFileUnusable,
  kept: readonly string[],
  left: keyof typeof choices,
): DataFileUnusable {
  const last = kept.at(-1) ?? ''
  // A folder may lie at the path, and a move would then go into it.
  const isThere = disk.statIdentity(target) !== undefined
  const setAside = isThere ? [formatMove(target, last.replace('.kept-', '.damaged-'))] : []
  const giveUp = kept.map((path) => formatMove(path, path.replace('.kept-', '.unused-')))
  const lines = [
    message,
    ...kept.map((path) => `${path}: ${describeCount(disk, path)} kept here`),
    'To go on with the kept pets:',
    `  ${[...setAside, formatMove(last, target)].join(' && ')}`,
    choices[left],
    `  ${[...(left === 'nothing' ? setAside : []), ...giveUp].join(' && ')}`,
  ]
  return new DataFileUnusable(lines.join('\n'), summary)
}

/** How many pets of a kept file `counts` is true for, in words. */
function describeCount(disk: Disk, path: string, counts: (pet: Pet) => boolean = () => true): string {
  try {
    const { length } = parseFileText(path, disk.read(path).bytes).pets.filter(counts)
    return length === 1 ? '1 pet is' : `${length} pets are`
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

/** Writes a new file, as private as the data file; if that is gone, for its owner alone. Returns its path. */
async function keep(disk: Disk, prefix: string, target: string, bytes: Buffer): Promise<string> {
  const like = disk.fs.statSync(target, { throwIfNoEntry: false })
  const isFile = like?.isFile() === true
  const time = new Date(clock.now()).toISOString().replaceAll(':', '-')
  const unnamed = newName(target)
  disk.removeQuietly(unnamed)
  try {
    await disk.createFile(unnamed, bytes, isFile ? like : { mode: 0o600, uid: -1, gid: -1 })
    for (let count = 1; ; count++) {
      const path = `${prefix}${time}${count === 1 ? '' : `-${count}`}`
      if (!linkIfMissing(disk, unnamed, path)) continue
      await disk.syncFolder(dirname(path))
      return path
    }
  } finally {
    disk.removeQuietly(unnamed)
  }
}

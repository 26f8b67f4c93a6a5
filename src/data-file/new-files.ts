/**
 * Replaces the content of a file while editors may save it at any moment. A crash leaves at least one of the old and the new content. No
 * edit is lost, except for two kinds: a save at the very moment of a rename, on a file system without hard links, such as FAT; and what a
 * program that holds the old file open writes into it later. Does not depend on what is in the file.
 *
 * Renaming a new file over the old one would be safe in a crash. But an editor may save between our last look at the file and our
 * rename, and then its save is gone. So the old file is first moved aside and looked at under a name that no editor writes to,
 * and the new one is put at the path only if no editor has created a file there meanwhile.
 *
 * Beside it lie files that keep what would otherwise be lost: the damaged end that a repair cuts off, and the pets that are served while the
 * file cannot be used. Each is whole and durable when it has its name, and none is ever written over.
 */
import type { Stats } from 'node:fs'
import { dirname, basename, join } from 'node:path'
import { formatPetCount } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { errorCode } from '../system/errors.ts'
import {
  DataFileChanged,
  hasSameContent,
  quietly,
  DataFileUnusable,
  type Disk,
  type Identity,
} from './disk.ts'
import { parseFileText } from './file-text.ts'

/** A new file, until it is whole and gets its own name. */
const newName = (target: string): string => `${target}.petstore-new`
/** The old file, moved aside. */
const oldName = (target: string): string => `${target}.petstore-old`

/**
 * Creates a file beside the data file, with the mode and, if we may, the owner of `like`. `place` gives it its name when it is whole
 * and durable; what that returns is returned when the name is durable too.
 */
export async function createWhole<T>(
  disk: Disk,
  parts: Iterable<Buffer>,
  like: Pick<Stats, 'mode' | 'uid' | 'gid'> | undefined,
  place: (newPath: string) => T,
): Promise<T> {
  const newPath = newName(disk.target)
  disk.remove(newPath)
  try {
    await disk.withFile(newPath, 'wx', async (descriptor) => {
      if (like !== undefined) {
        // Only root may give a file away, but its owner may give it to a group that he is in: somebody who shares a file by its group can
        // then still read it. So each is tried by itself. -1 leaves it as it is.
        quietly(() => disk.fs.fchownSync(descriptor, -1, like.gid))
        quietly(() => disk.fs.fchownSync(descriptor, like.uid, -1))
        quietly(() => disk.fs.fchmodSync(descriptor, like.mode & 0o7777))
      }
      let size = 0
      for (const part of parts) {
        disk.write(descriptor, part, size)
        size += part.length
      }
      await disk.sync('fsync', descriptor)
    })
    const placed = place(newPath)
    await disk.syncFolder(dirname(newPath))
    return placed
  } finally {
    disk.remove(newPath)
  }
}

/**
 * Replaces the file with the identity `expected` (undefined: there was none) by one with the content `next`, the same mode and, as far as
 * we may set them, the same owner and group, and returns when that is durable. If a different file is there by now, leaves that, and
 * throws a DataFileChanged.
 *
 * The old file stays aside until removeLeftovers. Throws the file system's error: if it has not replaced the file, the old one is back at the
 * path or, if that failed too, aside until putBackOldFile succeeds.
 */
export async function replaceFile(disk: Disk, expected: Identity, next: Iterable<Buffer>): Promise<void> {
  const { target } = disk
  try {
    const old = disk.fs.statSync(target, { throwIfNoEntry: false })
    // A file that we may not write has to stay as it is, although we might be able to move it aside.
    if (old !== undefined) disk.checkFileWritable()
    await createWhole(disk, next, old, (newPath) => {
      if (expected !== undefined) {
        // 1. Move the old file aside. From here on, a crash may leave no file at the path: see putBackOldFile.
        disk.fs.renameSync(target, oldName(target))
        // 2. Look: is it still the file that was read? (The move has changed its ctime.) If not, it has an editor's save, and goes back.
        if (!hasSameContent(disk.statIdentity(oldName(target)), expected))
          throw new DataFileChanged(disk.name)
      }
      // 3. Link the new file at the path, unless an editor has created one there: then that stays.
      if (!linkIfMissing(disk, newPath, target)) throw new DataFileChanged(disk.name)
    })
  } catch (error) {
    // If this fails too, the next read of the file tries it again.
    await putBackOldFile(disk).catch(() => {})
    // ENOENT: one of the files has vanished, or their folder. That is an edit too: some editors remove the file and write it again. But
    // where there was no file, none can be made: as in /proc, or by the name `pets?.json` on Windows.
    throw errorCode(error) === 'ENOENT' && expected !== undefined ? new DataFileChanged(disk.name) : error
  }
}

/**
 * If an interrupted replacement has left the old file aside, puts it back at the path, unless there is a file by now. If there is
 * one, the old one stays aside until removeLeftovers. Returns whether it was put back.
 */
export async function putBackOldFile(disk: Disk): Promise<boolean> {
  const { target } = disk
  const oldPath = oldName(target)
  try {
    if (!linkIfMissing(disk, oldPath, target)) return false
  } catch (error) {
    // Nothing was moved aside.
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
  await disk.syncFolder(dirname(target))
  disk.remove(oldPath)
  return true
}

/** Gives the file at `path` the name `target` if that is free, in one step where there are hard links. Returns whether it was free. */
export function linkIfMissing(disk: Disk, path: string, target: string): boolean {
  try {
    disk.fs.linkSync(path, target)
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    if (errorCode(error) === 'ENOENT') throw error
  }
  // Most likely the file system has no hard links (FAT). Rename instead, although an editor can save between the look and the
  // rename. If something else is wrong, the rename fails too.
  if (disk.statIdentity(target) !== undefined) return false
  disk.fs.renameSync(path, target)
  return true
}

/** Removes what an interrupted replacement has left aside, once there is a valid and durable file at the path. */
export function removeLeftovers(disk: Disk): void {
  for (const name of [oldName, newName]) disk.remove(name(disk.target))
}

/**
 * Keeps the bytes as `pets.json.torn-<time>` or `pets.json.kept-<time>`, in a folder that may be gone too: as private as the data file or, if
 * that is gone, for its owner alone. But the owner can read them, even if somebody has taken that from the data file. Returns the path.
 */
export async function keepBeside(
  disk: Disk,
  kind: 'torn' | 'kept',
  parts: Iterable<Buffer>,
): Promise<string> {
  const { target } = disk
  await disk.makeFolder(dirname(target))
  const old = disk.fs.statSync(target, { throwIfNoEntry: false })
  const like = old?.isFile() === true ? { ...old, mode: old.mode | 0o600 } : { mode: 0o600, uid: -1, gid: -1 }
  // A start takes the pets that were kept last, by their names. So the time goes on from the last one, even if the clock was set back.
  let time = Math.max(clock.now(), timeOf(findListedKeptPets(disk).at(-1)) + 1)
  return createWhole(disk, parts, like, (newPath) => {
    for (; ; time++) {
      const path = `${target}.${kind}-${new Date(time).toISOString().replaceAll(':', '-')}`
      if (linkIfMissing(disk, newPath, path)) return path
    }
  })
}

/** The time in the name of a kept file; 0 if there is none. */
function timeOf(path = ''): number {
  const [, date, hours, minutes, seconds] = /(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d\.\d{3}Z)$/.exec(path) ?? []
  return Date.parse(`${date}${hours}:${minutes}:${seconds}`) || 0
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

/** A line for each, for a start on a usable data file. */
export function listKeptPets(disk: Disk): readonly string[] {
  return findListedKeptPets(disk).map(
    (path) =>
      `${basename(path)} has ${countPets(disk, path)} that an earlier run has kept; it may be deleted`,
  )
}

/** A start finds the data file unusable. Beside kept pets, the error names the fault, and what to do to go on with either. */
export function refuseBesideKeptPets(
  disk: Disk,
  unusable: DataFileUnusable,
  isEmpty: boolean,
): DataFileUnusable {
  const kept = findListedKeptPets(disk)
  const last = kept.at(-1)
  if (last === undefined) return unusable
  const name = basename(disk.target)
  const isThere = disk.statIdentity() !== undefined
  const setAside = isThere ? `rename ${name} to another name, and then ` : ''
  const what =
    kept.length === 1 ? basename(last) : `${basename(last)}, the last of ${kept.length} such files,`
  const giveUp = `rename ${kept.length === 1 ? basename(last) : `each ${name}.kept-…`} to another name`
  const mend = !isThere ? 'begin without any pets' : isEmpty ? `delete ${name}` : `mend ${name}`
  const choice =
    `${what} has ${countPets(disk, last)}; to go on with these, ${setAside}rename it to ${name}; ` +
    `or ${mend} and ${giveUp}`
  return new DataFileUnusable(`${unusable.message}\n${disk.name}: ${choice}`, unusable.summary)
}

function countPets(disk: Disk, path: string): string {
  try {
    return formatPetCount(parseFileText(path, disk.fs.readFileSync(path)).pets.length)
  } catch {
    return 'an unknown number of pets'
  }
}

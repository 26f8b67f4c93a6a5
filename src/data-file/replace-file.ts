/**
 * Replaces the content of a file while editors may save it at any moment. A crash leaves at least one of the old and the new content. No
 * edit is lost, except for two kinds: a save at the very moment of a rename, on a file system without hard links, such as FAT; and what a
 * program that holds the old file open writes into it later. Does not depend on what is in the file.
 *
 * Renaming a new file over the old one would be safe in a crash. But an editor may save between our last look at the file and our
 * rename, and then its save is gone. So the old file is first moved aside and looked at under a name that no editor writes to,
 * and the new one is put at the path only if no editor has created a file there meanwhile.
 */
import type { Stats } from 'node:fs'
import { dirname } from 'node:path'
import { errorCode } from '../system/errors.ts'
import { DataFileChanged } from './data-file-errors.ts'
import { type Disk, hasSameContent, type Identity, quietly } from './disk.ts'

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
  bytes: Buffer,
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
        disk.fs.fchmodSync(descriptor, like.mode & 0o7777)
      }
      disk.write(descriptor, bytes, 0)
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
export async function replaceFile(disk: Disk, expected: Identity, next: Buffer): Promise<void> {
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
        if (!hasSameContent(disk.statIdentity(oldName(target)), expected)) throw new DataFileChanged()
      }
      // 3. Link the new file at the path, unless an editor has created one there: then that stays.
      if (!linkIfMissing(disk, newPath, target)) throw new DataFileChanged()
    })
  } catch (error) {
    // If this fails too, the next read of the file tries it again.
    await putBackOldFile(disk).catch(() => {})
    // ENOENT: one of the files has vanished, or their folder. That is an edit too: some editors remove the file and write it again. But
    // where there was no file, none can be made: as in /proc, or by the name `pets?.json` on Windows.
    throw errorCode(error) === 'ENOENT' && expected !== undefined ? new DataFileChanged() : error
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

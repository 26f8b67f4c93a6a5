/**
 * Rewrites the data file while editors may save it at any moment, and creates files beside it.
 *
 * An editor may save between our last look at the file and the rename of a new file over it. So the old file is first moved aside and looked
 * at under a name that no editor writes to, and the new one is put at the path only if no editor has created a file there meanwhile. That
 * misses a save at the moment of a rename on a file system without hard links (FAT), and what is later written into the old file through an
 * open descriptor.
 */
import type { Stats } from 'node:fs'
import { dirname } from 'node:path'
import { errorCode } from '../system/errors.ts'
import { DataFileChanged, hasSameContent, quietly } from './disk.ts'
import type { Disk, Identity } from './disk.ts'

const newName = (target: string): string => `${target}.petstore-new`
const oldName = (target: string): string => `${target}.petstore-old`

/** Creates a file with the mode and, if we may, the owner of `like`. `place` gives it its name when it is whole and durable. */
export async function createWhole<T>(
  disk: Disk,
  target: string,
  parts: Iterable<Buffer>,
  like: Pick<Stats, 'mode' | 'uid' | 'gid'> | undefined,
  place: (newPath: string) => T,
): Promise<T> {
  const newPath = newName(target)
  disk.remove(newPath)
  try {
    await disk.withFile(newPath, 'wx', async (descriptor) => {
      if (like !== undefined) {
        // Only root may give a file away, but its owner may give it to a group that he is in. -1 leaves it as it is.
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

/** `expected` is undefined if there was no file. If another one is there by now, leaves that, and throws a DataFileChanged. */
export async function rewriteFile(disk: Disk, expected: Identity, next: Iterable<Buffer>): Promise<void> {
  const { target } = disk
  try {
    const old = disk.fs.statSync(target, { throwIfNoEntry: false })
    // We might move aside a file that we may not write.
    if (old !== undefined) disk.close(disk.fs.openSync(target, 'r+'))
    await createWhole(disk, target, next, old, (newPath) => {
      if (expected !== undefined) {
        // 1. Move the old file aside. A crash may leave it there: see restoreOldFile.
        disk.fs.renameSync(target, oldName(target))
        // 2. Look: if it is not the file that was read, it has an editor's save, and goes back. (The move has changed its ctime.)
        if (!hasSameContent(disk.statIdentity(oldName(target)), expected))
          throw new DataFileChanged(disk.name)
      }
      // 3. Link the new file at the path, unless an editor has created one there.
      if (!linkIfMissing(disk, newPath, target)) throw new DataFileChanged(disk.name)
    })
  } catch (error) {
    await restoreOldFile(disk).catch(() => {})
    // Some editors remove the file and write it again. But where there was none, none can be made, such as `pets?.json` on Windows.
    throw errorCode(error) === 'ENOENT' && expected !== undefined ? new DataFileChanged(disk.name) : error
  }
}

/** Whether an interrupted rewrite had left the old file aside, and no file is at the path. */
export async function restoreOldFile(disk: Disk): Promise<boolean> {
  const { target } = disk
  const oldPath = oldName(target)
  try {
    if (!linkIfMissing(disk, oldPath, target)) return false
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
  await disk.syncFolder(dirname(target))
  disk.remove(oldPath)
  return true
}

/** Returns whether the name was free. */
export function linkIfMissing(disk: Disk, path: string, target: string): boolean {
  try {
    disk.fs.linkSync(path, target)
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    if (errorCode(error) === 'ENOENT') throw error
  }
  // Most likely the file system has no hard links (FAT). If something else is wrong, the rename fails too.
  if (disk.statIdentity(target) !== undefined) return false
  disk.fs.renameSync(path, target)
  return true
}

/** Once there is a valid and durable file at the path. */
export function removeLeftovers(disk: Disk): void {
  for (const name of [oldName, newName]) disk.remove(name(disk.target))
}

/** Creates `<target>.<kind>-<time>`, for its owner alone. Where that name is taken, the time of the next millisecond. Returns the path. */
export async function createBeside(
  disk: Disk,
  target: string,
  kind: 'torn' | 'kept',
  time: number,
  parts: Iterable<Buffer>,
): Promise<string> {
  const like = { mode: 0o600, uid: -1, gid: -1 }
  return createWhole(disk, target, parts, like, (newPath) => {
    for (let nameTime = time; ; nameTime++) {
      const path = `${target}.${kind}-${formatTime(nameTime)}`
      if (linkIfMissing(disk, newPath, path)) return path
    }
  })
}

/** Such as `2026-11-27T09-00-00.000Z`: no name on Windows has a colon. */
export function formatTime(time: number): string {
  return new Date(time).toISOString().replaceAll(':', '-')
}

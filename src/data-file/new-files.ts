/**
 * Rewrites the data file while editors may save it at any moment, and creates files beside it.
 *
 * An editor may save between our last look at the file and the rename of a new file over it. So the old file
 * is first moved aside and looked at under a name that no editor writes to, and the new one is put at the
 * path only if no editor has created a file there meanwhile. That misses a save at the moment of a rename on
 * a file system without hard links (FAT), and what is later written into the old file through an open
 * descriptor.
 */
import type { Stats } from 'node:fs'
import { basename, dirname } from 'node:path'
import { clock } from '../system/clock.ts'
import { attempt, errorCode } from '../system/errors.ts'
import { DataFileChanged, DataFileUnusable } from './data-file-errors.ts'
import { type Disk, type Identity, seemsUnedited } from './disk.ts'

const newName = (target: string): string => `${target}.petstore-new`
const oldName = (target: string): string => `${target}.petstore-old`
/**
 * A start that finds no data file takes a file with the newName for an interrupted rewrite. So kept and torn
 * files are written under this name.
 */
export const temporaryName = (target: string): string => `${target}.petstore-temporary`

const maxWriteBytes = 65_536

/**
 * Creates a durable file for its owner alone, which gets the owner, group and mode of `like` when it is
 * whole.
 */
async function writeNewFile(disk: Disk, path: string, parts: Iterable<Buffer>, like?: Stats): Promise<void> {
  disk.remove(path)
  const use = async (descriptor: number): Promise<void> => {
    let size = 0
    for (const part of toWriteParts(parts)) {
      disk.write(descriptor, part, size)
      size += part.length
      // A slow disk may take long, so other requests are served in between.
      await new Promise(clock.setImmediate)
    }
    if (like !== undefined) giveRights(disk, descriptor, like)
    await disk.sync('fsync', descriptor)
  }
  await disk.withFile(path, 'wx', use, 0o600)
}

function* toWriteParts(parts: Iterable<Buffer>): Generator<Buffer> {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += maxWriteBytes) {
      yield part.subarray(at, at + maxWriteBytes)
    }
  }
}

/**
 * Gives the file the owner, group and mode of `like`, as far as we may. If it cannot get that group, its
 * group gets no rights.
 */
function giveRights(disk: Disk, descriptor: number, like: Stats): void {
  let mode = like.mode & 0o7777
  // Only root may give a file away, but its owner may give it to a group that he is in; -1 leaves an id as it
  // is (https://man7.org/linux/man-pages/man2/chown.2.html).
  try {
    disk.fs.fchownSync(descriptor, -1, like.gid)
  } catch {
    mode &= ~0o070
  }
  attempt(() => disk.fs.fchownSync(descriptor, like.uid, -1))
  attempt(() => disk.fs.fchmodSync(descriptor, mode))
}

/**
 * Creates a file for its owner alone. When it is whole and durable, `giveName` gives it its name, and returns
 * that; undefined if the name is taken.
 */
export async function writeWhole<Name extends string | undefined>(
  disk: Disk,
  target: string,
  parts: Iterable<Buffer>,
  giveName: (path: string) => Name,
): Promise<Name> {
  const path = temporaryName(target)
  let named: Name | undefined
  try {
    await writeNewFile(disk, path, parts)
    named = giveName(path)
    await disk.syncFolder(dirname(target))
    return named
  } catch (error) {
    // The name could not be made durable. The caller says that nothing was written, so nothing is left there.
    if (named !== undefined) disk.remove(named)
    throw error
  } finally {
    disk.remove(path)
  }
}

/**
 * `error` is a DataFileChanged if somebody else has written the file. `isOldAside`: the old file was moved,
 * and could not be restored yet.
 */
type RewriteOutcome =
  | { readonly is: 'durable' }
  | { readonly is: 'failed'; readonly error: unknown; readonly isOldAside: boolean }

/**
 * Puts a new file in the place of `expected`, which is undefined if there was none. If another one is there
 * by now, leaves that.
 */
export async function rewriteFile(
  disk: Disk,
  expected: Identity | undefined,
  next: Buffer,
): Promise<RewriteOutcome> {
  const target = disk.findTarget()
  const oldPath = oldName(target)
  const newPath = newName(target)
  let isMoved = false
  try {
    // 1. Refuse a file that may not be written, since it could be moved all the same.
    const old = disk.fs.statSync(target, { throwIfNoEntry: false })
    if (old !== undefined) disk.close(await disk.open(target, 'r+'))
    // 2. Remove what an earlier rewrite has left, so that the old file is the one that is moved now.
    if (disk.statIdentity(oldPath) !== undefined) disk.fs.unlinkSync(oldPath)
    // 3. Make the new file and its name durable: a start that finds both names, but no file at the path, restores the old file.
    await writeNewFile(disk, newPath, [next], old)
    await disk.syncFolder(dirname(target))
    if (expected !== undefined) {
      // 4. Move the old file aside.
      await disk.retryWhileInUse(() => disk.fs.renameSync(target, oldPath))
      isMoved = true
      // 5. Look: if it is not the file that was read, it has an editor's save, and goes back. (The move has changed its ctime.)
      if (!seemsUnedited(disk.statIdentity(oldPath), expected)) throw new DataFileChanged()
    }
    // 6. Link the new file at the path, unless an editor has created one there.
    const isLinked = await disk.retryWhileInUse(() => linkIfMissing(disk, newPath, target))
    if (!isLinked) throw new DataFileChanged()
    await disk.syncFolder(dirname(target))
    // 7. Remove the second name of the new file. The old file stays until the new one was read.
    disk.remove(newPath)
    return { is: 'durable' }
  } catch (error) {
    let isOldAside = false
    if (isMoved) {
      await restoreOldFile(disk).catch(() => {
        isOldAside = true
      })
    } else disk.remove(newPath)
    // Some editors remove the file and write it again. But if there was none, ENOENT says that none can be
    // made, such as `pets?.json` on Windows.
    const isGone = errorCode(error) === 'ENOENT' && expected !== undefined
    return { is: 'failed', error: isGone ? new DataFileChanged() : error, isOldAside }
  }
}

/** Puts the old file back. Returns false if it is not there, or if another file is at the path. */
export async function restoreOldFile(disk: Disk): Promise<boolean> {
  const target = disk.findTarget()
  try {
    if (!linkIfMissing(disk, oldName(target), target)) return false
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
  await disk.syncFolder(dirname(target))
  removeLeftovers(disk)
  return true
}

/** Returns whether a rewrite was interrupted in an earlier run: there is no data file, but its old one. */
export function isOldFileAside(disk: Disk): boolean {
  const target = disk.findTarget()
  return disk.statIdentity(target) === undefined && disk.statIdentity(oldName(target)) !== undefined
}

/**
 * A crash just after a rewrite leaves the old file there, and somebody may remove the data file before the
 * next start. Then the old file lacks what the new one had. So unless the new file is still beside it, and
 * no kept pets are, throws a DataFileUnusable that names it.
 */
export function refuseDoubtfulOldFile(disk: Disk, hasKeptPets: boolean): void {
  const target = disk.findTarget()
  if (disk.statIdentity(newName(target)) !== undefined && !hasKeptPets) return
  const name = basename(target)
  const remedy = `rename it to ${name} to go on with its pets, or to another name to go on without them`
  const fault = `${basename(oldName(target))}, which an earlier run has moved aside, may lack pets; ${remedy}`
  throw DataFileUnusable.ofFile(disk.shownPath, `is missing, and ${fault}`)
}

/** Gives the file the name `target`, unless that is taken. Returns whether it was free. */
export function linkIfMissing(disk: Disk, path: string, target: string): boolean {
  try {
    disk.fs.linkSync(path, target)
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
  }
  // Most likely the file system has no hard links (FAT). If something else is wrong, the rename fails too.
  if (disk.statIdentity(target) !== undefined) return false
  disk.fs.renameSync(path, target)
  return true
}

/** Removes what a rewrite has left, once a valid and durable file is at the path. */
export function removeLeftovers(disk: Disk): void {
  const target = disk.findTarget()
  for (const name of [oldName, newName, temporaryName]) disk.remove(name(target))
}

/**
 * Creates `<target>.<kind>-<time>`, for its owner alone. If that name is taken, it gets the time of the next
 * millisecond. Returns the path.
 */
export async function writeBeside(
  disk: Disk,
  target: string,
  kind: 'torn' | 'kept',
  time: number,
  parts: Iterable<Buffer>,
): Promise<string> {
  return writeWhole(disk, target, parts, (newPath) => {
    for (let nameTime = time; ; nameTime++) {
      const path = `${target}.${kind}-${formatTime(nameTime)}`
      if (linkIfMissing(disk, newPath, path)) return path
    }
  })
}

/**
 * Returns a text such as `2026-11-27T09-00-00.000Z`: on Windows, no name has a colon
 * (https://learn.microsoft.com/windows/win32/fileio/naming-a-file).
 */
export function formatTime(time: number): string {
  return new Date(time).toISOString().replaceAll(':', '-')
}

/**
 * Replaces the content of a file while editors may save it at any moment. No edit is lost, and a crash leaves at least the old
 * content or the new one. Does not depend on what the file contains.
 *
 * Renaming a new file over the old one would be safe in a crash. But an editor may save between our last look at the file
 * and our rename, and then its save is gone. So the old file is first moved aside, and compared under a name that no editor
 * writes to; and the new one is put at the path only if no editor has created a file there meanwhile.
 */
import { dirname } from 'node:path'
import { type Disk, type Identity, isSame, type WholeFile } from './disk.ts'
import { errorCode } from '../system-error.ts'

/** The new content, until it is at the path. */
const newName = (target: string): string => `${target}.petstore-new`
/** The old file, moved aside. */
const oldName = (target: string): string => `${target}.petstore-old`
/** The new content of a file that cannot be moved, while it is overwritten. */
const overwriteName = (target: string): string => `${target}.petstore-overwrite`

/**
 * Replaces the content of the file with `next`, durably; owner and mode stay. Returns false, and leaves the file alone, if an
 * editor has saved something else since `expected` was read. `target` is the path that all symbolic links lead to.
 *
 * Throws the file system's error. If no file is at the path then, restoreReplacedFile puts the old one back. If the new one is
 * there, but could not be made durable or the old one could not be compared, the old one stays aside until the next read.
 */
export async function replaceFile(
  disk: Disk,
  target: string,
  expected: WholeFile,
  next: Buffer,
): Promise<boolean> {
  const newPath = newName(target)
  try {
    const old = disk.fs.statSync(target, { throwIfNoEntry: false })
    if (old !== undefined) disk.checkWritable(target)
    disk.fs.rmSync(newPath, { force: true })
    await disk.createFile(newPath, next, old)
    return await swapFiles(disk, target, expected)
  } catch (error) {
    // A single file that is mounted into a container cannot be renamed.
    if (errorCode(error) === 'EBUSY') return await overwriteMounted(disk, target, expected.bytes, next)
    // Some editors remove the file and write it again. If this happens in between, nothing is put at the path: what the editor
    // writes is newer than a file that was moved aside.
    if (errorCode(error) === 'ENOENT') return false
    // If this fails too, the next read of the file tries it again.
    await restoreReplacedFile(disk, target).catch(() => {})
    throw error
  } finally {
    disk.removeQuietly(newPath)
  }
}

/**
 * Puts the new file in the place of the old one. Returns false if an editor has saved something else, which is then there. What
 * is at the path afterwards depends on what is found in steps 2, 3 and 5:
 *
 * | the old file is          | at the path in step 3 is     | at the path afterwards                                           |
 * | ------------------------ | ---------------------------- | ---------------------------------------------------------------- |
 * | as expected              | nothing                      | the new file                                                     |
 * | edited, found in 2 or 5  | nothing                      | the old file, which has the edit                                 |
 * | either                   | a file, created by an editor | that file: saved last, it would have replaced the old one anyway |
 */
async function swapFiles(disk: Disk, target: string, { bytes, identity }: WholeFile): Promise<boolean> {
  const oldPath = oldName(target)
  // 1. Move the old file aside. From here on, a crash may leave no file at the path: see restoreReplacedFile.
  if (identity !== undefined) disk.fs.renameSync(target, oldPath)

  // 2. Is it still the file that was read? There is no file at the path until step 3, so this must be quick: only a `stat`. The
  // bytes are compared in step 5.
  const isExpected = identity === undefined || isSameButMoved(disk.statIdentity(oldPath), identity)

  // 3. Put the right one at the path, if there is nothing.
  const isLinked = linkIfMissing(disk, isExpected ? newName(target) : oldPath, target)
  const isReplaced = isExpected && isLinked

  // 4. Whatever is at the path now has to be durable before the old file is removed.
  await disk.syncFile(target)

  // 5. An editor may have opened the old file before step 1 and written into it since. Then it goes back.
  if (isReplaced && identity !== undefined && !disk.fs.readFileSync(oldPath).equals(bytes)) {
    disk.fs.renameSync(oldPath, target)
    return false
  }
  disk.fs.rmSync(oldPath, { force: true })
  return isReplaced
}

/** Whether it is the same state. The change time is not compared: a rename changes it. */
function isSameButMoved(found: Identity, expected: NonNullable<Identity>): boolean {
  return found !== undefined && isSame({ ...found, ctimeNs: expected.ctimeNs }, expected)
}

/**
 * If an interrupted replaceFile has left the old file aside, puts it back at the path, unless there is a file already. Then both
 * stay, until the one at the path is known to be valid (see removeLeftovers). Returns whether it was put back.
 */
export async function restoreReplacedFile(disk: Disk, target: string): Promise<boolean> {
  const oldPath = oldName(target)
  try {
    if (!linkIfMissing(disk, oldPath, target)) return false
    await disk.syncFile(target)
    disk.fs.rmSync(oldPath, { force: true })
    return true
  } catch (error) {
    // From linkIfMissing: nothing was moved aside.
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
}

/** Whether an interrupted replaceFile has left the old file aside. */
export function hasReplacedFile(disk: Disk, target: string): boolean {
  return disk.statIdentity(oldName(target)) !== undefined
}

/** Puts the old file that was left aside in the place of an empty one, which somebody has created since. */
export async function restoreOverEmptyFile(disk: Disk, target: string): Promise<void> {
  disk.fs.renameSync(oldName(target), target)
  await disk.syncFile(target)
}

/** Links the file at `path` as `target`, atomically, if that name is free. Returns whether it was. */
function linkIfMissing(disk: Disk, path: string, target: string): boolean {
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

/** Removes what an interrupted replaceFile has left, once there is a valid and durable file with content at the path. */
export function removeLeftovers(disk: Disk, target: string): void {
  for (const name of [oldName, newName, overwriteName]) disk.removeQuietly(name(target))
}

/** The new content of a mounted file, if an overwrite of it was begun and may be unfinished: see overwriteMounted. */
export function readUnfinishedOverwrite(disk: Disk, target: string): Buffer | undefined {
  const path = overwriteName(target)
  return disk.statIdentity(path) === undefined ? undefined : disk.fs.readFileSync(path)
}

/**
 * A single file that is mounted into a container can only be overwritten, and a crash in the middle damages it. So the new
 * content stays in a second file until the overwrite is complete. A start that finds that file beside a damaged one finishes
 * the overwrite.
 */
async function overwriteMounted(
  disk: Disk,
  target: string,
  expected: Buffer,
  next: Buffer,
): Promise<boolean> {
  const nextPath = overwriteName(target)
  let isExpected = false
  try {
    disk.fs.renameSync(newName(target), nextPath)
    await disk.syncFolder(dirname(target))
    isExpected = disk.fs.readFileSync(target).equals(expected)
  } finally {
    if (!isExpected) disk.removeQuietly(nextPath)
  }
  if (!isExpected) return false
  try {
    // From here on, a crash may leave a mixture of the old and the new content. If somebody writes to the file meanwhile, nextPath
    // stays until the file was read and is valid: see removeLeftovers.
    if (!(await disk.overwriteFile(target, next))) return false
  } catch (error) {
    // The disk may be full. The old content fits, so put it back. If that fails too, or somebody (`touch`, say) writes to the
    // file meanwhile, it may be left a mixture, and nextPath stays for the next start.
    if (await disk.overwriteFile(target, expected)) disk.removeQuietly(nextPath)
    throw error
  }
  disk.removeQuietly(nextPath)
  return true
}

/**
 * Replaces a file's text while editors may save it at any moment. No edit is lost, and a crash leaves at least one of the
 * two texts. Knows no pets.
 *
 * Renaming a new file over the old one would be safe in a crash. But an editor may save between our last look at the file
 * and our rename, and then its text is gone. So the old file is first moved aside, and compared under a name that no
 * editor writes to; and the new one gets the name only if no editor has put a file there in the meantime.
 */
import type { Disk } from './disk.ts'
import { errorCode } from './system-error.ts'

/** Beside the file while it is replaced: the new text, and the old file. */
const newName = (target: string): string => `${target}.petstore-new`
const oldName = (target: string): string => `${target}.petstore-old`

/**
 * Replaces the text `expected` by `next`, durably; owner and mode stay. `expected` undefined stands for a missing file.
 * False when an editor has saved another text, which stays. Throws the file system's error; the path then leads to one of
 * the two texts, or restoreReplacedFile puts the old one back. `target` is the path behind all symbolic links.
 */
export async function replaceFile(
  disk: Disk,
  target: string,
  expected: Buffer | undefined,
  next: Buffer,
): Promise<boolean> {
  const newPath = newName(target)
  try {
    const old = disk.fs.statSync(target, { throwIfNoEntry: false })
    if (old !== undefined) disk.checkWritable(target)
    disk.fs.rmSync(newPath, { force: true })
    await disk.createFile(newPath, next, old)
    const isReplaced = await swapFiles(disk, target, expected)
    disk.removeQuietly(newPath)
    return isReplaced
  } catch (error) {
    if (errorCode(error) === 'EBUSY' && expected !== undefined) {
      return overwriteMounted(disk, target, expected, next)
    }
    disk.removeQuietly(newPath)
    // Some editors remove the file and write it again: it was just missing.
    if (errorCode(error) === 'ENOENT') return false
    // When this fails too, the next read of the file tries it again.
    await restoreReplacedFile(disk, target).catch(() => {})
    throw error
  }
}

/** Puts the new file in the place of the old one. */
async function swapFiles(disk: Disk, target: string, expected: Buffer | undefined): Promise<boolean> {
  const oldPath = oldName(target)
  // 1. The old file is moved aside. From here on a crash may leave no file at the path: see restoreReplacedFile.
  if (expected !== undefined) disk.fs.renameSync(target, oldPath)

  // 2. Is it the text that we know? If an editor has saved another one until now, its file goes back.
  const isExpected = expected === undefined || hasText(disk, oldPath, expected)

  // 3. The right one gets the name, unless an editor has put a file there in the meantime.
  const isLinked = linkIfMissing(disk, isExpected ? newName(target) : oldPath, target)

  // 4. Whatever is at the path now has to be durable before the old file is removed.
  await disk.syncFile(target)

  // 5. An editor may have opened the old file before step 1 and written into it after step 2. Then it goes back.
  if (expected !== undefined && isExpected && isLinked && !hasText(disk, oldPath, expected)) {
    disk.fs.renameSync(oldPath, target)
    return false
  }
  disk.fs.rmSync(oldPath, { force: true })
  return isExpected && isLinked
}

/** Puts back the file that an interrupted replaceFile moved aside, if there is none at the path. Returns whether it did. */
export async function restoreReplacedFile(disk: Disk, target: string): Promise<boolean> {
  const oldPath = oldName(target)
  if (disk.statIdentity(oldPath) === undefined) return false
  const isRestored = linkIfMissing(disk, oldPath, target)
  await disk.syncFile(target)
  disk.fs.rmSync(oldPath, { force: true })
  return isRestored
}

function hasText(disk: Disk, path: string, text: Buffer): boolean {
  return disk.fs.readFileSync(path).equals(text)
}

/** Links the file at `path` as `target`, atomically, if that name is free. False when it is not. */
function linkIfMissing(disk: Disk, path: string, target: string): boolean {
  try {
    disk.fs.linkSync(path, target)
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
  }
  // A file system without hard links, such as FAT. Here an editor can save between the look and the rename.
  if (disk.statIdentity(target) !== undefined) return false
  disk.fs.renameSync(path, target)
  return true
}

/**
 * A single file that is mounted into a container cannot be renamed, only overwritten. A crash in the middle damages it; the
 * whole new text is then still beside it.
 */
async function overwriteMounted(
  disk: Disk,
  target: string,
  expected: Buffer,
  next: Buffer,
): Promise<boolean> {
  const isExpected = hasText(disk, target, expected)
  if (isExpected) await disk.overwriteFile(target, next)
  disk.removeQuietly(newName(target))
  return isExpected
}

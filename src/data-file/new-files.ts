/**
 * Rewrites the data file while editors may save it at any moment, and keeps beside it what would otherwise be lost: the damaged end that a
 * repair cuts off, and the pets that are served while the file cannot be used.
 *
 * An editor may save between our last look at the file and the rename of a new file over it. So the old file is first moved aside and looked
 * at under a name that no editor writes to, and the new one is put at the path only if no editor has created a file there meanwhile. That
 * misses a save at the moment of a rename on a file system without hard links (FAT), and what is later written into the old file through an
 * open descriptor.
 */
import type { Stats } from 'node:fs'
import { dirname, basename, join } from 'node:path'
import { formatPetCount } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { errorCode } from '../system/errors.ts'
import { DataFileChanged, DataFileUnusable, hasSameContent, quietly } from './disk.ts'
import type { Disk, Identity } from './disk.ts'
import { parseFileText } from './file-text.ts'

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

/** As private as the data file or, if that is gone, for its owner alone, who may read it in any case. */
export async function keepBeside(
  disk: Disk,
  target: string,
  kind: 'torn' | 'kept',
  parts: Iterable<Buffer>,
): Promise<string> {
  await disk.makeFolder(dirname(target))
  const old = disk.fs.lstatSync(target, { throwIfNoEntry: false })
  const like = old?.isFile() === true ? { ...old, mode: old.mode | 0o600 } : { mode: 0o600, uid: -1, gid: -1 }
  // A start takes the last by name. So the time goes on from it, even if the clock was set back.
  const last = findKeptPets(disk).at(-1) ?? ''
  const lastTime = last.slice(-24).replace(/-(\d\d)-(\d\d\.)/, ':$1:$2')
  let time = Math.max(clock.now(), (Date.parse(lastTime) || 0) + 1)
  return createWhole(disk, target, parts, like, (newPath) => {
    for (; ; time++) {
      const path = `${target}.${kind}-${new Date(time).toISOString().replaceAll(':', '-')}`
      if (linkIfMissing(disk, newPath, path)) return path
    }
  })
}

/** The oldest first. None, too, in a folder that is not there or may not be listed. */
export function findKeptPets(disk: Disk): readonly string[] {
  const paths: string[] = []
  for (const place of disk.places)
    quietly(() => {
      for (const name of disk.fs.readdirSync(dirname(place)))
        if (name.startsWith(`${basename(place)}.kept-`)) paths.push(join(dirname(place), name))
    })
  return paths.toSorted()
}

export function sayKeptPets(disk: Disk): void {
  for (const path of findKeptPets(disk)) {
    const pets = `${countPets(disk, path)} that an earlier run has kept`
    disk.say(
      `${basename(path)} has ${pets}; delete it once they are in ${basename(disk.name)}, or not wanted`,
    )
  }
}

/** Beside kept pets, the error also says what to do to go on with either. */
export function refuseBesideKeptPets(disk: Disk, unusable: DataFileUnusable): DataFileUnusable {
  const last = findKeptPets(disk).at(-1)
  if (last === undefined) return unusable
  const kept = basename(last)
  const name = kept.slice(0, kept.lastIndexOf('.kept-'))
  const choice =
    `${kept}, which was kept last, has ${countPets(disk, last)}; to go on with these, rename ${name}, if it is ` +
    `there, to another name, and then rename ${kept} to ${name}; to go on with ${name}, mend it, or delete it to ` +
    `begin without any pets, and rename each ${name}.kept-… to another name`
  return new DataFileUnusable(`${unusable.message}\n${disk.name}: ${choice}`, unusable.summary)
}

function countPets(disk: Disk, path: string): string {
  try {
    return formatPetCount(parseFileText(path, disk.fs.readFileSync(path)).pets.length)
  } catch {
    return 'an unknown number of pets'
  }
}

/**
 * Finds or makes the data file at a start, locks it, and says what a person can do about one that cannot be
 * used.
 */
import { dirname } from 'node:path'
import { attempt, errorCode, isNoRoom, isSystemError } from '../system/errors.ts'
import { nameUnseen } from '../text/words.ts'
import { DataFileUnusable } from './data-file-errors.ts'
import { DataFile, type PetData } from './data-file.ts'
import { Disk, type DiskOptions } from './disk.ts'
import { DataFileInUse, type Release, lockFile } from './file-lock.ts'
import { withKeptPets, sayKeptFiles, findKeptFiles } from './kept-pets.ts'
import { isOldFileAside, refuseDoubtfulOldFile } from './new-files.ts'

/** Throws a DataFileUnusable. */
export async function openDataFile(
  path: string,
  options?: DiskOptions,
): Promise<{ disk: Disk; file: DataFile; data: PetData }> {
  const disk = new Disk(path, options)
  let release: Release | undefined
  try {
    refuseLostLink(disk)
    await disk.makeFolder()
    release = await lockFile(disk)
    const file = new DataFile(disk, release)
    const data = await file.read()
    sayKeptFiles(disk)
    return { disk, file, data }
  } catch (error) {
    await release?.()
    // The kept files beside a file that another server uses are that server's: they are not named, since
    // nobody is to rename them.
    throw error instanceof DataFileInUse ? error : toStartRefusal(disk, error)
  }
}

/** Throws a DataFileUnusable where findLostLink finds a link. */
export function refuseLostLink(disk: Disk): void {
  const link = findLostLink(disk)
  if (link === undefined) return
  const missing = link === disk.path ? 'whose folder is not there' : 'which is not there'
  const leads = `${nameUnseen(link)} is a link to ${nameUnseen(disk.fs.readlinkSync(link))}, ${missing}`
  throw DataFileUnusable.ofFile(disk.shownPath, `cannot be found: ${leads}; mount it, or make that folder`)
}

/**
 * A link on the way to the data file may lead to a disk that is not mounted yet, or to a folder that was
 * renamed. To make that folder anew would begin an empty store in another place. Returns the link, or
 * undefined if there is none. If the file itself is a link, only its folder has to be there: the file may be
 * new.
 */
function findLostLink(disk: Disk): string | undefined {
  for (let path = disk.path; path !== dirname(path); path = dirname(path)) {
    if (disk.fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) continue
    const needed = path === disk.path ? dirname(disk.findTarget()) : path
    if (disk.statIdentity(needed) === undefined) return path
  }
  return undefined
}

function describeStartFailure(disk: Disk, error: unknown): string {
  const reason = disk.describeFailure(error)
  if (errorCode(error) === 'ENOSPC' && lacksInodes(disk))
    return 'cannot be created or rewritten: its file system has no inodes left, though it may have room (ENOSPC)'
  if (isNoRoom(error)) return `cannot be created or rewritten: ${reason}`
  return `cannot be opened or created: ${reason}${describeOwner(disk, error)}`
}

/** Returns whether no file can be created, though there may be room. */
function lacksInodes(disk: Disk): boolean {
  const stats = attempt(() => disk.fs.statfsSync(dirname(disk.findTarget())))
  return stats !== undefined && stats.files > 0 && stats.ffree === 0
}

/**
 * On a new host, the file may still belong to the user of the old one. Returns the end of a message about
 * that, or nothing.
 */
function describeOwner(disk: Disk, error: unknown): string {
  const own = process.geteuid?.()
  if (own === undefined || !['EACCES', 'EPERM'].includes(errorCode(error))) return ''
  for (let path = disk.path; ; path = dirname(path)) {
    // The user is undefined if the path is missing, or in a folder that may not be searched.
    const uid = attempt(() => disk.fs.statSync(path).uid)
    if (uid === undefined && dirname(path) !== path) continue
    if (uid === undefined || uid === own) return ''
    return `; ${nameUnseen(path)} belongs to user ${uid}, and the server runs as user ${own}: chown ${own} ${nameUnseen(path)}`
  }
}

/**
 * Returns a DataFileUnusable for a failure of the system or of the file, with what to do about kept pets; any
 * other error as it is.
 */
export function toStartRefusal(disk: Disk, error: unknown): unknown {
  const fault = isSystemError(error)
    ? DataFileUnusable.ofFile(disk.shownPath, describeStartFailure(disk, error))
    : error
  return fault instanceof DataFileUnusable ? withKeptPets(disk, fault) : fault
}

/** Throws a DataFileUnusable unless there is a file, or one that a start restores. */
export function refuseMissing(disk: Disk): void {
  if (disk.statIdentity() !== undefined) return
  refuseLostLink(disk)
  if (isOldFileAside(disk)) return refuseDoubtfulOldFile(disk, findKeptFiles(disk).length > 0)
  throw withKeptPets(disk, DataFileUnusable.ofFile(disk.shownPath, 'is missing'))
}

/**
 * Finds or makes the data file at a start, locks it, and says what a person can do about one that cannot be
 * used. And what is done without serving it: `--check`, an import from it and an export to it.
 */
import { dirname } from 'node:path'
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'
import { attempt, errorCode, isNoRoom, isSystemError } from '../system/errors.ts'
import { nameUnseen } from '../text/words.ts'
import type { Damage } from './damage.ts'
import { DataFile, type PetData } from './data-file.ts'
import { Disk, type DiskOptions, DataFileUnusable } from './disk.ts'
import { DataFileInUse, type Release, lockFile } from './file-lock.ts'
import { formatFile, parseUsableFileText, parseFileText } from './file-text.ts'
import { withKeptPets, sayKeptFiles, findKeptFiles } from './kept-pets.ts'
import { isOldFileAside, linkIfMissing, refuseDoubtfulOldFile, writeWhole } from './new-files.ts'
import { findRemedy, measureFile, readText, readUntilSettled, refuseTooLarge } from './reading.ts'

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

function refuseLostLink(disk: Disk): void {
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

function toStartRefusal(disk: Disk, error: unknown): unknown {
  const fault = isSystemError(error)
    ? DataFileUnusable.ofFile(disk.shownPath, describeStartFailure(disk, error))
    : error
  return fault instanceof DataFileUnusable ? withKeptPets(disk, fault) : fault
}

/** What is in a file, and what a start would do to it. */
export interface InspectedFile {
  readonly petCount: number
  /** 0 if no pet has an id. */
  readonly highestId: Int64
  readonly missingIdCount: number
  /** What a start would do about damage, if there is any. */
  readonly repair: string | undefined
}

/**
 * Looks at a file as a start does, but changes and makes nothing, not even a lock. Throws what openDataFile
 * throws, and for a missing file.
 */
export async function inspectDataFile(path: string, options?: DiskOptions): Promise<InspectedFile> {
  const disk = new Disk(path, options)
  try {
    refuseLostLink(disk)
    const inspected = await readUntilSettled(disk, true, () => inspectOnce(disk))
    sayKeptFiles(disk)
    const writeError = disk.findWriteError(true)
    if (writeError !== undefined) disk.say(disk.describeReadOnly(writeError))
    return inspected
  } catch (error) {
    throw toStartRefusal(disk, error)
  }
}

async function inspectOnce(disk: Disk): Promise<InspectedFile> {
  refuseTooLarge(disk, measureFile(disk))
  const found = await readText(disk, 0)
  const remedy = found.unusable && (await findRemedy(disk, found, true))
  if (remedy === 'none') throw found.unusable
  if (remedy === 'restore' || remedy === 'create') {
    const why = remedy === 'restore' ? 'restore it, since a rewrite was interrupted' : 'create it'
    throw DataFileUnusable.ofFile(disk.shownPath, `is missing; a start would ${why}`)
  }
  const served = remedy === undefined ? found.text : parseFileText(remedy.repaired)
  const missingIdCount = served.filledIds.length
  const error = remedy !== undefined || missingIdCount > 0 ? disk.findRewriteError() : undefined
  if (error !== undefined) throw disk.rewriteRefusal(disk.describeRewriteFailure(error))
  // Ids that are filled in come last, and are higher than all others.
  const highestId = served.pets.at(-1 - missingIdCount)?.id ?? 0
  const repair = remedy && describeRepair(remedy)
  return { petCount: served.pets.length, highestId, missingIdCount, repair }
}

function describeRepair({ damaged, isAtEnd, missingWords }: Damage): string {
  return isAtEnd ? 'repair its end' : `take out ${damaged.length} damaged bytes: ${missingWords}`
}

/** Throws a DataFileUnusable unless there is a file, or one that a start restores. */
export function refuseMissing(disk: Disk): void {
  if (disk.statIdentity() !== undefined) return
  refuseLostLink(disk)
  if (isOldFileAside(disk)) return refuseDoubtfulOldFile(disk, findKeptFiles(disk).length > 0)
  throw withKeptPets(disk, DataFileUnusable.ofFile(disk.shownPath, 'is missing'))
}

/**
 * Writes a new data file, and returns how many pets are in it. `readPets` is called once it is known that
 * there is no file. Throws a DataFileUnusable if there is one, or if a pet is not valid.
 */
export async function writeDataFile(path: string, readPets: () => Promise<readonly Pet[]>): Promise<number> {
  const disk = new Disk(path)
  const alreadyExists = DataFileUnusable.ofFile(disk.shownPath, 'exists already; export to a new file')
  if (disk.statIdentity() !== undefined) throw alreadyExists
  refuseLostLink(disk)
  // A start on the exported file would remove the old one.
  if (isOldFileAside(disk))
    throw DataFileUnusable.ofFile(
      disk.shownPath,
      'was moved aside by a rewrite that was interrupted; export to a new file',
    )
  const pets = await readPets()
  const bytes = Buffer.concat([...formatFile(pets)])
  parseUsableFileText(disk.shownPath, bytes)
  await disk.makeFolder()
  const target = disk.findTarget()
  const giveName = (newPath: string) => (linkIfMissing(disk, newPath, target) ? target : undefined)
  if ((await writeWhole(disk, target, [bytes], giveName)) === undefined) throw alreadyExists
  return pets.length
}

/**
 * The data file while no server runs on it: `--check`, which looks at it as a start does and changes nothing,
 * an import from it and an export to it.
 */
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'
import { Disk, type DiskOptions } from './disk.ts'
import { DataFileUnusable } from './errors.ts'
import { formatFile, parseFileText, readFileText } from './file-text.ts'
import { findKeptFiles, nameKeptPets, sayKeptFiles } from './kept-pets.ts'
import { isOldFileAside, linkIfMissing, refuseDoubtfulOldFile, writeWhole } from './new-files.ts'
import { findRemedy, measureFile, readText, readUntilSettled } from './reading.ts'
import { refuseLostLink, toStartRefusal } from './start.ts'
import type { Damage } from './damage.ts'

/** What is in a file, and what a start would do to it. */
export interface CheckedFile {
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
export async function checkDataFile(path: string, options?: DiskOptions): Promise<CheckedFile> {
  const disk = new Disk(path, options)
  try {
    refuseLostLink(disk)
    const checked = await readUntilSettled(disk, true, () => checkOnce(disk))
    sayKeptFiles(disk)
    const writeError = disk.findWriteError(true)
    if (writeError !== undefined) disk.say(disk.describeReadOnly(writeError))
    return checked
  } catch (error) {
    throw toStartRefusal(disk, error)
  }
}

async function checkOnce(disk: Disk): Promise<CheckedFile> {
  measureFile(disk)
  const found = await readText(disk, 0)
  const remedy = found.unusable && (await findRemedy(disk, found, true))
  if (remedy === 'none') throw found.unusable
  if (remedy === 'restore' || remedy === 'create') {
    const why = remedy === 'restore' ? 'restore it, since a rewrite was interrupted' : 'create it'
    throw DataFileUnusable.ofFile(disk.name, `is missing; a start would ${why}`)
  }
  const served = remedy === undefined ? found.text : readFileText(remedy.repaired)
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
  if (isOldFileAside(disk)) return refuseDoubtfulOldFile(disk, findKeptFiles(disk).length > 0)
  throw nameKeptPets(disk, DataFileUnusable.ofFile(disk.name, 'is missing'))
}

/**
 * Writes a new data file, and returns how many pets are in it. `readPets` is called once it is known that
 * there is no file. Throws a DataFileUnusable if there is one, or if a pet is not valid.
 */
export async function writeDataFile(path: string, readPets: () => Promise<readonly Pet[]>): Promise<number> {
  const disk = new Disk(path)
  const alreadyExists = DataFileUnusable.ofFile(disk.name, 'exists already; export to a new file')
  if (disk.statIdentity() !== undefined) throw alreadyExists
  // A start on the exported file would remove the old one.
  if (isOldFileAside(disk))
    throw DataFileUnusable.ofFile(
      disk.name,
      'was moved aside by a rewrite that was interrupted; export to a new file',
    )
  const pets = await readPets()
  const bytes = Buffer.concat([...formatFile(pets)])
  parseFileText(disk.name, bytes)
  await disk.makeFolder()
  const target = disk.findTarget()
  const giveName = (newPath: string) => (linkIfMissing(disk, newPath, target) ? target : undefined)
  if ((await writeWhole(disk, target, [bytes], giveName)) === undefined) throw alreadyExists
  return pets.length
}

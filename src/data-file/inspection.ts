/** What `--check` says of a data file, without a change to it. */
import type { Int64 } from '../json/int64.ts'
import type { Damage } from './damage.ts'
import { DataFileUnusable } from './data-file-errors.ts'
import { Disk, type DiskOptions } from './disk.ts'
import { parseFileText } from './file-text.ts'
import { sayKeptFiles } from './kept-pets.ts'
import { refuseTooLarge } from './memory-limits.ts'
import { findRemedy, measureFile, readText, readUntilSettled } from './reading.ts'
import { refuseLostLink, toStartRefusal } from './start.ts'

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

/**
 * Reads the data file, waits for the end of a save, and finds what can be done about a file that cannot be used
 * as it is. Changes nothing: a start, a look while the server runs, and `--check` all ask here.
 */
import type { Int64 } from '../json/int64.ts'
import { clock, delay, tryAgain } from '../system/clock.ts'
import { type Damage, findDamage } from './damage.ts'
import { DataFileChanged, DataFileUnusable, isChanged } from './data-file-errors.ts'
import { type Disk, type Identity, isSame } from './disk.ts'
import { findUnusable, type FileText, parseFileText } from './file-text.ts'
import { findKeptFiles, findUnfinishedFile } from './kept-pets.ts'
import { findPetsFault } from './memory-limits.ts'
import { isOldFileAside, refuseDoubtfulOldFile } from './new-files.ts'

/** A file that keeps changing is read again for this long, while the server runs or at a start. */
const maxEditWaitMs = 1500
const maxStartWaitMs = 30_000

/** Nobody is still saving a file that was left alone for this long. */
const settleMs = 400
const lookAgainMs = 40

/** Reads again after each DataFileChanged. Throws a DataFileUnusable if that goes on for too long. */
export async function readUntilSettled<T>(disk: Disk, isStart: boolean, read: () => Promise<T>): Promise<T> {
  try {
    return await tryAgain(isStart ? maxStartWaitMs : maxEditWaitMs, isChanged, read)
  } catch (error) {
    throw isChanged(error) ? DataFileUnusable.stillBeingSaved(disk.shownPath) : error
  }
}

export interface FoundText {
  readonly text: FileText
  readonly identity: Identity | undefined
  /** The highest id that this run had given when the file was read. */
  readonly highestGivenId: Int64
  /** Why it cannot be used as it is. */
  readonly unusable: DataFileUnusable | undefined
}

/** Returns the size of the file, 0 if it is missing. */
export const measureFile = (disk: Disk): number => Number(disk.statIdentity()?.size ?? 0n)

/** Throws a DataFileChanged or a system error. */
export async function readText(disk: Disk, highestGivenId: Int64): Promise<FoundText> {
  const { bytes, identity, fault: fileFault } = await disk.read()
  // Pets that do not fit into the memory are not read.
  const fault = fileFault ?? findPetsFault(bytes)
  const text = parseFileText(fault === undefined ? bytes : Buffer.alloc(0), highestGivenId)
  const unusable =
    fault === undefined ? findUnusable(text, disk.shownPath) : DataFileUnusable.ofFile(disk.shownPath, fault)
  return { text, identity, highestGivenId, unusable }
}

/**
 * An editor may have emptied the file, and take its time to write it again. Throws a DataFileChanged when it
 * has written.
 */
async function waitForSave(disk: Disk, identity: Identity | undefined, isStart: boolean): Promise<void> {
  const ageMs = clock.now() - Number(identity?.mtimeNs ?? 0n) / 1e6
  const waitMs = isStart && ageMs >= settleMs ? 0 : settleMs
  for (const start = clock.performanceNow(); clock.performanceNow() - start < waitMs;) {
    await delay(lookAgainMs)
    if (!isSame(disk.statIdentity(), identity)) throw new DataFileChanged()
  }
}

/**
 * What the server does about a file that cannot be used as it is; `none` if a person has to mend it. A Damage
 * is taken out.
 */
type Remedy = 'restore' | 'create' | 'none' | Damage

/**
 * Waits for the end of a save, and finds what to do: the first row that applies. `keptByUs` are the kept
 * files of this run. Throws a DataFileChanged if the save goes on, and what refuseDoubtfulOldFile throws.
 *
 * | The file                                   | At a start                | While the server runs      |
 * | ------------------------------------------ | ------------------------- | -------------------------- |
 * | was moved aside by a rewrite               | is restored               | is restored (data-file.ts) |
 * | lies beside kept pets of an earlier run    | is an error with a choice | is an error                |
 * | is missing beside an unfinished kept file  | is an error               | is an error                |
 * | is missing                                 | is created                | is an error                |
 * | is damaged (see damage.ts)                 | is repaired               | is an error                |
 * | was copied during an append                | is repaired               | is repaired                |
 * | is empty, or wrong otherwise               | is an error               | is an error                |
 */
export async function findRemedy(
  disk: Disk,
  { text, identity, highestGivenId }: FoundText,
  isStart: boolean,
  keptByUs: readonly string[] = [],
): Promise<Remedy> {
  await waitForSave(disk, identity, isStart)
  const hasKeptPets = findKeptFiles(disk).some(({ path }) => !keptByUs.includes(path))
  if (isStart && isOldFileAside(disk)) {
    refuseDoubtfulOldFile(disk, hasKeptPets)
    return 'restore'
  }
  if (hasKeptPets) return 'none'
  if (isStart && identity === undefined) return findUnfinishedFile(disk) === undefined ? 'create' : 'none'
  const damage = findDamage(text, highestGivenId)
  return damage !== undefined && (isStart || damage.isOfCopy) ? damage : 'none'
}

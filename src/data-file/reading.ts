/**
 * Reads the data file where it fits into memory, waits for the end of a save, and finds what can be done about a
 * file that cannot be used as it is. Changes nothing: a start, a look while the server runs, and `--check` all
 * ask here.
 */
import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import type { Int64 } from '../json/int64.ts'
import { clock, delay, tryAgain } from '../system/clock.ts'
import { type Damage, findDamage } from './damage.ts'
import { DataFileChanged, DataFileUnusable, isChanged } from './data-file-errors.ts'
import { type Disk, type Identity, isSame } from './disk.ts'
import { findUnusable, type FileText, parseFileText } from './file-text.ts'
import { findKeptFiles, findUnfinishedFile } from './kept-pets.ts'
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

/** Throws a DataFileUnusable if a file of this size does not fit into the memory of this process. */
export function refuseTooLarge(disk: Disk, fileBytes: number): void {
  const { processBytes } = readMemoryLimits()
  if (fileBytes <= processBytes) return
  throw DataFileUnusable.ofFile(disk.shownPath, describeLack(fileBytes, processBytes, 'this process'))
}

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

/**
 * What a pet takes of the heap at least: an object with four members, and an entry in each of three lists.
 * Most names take more besides.
 */
const minPetHeapBytes = 80

/** The shortest pet, `{"name":"","categoryId":1},`, has this many bytes. */
const minPetBytes = 27

interface MemoryLimits {
  /**
   * The limit of a container or a systemd unit, if that is less than the machine has; otherwise Infinity. It
   * is not what is free, since caches count as used.
   */
  readonly processBytes: number
  /** The limit of Node's heap, which `--max-old-space-size` sets. */
  readonly heapBytes: number
}

function readMemoryLimits(): MemoryLimits {
  // Without a limit it is 0, undefined (before https://github.com/nodejs/node/pull/52039) or, on some
  // systems, a huge number.
  const constrainedBytes = process.constrainedMemory() || Infinity
  return {
    processBytes: constrainedBytes < totalmem() ? constrainedBytes : Infinity,
    heapBytes: getHeapStatistics().heap_size_limit,
  }
}

/**
 * Returns whether a file of this size can be read beside the pets that are served, even if all of it is pets.
 */
export function canBeReadAtOnce(fileBytes: number): boolean {
  const { processBytes, heapBytes } = readMemoryLimits()
  return fileBytes < Math.min(processBytes, totalmem(), heapBytes) / 4
}

/** Returns what is wrong with a text whose pets cannot fit. They are counted only if they might not fit. */
function findPetsFault(text: Buffer): string | undefined {
  const { processBytes, heapBytes } = readMemoryLimits()
  const maxPets = text.length / minPetBytes
  if (text.length + maxPets * minPetHeapBytes <= Math.min(processBytes, heapBytes)) return undefined
  const petBytes = countPets(text) * minPetHeapBytes
  if (petBytes > heapBytes) return describeLack(petBytes, heapBytes, 'the heap of Node')
  const bytes = text.length + petBytes
  return bytes > processBytes ? describeLack(bytes, processBytes, 'this process') : undefined
}

/**
 * Counts the bytes `"categoryId":`, which no name can have, since a quote in it is escaped. A pet with white
 * space before that colon is not counted: it may fit, so it is read.
 */
function countPets(text: Buffer): number {
  const mark = '"categoryId":'
  let count = 0
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) count++
  return count
}

function describeLack(neededBytes: number, limitBytes: number, whose: string): string {
  const [needed, limit] = [neededBytes, limitBytes].map((bytes) => `${Math.ceil(bytes / 2 ** 20)} MiB`)
  return `takes ${needed} of memory at least, and ${whose} may have ${limit}`
}

/** Whether a data file and its pets fit into the memory that this process may have. */
import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { DataFileUnusable } from './data-file-errors.ts'
import type { Disk } from './disk.ts'

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

/** Throws a DataFileUnusable if a file of this size does not fit into the memory of this process. */
export function refuseTooLarge(disk: Disk, fileBytes: number): void {
  const { processBytes } = readMemoryLimits()
  if (fileBytes <= processBytes) return
  throw DataFileUnusable.ofFile(disk.shownPath, describeLack(fileBytes, processBytes, 'this process'))
}

/**
 * Returns whether a file of this size can be read beside the pets that are served, even if all of it is pets.
 */
export function canBeReadAtOnce(fileBytes: number): boolean {
  const { processBytes, heapBytes } = readMemoryLimits()
  return fileBytes < Math.min(processBytes, totalmem(), heapBytes) / 4
}

/** Returns what is wrong with a text whose pets cannot fit. They are counted only if they might not fit. */
export function findPetsFault(text: Buffer): string | undefined {
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

/** Finds whether a data file can fit into the memory that this process may have. */
import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'

/** A pet takes an object with four members, and its places in three lists. Most names take more besides. */
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

function findMemoryLimits(): MemoryLimits {
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
  const { processBytes, heapBytes } = findMemoryLimits()
  return fileBytes < Math.min(processBytes, totalmem(), heapBytes) / 4
}

/** Returns what is wrong with a file of this size, if it cannot fit whatever is in it. */
export function findSizeFault(fileBytes: number): string | undefined {
  const { processBytes } = findMemoryLimits()
  return fileBytes > processBytes ? describeLack(fileBytes, processBytes, 'this process') : undefined
}

/** Returns what is wrong with a text whose pets cannot fit. They are counted only if they might not fit. */
export function findPetsFault(text: Buffer): string | undefined {
  const { processBytes, heapBytes } = findMemoryLimits()
  const maxPets = text.length / minPetBytes
  if (text.length + maxPets * minPetHeapBytes <= Math.min(processBytes, heapBytes)) return undefined
  const petBytes = countPets(text) * minPetHeapBytes
  if (petBytes > heapBytes) return describeLack(petBytes, heapBytes, 'the heap of Node')
  const bytes = text.length + petBytes
  return bytes > processBytes ? describeLack(bytes, processBytes, 'this process') : undefined
}

/** Counts the bytes `"categoryId"`, which no name can have, since its quotes are escaped. */
function countPets(text: Buffer): number {
  let count = 0
  for (let at = text.indexOf('"categoryId"'); at !== -1; at = text.indexOf('"categoryId"', at + 1)) count++
  return count
}

function describeLack(neededBytes: number, limitBytes: number, whose: string): string {
  const [needed, limit] = [neededBytes, limitBytes].map((bytes) => `${Math.ceil(bytes / 2 ** 20)} MiB`)
  return `takes ${needed} of memory at least, and ${whose} may have ${limit}`
}

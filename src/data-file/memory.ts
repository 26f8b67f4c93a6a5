/** Whether a data file can fit into the memory that this process may have. */
import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'

/** An object with four members, and its places in three lists. Most names take more besides. */
const minPetHeapBytes = 80

/** The shortest pet, `{"name":"","categoryId":1},`, has so many. */
const minPetBytes = 27

interface MemoryLimits {
  /** Of a container or a unit, if that is less than the machine has; otherwise Infinity. Not what is free, since caches count as used. */
  readonly processBytes: number
  /** Of Node's heap, as by `--max-old-space-size`. */
  readonly heapBytes: number
}

function findMemoryLimits(): MemoryLimits {
  // Without a limit it is 0, undefined or a huge number, as the system and the version of Node have it.
  const constrainedBytes = process.constrainedMemory() || Infinity
  return {
    processBytes: constrainedBytes < totalmem() ? constrainedBytes : Infinity,
    heapBytes: getHeapStatistics().heap_size_limit,
  }
}

/** Whether a file of so many bytes can be read beside the pets that are served, even if all of it is pets. */
export function canBeReadAtOnce(fileBytes: number): boolean {
  const { processBytes, heapBytes } = findMemoryLimits()
  return fileBytes < Math.min(processBytes, totalmem(), heapBytes) / 4
}

/** What is wrong with a file of so many bytes, if it cannot fit whatever is in it. */
export function findSizeFault(fileBytes: number): string | undefined {
  const { processBytes } = findMemoryLimits()
  return fileBytes > processBytes ? describeLack(fileBytes, processBytes, 'this process') : undefined
}

/** The same for its pets. They are counted only where they might not fit. */
export function findPetsFault(text: Buffer): string | undefined {
  const { processBytes, heapBytes } = findMemoryLimits()
  const maxPets = text.length / minPetBytes
  if (text.length + maxPets * minPetHeapBytes <= Math.min(processBytes, heapBytes)) return undefined
  const petBytes = countPets(text) * minPetHeapBytes
  if (petBytes > heapBytes) return describeLack(petBytes, heapBytes, 'the heap of Node')
  const bytes = text.length + petBytes
  return bytes > processBytes ? describeLack(bytes, processBytes, 'this process') : undefined
}

/** A name cannot have these bytes: its quotes are escaped. */
function countPets(text: Buffer): number {
  let count = 0
  for (let at = text.indexOf('"categoryId"'); at !== -1; at = text.indexOf('"categoryId"', at + 1)) count++
  return count
}

function describeLack(neededBytes: number, limitBytes: number, whose: string): string {
  const [needed, limit] = [neededBytes, limitBytes].map((bytes) => `${Math.ceil(bytes / 2 ** 20)} MiB`)
  return `takes ${needed} of memory at least, and ${whose} may have ${limit}`
}

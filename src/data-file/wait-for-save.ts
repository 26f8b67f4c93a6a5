/** How long we wait for somebody who is saving the data file, and how often we look again. */
import { clock, delay } from '../system/clock.ts'
import { DataFileChanged, DataFileUnusable } from './data-file-errors.ts'
import { type Disk, type Identity, isSame } from './disk.ts'

/** While a file is being saved, it is looked at again this often. */
const lookAgainMs = 40
/** When a file has stayed invalid, empty or missing for this long, nobody is saving it any more. */
const settleMs = 400
/** For how long an edited file that keeps changing is read again and again. */
export const maxEditWaitMs = 1500

/** Calls `read` again while it throws a DataFileChanged, for at most this long. Then throws a DataFileUnusable: it is being saved. */
export async function readUntilWhole<T>(path: string, maxWaitMs: number, read: () => Promise<T>): Promise<T> {
  const deadline = clock.performanceNow() + maxWaitMs
  for (;;) {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof DataFileChanged)) throw error
    }
    if (clock.performanceNow() > deadline) throw DataFileUnusable.ofFile(path, 'is being written', true)
    await delay(lookAgainMs)
  }
}

/**
 * For a file that was `seen`, and cannot be used: an editor may have emptied it, and take its time to write the rest. Waits until it was
 * left alone for `settleMs`. Throws a DataFileChanged as soon as somebody writes to it, or replaces it. At a start, waits only if it was
 * written just now.
 */
export async function waitForSave(disk: Disk, path: string, seen: Identity, isStart: boolean): Promise<void> {
  const ageMs = clock.now() - Number((seen?.mtimeNs ?? 0n) / 1_000_000n)
  if (isStart && ageMs >= settleMs) return
  const start = clock.performanceNow()
  while (clock.performanceNow() - start < settleMs) {
    await delay(lookAgainMs)
    if (!isSame(disk.statIdentity(path), seen)) throw new DataFileChanged()
  }
}

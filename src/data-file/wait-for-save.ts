/** How long we wait for somebody who is saving the data file. */
import { clock, delay } from '../system/clock.ts'
import { DataFileChanged } from './data-file-errors.ts'
import { type Disk, type Identity, isSame } from './disk.ts'
import { tryAgainMs } from './try-again.ts'

/** When a file has stayed invalid, empty or missing for this long, nobody is saving it any more. */
const settleMs = 400

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
    await delay(tryAgainMs)
    if (!isSame(disk.statIdentity(path), seen)) throw new DataFileChanged()
  }
}

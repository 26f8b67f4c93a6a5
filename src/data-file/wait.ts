/** How long is waited: for a call that fails for a moment, and for somebody who is saving the data file. */
import { clock, delay } from '../system/clock.ts'
import { DataFileChanged } from './data-file-errors.ts'

/** What may be over in a moment is looked at again this often. */
const lookAgainMs = 40
/** When a file has stayed invalid, empty or missing for this long, nobody is saving it any more. */
const settleMs = 400

/** Makes the call, and again for at most so long while it fails in a way that `mayPass`. */
export async function tryAgain<T>(
  maxMs: number,
  mayPass: (error: unknown) => boolean,
  call: () => T | Promise<T>,
): Promise<T> {
  const deadline = clock.performanceNow() + maxMs
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!mayPass(error) || clock.performanceNow() > deadline) throw error
    }
    await delay(lookAgainMs)
  }
}

/**
 * For a file that cannot be used: an editor may have emptied it, and take its time to write the rest. Waits until it was left alone for
 * `settleMs`. Throws a DataFileChanged as soon as somebody writes to it, or replaces it.
 */
export async function waitForSave(isEdited: () => boolean): Promise<void> {
  const start = clock.performanceNow()
  while (clock.performanceNow() - start < settleMs) {
    await delay(lookAgainMs)
    if (isEdited()) throw new DataFileChanged()
  }
}

/** Whether somebody may still be writing a file that was last written then. */
export function wasJustWritten(mtimeNs: bigint): boolean {
  return clock.now() - Number(mtimeNs / 1_000_000n) < settleMs
}

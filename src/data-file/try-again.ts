/** Calls that fail for a moment, and are made again. */
import { clock, delay } from '../system/clock.ts'

/** What may be over in a moment is tried again so often. */
export const tryAgainMs = 40

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
    await delay(tryAgainMs)
  }
}

/** When to look for hand edits of the data file. (How soon a half-saved file is read again: wait-for-save.ts.) */
import { clock } from '../system/clock.ts'

const lookEveryMs = 500

/** Calls `look` at intervals, but not while it still runs. The timer does not keep the process alive. */
export function lookAtIntervals(look: () => Promise<void>): NodeJS.Timeout {
  let isLooking = false
  const lookOnce = async (): Promise<void> => {
    if (isLooking) return
    isLooking = true
    // A failure has been reported already; clients that add a pet get the error.
    await look().catch(() => {})
    isLooking = false
  }
  return clock.setInterval(lookOnce, lookEveryMs).unref()
}

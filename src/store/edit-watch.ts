/** Looks for hand edits of the data file, again and again. Does not keep the process alive. */
import { clock } from '../clock.ts'

/** How often it is looked whether the file was edited. */
const lookEveryMs = 500

/** Calls `look` at intervals, but not while it still runs. */
export function watchForEdits(look: () => Promise<void>): NodeJS.Timeout {
  let isLooking = false
  const lookOnce = async (): Promise<void> => {
    if (isLooking) return
    isLooking = true
    // A failure was told of already; clients that add a pet get the error.
    await look().catch(() => {})
    isLooking = false
  }
  return clock.setInterval(lookOnce, lookEveryMs).unref()
}

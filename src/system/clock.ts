/**
 * Node's own timers and clocks, taken when this module is loaded. A test that embeds the service may fake them
 * afterwards (`vi.useFakeTimers()`, Jest's fake timers, `mock.timers` of node:test), and its requests are still answered. The global ones
 * may be an environment's: that of Jest's jsdom has no setImmediate. So nothing else in `src` uses the global ones, but for the page's
 * script, which runs in a browser.
 */
import { performance } from 'node:perf_hooks'
import { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } from 'node:timers'

/** An object, so that a test of this project can replace its members. */
export const clock = {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  nextTick: process.nextTick,
  /** Milliseconds since 1970. */
  now: Date.now,
  /** Milliseconds since some moment; unlike `now`, never set back. */
  performanceNow: performance.now.bind(performance),
}

export const delay = (ms: number): Promise<void> =>
  new Promise((resolve) => void clock.setTimeout(resolve, ms))

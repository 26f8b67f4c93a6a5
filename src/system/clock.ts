/**
 * Node's own timers and clocks, taken when this module is loaded: a test may fake the global ones afterwards (`vi.useFakeTimers()`,
 * `mock.timers` of node:test), and those of Jest's jsdom lack some. So nothing else in `src`, but for the page's script, uses those.
 */
import { performance } from 'node:perf_hooks'
import { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } from 'node:timers'

/** An object, so that a test can replace its members. */
export const clock = {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  nextTick: process.nextTick,
  /** Milliseconds since 1970. */
  now: Date.now,
  /** In milliseconds; unlike `now`, never set back. */
  performanceNow: performance.now.bind(performance),
}

export const delay = (ms: number): Promise<void> =>
  new Promise((resolve) => void clock.setTimeout(resolve, ms))

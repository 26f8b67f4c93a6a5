/**
 * The timers and clocks, taken when this module is loaded: a test that embeds the service may fake the global ones afterwards
 * (`vi.useFakeTimers()`, `mock.timers` of node:test). So nothing else in `src`, but for the page's script, uses those.
 */
import { performance } from 'node:perf_hooks'

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

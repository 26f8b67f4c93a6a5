/**
 * Node's own timers and clocks, taken when this module is loaded: a test may fake the global timers afterwards
 * (`vi.useFakeTimers()`, `mock.timers` of node:test), and the globals of Jest's jsdom lack some of them. So
 * nothing else in `src`, but for the page's script, uses global timers.
 */
import { performance } from 'node:perf_hooks'
import timers from 'node:timers'

/**
 * Fake timers of Jest, Vitest and Sinon have their clock as a member
 * (https://github.com/sinonjs/fake-timers).
 */
const isFake = (timer: object): boolean => 'clock' in timer

/**
 * Sinon may have put its own timers into `node:timers` before this module was loaded: then they are looked up
 * there at each call, so that the service responds once the clock is restored, as a bare server does.
 */
const nodeTimers: typeof timers = isFake(timers.setTimeout) ? Object.create(timers) : { ...timers }

/** This is an object, so that a test can replace its members. */
export const clock = Object.assign(nodeTimers, {
  /**
   * Jest's `enableGlobally` replaces the nextTick of `process` before any module is loaded, and leaves
   * `node:timers` alone.
   */
  nextTick: isFake(process.nextTick)
    ? (call: () => void): void => void nodeTimers.setImmediate(call)
    : process.nextTick,
  /** Returns the milliseconds since 1970. */
  now: Date.now,
  /** Returns milliseconds that are, unlike those of `now`, never set back. */
  performanceNow: performance.now.bind(performance),
})

export const delay = (ms: number): Promise<void> =>
  new Promise((resolve) => void clock.setTimeout(resolve, ms))

const tryAgainMs = 40

/** Calls again for at most `maxMs`, as long as the error may pass by itself. Throws the last error. */
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

/** Holds calls back for a while, to show what slow responses do to a page. */

import { clock } from '../clock.ts'

/** Milliseconds, or a range of them. */
export type DelayMs = number | readonly [minimum: number, maximum: number]

export interface Delay {
  /** Makes the call after the delay. */
  hold(call: () => void): void
  /** Makes all calls that are held back, now. */
  end(): void
}

/** Of a range, each call is held back for a random time. */
export function createDelay(delayMs: DelayMs): Delay {
  const [minimum, maximum] = typeof delayMs === 'number' ? [delayMs, delayMs] : delayMs
  const held = new Map<NodeJS.Timeout, () => void>()
  return {
    hold(call) {
      const timer = clock.setTimeout(
        () => {
          held.delete(timer)
          call()
        },
        minimum + Math.random() * (maximum - minimum),
      )
      held.set(timer, call)
    },
    end() {
      for (const [timer, call] of held) {
        clock.clearTimeout(timer)
        call()
      }
      held.clear()
    },
  }
}

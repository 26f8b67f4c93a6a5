/** Holds calls back for a while, to show what slow responses do to a page. Knows timers, and nothing of requests. */

export interface Delay {
  /** Makes the call after the delay, or at once when the delay has been ended. */
  hold(call: () => void): void
  /** Makes all calls that are held back, now. */
  end(): void
}

/** Milliseconds, or the least and the most of them for a random time between. */
export function createDelay(delayMs: number | readonly [minimum: number, maximum: number]): Delay {
  const [minimum, maximum] = typeof delayMs === 'number' ? [delayMs, delayMs] : delayMs
  const held = new Map<NodeJS.Timeout, () => void>()
  let isEnded = false
  return {
    hold(call) {
      if (isEnded) {
        call()
        return
      }
      const timer = setTimeout(
        () => {
          held.delete(timer)
          call()
        },
        minimum + Math.random() * (maximum - minimum),
      )
      held.set(timer, call)
    },
    end() {
      isEnded = true
      for (const [timer, call] of held) {
        clearTimeout(timer)
        call()
      }
      held.clear()
    },
  }
}

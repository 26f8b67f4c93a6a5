/** Holds requests back for a while before they are handled, to show what slow responses do to a page. */
import { clock } from '../system/clock.ts'
import { type Arrival, clientGone } from './request.ts'

/** The longest delay that can be set. */
export const maxDelayMs = 10_000

/** Milliseconds, or a range of them. */
export type DelayMs = number | readonly [minimum: number, maximum: number]

/** Of a range, each request is held back for a random time. */
export function createDelay(delayMs: DelayMs) {
  const [minimum, maximum] = typeof delayMs === 'number' ? [delayMs, delayMs] : delayMs
  const held = new Set<() => void>()
  return {
    /** Resolves after the delay; rejects with clientGone when the client goes before. */
    hold(arrival: Arrival): Promise<void> {
      const { client } = arrival
      if (client.destroyed || client.readableEnded === true) return Promise.reject(clientGone)
      return new Promise((resolve, reject) => {
        const release = (): void => {
          held.delete(release)
          clock.clearTimeout(timer)
          arrival.onGone = undefined
          resolve()
        }
        const timer = clock.setTimeout(release, minimum + Math.random() * (maximum - minimum))
        held.add(release)
        arrival.onGone = () => {
          reject(clientGone)
          release()
        }
      })
    },
    /** Ends all delays now. */
    end(): void {
      for (const release of held) release()
    },
  }
}

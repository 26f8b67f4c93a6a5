/** Holds requests back for a while before they are handled, to show what slow responses do to a page. */
import type { ServerResponse } from 'node:http'
import { clock } from '../system/clock.ts'

/** The longest delay that can be set. */
export const maxDelayMs = 10_000

/** Milliseconds, or a range of them. */
export type DelayMs = number | readonly [minimum: number, maximum: number]

/** Of a range, each request is held back for a random time. */
export function createDelay(delayMs: DelayMs) {
  const [minimum, maximum] = typeof delayMs === 'number' ? [delayMs, delayMs] : delayMs
  const held = new Set<() => void>()
  return {
    /** Resolves after the delay. If the client goes before, never does: the connection is destroyed, and there is nothing to send. */
    hold({ req: { socket } }: ServerResponse): Promise<void> {
      return new Promise((resolve) => {
        const drop = (): void => void socket.destroy()
        const release = (): void => {
          held.delete(release)
          clock.clearTimeout(timer)
          socket.off('end', drop).off('close', release)
          if (!socket.destroyed) resolve()
        }
        const timer = clock.setTimeout(release, minimum + Math.random() * (maximum - minimum))
        held.add(release)
        socket.once('close', release)
        // Most often, the end of what a client sends is all that can be seen of a client that has gone.
        if (socket.readableEnded) drop()
        else socket.once('end', drop)
      })
    },
    /** Ends all delays now. */
    end(): void {
      for (const release of held) release()
    },
  }
}

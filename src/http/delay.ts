/** Holds responses back for a while, to show what slow ones do to a page. */
import type { ServerResponse } from 'node:http'
import { clock } from '../clock.ts'

/** The longest delay that can be set. */
export const maxDelayMs = 10_000

/** Milliseconds, or a range of them. */
export type DelayMs = number | readonly [minimum: number, maximum: number]

export interface Delay {
  /** Makes the call, which sends the response, after the delay. Drops it, and the connection, if the client goes before. */
  hold(call: () => void, response: ServerResponse): void
  /** Makes all calls that are held back, now. */
  end(): void
}

/** Of a range, each call is held back for a random time. */
export function createDelay(delayMs: DelayMs): Delay {
  const [minimum, maximum] = typeof delayMs === 'number' ? [delayMs, delayMs] : delayMs
  const held = new Set<() => void>()
  return {
    hold(call, { req: { socket } }) {
      const drop = (): void => void socket.destroy()
      const release = (): void => {
        forget()
        call()
      }
      const forget = (): void => {
        held.delete(release)
        clock.clearTimeout(timer)
        socket.off('end', drop).off('close', forget)
      }
      const timer = clock.setTimeout(release, minimum + Math.random() * (maximum - minimum))
      held.add(release)
      socket.once('close', forget)
      // Most often, the end of what a client sends is all that can be seen of a client that has gone.
      if (socket.readableEnded) drop()
      else socket.once('end', drop)
    },
    end() {
      for (const release of held) release()
    },
  }
}

/** The request log: what is told of each response, and how the program prints it. Never a key or a query. */
import { clock } from '../system/clock.ts'
import type { Arrival, Client } from './request.ts'
import type { Reply } from './response.ts'
import { findPath } from './router.ts'

/** A request and what came of it. Method and path are `-` for one that could not be parsed. */
export interface RequestLog {
  /** The address that the connection comes from, behind a proxy that of the proxy; `-` if the client has gone. */
  readonly client: string
  readonly method: string
  readonly path: string
  /** Of the response; 0 where the connection was closed without one. */
  readonly status: number
  /** Of an error response (interface section 7.1). */
  readonly code: string | undefined
  /** Sent by an open page of the service by itself, to show what has changed. */
  readonly isPoll: boolean
  /** The client went before the response could be sent: a pet that it added is stored all the same. */
  readonly isGone: boolean
  readonly milliseconds: number
}

/** `start`: by `clock.performanceNow()`. */
export function createRequestLog(
  { status, code }: Reply,
  start: number,
  { remoteAddress = '-', destroyed }: Client,
  arrival?: Arrival,
): RequestLog {
  const { method = '-', target = '-', headers } = arrival ?? {}
  return {
    client: remoteAddress,
    method,
    path: findPath(target),
    status,
    code,
    isPoll: headers?.['x-petstore-page'] === 'poll',
    isGone: destroyed,
    milliseconds: clock.performanceNow() - start,
  }
}

/** For onResponse: prints lines such as `127.0.0.1 GET /v1/pets 200 0.4 ms`, with code, `poll` and `gone` behind. */
export function printEntries(say: (line: string) => void): (entry: RequestLog) => void {
  return ({ client, method, path, status, code, isPoll, isGone, milliseconds: ms }) => {
    const notes = `${code === undefined ? '' : ` ${code}`}${isPoll ? ' poll' : ''}${isGone ? ' gone' : ''}`
    say(`${client} ${method} ${path} ${status} ${ms.toFixed(1)} ms${notes}`)
  }
}

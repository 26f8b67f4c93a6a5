/** The request log: what is told of each response, and how the program prints it. Never a key or a query. */
import { clock } from '../system/clock.ts'
import type { Arrival, Client } from './request.ts'
import type { ErrorCode, Reply } from './response.ts'
import { findPath } from './router.ts'

/**
 * A request that got its response, for a request log. The path has no query, since a client may put a secret there by
 * mistake. Method and path are `-` for a request that could not be parsed, and for a CONNECT.
 */
export interface RequestLog {
  /** The address that the connection comes from, behind a proxy that of the proxy; `-` if the client has gone. */
  readonly client: string
  readonly method: string
  readonly path: string
  /** The status code of the response. */
  readonly status: number
  /** Of an error response (interface section 7.1). */
  readonly code: ErrorCode | undefined
  /** Whether an open page of the service sent it by itself, to show what has changed. */
  readonly isPoll: boolean
  /** Whether the client went before the response could be sent: a pet that it added is stored all the same. */
  readonly isGone: boolean
  readonly milliseconds: number
}

/** The entry of a response. `start` is by `clock.performanceNow()`; the arrival is undefined where method and path are `-`. */
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

/**
 * For onResponse: prints each entry as a line, such as `127.0.0.1 GET /v1/pets 200 0.4 ms`. The error code, and the
 * words `poll` and `gone`, stand behind it.
 */
export function printEntries(say: (line: string) => void): (entry: RequestLog) => void {
  return ({ client, method, path, status, code, isPoll, isGone, milliseconds: ms }) => {
    const notes = `${code === undefined ? '' : ` ${code}`}${isPoll ? ' poll' : ''}${isGone ? ' gone' : ''}`
    say(`${client} ${method} ${path} ${status} ${ms.toFixed(1)} ms${notes}`)
  }
}

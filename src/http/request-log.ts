/** The request log: what is told of each response, and how the program prints it. Never a key or a query. */
import type { IncomingMessage } from 'node:http'
import { clock } from '../system/clock.ts'
import { findPath } from './router.ts'

/**
 * A request that got its response, for a request log. The path has no query, since a client may put a secret there by
 * mistake. Method and path are `-` for a request that could not be parsed, and for a CONNECT.
 */
export interface RequestLog {
  readonly method: string
  readonly path: string
  /** The status code of the response. */
  readonly status: number
  readonly milliseconds: number
}

/** The entry of a response. `start` is by `clock.performanceNow()`; the request is undefined where method and path are `-`. */
export function createRequestLog(status: number, start: number, request?: IncomingMessage): RequestLog {
  const { method = '-', url } = request ?? {}
  const path = url === undefined ? '-' : findPath(url)
  return { method, path, status, milliseconds: clock.performanceNow() - start }
}

/** For onResponse: prints each entry as a line, such as `GET /v1/pets 200 0.4 ms`. */
export function printEntries(say: (line: string) => void): (entry: RequestLog) => void {
  return ({ method, path, status, milliseconds: ms }) =>
    say(`${method} ${path} ${status} ${ms.toFixed(1)} ms`)
}

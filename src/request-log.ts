/** The request log: what is told of each response, and the line that the program prints. Never a key or a query. */
import type { IncomingMessage } from 'node:http'
import { findPath } from './http/router.ts'
import type { RequestLog } from './types.ts'

/** The entry of a response. `start` is by `performance.now()`; the request is undefined if it could not be parsed. */
export function createRequestLog(status: number, start: number, request?: IncomingMessage): RequestLog {
  const { method = '-', url } = request ?? {}
  const path = url === undefined ? '-' : findPath(url)
  return { method, path, status, milliseconds: performance.now() - start }
}

/** The entry as a line, such as `GET /v1/pets 200 0.4 ms`. */
export function formatRequestLog({ method, milliseconds, path, status }: RequestLog): string {
  return `${method} ${path} ${status} ${milliseconds.toFixed(1)} ms`
}

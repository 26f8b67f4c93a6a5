/**
 * The request log: what is told of each response. It has no key, and no part of a query that means nothing
 * here.
 */
import type { Int64 } from '../json/int64.ts'
import { clock } from '../system/clock.ts'
import type { Arrival, Client } from './request.ts'
import type { Reply } from './response.ts'
import { findPath } from './router.ts'

/** A request and what came of it. Method and path are `-` for one that could not be parsed. */
export interface RequestLog {
  /**
   * The address that the connection comes from, behind a proxy that of the proxy; `-` if the client has gone.
   */
  readonly client: string
  readonly method: string
  readonly path: string
  /**
   * What was given and valid of a list's parameters, such as `?limit=20&status=sold`; empty if nothing was.
   */
  readonly query: string
  /** The status of the response; 0 where the connection was closed without one. */
  readonly status: number
  /** The code of an error response (interface section 7.1). */
  readonly code: string | undefined
  /** The failure is one that somebody asked for: the setting for failures, `disturb` or the request. */
  readonly isOnPurpose: boolean
  /** The fingerprint of the key, if it was accepted: the first six hexadecimal digits of its SHA-256. */
  readonly key: string | undefined
  /** The id of the new pet, if the status is 201. */
  readonly id: Int64 | undefined
  /** Sent by an open page of the service by itself, to show what has changed. */
  readonly isPoll: boolean
  /** The client went before the response could be sent: a pet that it added is stored all the same. */
  readonly isGone: boolean
  readonly milliseconds: number
}

/** `start` is by `clock.performanceNow()`. */
export function createRequestLog(
  { status, code, isOnPurpose = false, id }: Reply,
  start: number,
  { remoteAddress = '-', destroyed }: Client,
  { query, key }: Pick<RequestLog, 'query' | 'key'>,
  arrival?: Arrival,
): RequestLog {
  const { method = '-', target = '-', headers } = arrival ?? {}
  return {
    client: remoteAddress,
    method,
    path: findPath(target),
    query,
    status,
    code,
    isOnPurpose,
    key,
    id,
    isPoll: headers?.['x-petstore-page'] === 'poll',
    isGone: destroyed,
    milliseconds: clock.performanceNow() - start,
  }
}

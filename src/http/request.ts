/**
 * A request as the doors hand it to the core, and what they ask of the core; and whether a request is
 * well-formed, where the door does not check that.
 */
import type { Readable } from 'node:stream'
import { RequestBody, type RequestWithBody } from './body.ts'
import { HttpError, type HttpErrorCode, type Reply } from './response.ts'

/** Who sent a request; a socket of `node:net` is one. */
export interface Client {
  readonly remoteAddress?: string | undefined
  /** The client has gone, and reads no response. */
  readonly destroyed: boolean
  /** The client sends nothing more: most often all that can be seen of one that has gone. */
  readonly readableEnded?: boolean
}

export interface Arrival extends RequestWithBody {
  readonly method: string
  /** As it was sent: `/v1/pets?limit=1`, or in absolute form. */
  readonly target: string
  /** The target with the path that an app mounts the service under, if it takes that off and says so. */
  readonly originalTarget?: unknown
  /** Undefined for `fetch`, which has none, and for HTTP/2, which has made sure of the framing. */
  readonly http1Version: string | undefined
  readonly client: Client
}

/** The service as the doors see it. */
export interface Core {
  /** Never rejects. */
  handle(arrival: Arrival): Promise<Reply>
  /** Logs what could not be parsed, and returns the reply to it. */
  handleUnparsed(code: HttpErrorCode, client: Client): Reply
  /** The reply to a request for which a stop no longer waits; `isWhole`: it has arrived in full. */
  giveUp(arrival: Arrival, isWhole: boolean): Reply
  /** Drops a request whose client has gone, if it is held back. Returns whether it was. */
  dropHeldBack(arrival: Arrival): boolean
  /** Tells onError that the reply could not be sent. */
  reportError(error: unknown, arrival: Arrival): void
  /** Ends the delays; new requests are refused. */
  beginClosing(): void
}

/** A request of `node:http`, or of the compatibility API of `node:http2`. */
interface Message extends Readable {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** Express, connect and their like set it. */
  readonly originalUrl?: unknown
  readonly headers: object
  readonly rawHeaders?: readonly string[]
}

export function createArrival(message: Message, http1Version: string | undefined, client: Client): Arrival {
  const { method = '', url: target = '', originalUrl: originalTarget, headers, rawHeaders = [] } = message
  return {
    method,
    target,
    originalTarget,
    http1Version,
    // Node gives no header but Set-Cookie as an array
    // (https://nodejs.org/docs/latest-v20.x/api/http.html#messageheaders).
    headers: headers as Arrival['headers'],
    isRepeated: (name) => countLines(rawHeaders, name) > 1,
    client,
    body: new RequestBody((body) => body.collect(message)),
  }
}

/** Counts the lines of a header. Most names have another length, which is faster to compare. */
function countLines(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] ?? ''
    if (each.length === name.length && each.toLowerCase() === name) count++
  }
  return count
}

/** Returns whether a method only asks (RFC 9110 section 9.2.1): any other may have changed something. */
export function isSafe(method: string): boolean {
  return ['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)
}

/** Throws unless Host (RFC 9112 section 3.2), coding, version and expectation are well-formed. */
export function checkFraming({ http1Version: version, headers, isRepeated }: Arrival): void {
  const { host, 'transfer-encoding': coding, expect } = headers
  if (isRepeated('host')) throw new HttpError('malformed_request', 'Host: is given more than once')
  if (host === undefined && version === '1.1') throw new HttpError('malformed_request', 'Host: is required')
  if (!/^[\w.~!$&'()*+,;=%:[\]-]*$/.test(host ?? ''))
    throw new HttpError('malformed_request', 'Host: expected a host and an optional port')
  if (version === undefined) return
  if (coding !== undefined && (version === '1.0' || coding.toLowerCase() !== 'chunked')) {
    const fault = 'Transfer-Encoding: expected "chunked" in an HTTP/1.1 request'
    // The reply closes the connection, since the end of the body is unknown (RFC 9112 section 6.1).
    throw new HttpError('malformed_request', fault, { closes: true })
  }
  if (version !== '1.1' && version !== '1.0')
    throw new HttpError('malformed_request', 'HTTP: expected version 1.0 or 1.1')
  // Node's own check lets every header pass that has `100-continue` in it, whatever else a client expects (RFC
  // 9110 section 10.1.1).
  if (expect !== undefined && version === '1.1' && expect.toLowerCase() !== '100-continue')
    throw new HttpError('expectation_failed', undefined, { closes: true })
}

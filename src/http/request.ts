/**
 * A request as the doors hand it to the core, and whether it is well-formed, where the door does not check
 * that.
 */
import type { Readable } from 'node:stream'
import { type BodyRequest, RequestBody } from './body.ts'
import { HttpError, type HttpErrorCode, type Reply } from './response.ts'

/** Who sent a request; a socket of `node:net` is one. */
export interface Client {
  readonly remoteAddress?: string | undefined
  /** The client has gone, and reads no response. */
  readonly destroyed: boolean
  /** The client sends nothing more: most often all that can be seen of one that has gone. */
  readonly readableEnded?: boolean
}

export interface Arrival extends BodyRequest {
  readonly method: string
  /** As it was sent: `/v1/pets?limit=1`, or in absolute form. */
  readonly target: string
  /** The target with the path that an app mounts the service under, if it takes that off and says so. */
  readonly originalTarget?: unknown
  /** Undefined for `fetch`, which has none, and for HTTP/2, which has made sure of the framing. */
  readonly version: string | undefined
  /** How many lines of the header there are. Of several, `headers` may have the first only. */
  readonly hostLines: number
  readonly authorizationLines: number
  readonly client: Client
}

/** The service as the doors see it. */
export interface Core {
  /** Never rejects. */
  handle(arrival: Arrival): Promise<Reply>
  /** The reply to what could not be parsed. */
  refuse(code: HttpErrorCode, client: Client): Reply
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

/** `version` is undefined for HTTP/2. */
export function createArrival(message: Message, version: string | undefined, client: Client): Arrival {
  const { method = '', url: target = '', originalUrl: originalTarget, headers, rawHeaders = [] } = message
  let hostLines = 0
  let authorizationLines = 0
  let contentTypeLines = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase()
    if (name === 'host') hostLines++
    else if (name === 'authorization') authorizationLines++
    else if (name === 'content-type') contentTypeLines++
  }
  return {
    method,
    target,
    originalTarget,
    version,
    // Node gives no header but Set-Cookie as an array
    // (https://nodejs.org/docs/latest-v20.x/api/http.html#messageheaders).
    headers: headers as Arrival['headers'],
    hostLines,
    authorizationLines,
    contentTypeLines,
    client,
    body: new RequestBody((body) => body.collect(message)),
  }
}

/** Returns whether a method only asks (RFC 9110 section 9.2.1): any other may have changed something. */
export function isSafe(method: string): boolean {
  return ['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)
}

/** Throws unless Host (RFC 9112 section 3.2), coding, version and expectation are well-formed. */
export function checkFraming({ version, headers, hostLines }: Arrival): void {
  const { host, 'transfer-encoding': coding, expect } = headers
  if (hostLines > 1) throw new HttpError('malformed_request', 'Host: is given more than once')
  if (host === undefined && version === '1.1') throw new HttpError('malformed_request', 'Host: is required')
  if (!/^[\w.~!$&'()*+,;=%:[\]-]*$/.test(host ?? ''))
    throw new HttpError('malformed_request', 'Host: expected a host and an optional port')
  if (version === undefined) return
  if (coding !== undefined && (version === '1.0' || coding.toLowerCase() !== 'chunked')) {
    const fault = 'Transfer-Encoding: expected "chunked" in an HTTP/1.1 request'
    // The reply closes the connection, since the end of the body is unknown (RFC 9112 section 6.1).
    throw new HttpError('malformed_request', fault, [], true)
  }
  if (version !== '1.1' && version !== '1.0')
    throw new HttpError('malformed_request', 'HTTP: expected version 1.0 or 1.1')
  // Node takes any list that has it for it (RFC 9110 section 10.1.1).
  if (expect !== undefined && version === '1.1' && expect.toLowerCase() !== '100-continue')
    throw new HttpError('expectation_failed', undefined, [], true)
}

/** Whether a request is well-formed, as far as Node does not check it. The same for every path. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError } from './error-codes.ts'
import type { Expectation } from './handler-types.ts'

/** Throws unless a request has one well-formed Host (RFC 9112 section 3.2), and a known coding, version and expectation. */
export function checkFraming(
  request: IncomingMessage,
  response: ServerResponse,
  expectation: Expectation,
): void {
  const { headers, httpVersion } = request
  const { host = '', 'transfer-encoding': coding } = headers
  const hosts = countLines(request, 'host')
  if (hosts > 1) throw new HttpError('malformed_request', 'Host: is given more than once')
  if (hosts === 0 && httpVersion !== '1.0') throw new HttpError('malformed_request', 'Host: is required')
  if (!/^[\w.~!$&'()*+,;=%:[\]-]*$/.test(host))
    throw new HttpError('malformed_request', 'Host: expected a host and an optional port')
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) {
    // The end of the body is unknown, so no request can follow it (RFC 9112 section 6.1).
    response.shouldKeepAlive = false
    throw new HttpError('malformed_request', 'Transfer-Encoding: expected "chunked" in an HTTP/1.1 request')
  }
  if (request.httpVersionMajor !== 1)
    throw new HttpError('malformed_request', 'HTTP: expected version 1.0 or 1.1')
  if (expectation === 'unknown') throw new HttpError('expectation_failed')
}

/** How often a request has the header. By hand: request.headersDistinct makes objects of all, and costs some 3 %. */
export function countLines({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) count++
  }
  return count
}

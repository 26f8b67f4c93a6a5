/** What makes a request well-formed beyond what Node checks: Host, codings, versions, expectations. Knows no paths. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError } from './http-error.ts'
import type { Expectation } from './listener.ts'

/** What Node leaves to us: one well-formed Host (RFC 9112 section 3.2), codings, versions and expectations we know. */
export function checkFraming(
  request: IncomingMessage,
  response: ServerResponse,
  expectation: Expectation,
): void {
  const hosts = countHeader(request, 'host')
  if (hosts > 1) throw new HttpError('malformed_request', 'Host: is given more than once')
  if (hosts === 0 && request.httpVersion !== '1.0')
    throw new HttpError('malformed_request', 'Host: is required')
  if (!/^[\w.~!$&'()*+,;=%:[\]-]*$/.test(request.headers.host ?? '')) {
    throw new HttpError('malformed_request', 'Host: expected a host, and a port if need be')
  }
  const { 'transfer-encoding': coding } = request.headers
  if (coding !== undefined && (request.httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) {
    // It may hide where the body ends, so that nothing can follow it (RFC 9112 section 6.1).
    response.shouldKeepAlive = false
    throw new HttpError('malformed_request', 'Transfer-Encoding: expected "chunked", and HTTP/1.1')
  }
  if (request.httpVersionMajor !== 1)
    throw new HttpError('malformed_request', 'HTTP: expected version 1.0 or 1.1')
  if (expectation === 'unknown') throw new HttpError('expectation_failed')
}

/** Two keys are as good as none: Node would silently take the first of them. */
export function findAuthorization(request: IncomingMessage): string | undefined {
  return countHeader(request, 'authorization') > 1 ? undefined : request.headers.authorization
}

/** `headersDistinct` knows this too, in 0.5 µs where this takes 0.1: 3 % of a request for a pet. */
function countHeader({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i]
    if (header !== undefined && header.length === name.length && header.toLowerCase() === name) count++
  }
  return count
}

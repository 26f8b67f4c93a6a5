/** What is checked of a request: whether it is well-formed, as far as Node does not check it; and its body, within the size limit, as JSON. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, JsonFault, parseJson, placeOf } from '../json/json.ts'
import { EmbeddingError } from '../system/errors.ts'
import type { Expectation, CollectedBody } from './handler-types.ts'
import { maxBodyBytes } from './limits.ts'
import { HttpError } from './response.ts'

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

const whatToSend =
  'send plain JSON with "Content-Type: application/json" (curl: -H \'Content-Type: application/json\')'

const lostQuotesHint =
  '; the shell may have taken the quotes away: put the body into a file, and send it with curl -d @pet.json'

const readBefore = 'the body was read before; mount the listener ahead of body parsers such as express.json()'

/** JSON is UTF-8 (RFC 8259 section 8.1): a client that names another charset has sent something else. Other parameters do not matter. */
const jsonType = /^application\/json\s*(?:;(?!\s*charset=)[^;]*)*(?:;\s*charset="?utf-?8"?\s*(?:;.*)?)?$/i

const tooLarge = `The body is larger than ${maxBodyBytes} bytes.`

/** Throws unsupported_media_type or content_too_large for a body that need not be sent. */
export function checkBodyHead({ headers }: IncomingMessage): void {
  const { 'content-type': type = 'application/json', 'content-encoding': encoding } = headers
  if (!jsonType.test(type)) {
    const fault = `Content-Type: expected application/json, got ${describe(type)}`
    throw new HttpError('unsupported_media_type', `${fault}; ${whatToSend}`)
  }
  if (encoding !== undefined) {
    const fault = `Content-Encoding: expected none, got ${describe(encoding)}`
    throw new HttpError('unsupported_media_type', `${fault}; ${whatToSend}`, ['Accept-Encoding', 'identity'])
  }
  if (Number(headers['content-length'] ?? 0) > maxBodyBytes)
    throw new HttpError('content_too_large', tooLarge)
}

/**
 * A client may send its body in chunks of one byte. Node makes a Buffer of some 400 bytes for each, and keeps all that arrive
 * in one read (10,000) until somebody reads them. So this takes each chunk as it is parsed, and copies it into one buffer.
 */
export function collectBody(request: IncomingMessage, response?: ServerResponse): CollectedBody {
  return new Promise((resolve) => {
    // An empty body that was read has ended, but gave no data.
    if (request.readableDidRead || request.readableEnded) throw new EmbeddingError(readBefore)
    let bytes = Buffer.alloc(0)
    let size = 0
    request.on('data', (chunk: Buffer) => {
      const start = size
      size += chunk.length
      // What still comes is read and dropped: a client that is cut off while it sends may never see the response.
      if (size > maxBodyBytes) return drop()
      if (size > bytes.length) bytes = Buffer.concat([bytes], Math.max(size, 2 * bytes.length))
      chunk.copy(bytes, start)
    })
    const drop = (): void => {
      bytes = Buffer.alloc(0)
      size = maxBodyBytes + 1
      resolve(undefined)
    }
    // A request that is refused for want of a key, say, may go on sending its body for as long as the request may take.
    response?.once('finish', drop)
    request.on('end', () => resolve(bytes.subarray(0, size)))
    // Until the first read, Node keeps what it has parsed, even if there is a 'data' listener.
    request.read(0)
  })
}

/**
 * Throws malformed_json, content_too_large, and an EmbeddingError if the body was read before. `body`: if it is collected already. Never
 * settles when the client goes away in the middle of its body: nobody waits for the response.
 */
export async function readJsonBody(request: IncomingMessage, body?: CollectedBody): Promise<unknown> {
  const bytes = await (body ?? collectBody(request))
  if (bytes === undefined) throw new HttpError('content_too_large', tooLarge)
  // RFC 8259 section 8.1: a byte order mark may be ignored.
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  const text = hasMark ? bytes.subarray(3) : bytes
  if (text.length === 0) throw new HttpError('malformed_json', 'body: is empty; expected a JSON object')
  if (!isUtf8(text)) throw new HttpError('malformed_json', 'body: is not UTF-8')
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error
    const { line, column } = placeOf(text, error.offset)
    // In `curl -d {"name":"Rex"}`, and in some shells of Windows, the shell takes the quotes away.
    const hint = /^\s*\{\s*\w/.test(text.toString()) ? lostQuotesHint : ''
    throw new HttpError('malformed_json', `body: line ${line}, column ${column}: ${error.message}${hint}`)
  }
}

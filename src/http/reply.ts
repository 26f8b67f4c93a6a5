/** A reply as a value, and the two ways to send it: on Node's response, and on a socket that has none. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import { clock } from '../system/clock.ts'
import { type ErrorCode, errorCodes, type HttpError } from './error-codes.ts'
import type { EndResponse } from './handler-types.ts'

export interface Reply {
  readonly status: number
  /** Names and values in turn, without Content-Type and Content-Length. */
  readonly headers: readonly string[]
  /** Absent for a 204, which has no content. A long one is bytes. */
  readonly body?: string | Buffer
  /** The body's Content-Length: counted once for a reply that is sent again and again. */
  readonly length?: string
  /** The body's media type; `application/json` unless given. */
  readonly type?: string
  /** Of an error, for the request log. */
  readonly code?: ErrorCode
}

/** A short text is cheaper to send as it is. From this length on it is converted to bytes, once however often it is sent. */
const minBytesLength = 4096

export function jsonReply(status: number, text: string, headers: readonly string[] = []): Reply {
  const body = text.length < minBytesLength ? text : Buffer.from(text)
  return { status, body, length: String(Buffer.byteLength(body)), headers }
}

/** The Error body of interface section 2; its `status` member repeats the response's status. */
export function errorReply({ code, message, headers }: HttpError): Reply {
  const { status } = errorCodes[code]
  return { ...jsonReply(status, JSON.stringify({ code, message, status }), headers), code }
}

/** Sends the reply, with the headers that every response has and `moreHeaders`: names and values in turn. */
export function sendReply(
  response: ServerResponse,
  reply: Reply,
  moreHeaders: readonly string[],
  endResponse: EndResponse = (it) => it.end(),
): void {
  const { status, body, length } = reply
  response.writeHead(status, listHeaders(reply, moreHeaders))
  if (body === undefined || response.req.method === 'HEAD') {
    response.end()
    return
  }
  // A text with as many bytes as characters is ASCII. Node writes that faster as Latin-1, and the bytes are the same. For a
  // body that is bytes, the encoding is ignored.
  const encoding = length === String(body.length) ? 'latin1' : 'utf8'
  // Node sends this in the next tick, or when the response ends.
  response.write(body, encoding)
  endResponse(response)
}

/** The reply as the text of an HTTP/1.1 message that closes its connection, for a request that has no response. */
export function formatReply(reply: Reply, moreHeaders: readonly string[]): string {
  const { status, body = '' } = reply
  const headers = listHeaders(reply, moreHeaders)
  headers.push('Date', new Date(clock.now()).toUTCString(), 'Connection', 'close')
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`
  return `${text}\r\n${body.toString()}`
}

function listHeaders(reply: Reply, moreHeaders: readonly string[]): string[] {
  const { body, length, type = 'application/json', headers } = reply
  const list = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff', ...moreHeaders, ...headers]
  // A 204 has neither (RFC 9110 section 8.6).
  if (body !== undefined && length !== undefined) list.push('Content-Type', type, 'Content-Length', length)
  return list
}

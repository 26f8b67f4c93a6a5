/** A reply as a value, and the two ways to send it: on Node's response, and on a socket that has none. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import { clock } from '../system/clock.ts'
import { type ErrorCode, errorCodes, type HttpError } from './error-codes.ts'
import type { Arrival } from './handler-types.ts'

export interface Reply {
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** Absent for a 204, which has no content. A long one is bytes. */
  readonly body?: string | Buffer
  /** How to write the body, if it is text. */
  readonly encoding?: 'latin1' | 'utf8'
  /** Of an error, for the request log. */
  readonly code?: ErrorCode
}

/** A short text is cheaper to send as it is. From this length on it is converted to bytes, once however often it is sent. */
const minBytesLength = 4096

/** A reply with this text as its body. `headers`: names and values in turn, without Content-Type and Content-Length. */
export function textReply(
  status: number,
  text: string,
  headers: readonly string[] = [],
  type = 'application/json',
): Reply {
  const body = text.length < minBytesLength ? text : Buffer.from(text)
  const length = Buffer.byteLength(body)
  return {
    status,
    headers: [...headers, 'Content-Type', type, 'Content-Length', String(length)],
    body,
    // A text with as many bytes as characters is ASCII. Node writes that faster as Latin-1, and the bytes are the same.
    encoding: length === body.length ? 'latin1' : 'utf8',
  }
}

/** The Error body of interface section 2; its `status` member repeats the response's status. */
export function errorReply({ code, message, headers }: Pick<HttpError, 'code'> & Partial<HttpError>): Reply {
  const { status, message: usualMessage } = errorCodes[code]
  const text = JSON.stringify({ code, message: message || usualMessage, status })
  return { ...textReply(status, text, headers), code }
}

/** Sends the reply, with the headers that every response has and `moreHeaders`: names and values in turn. */
export function sendReply(
  response: ServerResponse,
  { status, headers, body, encoding = 'utf8' }: Reply,
  moreHeaders: readonly string[],
  endResponse: Arrival['endResponse'] = (it) => it.end(),
): void {
  response.writeHead(status, [...commonHeaders, ...moreHeaders, ...headers])
  if (body === undefined || response.req.method === 'HEAD') {
    response.end()
    return
  }
  // Node sends this in the next tick, or when the response ends.
  response.write(body, encoding)
  endResponse(response)
}

/** The reply as the text of an HTTP/1.1 message that closes its connection, for a request that has no response. */
export function formatReply({ status, headers, body }: Reply, moreHeaders: readonly string[]): string {
  const closing = ['Date', new Date(clock.now()).toUTCString(), 'Connection', 'close']
  const list = [...commonHeaders, ...moreHeaders, ...headers, ...closing]
  const lines = list.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`))
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${String(body)}`
}

const commonHeaders = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']

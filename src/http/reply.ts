/** A reply as a value, and the two ways to send it: on Node's response, and on a socket that has none. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { HttpError } from './error-codes.ts'

export interface Reply {
  readonly status: number
  /** Names and values in turn, without those of `body`. */
  readonly headers: readonly string[]
  /** Absent for a 204, which has no content. A long one is bytes. */
  readonly body?: string | Buffer
  /** The body's Content-Length: counted once for a reply that is sent again and again. */
  readonly length?: string
  /** The body's media type; `application/json` unless given. */
  readonly type?: string
}

/** Node joins a text to the head each time it is sent. From this length on, bytes that are made once are faster. */
const minBytesLength = 4096

export function jsonReply(status: number, text: string, headers: readonly string[] = []): Reply {
  const body = text.length < minBytesLength ? text : Buffer.from(text)
  return { status, body, length: String(Buffer.byteLength(body)), headers }
}

/** A success in another media type than JSON. */
export function textReply(type: string, body: string, headers: readonly string[]): Reply {
  return { ...jsonReply(200, body, headers), type }
}

/** The Error body of interface section 2, whose status is that of the response. */
export function errorReply({ code, status, message, headers }: HttpError): Reply {
  return jsonReply(status, JSON.stringify({ code, message, status }), headers)
}

/** Sends the reply, with the headers that every response has and `moreHeaders`: names and values in turn. */
export function sendReply(response: ServerResponse, reply: Reply, moreHeaders: readonly string[]): void {
  const { status, body, length } = reply
  response.writeHead(status, listHeaders(reply, moreHeaders))
  if (body === undefined) {
    response.end()
    return
  }
  // Node holds head and body back until the next tick, and then hands them to the system in one piece. By then the other
  // requests of this turn of the event loop have been handled: handling them all and then sending all responses is faster
  // than changing from one to the other. An `end` in this tick would send at once.
  // ASCII is the same bytes in Latin-1, which Node writes faster.
  response.write(body, length === String(body.length) ? 'latin1' : 'utf8')
  process.nextTick(() => response.end())
}

/** The reply as the bytes of an HTTP/1.1 message that closes its connection, for a request that has no response. */
export function formatReply(reply: Reply, moreHeaders: readonly string[]): string {
  const { status, body = '' } = reply
  const headers = listHeaders(reply, moreHeaders)
  headers.push('Date', new Date().toUTCString(), 'Connection', 'close')
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

/** An answer as a value, and the two ways to send it: on Node's response, and on a socket that has none. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { HttpError } from './http-error.ts'

export interface Reply {
  readonly status: number
  /** Names and values in turn, without those of `body`. */
  readonly headers: readonly string[]
  /** Absent for a 204, which has no content. */
  readonly body?: string
  /** The body's bytes, as the Content-Length says it: counted once for an answer that is sent again and again. */
  readonly length?: string
  /** The body's media type; `application/json` unless given. */
  readonly type?: string
}

export function jsonReply(status: number, body: string, headers: readonly string[] = []): Reply {
  return { status, body, length: String(Buffer.byteLength(body)), headers }
}

/** A success in another media type than JSON. */
export function textReply(type: string, body: string, headers: readonly string[]): Reply {
  return { ...jsonReply(200, body, headers), type }
}

/** The Error body of interface section 2, whose status is the answer's. */
export function errorReply({ code, status, message, headers }: HttpError): Reply {
  return jsonReply(status, JSON.stringify({ code, message, status }), headers)
}

/** Sends the reply, with the headers that every answer has and those for the client's origin. */
export function sendReply(response: ServerResponse, reply: Reply, cors: readonly string[]): void {
  response.writeHead(reply.status, listHeaders(reply, cors))
  if (reply.body === undefined) {
    response.end()
  } else {
    // An end with a body sends an empty piece behind it, and gathers the two: 7 % of a list's time.
    // An ASCII text is the same bytes in Latin-1, which Node writes without a look at each.
    response.write(reply.body, reply.length === String(reply.body.length) ? 'latin1' : 'utf8')
    process.nextTick(end, response)
  }
}

function end(response: ServerResponse): void {
  response.end()
}

/** The reply as the bytes of an HTTP/1.1 message that closes its connection, for a request that has no response. */
export function formatReply(reply: Reply, cors: readonly string[]): string {
  const { status, body = '' } = reply
  const headers = listHeaders(reply, cors)
  headers.push('Date', new Date().toUTCString(), 'Connection', 'close')
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  return `${head}\r\n${body}`
}

function listHeaders(
  { length, type = 'application/json', headers }: Reply,
  cors: readonly string[],
): string[] {
  const list = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff', ...cors, ...headers]
  // A 204 has no Content-Length (RFC 9110 section 8.6).
  if (length !== undefined) list.push('Content-Type', type, 'Content-Length', length)
  return list
}

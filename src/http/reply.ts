/** An answer as a value, and the two ways to send it: on Node's response, and on a socket that has none. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { HttpError } from './http-error.ts'

export interface Reply {
  readonly status: number
  /** Names and values in turn, without those of `body`. */
  readonly headers: readonly string[]
  /** Absent for a 204, which has no content. */
  readonly body?: string
  /** The body's media type; `application/json` unless given. */
  readonly type?: string
}

export function jsonReply(status: number, body: string, headers: readonly string[] = []): Reply {
  return { status, body, headers }
}

/** The Error body of interface section 2, whose status is the answer's. */
export function errorReply({ code, status, message, headers }: HttpError): Reply {
  return jsonReply(status, JSON.stringify({ code, message, status }), headers)
}

/** Sends the reply, with the headers that every answer has. */
export function sendReply(response: ServerResponse, reply: Reply, common: readonly string[]): void {
  response.writeHead(reply.status, listHeaders(reply, common))
  response.end(reply.body)
}

/** The reply as the bytes of an HTTP/1.1 message that closes its connection, for a request that has no response. */
export function formatReply(reply: Reply, common: readonly string[]): string {
  const { status, body = '' } = reply
  const headers = listHeaders(reply, [...common, 'Date', new Date().toUTCString(), 'Connection', 'close'])
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  return `${head}\r\n${body}`
}

function listHeaders(
  { body, type = 'application/json', headers }: Reply,
  common: readonly string[],
): string[] {
  // A 204 has no Content-Length (RFC 9110 section 8.6).
  if (body === undefined) return [...common, ...headers]
  return ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(body)), ...common, ...headers]
}

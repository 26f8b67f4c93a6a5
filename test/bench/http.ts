/** Requests and responses, and how one request is sent and its response read. */
import { connect } from 'node:net'

/** A request as its bytes on the wire, and the status that the right response to it has. */
export interface HttpRequest {
  method: string
  target: string
  bytes: Buffer
  status: number
}

export interface HttpResponse {
  status: number
  /** `Name: value`, as sent. */
  headers: string[]
  body: string
}

/** A request with the headers of a plain client: Host, the key, and for a body its type and length. */
export function createRequest(
  method: string,
  target: string,
  options: { key?: string; body?: string; status?: number } = {},
): HttpRequest {
  const { key, body, status = 200 } = options
  let head = `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n`
  if (key !== undefined) head += `Authorization: Bearer ${key}\r\n`
  if (body !== undefined)
    head += `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  return { method, target, bytes: Buffer.from(`${head}\r\n${body ?? ''}`), status }
}

/** Sends one request over a connection of its own and reads the whole response. */
export async function ask(port: number, { bytes }: Pick<HttpRequest, 'bytes'>): Promise<HttpResponse> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.setTimeout(30_000, () => socket.destroy(new Error('no response for 30 s')))
  socket.write(bytes)
  let text = ''
  try {
    for await (const chunk of socket.setEncoding('latin1')) {
      text += chunk
      const headLength = text.indexOf('\r\n\r\n')
      if (headLength === -1) continue
      const [statusLine = '', ...headers] = text.slice(0, headLength).split('\r\n')
      const bodyLength = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, headLength))?.[1])
      const body = text.slice(headLength + 4)
      if (body.length < bodyLength) continue
      return {
        status: Number(statusLine.slice(9, 12)),
        headers,
        body: Buffer.from(body, 'latin1').toString(),
      }
    }
  } finally {
    socket.destroy()
  }
  throw new Error(`the connection ended without a whole response: ${JSON.stringify(text)}`)
}

/** The value of a header of a response, or undefined. */
export function headerOf(response: HttpResponse, name: string): string | undefined {
  const prefix = `${name.toLowerCase()}: `
  return response.headers.find((line) => line.toLowerCase().startsWith(prefix))?.slice(prefix.length)
}

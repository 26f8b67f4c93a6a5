/**
 * The doors for whatever mounts the service: a listener of Node's, and `fetch`. What a response says is for
 * the core.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { clock } from '../system/clock.ts'
import { EmbeddingError } from '../system/errors.ts'
import { bodyTooLarge, clientGone, readBefore, RequestBody } from './body.ts'
import { lingerMs, maxBodyBytes } from './limits.ts'
import { type Arrival, type Core, createArrival } from './request.ts'
import { pairHeaders, type Reply, unusableHead } from './response.ts'

/** RFC 9113 section 7 has this code. Loading node:http2 for its name would slow the start. */
const internalError = 2

/**
 * Serves `node:http`, and the compatibility API of `node:http2`. Resolves when it has responded: h3 waits for
 * that.
 */
export function createListener(core: Core) {
  return (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): Promise<void> => {
    // An app may have awaited something before it calls this, and the client may have gone meanwhile.
    const destroyed = 'stream' in request ? request.stream.destroyed : response.destroyed
    const client = { remoteAddress: request.socket?.remoteAddress, destroyed }
    const http1Version = 'stream' in request ? undefined : request.httpVersion
    const arrival = createArrival(request, http1Version, client)
    if (destroyed) arrival.body.stop(clientGone)
    response.once('close', () => {
      client.destroyed = true
      core.dropHeldBack(arrival)
    })
    const breakOff = (): void => {
      if ('stream' in request) request.stream.close(internalError)
      else response.destroy()
    }
    const drop = (): void => {
      const { socket } = response
      if ('stream' in request || client.destroyed) breakOff()
      else if (socket instanceof Socket) endUnusably(socket)
      // A response has no socket while another one is to be sent before it on the connection.
      else if (socket === null) endUnusablyInTurn(response as ServerResponse)
      // Fastify injects a request with another object in its place.
      else breakOff()
    }
    const respond = (reply: Reply): void => {
      try {
        if (reply.status === 0) drop()
        // The responses of HTTP/2 have the same methods, but no Connection.
        else
          sendReply(
            response as ServerResponse,
            http1Version === undefined ? { ...reply, closes: false } : reply,
          )
      } catch (error) {
        // An app around the service (Express, say) may have wrapped the response, so that sending it throws.
        core.reportError(error, arrival)
        breakOff()
      }
    }
    return core.handle(arrival).then(respond)
  }
}

/**
 * Reads on what the client sends: a reset would make it lose the unusable head, and a browser would send its
 * request again.
 */
function endUnusably(socket: Socket): void {
  socket.end(unusableHead).resume()
  socket.setTimeout(lingerMs, () => socket.destroy())
}

/**
 * Sends the unusable head through a response, behind the earlier ones of its connection. Node makes a line of
 * each length in the array.
 */
function endUnusablyInTurn(response: ServerResponse): void {
  response.setHeader('Content-Length', ['1', '2'])
  response.setHeader('Connection', 'close')
  response.writeHead(500, 'dropped').end()
}

/**
 * Sets one header after the other: wrappers of writeHead, such as that of on-headers 1.0, know no flat list.
 */
function sendReply(response: ServerResponse, { status, headers, body, closes }: Reply): void {
  for (const [name, value] of pairHeaders(headers)) response.setHeader(name, value)
  if (closes === true) response.setHeader('Connection', 'close')
  response.writeHead(status)
  response.end(body)
}

/**
 * Serves whatever speaks `Request` and `Response`. Rejects with the reason of a signal that is aborted,
 * though a pet may be stored then.
 */
export function createFetch(core: Core) {
  return (request: Request): Promise<Response> => {
    if (typeof (request as Request | undefined)?.url !== 'string')
      return Promise.reject(new TypeError('fetch: expected a Request; pass new Request(url, init)'))
    const { method, url } = request
    // The requests of some frameworks have no signal.
    const signal = request.signal as AbortSignal | null | undefined
    // A stream may fail without a reason.
    let bodyFault: { readonly cause: unknown } | undefined
    const noteFault = (cause: unknown): void => {
      bodyFault = { cause }
    }
    const arrival: Arrival = {
      method,
      // `new URL` would tidy the target. A fragment is never sent.
      target: url.replace(/^[^:]*:\/\/[^/?#]*/, '').replace(/#.*/s, '') || '/',
      http1Version: undefined,
      headers: Object.fromEntries(request.headers),
      isRepeated: () => false,
      client: {
        get destroyed() {
          return signal?.aborted === true
        },
      },
      body: new RequestBody((body) => readRequest(request, body, noteFault)),
    }
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        core.dropHeldBack(arrival)
        arrival.body.stop(clientGone)
        reject(signal?.reason)
      }
      if (signal?.aborted === true) return abort()
      signal?.addEventListener('abort', abort)
      const respond = (reply: Reply): void => {
        signal?.removeEventListener('abort', abort)
        if (reply.status === 0)
          reject(
            bodyFault === undefined
              ? new TypeError('the connection was closed without a response')
              : new TypeError('the body of the request could not be read', bodyFault),
          )
        else resolve(createResponse(reply))
      }
      core.handle(arrival).then(respond).catch(reject)
    })
  }
}

async function readRequest(
  request: Request,
  collected: RequestBody,
  onFault: (error: unknown) => void,
): Promise<Buffer> {
  const { body, bodyUsed } = request
  if (bodyUsed || body?.locked === true)
    throw new EmbeddingError(`${readBefore}; pass a clone of the request`)
  // There may be no body; that of node-fetch is a stream of Node's or a Buffer, and that of whatwg-fetch is
  // missing.
  if (body === null || typeof (body as Partial<typeof body> | undefined)?.getReader !== 'function')
    return readWhole(request)
  // Readable.fromWeb would take only the streams of Node itself.
  const reader = body.getReader()
  const stream = Readable.from(readChunks(reader, onFault))
  return collected.collect(stream).finally(() => {
    stream.destroy()
    // Node up to 24 throws where a stream is cancelled in the turn in which it ends
    // (https://github.com/nodejs/node/issues/54205).
    clock.setImmediate(() => reader.cancel().catch(() => {}))
  })
}

async function readWhole(request: Request): Promise<Buffer> {
  try {
    const bytes = Buffer.from(await request.arrayBuffer())
    if (bytes.length <= maxBodyBytes) return bytes
  } catch {
    throw new EmbeddingError('the body could not be read; pass a Request of Node, of undici or of a browser')
  }
  throw bodyTooLarge()
}

async function* readChunks(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  onFault: (error: unknown) => void,
) {
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) yield chunk.value
  } catch (error) {
    onFault(error)
    throw error
  }
}

/** Throws where a test runner has taken the global away. */
function createResponse({ status, headers, body }: Reply): Response {
  if (typeof Response !== 'function')
    throw new TypeError('fetch: there is no global Response here; in Jest, use the test environment "node"')
  return new Response(body ?? null, { status, headers: pairHeaders(headers) })
}

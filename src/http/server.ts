/**
 * Our own server: requests of a connection in their order, an Error body for what Node refuses, a stop that
 * waits for responses.
 */
import { once } from 'node:events'
import { createServer, ServerResponse, STATUS_CODES, type IncomingMessage } from 'node:http'
import { Server as TcpServer, type AddressInfo, type Socket } from 'node:net'
import { clock } from '../system/clock.ts'
import { toListenError, formatUrl, refuseBun } from './address.ts'
import { clientGone } from './body.ts'
import {
  completeTimeouts,
  backlog,
  lingerMs,
  maxArrivalsInTurn,
  maxBodyBytes,
  maxOpenExchanges,
  maxWaitingBodyBytes,
  nodeLimits,
  type SomeTimeouts,
} from './limits.ts'
import { createArrival, type Arrival, type Core } from './request.ts'
import { HttpError, type HttpErrorCode, pairHeaders, type Reply, unusableHead } from './response.ts'

type Exchange = { readonly socket: Socket; readonly arrival: Arrival; readonly response: ServerResponse }

/** Throws a ListenError on Bun. */
export function createHttpServer(someTimeouts: SomeTimeouts = {}) {
  refuseBun()
  const timeouts = completeTimeouts(someTimeouts)
  /** The first exchange of a connection is being handled, until its response is sent. */
  const connections = new Map<Socket, Exchange[]>()
  /** After a syntax error, Node fails on all later bytes, too. Only the first failure gets a response. */
  const refused = new WeakSet<Socket>()
  /** These are handled at the end of this turn. */
  const due: Exchange[] = []
  let arrivedInTurn = 0
  let core: Core | undefined
  /** While it is `holding`, requests wait: before `serve` and, at a stop, while what has arrived is read. */
  let state: 'holding' | 'open' | 'closing' = 'holding'

  // Node's own check of Host would respond with an empty body; the core makes that check.
  const server = createServer({ ...nodeLimits(timeouts), requireHostHeader: false })
  // By default, Node drops headers beyond a number, so that a second Host or Authorization could go unseen
  // (https://nodejs.org/docs/latest-v20.x/api/http.html#servermaxheaderscount). And a client may close its
  // half of the connection and wait for the responses (RFC 9112 section 9.6): Node closes the other half at
  // once, unless a property says otherwise that no document of Node's has (httpAllowHalfOpen in
  // https://github.com/nodejs/node/blob/main/lib/_http_server.js). Node keeps it, since others use it
  // (https://github.com/nodejs/node/pull/36819). Should it go, the tests of "a client that goes" in
  // test/connections.test.ts fail.
  Object.assign(server, { timeout: timeouts.idleMs, maxHeadersCount: 0, httpAllowHalfOpen: true })

  server.on('connection', (socket: Socket) => {
    connections.set(socket, [])
    const dropHeldBack = (): boolean => {
      const first = connections.get(socket)?.[0]
      return first !== undefined && core?.dropHeldBack(first.arrival) === true
    }
    socket.on('end', dropHeldBack).on('close', dropHeldBack)
    socket.on('close', () => connections.delete(socket))
    // Node resumes a connection whenever a body is read, and when a request has ended (readStart in
    // https://github.com/nodejs/node/blob/main/lib/_http_incoming.js).
    socket.on('resume', () => {
      if (!mayBeRead(socket)) socket.pause()
    })
    // After a CONNECT, Node neither reads the connection nor times it out
    // (https://nodejs.org/docs/latest-v20.x/api/http.html#event-connect_1), so this does. A request that is
    // held back is dropped, and its reply closes the connection.
    socket.on('timeout', () => {
      if (!dropHeldBack()) socket.destroy()
    })
    socket.on('error', () => {})
  })
  // Without a listener, Node destroys an idle connection before the listener above is called
  // (https://nodejs.org/docs/latest-v20.x/api/http.html#responsesettimeoutmsecs-callback).
  server.on('timeout', () => {})
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, takeRequest)
  server.on('connect', (request: IncomingMessage) => takeRequest(request, new ServerResponse(request)))
  server.on('connect', ({ socket }: IncomingMessage) => socket.resume())
  server.on('clientError', (error, socket: Socket) => respondToUnparsed(socket, toErrorCode(error)))

  /**
   * Requests are handled at the end of the turn of the event loop in which they arrive, and their bodies
   * collected as they arrive. Without the two, each request would take much more processor time.
   */
  function takeRequest(request: IncomingMessage, response: ServerResponse): void {
    const { socket, headers, httpVersion } = request
    const exchanges = connections.get(socket) ?? []
    arrivedInTurn++
    if (arrivedInTurn === 1) clock.setImmediate(endTurn)
    // A client may send a flood. Of the 64 KiB of one read, Node makes thousands of requests, which take 3 MB
    // and outlast this turn. So no connection is read until the turn ends.
    if (arrivedInTurn === maxArrivalsInTurn) {
      for (const each of connections.keys()) each.pause()
    }
    if (exchanges.length === maxOpenExchanges) return void socket.destroy()
    const arrival = createArrival(request, httpVersion, socket)
    const exchange = { socket, arrival, response }
    exchanges.push(exchange)
    if (exchanges.length === 1) due.push(exchange)
    response.on('close', () => {
      exchanges.shift()
      socket.resume()
      if (exchanges[0] !== undefined) void handle(exchanges[0])
      else if (state === 'closing') endConnection(socket)
    })
    if (headers.expect !== undefined && httpVersion === '1.1')
      arrival.askForBody = () => response.writeContinue()
    const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    if (!hasBody) return
    // After the last response, nobody waits for what still comes.
    if (!socket.writable) return void request.resume()
    arrival.body.read().catch(() => {})
    if (!mayBeRead(socket)) socket.pause()
  }

  function mayBeRead(socket: Socket): boolean {
    // Bodies that wait are collected, so a client must not be able to make them wait in numbers.
    const waiting = connections.get(socket)?.slice(1) ?? []
    let bytes = 0
    for (const { arrival } of waiting) bytes += countBodyBytes(arrival)
    if (bytes > maxWaitingBodyBytes && socket.writable) return false
    // A client may not read its responses. Its bytes would count as a sign of life.
    return arrivedInTurn < maxArrivalsInTurn && !socket.writableNeedDrain
  }

  function endTurn(): void {
    const isFlooded = arrivedInTurn >= maxArrivalsInTurn
    arrivedInTurn = 0
    if (isFlooded) {
      for (const each of connections.keys()) each.resume()
    }
    if (state === 'holding') return
    for (const exchange of due.splice(0)) void handle(exchange)
  }

  /**
   * The end of an exchange begins the next of its connection, so that requests take effect in their order.
   */
  async function handle({ socket, arrival, response }: Exchange): Promise<void> {
    if (!socket.writable) return
    try {
      const reply = await core?.handle(arrival)
      // Node may be in the middle of a read that has the rest of the request.
      if (!response.req.complete) await new Promise(clock.setImmediate)
      // There is no core: the store could not be opened, and the server is closing.
      if (reply === undefined) socket.destroy()
      // What follows half of a request may be its rest, or another request. So the connection ends.
      else if (reply.closes === true || endsConnection(arrival) || !response.req.complete)
        endConnection(socket, reply)
      else if (socket.writable) {
        // Node's type wants an array that may be changed, but Node does not change it.
        response.writeHead(reply.status, reply.headers as string[])
        if (reply.body !== undefined) response.write(reply.body)
        // All requests of this turn are handled before the first response is sent, which takes less time in
        // all.
        clock.nextTick(() => response.end())
      }
    } catch (error) {
      // Node throws for a header that it does not send, for example.
      core?.reportError(error, arrival)
      socket.destroy()
    }
    if (socket.writableNeedDrain) socket.pause().once('drain', () => socket.resume())
  }

  /** Responds to what Node refuses, after the responses to the requests before it. */
  function respondToUnparsed(socket: Socket, code: HttpErrorCode): void {
    if (refused.has(socket) || !socket.writable) return
    refused.add(socket)
    const last = connections.get(socket)?.at(-1)
    const sendRefusal = (): void => endConnection(socket, core?.handleUnparsed(code, socket))
    if (last === undefined) sendRefusal()
    // The last request is in its body, so the fault is in that.
    else if (!last.response.req.complete) last.arrival.body.stop(new HttpError(code))
    // The fault is in the head of the next request, and its refusal follows the last response. Node has a
    // listener for that moment, too, which closes if the client has closed its half (resOnFinish in
    // https://github.com/nodejs/node/blob/main/lib/_http_server.js). So this one has to come first.
    else last.response.prependOnceListener('finish', sendRefusal)
  }

  return {
    /**
     * Resolves to its URL. Rejects with a ListenError, or with the system's error where nobody knows what to
     * change.
     */
    async listen(port: number, host: string): Promise<string> {
      await once(server.listen({ port, host, backlog }), 'listening').catch((error: unknown) => {
        throw toListenError(error, port, host)
      })
      // Without a listener, a connection that could not be accepted (EMFILE) would end the process.
      server.on('error', () => {})
      // The server listens on a port, and not on a path.
      const { address, port: takenPort } = server.address() as AddressInfo
      return formatUrl(address, takenPort)
    },
    serve(by: Core): void {
      core = by
      state = 'open'
      endTurn()
    },
    /**
     * Fails the bodies of all requests, so that each that has not reached the store is dropped, with its
     * connection.
     */
    dropWaiting(): void {
      for (const { arrival } of [...connections.values()].flat()) arrival.body.stop(clientGone)
    },
    /**
     * Responds within closeMs to the first request of each connection, and closes. If nobody serves yet, it
     * closes at once.
     */
    async close(): Promise<void> {
      state = 'holding'
      const timer = clock.setTimeout(() => {
        for (const [socket, [current]] of connections) {
          if (socket.writable && current?.response.headersSent === false)
            endConnection(socket, core?.giveUp(current.arrival, current.response.req.complete))
          clock.setImmediate(() => socket.destroy())
        }
      }, timeouts.closeMs)
      const endMs = clock.performanceNow() + timeouts.closeMs / 2
      // A port that closes resets whoever has connected and was not let in yet. Node lets in one a turn, and
      // reads it a turn later; Linux holds one more than the backlog
      // (https://man7.org/linux/man-pages/man2/listen.2.html). So all of them are waited for first.
      for (let i = 0; i < backlog + 2 && clock.performanceNow() < endMs; i++)
        await new Promise(clock.setImmediate)
      // The close of node:http also closes connections that it takes for idle
      // (https://nodejs.org/docs/latest-v20.x/api/http.html#serverclosecallback): those with a request that
      // it has not read yet, and those whose response is still being sent. That of node:net only stops
      // listening.
      TcpServer.prototype.close.call(server)
      state = 'closing'
      endTurn()
      core?.beginClosing()
      const closed = once(server, 'close')
      for (const [socket, [first]] of connections) {
        if (first === undefined && socket.writable) socket.destroy()
      }
      // A client in this process learns of the end of its idle connection in the next turn. Before that, it
      // would send its first request to the next server on this port on the connection that has ended.
      await Promise.all([closed, new Promise(clock.setImmediate)])
      clock.clearTimeout(timer)
      // This ends Node's search for slow requests.
      server.close()
    },
  }
}

/**
 * Returns whether no other request can follow on this connection (RFC 9112 section 9.3): HTTP/1.1 keeps it
 * unless somebody says `close`, and HTTP/1.0 closes it unless somebody says `keep-alive`.
 */
function endsConnection({ http1Version, headers }: Arrival): boolean {
  const { connection = '' } = headers
  return http1Version === '1.1' ? closeOption.test(connection) : !keepAliveOption.test(connection)
}

const closeOption = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i
const keepAliveOption = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i

/**
 * Closes our half, and reads what the client still sends: a reset would make it lose its responses (RFC
 * 9112 section 9.6). The last reply is sent as a text: after a last response of its own, Node would cut off
 * the client.
 */
function endConnection(socket: Socket, last?: Reply): void {
  if (!socket.writable) return
  const timer = clock.setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.end(last ? formatReply(last) : '').once('close', () => clock.clearTimeout(timer))
  socket.resume()
}

/** Makes the text of the last response of an HTTP/1 connection. */
function formatReply({ status, headers, body = '' }: Reply): string {
  if (status === 0) return unusableHead
  const list = [...headers, 'Date', new Date(clock.now()).toUTCString(), 'Connection', 'close']
  const lines = pairHeaders(list).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n${lines.join('')}\r\n${body}`
}

/** Returns the most that a body may take in memory; more is dropped. */
function countBodyBytes({ headers }: Arrival): number {
  const { 'content-length': length, 'transfer-encoding': coding } = headers
  return coding === undefined ? Math.min(Number(length ?? 0), maxBodyBytes) : maxBodyBytes
}

/** These errors of Node's parser are not bad syntax. */
const parserCodes: Partial<Record<string, HttpErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'request_header_fields_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'content_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

function toErrorCode({ code = '' }: NodeJS.ErrnoException): HttpErrorCode {
  return parserCodes[code] ?? 'malformed_request'
}

/**
 * Node's HTTP server, with one Connection per socket. Takes turns between connections, and closes in a bounded time. How to respond is
 * for the handler to say.
 */
import { once } from 'node:events'
import { createServer, IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { clock } from '../system/clock.ts'
import { Connection } from './connection.ts'
import type { Expectation, Handler } from './handler-types.ts'
import { maxHeadBytes, defaultTimeouts, type Timeouts } from './limits.ts'

/** How many requests are handled in one turn of the event loop: usually, and in a rush (see runCalls). */
const maxCalls = { usual: 64, inRush: 4 }

export interface Listener {
  /** Rejects with the system's error, such as EADDRINUSE. */
  listen(port: number, host: string): Promise<AddressInfo>
  /**
   * Stops accepting, finishes what is in flight within closeMs, and refuses the rest. Is called once.
   *
   * In flight is at most one request of each connection. Those are with the handler when the call returns its promise, so the caller
   * may then tell the handler to refuse new ones. Requests that wait behind one in flight are refused or dropped.
   */
  close(): Promise<void>
}

export function createListener(handler: Handler, timeouts: Partial<Timeouts> = {}): Listener {
  const { headersMs, requestMs, idleMs, closeMs } = { ...defaultTimeouts, ...timeouts }
  const connections = new Map<Socket, Connection>()

  /**
   * Node parses all that it reads (up to 64 KiB, thousands of requests) in one go, and keeps a request and a response for each until the
   * connection closes. Hundreds of clients that send more than may wait would exhaust memory. But it parses nothing behind a request for a
   * tunnel, and makes no response to it: so that is what a request looks like that is to be dropped. (Node 26 parses to the end of what it
   * has read, but makes no responses either.)
   *
   * Test: "clients that send thousands of requests and read nothing exhaust no memory, and the others are served".
   */
  class DroppableRequest extends IncomingMessage {
    readonly #isDropped: boolean
    constructor(socket: Socket) {
      super(socket)
      this.#isDropped = connections.get(socket)?.isDropping === true
    }
    /** Node sets it, and asks for it when it knows the method. */
    get upgrade(): boolean {
      return this.#isDropped || this.method === 'CONNECT'
    }
    set upgrade(_isOffered: boolean) {
      // An offer to upgrade is ignored (RFC 9110 section 7.8).
    }
  }

  const server = createServer({
    IncomingMessage: DroppableRequest,
    // How often Node looks for slow requests: at least five times within the shorter limit, and at least every 2 s.
    connectionsCheckingInterval: Math.ceil(Math.min(2_000, headersMs / 5, requestMs / 5)),
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    maxHeaderSize: maxHeadBytes,
    // Node's own check responds with an empty body; that in request.ts does not.
    requireHostHeader: false,
  })
  // By default Node silently drops headers after the 2,000th; 0 means no limit.
  server.maxHeadersCount = 0
  server.timeout = idleMs
  // server.timeout covers idle connections too; keepAliveTimeout would add two timers per request.
  server.keepAliveTimeout = 0
  // A client may close its sending half and wait for the responses (RFC 9112 section 9.6). Node's types omit the option
  // for this. Test: "half gets the answer to the half that it sent".
  Object.assign(server, { httpAllowHalfOpen: true })

  const calls: (() => void)[] = []
  let hasNewClient = false

  /** Requests that arrive in the same turn of the event loop are handled one right after the other, which is faster. */
  function callSoon(call: () => void): void {
    if (calls.push(call) === 1) clock.setImmediate(runCalls)
  }

  /**
   * Handles some requests, then lets the event loop turn. Node accepts one new connection per turn: if hundreds of clients connect at once
   * and send requests, the last is accepted after hundreds of turns. So while clients connect and more requests wait than two turns
   * handle, turns are short. Otherwise they are not: 400 busy clients would lose a fifth of their throughput, and 64 beside clients that
   * connect for each request more than half.
   */
  function runCalls(): void {
    const isRush = hasNewClient && calls.length > 2 * maxCalls.usual
    const due = calls.splice(0, isRush ? maxCalls.inRush : maxCalls.usual)
    hasNewClient = false
    if (calls.length > 0) clock.setImmediate(runCalls)
    for (const call of due) call()
  }

  const passOn = (expectation: Expectation) => (request: IncomingMessage, response: ServerResponse) =>
    connections.get(request.socket)?.add(request, response, expectation)

  server.on('connection', (socket: Socket) => {
    hasNewClient = true
    connections.set(socket, new Connection(socket, handler, callSoon))
    socket.once('close', () => connections.delete(socket))
  })
  server.on('request', passOn('none'))
  server.on('checkContinue', passOn('continue'))
  server.on('checkExpectation', passOn('unknown'))
  server.on('connect', ({ socket }, rest) => {
    drop(socket, rest)
    connections.get(socket)?.refuseTunnel()
  })
  server.on('upgrade', ({ socket }, rest) => drop(socket, rest))
  server.on('clientError', (error, socket: Socket) => connections.get(socket)?.refuse(error))

  async function listen(port: number, host: string): Promise<AddressInfo> {
    // The backlog is how many connections the system holds ready while the service is busy.
    server.listen({ port, host, backlog: 1_024 })
    await once(server, 'listening')
    // From here on, an error is a connection that could not be accepted, for want of file descriptors.
    server.on('error', () => {})
    // It listens on a port, and so has an address that is neither null nor the path of a socket.
    return server.address() as AddressInfo
  }

  async function close(): Promise<void> {
    // Requests that wait for runCalls are in flight. Handle them now, before the caller tells the handler to refuse new ones.
    for (const call of calls.splice(0)) call()
    // Node would treat a connection whose response is still being sent as idle, and cut it off.
    // Test: "a long answer is sent to its end".
    server.closeIdleConnections = () => {}
    const ended = once(server, 'close')
    // This waits for connections that never sent a request, and for requests that never end.
    server.close()
    for (const connection of connections.values()) connection.closeSoon()
    const timer = clock.setTimeout(() => {
      for (const connection of connections.values()) connection.giveUp()
    }, closeMs)
    await ended
    clock.clearTimeout(timer)
  }

  return { listen, close }
}

/** A listener's address as a URL for a client on this machine: every address (`0.0.0.0`, `::`) is reached by loopback. */
export function formatUrl(address: string, port: number | string): string {
  const reachable = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/**
 * Node no longer looks after the connection of a tunnel: an error would end the process, and a client that closes or sends and reads
 * nothing any more would not be noticed. And if the connection was paused in the middle of what Node had just read, for the body of a request
 * that waits, Node would not read on: pushing nothing into the stream makes it do so. `rest` is what the client still sends.
 */
function drop(socket: Socket, rest: Duplex): void {
  socket.on('timeout', () => socket.destroy())
  socket.push('')
  rest.on('error', () => {}).resume()
}

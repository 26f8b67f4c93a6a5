/**
 * Node's HTTP server, which hands its events to one Connection a socket, holds them all to common limits, and closes in a
 * bounded time. Knows nothing of what is served.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Connection } from './connection.ts'
import type { Expectation, Handler } from './handler.ts'
import { defaultTimeouts, maxHeadBytes } from './limits.ts'
import type { Timeouts } from '../types.ts'

/** From this many waiting requests of the smallest size on, all connections together, every one is read in slices. */
const sliceFromWaiting = 5_000

/** At more of them than this, the connection with the most is cut off. */
const maxWaitingInAll = 20_000

export interface Listener {
  /** Rejects with the system's error, such as EADDRINUSE. */
  listen(port: number, host: string): Promise<AddressInfo>
  /** Stops accepting, finishes what is in flight within the limit, and cuts off the rest. Can be called again. */
  close(): Promise<void>
}

export function createListener(handler: Handler, timeouts: Partial<Timeouts> = {}): Listener {
  const { headersMs, requestMs, idleMs, closeMs } = { ...defaultTimeouts, ...timeouts }
  const server = createServer({
    connectionsCheckingInterval: Math.ceil(Math.min(2_000, headersMs / 5, requestMs / 5)),
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    maxHeaderSize: maxHeadBytes,
    insecureHTTPParser: false,
    // Node's own check responds with an empty body; the handler's does not.
    requireHostHeader: false,
  })
  // Node drops header lines beyond this number without a word; 16 KiB is limit enough.
  server.maxHeadersCount = 0
  server.timeout = idleMs
  // The timeout above ends an idle connection too. Node's own limit for that adds two timers to each request.
  server.keepAliveTimeout = 0
  // A client may close its sending half and wait for the responses (RFC 9112 section 9.6). Node's types lack its setting
  // for that. Test: "half gets the answer to the half that it sent".
  Object.assign(server, { httpAllowHalfOpen: true })

  const connections = new Map<Socket, Connection>()
  let waitingInAll = 0
  let calls: (() => void)[] = []
  let closed: Promise<void> | undefined

  /** Requests that arrive in the same tick are handled one right after the other, which is faster. */
  function callSoon(call: () => void): void {
    if (calls.push(call) === 1) setImmediate(runCalls)
  }

  function runCalls(): void {
    const due = calls
    calls = []
    for (const call of due) call()
  }

  /**
   * Hundreds of clients may each send thousands of requests and read no response. Node would parse all that they have sent
   * in one go, while nobody else is served and memory runs out.
   */
  function countWaiting(change: number): void {
    const before = waitingInAll
    waitingInAll += change
    if (before < sliceFromWaiting && waitingInAll >= sliceFromWaiting) {
      for (const connection of connections.values()) connection.readInSlices()
    }
    if (waitingInAll > maxWaitingInAll) findGreediest()?.cutOff()
  }

  function findGreediest(): Connection | undefined {
    let greediest: Connection | undefined
    for (const connection of connections.values()) {
      if (connection.waitingSize > (greediest?.waitingSize ?? 0)) greediest = connection
    }
    return greediest
  }

  const add = (expectation: Expectation) => (request: IncomingMessage, response: ServerResponse) =>
    connections.get(request.socket)?.add(request, response, expectation)

  server.on('connection', (socket: Socket) => {
    const connection = new Connection(socket, { handler, callSoon, countWaiting })
    connections.set(socket, connection)
    socket.once('close', () => connections.delete(socket))
    if (waitingInAll >= sliceFromWaiting) connection.readInSlices()
  })
  server.on('request', add('none'))
  server.on('checkContinue', add('continue'))
  server.on('checkExpectation', add('unknown'))
  server.on('connect', (_request, socket: Socket) => connections.get(socket)?.refuseTunnel())
  server.on('clientError', (error, socket: Socket) => connections.get(socket)?.refuse(error))

  async function close(): Promise<void> {
    // What has arrived is in flight: the handler is to get it before it refuses everything.
    runCalls()
    // Node would take for idle a connection whose response is still on its way, and cut it off.
    // Test: "a long answer is sent to its end".
    server.closeIdleConnections = () => {}
    const ended = new Promise<void>((resolve) => {
      server.close(() => resolve())
    })
    // server.close() waits for connections that never sent a request, and for requests that never end.
    for (const connection of connections.values()) connection.closeSoon()
    const cutOff = setTimeout(() => {
      for (const connection of connections.values()) connection.cutOff()
    }, closeMs)
    await ended
    clearTimeout(cutOff)
  }

  return {
    async listen(port, host) {
      await startListening(server, port, host)
      const address = server.address()
      if (address === null || typeof address === 'string') throw new Error('the server has no address')
      return address
    },
    close() {
      closed ??= close()
      return closed
    },
  }
}

function startListening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: 1024 }, () => {
      server.off('error', reject)
      // From here on, an error is a connection that could not be accepted, for want of file descriptors.
      server.on('error', () => {})
      resolve()
    })
  })
}

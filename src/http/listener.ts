/**
 * Node's HTTP server, made to take requests in turn, to answer in our voice where Node would answer by itself with an
 * empty body, and to close within a bound. Knows sockets and time limits, and nothing of what is served.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { ErrorCode } from './http-error.ts'

/** How a request's Expect header was understood (RFC 9110 section 10.1.1). */
export type Expectation = 'none' | 'continue' | 'unknown'

/** What answers, for each way that a request can come. */
export interface Handler {
  handle(request: IncomingMessage, response: ServerResponse, expectation?: Expectation): void
  /** Answers a request that could not be read to its end; the connection closes. */
  refuse(response: ServerResponse, code: ErrorCode): void
  /** The bytes of the answer to what is no readable request, or was meant for a proxy. */
  formatRefusal(code: ErrorCode): string
}

export interface Timeouts {
  /** For the request line and headers. */
  readonly headersMs: number
  /** For a whole request. */
  readonly requestMs: number
  /** How often both are looked after. */
  readonly checkEveryMs: number
  /** For a socket on which nothing moves: between two requests, or when a client does not read its answer. */
  readonly idleMs: number
  /** For what is in flight when the server closes. */
  readonly closeMs: number
}

export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  checkEveryMs: 2_000,
  // Longer than the 60 s for which proxies commonly keep a connection, so that they close first.
  idleMs: 75_000,
  closeMs: 5_000,
}

/** The request line and all headers together. */
const maxHeadBytes = 16_384

/** How long a client may go on sending behind its last answer. */
const lingerMs = 1_000

/** A connection is not read while so many requests wait on it; one read may already have brought some more. */
const maxWaitingRequests = 1_000

/** What Node's errors are to a client, where they are more than bad syntax. */
const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'request_header_fields_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'content_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** A client's connection, as far as one of its requests concerns the next. */
interface Connection {
  /** The newest response. Responses go out in order, so when it is done they all are. */
  newest: ServerResponse | undefined
  /** How many requests wait for the answers before them. */
  waiting: number
  /** Whether it is not read for now. */
  isHeld: boolean
  /** Whether it has sent what is no request. After the first such fault every further byte is one. */
  isFaulty: boolean
  /** What is refused behind the newest response. */
  fault: ErrorCode | undefined
}

export interface Listener {
  /** Rejects with the system's error, such as EADDRINUSE. */
  listen(port: number, host: string): Promise<AddressInfo>
  /** Stops accepting, finishes what is in flight within the limit, and cuts off the rest. Can be called again. */
  close(): Promise<void>
}

export function createListener(handler: Handler, limits: Partial<Timeouts> = {}): Listener {
  const { headersMs, requestMs, checkEveryMs, idleMs, closeMs } = { ...defaultTimeouts, ...limits }
  const server = createServer({
    connectionsCheckingInterval: checkEveryMs,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    maxHeaderSize: maxHeadBytes,
    insecureHTTPParser: false,
    // Node's own check answers with an empty body; the handler has one that does not.
    requireHostHeader: false,
  })
  // Node drops what is beyond this many header lines without a word; 16 KiB is limit enough.
  server.maxHeadersCount = 0
  server.timeout = idleMs
  // The timeout above also ends a connection between two requests; Node's own limit for that would add two timers to each.
  server.keepAliveTimeout = 0
  // A client may end its half and wait for the answers (RFC 9112 section 9.6); Node's types lack its setting for that.
  Object.assign(server, { httpAllowHalfOpen: true })

  const connections = new Map<Socket, Connection>()
  let closed: Promise<void> | undefined

  /** What is to be done in this turn of the event loop: the requests that one poll has brought are handled together. */
  let turn: (() => void)[] = []
  function runInTurn(run: () => void): void {
    if (turn.push(run) === 1) setImmediate(runTurn)
  }

  /** Also comes before whatever else happens to a connection: what has arrived on it must have begun, to be seen. */
  function runTurn(): void {
    const runs = turn
    turn = []
    for (const run of runs) run()
  }

  const arrive = (expectation: Expectation) => (request: IncomingMessage, response: ServerResponse) =>
    runInTurn(() => begin(request, response, expectation))

  /**
   * Node hands out a pipelined request while those before it are under way. They take effect in their order: a list
   * shows the creation before it (RFC 9112 section 9.3.2). Behind an answer that closes, nothing does (section 9.6).
   */
  function begin(request: IncomingMessage, response: ServerResponse, expectation: Expectation): void {
    const { socket } = request
    const connection = connections.get(socket)
    if (connection === undefined) return
    const before = connection.newest
    connection.newest = response
    if (closed !== undefined) response.once('close', () => socket.destroySoon())
    const handle = (): void => {
      // It may have been refused while it waited.
      if (socket.destroyed || before?.shouldKeepAlive === false || response.headersSent) return
      handler.handle(request, response, expectation)
      if (!socket.writableNeedDrain) return
      regulate(socket, connection)
      socket.once('drain', () => regulate(socket, connection))
    }
    if (before === undefined || before.writableFinished) {
      handle()
      return
    }
    connection.waiting++
    regulate(socket, connection)
    before.once('close', () => {
      connection.waiting--
      regulate(socket, connection)
      // One a turn: however many wait here, the other clients come in between.
      runInTurn(handle)
    })
  }

  /** Who does not read is not read from: a few bytes now and then are no sign of life. Nor is who is far ahead. */
  function regulate(socket: Socket, connection: Connection): void {
    const isHeld = connection.waiting >= maxWaitingRequests || socket.writableNeedDrain
    if (isHeld === connection.isHeld) return
    connection.isHeld = isHeld
    if (isHeld) socket.pause()
    else socket.resume()
  }

  server.on('request', arrive('none'))
  server.on('checkContinue', arrive('continue'))
  server.on('checkExpectation', arrive('unknown'))
  server.on('connection', (socket: Socket) => {
    connections.set(socket, {
      newest: undefined,
      waiting: 0,
      isHeld: false,
      isFaulty: false,
      fault: undefined,
    })
    socket.once('close', () => connections.delete(socket))
    // Node's own way to close behind a last answer, which would lose it to a client that is still sending.
    socket.destroySoon = () => endConnection(socket)
  })
  // No tunnels here (RFC 9110 section 9.3.6).
  server.on('connect', (_request, socket: Socket) => {
    runTurn()
    const connection = connections.get(socket)
    if (connection === undefined) return
    connection.fault = 'method_not_allowed'
    socket.on('error', () => socket.destroy())
    // Node no longer reads here; the client's end would go unseen.
    socket.resume()
    endWhenAnswered(socket)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    runTurn()
    const connection = connections.get(socket)
    if (connection === undefined || connection.isFaulty) return
    const code = codes[error.code ?? ''] ?? 'malformed_request'
    // What is late may have come in time, and lies unread.
    if (code === 'request_timeout' && connection.isHeld) return
    connection.isFaulty = true
    if (error.code === 'ECONNRESET') {
      socket.destroy()
      return
    }
    const response = connection.newest
    if (response === undefined || response.req.complete) {
      // The fault is behind what is still being answered.
      connection.fault = code
      endWhenAnswered(socket)
    } else if (response.headersSent) {
      // The fault is in the body of a request that has its answer: there is nothing more to say.
      endWhenAnswered(socket)
    } else {
      handler.refuse(response, code)
    }
  })

  /** Ends it when all requests so far have their answers, which go out first (RFC 9112 section 9.3.2). */
  function endWhenAnswered(socket: Socket): void {
    const response = connections.get(socket)?.newest
    if (response === undefined || response.writableFinished) endConnection(socket)
    else response.once('close', () => endConnection(socket))
  }

  /** Hangs up, with a refusal of what came last unless the answer before it closes (RFC 9112 section 9.6). */
  function endConnection(socket: Socket): void {
    if (!socket.writable) return
    const { newest, fault } = connections.get(socket) ?? {}
    const isRefused = fault !== undefined && newest?.shouldKeepAlive !== false
    hangUp(socket, isRefused ? handler.formatRefusal(fault) : '')
  }

  async function close(): Promise<void> {
    runTurn()
    // Node would take for idle a socket whose answer is still on its way.
    server.closeIdleConnections = () => {}
    const ended = new Promise<void>((resolve) => {
      server.close(() => resolve())
    })
    // server.close() waits for sockets that never sent a request, and for requests that never end.
    for (const [socket, { newest }] of connections) {
      if (newest !== undefined && !newest.writableFinished) newest.once('close', () => endConnection(socket))
      // What is hung up on closes by itself.
      else if (socket.writable) socket.destroy()
    }
    const cutOff = setTimeout(() => {
      for (const socket of connections.keys()) socket.destroy()
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

/**
 * Closes in stages (RFC 9112 section 9.6): no more is sent, what comes is read and dropped, and only then the socket goes.
 * A reset while the client sends would lose it the answer.
 */
function hangUp(socket: Socket, lastWords: string): void {
  socket.end(lastWords, () => {
    const cutOff = setTimeout(() => socket.destroy(), lingerMs).unref()
    socket.once('close', () => clearTimeout(cutOff))
  })
}

function startListening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: 1024 }, () => {
      server.off('error', reject)
      // From here on only accepting can fail, for want of file descriptors; the next connection may be lucky.
      server.on('error', () => {})
      resolve()
    })
  })
}

/**
 * Node's HTTP server, made to answer in our voice where Node would answer by itself with an empty body, and to close
 * within a bound. Knows sockets and time limits, and nothing of what is served.
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

export interface TimeLimits {
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

const defaultLimits: TimeLimits = {
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

/** A request whose head has been read. */
interface Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly expectation: Expectation
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
}

export interface Listener {
  /** Rejects with the system's error, such as EADDRINUSE. */
  listen(port: number, host: string): Promise<AddressInfo>
  /** Stops accepting, finishes what is in flight within the limit, and cuts off the rest. Can be called again. */
  close(): Promise<void>
}

export function createListener(handler: Handler, limits: Partial<TimeLimits> = {}): Listener {
  const { headersMs, requestMs, checkEveryMs, idleMs, closeMs } = { ...defaultLimits, ...limits }
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
  // Node's limit between requests would make two timers for each request: 4 % of its time.
  server.keepAliveTimeout = 0
  // A client may end its half and wait for the answers (RFC 9112 section 9.6); Node's types lack its setting for that.
  Object.assign(server, { httpAllowHalfOpen: true })

  const connections = new Map<Socket, Connection>()
  let closed: Promise<void> | undefined

  /** The requests of this turn of the event loop: handled one after the other, each takes 13 % less time. */
  let arrived: Arrival[] = []
  const arrive = (expectation: Expectation) => (request: IncomingMessage, response: ServerResponse) => {
    if (arrived.push({ request, response, expectation }) === 1) setImmediate(handleArrived)
  }

  /** Also comes before whatever else happens to a connection: what has arrived on it must have begun, to be seen. */
  function handleArrived(): void {
    const arrivals = arrived
    arrived = []
    for (const arrival of arrivals) begin(arrival)
  }

  /**
   * Node hands out a pipelined request while those before it are under way. They take effect in their order: a list
   * shows the creation before it (RFC 9112 section 9.3.2). Behind an answer that closes, nothing does (section 9.6).
   */
  function begin(arrival: Arrival): void {
    const { response } = arrival
    const { socket } = arrival.request
    const connection = connections.get(socket)
    if (connection === undefined) return
    const before = connection.newest
    connection.newest = response
    if (closed !== undefined) response.once('close', () => socket.destroySoon())
    if (before === undefined || before.writableFinished) {
      if (before?.shouldKeepAlive !== false) handle(arrival)
      return
    }
    connection.waiting++
    before.once('close', () => {
      connection.waiting--
      // It may have been refused while it waited.
      if (!socket.destroyed && before.shouldKeepAlive && !response.headersSent) handle(arrival)
      regulate(socket, connection)
    })
    regulate(socket, connection)
  }

  function handle({ request, response, expectation }: Arrival): void {
    handler.handle(request, response, expectation)
    const { socket } = request
    if (!socket.writableNeedDrain) return
    const connection = connections.get(socket)
    if (connection === undefined) return
    regulate(socket, connection)
    socket.once('drain', () => regulate(socket, connection))
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
    connections.set(socket, { newest: undefined, waiting: 0, isHeld: false, isFaulty: false })
    socket.once('close', () => connections.delete(socket))
    // Node's own way to close behind a last answer, which would lose it to a client that is still sending.
    socket.destroySoon = () => hangUp(socket)
  })
  // No tunnels here (RFC 9110 section 9.3.6).
  server.on('connect', (_request, socket: Socket) => {
    handleArrived()
    socket.on('error', () => socket.destroy())
    // Node no longer reads here; the client's end would go unseen.
    socket.resume()
    whenAnswered(socket, () => hangUp(socket, handler.formatRefusal('method_not_allowed')))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    handleArrived()
    const connection = connections.get(socket)
    if (connection === undefined || connection.isFaulty) return
    connection.isFaulty = true
    if (error.code === 'ECONNRESET') {
      socket.destroy()
      return
    }
    const code = codeOf(error)
    const response = connection.newest
    if (response?.writableEnded === true && !response.shouldKeepAlive) {
      // The last answer is out, or on its way; nothing follows it (RFC 9112 section 9.6).
      whenAnswered(socket, () => hangUp(socket))
    } else if (response === undefined || response.req.complete) {
      // The fault is behind what is still being answered.
      whenAnswered(socket, () => hangUp(socket, handler.formatRefusal(code)))
    } else if (response.headersSent) {
      // The fault is in the body of a request that has its answer: there is nothing more to say.
      whenAnswered(socket, () => hangUp(socket))
    } else {
      handler.refuse(response, code)
    }
  })

  /** Runs when all requests so far have their answers, which go out first (RFC 9112 section 9.3.2). */
  function whenAnswered(socket: Socket, run: () => void): void {
    const response = connections.get(socket)?.newest
    if (response === undefined || response.writableFinished) run()
    else response.once('close', run)
  }

  async function close(): Promise<void> {
    handleArrived()
    // Node would take for idle a socket whose answer is still on its way.
    server.closeIdleConnections = () => {}
    const ended = new Promise<void>((resolve) => {
      server.close(() => resolve())
    })
    // server.close() waits for sockets that never sent a request, and for requests that never end.
    for (const [socket, { newest }] of connections) {
      if (newest !== undefined && !newest.writableFinished) newest.once('close', () => hangUp(socket))
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
function hangUp(socket: Socket, lastWords = ''): void {
  if (!socket.writable) return
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

function codeOf(error: NodeJS.ErrnoException): ErrorCode {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return 'request_header_fields_too_large'
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 'content_too_large'
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'request_timeout'
    default:
      return 'malformed_request'
  }
}

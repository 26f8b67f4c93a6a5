/**
 * One client's connection. Its requests are handled one after the other, it is read no faster than they are answered, and
 * it closes so that the last response arrives. Knows Node's sockets and requests, and nothing of what is served.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Expectation, Handler } from './handler.ts'
import type { ErrorCode } from './error-codes.ts'

/** A connection is paused while this many small requests wait on it, or one large one. A read may bring more than that. */
const maxWaitingSize = 10

/** How much of a sliced connection is parsed at once: up to some fifty requests. */
const sliceBytes = 1_024

/** How long a client may go on sending after its last response. */
const lingerMs = 1_000

/** What Node's errors mean to a client, where they are not bad syntax. */
const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'request_header_fields_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'content_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** What a connection needs of its listener. */
export interface ConnectionContext {
  readonly handler: Handler
  /** Calls the function later, together with those of other connections. */
  callSoon(call: () => void): void
  /** Is told by how much more is waiting, or less, in the size of the smallest request. */
  countWaiting(change: number): void
}

interface WaitingRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly expectation: Expectation
  /** What it takes in memory, in the size of the smallest request: two thousand short headers take forty times as much. */
  readonly size: number
}

export class Connection {
  readonly #socket: Socket
  readonly #context: ConnectionContext
  /** Parsed, but not handled yet. */
  #waiting: WaitingRequest[] = []
  #waitingSize = 0
  /** The response to the request that was handled last. */
  #current: ServerResponse | undefined
  /** The response to the request that was parsed last. Responses go out in order: when this one is sent, all are. */
  #newest: ServerResponse | undefined
  #isSliced = false
  /** Whether the client has sent something that is not HTTP. Nothing after it can be parsed. */
  #isBroken = false
  /** What is sent after the newest response, before the connection closes. */
  #finalRefusal: ErrorCode | undefined

  constructor(socket: Socket, context: ConnectionContext) {
    this.#socket = socket
    this.#context = context
    socket.on('drain', () => this.#resumeIfFree())
    // Node resumes it too, for example after each request that it has parsed.
    socket.on('resume', () => this.#pauseIfBusy())
    socket.once('close', () => this.#dropWaiting())
    // Node calls this after a response with "Connection: close". Its own version resets the connection if the client is
    // still sending, and the client may then never see the response.
    // Test: "a body beyond the limit gets a 413 that arrives".
    socket.destroySoon = () => this.close()
  }

  get waitingSize(): number {
    return this.#waitingSize
  }

  /**
   * A client may send its next request before it reads the response to this one. Requests take effect in their order, so
   * that a list shows the pet that was created before it (RFC 9112 section 9.3.2).
   */
  add(request: IncomingMessage, response: ServerResponse, expectation: Expectation): void {
    if (!this.#socket.writable) return
    this.#newest = response
    const size = 1 + request.rawHeaders.length / 100
    this.#waiting.push({ request, response, expectation, size })
    this.#waitingSize += size
    this.#pauseIfBusy()
    if (this.#waiting.length === 1) this.#handleNextWhenFree()
    this.#context.countWaiting(size)
  }

  #handleNextWhenFree(): void {
    const { callSoon } = this.#context
    if (this.#current === undefined || this.#current.writableFinished) callSoon(this.#handleNext)
    else this.#current.once('close', () => callSoon(this.#handleNext))
  }

  readonly #handleNext = (): void => {
    const next = this.#waiting.shift()
    if (next === undefined) return
    this.#waitingSize -= next.size
    this.#context.countWaiting(-next.size)
    if (this.#current?.shouldKeepAlive === false) {
      // Nothing after a response that closes the connection is looked at (RFC 9112 section 9.6).
      this.#dropWaiting()
      return
    }
    const { request, response, expectation } = next
    this.#current = response
    // Node no longer parses what follows a request that asks to change the protocol.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    // It may have been refused while it waited.
    if (!response.headersSent) this.#context.handler.handle(request, response, expectation)
    if (this.#waiting.length > 0) this.#handleNextWhenFree()
    this.#pauseIfBusy()
    this.#resumeIfFree()
  }

  #dropWaiting(): void {
    const size = this.#waitingSize
    this.#waiting = []
    this.#waitingSize = 0
    this.#context.countWaiting(-size)
  }

  /** A client that does not read its responses, or has sent many requests ahead of them, is not read either. */
  get #isBusy(): boolean {
    return this.#waitingSize >= maxWaitingSize || this.#socket.writableNeedDrain
  }

  #pauseIfBusy(): void {
    if (this.#isBusy && !this.#socket.isPaused()) this.#socket.pause()
  }

  #resumeIfFree(): void {
    if (!this.#isBusy && this.#socket.isPaused()) this.#socket.resume()
  }

  /**
   * Node reads up to 64 KiB at once and makes requests of all of it before any other code runs: 2,500 of the smallest. From
   * now on this connection is parsed slice by slice, and no further while it is paused. That makes each read dearer, so
   * it is for times when clients have sent far too much.
   */
  readInSlices(): void {
    if (this.#isSliced) return
    this.#isSliced = true
    this.#replaceReader()
  }

  /** Node reads a socket by itself for as long as nobody else listens for its data, and then from the 'data' event. */
  #replaceReader(): void {
    const socket = this.#socket
    // What Node's own reader has paused, only that reader starts again: replaced now, the socket would never be read.
    // Test: "clients that send ahead of their responses are all answered, also past the limit for all of them".
    if (socket.isPaused()) {
      socket.once('resume', () => this.#replaceReader())
      return
    }
    // Node's types give listeners only as functions.
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[]
    if (parse === undefined) return
    socket.on('data', (bytes: Buffer) => {
      for (let start = 0; start < bytes.length && !this.#isBroken && socket.writable; start += sliceBytes) {
        // Node resumes the socket after each request that it has parsed.
        this.#pauseIfBusy()
        if (socket.isPaused()) {
          socket.unshift(bytes.subarray(start))
          return
        }
        parse(bytes.subarray(start, start + sliceBytes))
      }
    })
    socket.off('data', parse)
  }

  /** Answers what Node's parser or its time limits refuse, after the responses to the requests before it. */
  refuse(error: NodeJS.ErrnoException): void {
    // After one syntax error, all later bytes are errors too.
    if (this.#isBroken) return
    const code = codes[error.code ?? ''] ?? 'malformed_request'
    // A paused connection is not read: the rest of the request may have come in time.
    if (code === 'request_timeout' && this.#socket.isPaused()) return
    this.#isBroken = true
    if (error.code === 'ECONNRESET') {
      this.#socket.destroy()
      return
    }
    const response = this.#newest
    if (response === undefined || response.req.complete) this.closeWithRefusal(code)
    // The error is in the body of the newest request. It may have its response already; then there is nothing to add.
    else if (response.headersSent) this.#closeWhenAnswered()
    else this.#context.handler.refuse(response, code)
  }

  /** There are no tunnels here (RFC 9110 section 9.3.6), and Node no longer parses what follows the request for one. */
  refuseTunnel(): void {
    this.#isBroken = true
    this.#socket.on('error', () => this.#socket.destroy())
    this.closeWithRefusal('method_not_allowed')
    // Node has stopped reading, and it would not be noticed that the client closes.
    this.#socket.resume()
  }

  closeWithRefusal(code: ErrorCode): void {
    this.#finalRefusal = code
    this.#closeWhenAnswered()
  }

  /** Closes once the requests so far have their responses. An idle connection is closed at once. */
  closeSoon(): void {
    if (this.#newest !== undefined && !this.#newest.writableFinished) this.#closeWhenAnswered()
    else if (this.#socket.writable) this.#socket.destroy()
  }

  #closeWhenAnswered(): void {
    const response = this.#newest
    if (response === undefined || response.writableFinished) this.close()
    else response.once('close', () => this.close())
  }

  /**
   * Closes in stages (RFC 9112 section 9.6). A client may still be sending, and a reset would make it lose the response:
   * so the sending half is closed first, and what still comes is dropped for a while.
   */
  close(): void {
    const socket = this.#socket
    if (!socket.writable) return
    // After a response with "Connection: close" there must be no other.
    const code = this.#newest?.shouldKeepAlive === false ? undefined : this.#finalRefusal
    const refusal = code === undefined ? '' : this.#context.handler.formatRefusal(code)
    socket.end(refusal, () => {
      const cutOff = setTimeout(() => socket.destroy(), lingerMs).unref()
      socket.once('close', () => clearTimeout(cutOff))
    })
  }

  cutOff(): void {
    this.#socket.destroy()
    this.#dropWaiting()
  }
}

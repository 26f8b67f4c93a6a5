/**
 * One client's connection: its requests are handled one after the other, at most 32 of them wait, and it is closed in such a way that
 * the last response still arrives. What a response says is for the handler.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { clock } from '../system/clock.ts'
import type { Arrival, Expectation, Handler } from './handler-types.ts'
import { maxWaitingRequests, lingerMs } from './limits.ts'
import { collectBody } from './request.ts'
import type { ErrorCode } from './response.ts'

/** What Node's errors mean to a client, where they are not bad syntax. */
const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'request_header_fields_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'content_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}

/** Ends a response in the next tick, so that all requests of this turn are handled before the first response is sent, which is faster. */
function endInNextTick(response: ServerResponse): void {
  clock.nextTick(() => response.end())
}

/**
 * How a connection ends:
 *
 * | Method               | Called by                                  | What it does                                                         |
 * | -------------------- | ------------------------------------------ | -------------------------------------------------------------------- |
 * | `closeSoon`          | the listener, when it closes               | no request under way: destroys the socket; else `#closeWhenAnswered` |
 * | `#closeWhenAnswered` | `closeSoon`, `refuse`, `refuseTunnel`      | waits for the responses, then `#close`                               |
 * | `#close`             | `#closeWhenAnswered`; Node (`destroySoon`) | sends any final refusal, closes our half, waits up to 30 s           |
 * | `giveUp`             | the listener, at the end of closeMs        | refuses the request that is being handled, destroys the socket       |
 */
export class Connection {
  readonly #socket: Socket
  readonly #handler: Handler
  /** Calls the function later, together with those of other connections. */
  readonly #callSoon: (call: () => void) => void
  /** Parsed, but not handled yet. */
  #waiting: Arrival[] = []
  /**
   * The response to the request that was handled last. Kept until it is sent and the request has arrived in full, since the rest of
   * the body may be broken; and no longer, since an idle connection must not hold what it has answered.
   */
  #current: ServerResponse | undefined
  /** The next request is handled as soon as it comes: all responses are sent. */
  #isIdle = true
  /** After a syntax error, a timeout or a request for a tunnel, nothing that follows is answered. */
  #isRefused = false

  constructor(socket: Socket, handler: Handler, callSoon: (call: () => void) => void) {
    this.#socket = socket
    this.#handler = handler
    this.#callSoon = callSoon
    // Node calls this after a response with "Connection: close", and after the last response to a client that has closed its half. Its
    // own version resets the connection if the client is still sending, and the client may then never see the response.
    // Test: "more lists than may wait, from a client that goes on sending for 29 s".
    socket.destroySoon = () => this.#close()
    socket.on('drain', this.#updateReading)
    // Node resumes the socket by itself, for example after each request that it has parsed.
    socket.on('resume', this.#updateReading)
  }

  /** The last response is made or on its way, or the client has gone: what still comes is dropped (RFC 9112 section 9.6). */
  get isDropping(): boolean {
    return this.#isRefused || !this.#socket.writable || this.#lastResponse?.shouldKeepAlive === false
  }

  /**
   * Queues a request: a client may send its next one before it reads the response to this one. They take effect in their order, so
   * that a list shows the pet that was created before it (RFC 9112 section 9.3.2).
   */
  add(request: IncomingMessage, response: ServerResponse, expectation: Expectation): void {
    const body = hasBody(request) ? collectBody(request, response) : undefined
    const count = this.#waiting.push({ request, response, expectation, body, endResponse: endInNextTick })
    // After a request with an Upgrade header, Node may leave what follows unparsed.
    if (count === maxWaitingRequests || request.headers.upgrade !== undefined)
      response.shouldKeepAlive = false
    if (this.#isIdle) this.#handleNextSoon()
    this.#updateReading()
  }

  #handleNextSoon(): void {
    this.#isIdle = false
    this.#callSoon(this.#handleNext)
  }

  readonly #handleNext = (): void => {
    // The client has gone, or the last response had "Connection: close".
    if (!this.#socket.writable) this.#waiting = []
    const next = this.#waiting.shift()
    if (next !== undefined) this.#handle(next)
    this.#updateReading()
  }

  #handle(arrival: Arrival): void {
    const { request, response } = arrival
    this.#current = response
    const forget = (): void => {
      if (this.#current === response) this.#current = undefined
    }
    // Not 'finish', which does not come when the client goes.
    response.once('close', () => {
      if (request.complete) forget()
      else request.once('close', forget)
      if (this.#waiting.length > 0) this.#handleNextSoon()
      else this.#isIdle = true
    })
    // If its body was broken or too slow while it waited, refuse() below has responded to it already.
    if (!response.headersSent) void this.#handler.handle(arrival).then(this.#updateReading)
  }

  /**
   * A client is not read from while it does not read its responses, or is sending the body of a request that waits behind another. (If
   * it waits behind no other, it is handled in a moment, so its body may come.)
   */
  readonly #updateReading = (): void => {
    const socket = this.#socket
    // Of the requests that wait, only the last can be incomplete.
    const last = this.#waiting.at(-1)
    const isBehindAnother = this.#waiting.length > 1 || this.#current !== undefined
    const isBodyComing = isBehindAnother && last?.body !== undefined && !last.request.complete
    if (isBodyComing || socket.writableNeedDrain) socket.pause()
    else if (socket.isPaused()) socket.resume()
  }

  /**
   * The response to the request that was parsed last; undefined if it is sent, and the request has arrived in full. Responses
   * go out in order: when this one is sent, all are.
   */
  get #lastResponse(): ServerResponse | undefined {
    return this.#waiting.at(-1)?.response ?? this.#current
  }

  /** Responds to what Node's parser or its timeouts refuse, after the responses to the requests before it. */
  refuse(error: NodeJS.ErrnoException): void {
    // After one syntax error, all later bytes are errors too. And a client that has reset the connection reads nothing.
    if (this.#isRefused || !this.#socket.writable) return
    const code = codes[error.code ?? ''] ?? 'malformed_request'
    // While we have paused the connection, a timeout is not the client's fault: the rest of its request may lie unread in the system's
    // buffer. The price: Node reports each timeout once, so from now on this request may take as long as it likes. What is left is
    // Node's limit for a connection on which nothing moves (idleMs).
    if (code === 'request_timeout' && this.#socket.isPaused()) return
    this.#isRefused = true
    const response = this.#lastResponse
    if (response === undefined || response.req.complete) {
      // All requests that were parsed are complete. So the error is in the head of another one, for which Node has made no response.
      this.#closeWhenAnswered(code)
    } else if (response.headersSent) {
      // The error is in the body of the last request, which has its response already.
      this.#closeWhenAnswered()
    } else {
      // The error is in the body of the last request. This response to it closes the connection.
      this.#handler.refuse(response, code)
    }
  }

  /** There are no tunnels here (RFC 9110 section 9.3.6). */
  refuseTunnel(): void {
    this.#isRefused = true
    this.#closeWhenAnswered('method_not_allowed')
  }

  closeSoon(): void {
    // After a refusal it closes by itself.
    if (this.#isRefused) return
    if (this.#lastResponse !== undefined) return this.#closeWhenAnswered()
    // If it is not writable, it is closed, or it is closing and waits for the client.
    if (this.#socket.writable) this.#socket.destroy()
  }

  /**
   * Waits for the last response, then sends `refusal` and closes. But nothing may follow a response with "Connection: close" (RFC 9112
   * section 9.6); then `refusal` is left out.
   */
  #closeWhenAnswered(refusal?: ErrorCode): void {
    const response = this.#lastResponse
    if (response === undefined || response.writableFinished) return this.#close(refusal)
    // If the client has closed its half, Node's own listener for 'finish' calls destroySoon, which would close without the refusal. So this
    // listener has to come first.
    response.prependOnceListener('finish', () => this.#close(response.shouldKeepAlive ? refusal : undefined))
  }

  /**
   * A client may still be sending, and a reset would make it lose the responses that it has not read yet. So our sending half is closed
   * first, and what still comes is read and dropped until the client closes, for lingerMs at most (RFC 9112 section 9.6).
   */
  #close(refusal?: ErrorCode): void {
    const socket = this.#socket
    if (!socket.writable) return
    socket.end(refusal === undefined ? '' : this.#handler.formatRefusal(refusal, socket), () => {
      const timer = clock.setTimeout(() => socket.destroy(), lingerMs).unref()
      socket.once('close', () => clock.clearTimeout(timer))
    })
  }

  /** Refuses the request that is being handled, if it has no response yet. Ends when the refusal is on its way. */
  giveUp(): void {
    const response = this.#current
    if (response?.headersSent === false) this.#handler.refuse(response, 'shutting_down')
    clock.setImmediate(() => this.#socket.destroy())
  }
}

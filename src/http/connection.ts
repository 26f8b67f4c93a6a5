/**
 * One client's connection: its requests are handled one after the other, it is read no faster than they are answered, and
 * it is closed in such a way that the last response still arrives.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { clock } from '../system/clock.ts'
import type { ErrorCode } from './error-codes.ts'
import type { Arrival, Expectation, Handler } from './handler-types.ts'
import { collectBody } from './json-body.ts'
import { maxWaitingSize } from './limits.ts'
import { createSocketReading, type SocketReading } from './socket-reading.ts'
import { lingerMs } from './timeouts.ts'

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
  /** Is told when the size of what is waiting changes, and by how much. */
  countWaiting(sizeChange: number): void
}

/** How much memory a waiting request takes: 1 for the smallest, and 1 more for every 50 headers (see maxWaitingSize). */
function sizeOf({ rawHeaders }: IncomingMessage): number {
  const headerCount = rawHeaders.length / 2
  return 1 + headerCount / 50
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
 * | `#close`             | `#closeWhenAnswered`; Node (`destroySoon`) | sends any final refusal, closes our half, waits up to 1 s            |
 * | `giveUp`             | the listener, at the end of closeMs        | refuses the request that is being handled, then `cutOff`             |
 * | `cutOff`             | the listener: overload; `giveUp`           | destroys the connection, drops what is waiting                       |
 */
export class Connection {
  readonly reading: SocketReading
  readonly #socket: Socket
  readonly #context: ConnectionContext
  /** Parsed, but not handled yet. */
  #waiting: Arrival[] = []
  #waitingSize = 0
  /**
   * The response to the request that was handled last. Kept until it is sent and the request has arrived in full, since the rest of
   * the body may be broken; and no longer, since an idle connection must not hold what it has answered.
   */
  #current: ServerResponse | undefined
  /** The next request is handled as soon as it comes: all responses are sent. */
  #isIdle = true
  /** After a syntax error, a timeout or a request for a tunnel, nothing that follows is answered. */
  hasStoppedParsing = false

  constructor(socket: Socket, context: ConnectionContext) {
    this.#socket = socket
    this.#context = context
    this.reading = createSocketReading(socket, this)
    // Node calls this after a response with "Connection: close", and after the last response to a client that has closed its half. Its
    // own version resets the connection if the client is still sending, and the client may then never see the response.
    socket.destroySoon = () => this.#close()
  }

  get waitingSize(): number {
    return this.#waitingSize
  }

  /**
   * Queues a request: a client may send its next one before it reads the response to this one. They take effect in their order, so
   * that a list shows the pet that was created before it (RFC 9112 section 9.3.2).
   */
  add(request: IncomingMessage, response: ServerResponse, expectation: Expectation): void {
    // The client has gone, or the last response has been sent and the connection is closing.
    if (!this.#socket.writable) return
    const size = sizeOf(request)
    const body = hasBody(request) ? collectBody(request, response) : undefined
    this.#waiting.push({ request, response, expectation, body, endResponse: endInNextTick })
    this.#waitingSize += size
    this.reading.update()
    if (this.#isIdle) this.#handleNextSoon()
    // Comes last, since it may cut this connection off.
    this.#context.countWaiting(size)
  }

  #handleNextSoon(): void {
    this.#isIdle = false
    this.#context.callSoon(this.#handleNext)
  }

  readonly #handleNext = (): void => {
    const next = this.#waiting.shift()
    // The connection was cut off meanwhile.
    if (next === undefined) return
    const size = sizeOf(next.request)
    this.#waitingSize -= size
    this.#context.countWaiting(-size)
    // The client has gone, or the last response had "Connection: close": what follows is dropped (RFC 9112 section 9.6).
    if (!this.#socket.writable) this.#dropWaiting()
    else this.#handle(next)
    this.reading.update()
  }

  #handle(arrival: Arrival): void {
    const { request, response } = arrival
    this.#current = response
    // Not 'finish', which does not come when the client goes.
    response.once('close', () => this.#endExchange(response))
    // After a request with an Upgrade header, Node may leave what follows unparsed. So this response is the last on its connection.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    // If its body was broken or too slow while it waited, refuse() below has responded to it already.
    if (!response.headersSent) this.#context.handler.handle(arrival)
  }

  #endExchange(response: ServerResponse): void {
    const { req: request } = response
    const forget = (): void => {
      if (this.#current === response) this.#current = undefined
    }
    if (request.complete) forget()
    else request.once('close', forget)
    if (this.#waiting.length > 0) this.#handleNextSoon()
    else this.#isIdle = true
  }

  #dropWaiting(): void {
    const size = this.#waitingSize
    this.#waiting = []
    this.#waitingSize = 0
    this.#context.countWaiting(-size)
  }

  /**
   * A client is not read from while it does not read its responses, has sent many requests ahead of them, or is sending the body of a
   * request that waits behind another. (If it waits behind no other, it is handled in a moment, so its body may come.)
   */
  get mustPause(): boolean {
    // Of the requests that wait, only the last can be incomplete.
    const last = this.#waiting.at(-1)
    const isBehindAnother = this.#waiting.length > 1 || this.#current !== undefined
    const isBodyComing = isBehindAnother && last?.body !== undefined && !last.request.complete
    return isBodyComing || this.#waitingSize >= maxWaitingSize || this.#socket.writableNeedDrain
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
    if (this.hasStoppedParsing || !this.#socket.writable) return
    const code = codes[error.code ?? ''] ?? 'malformed_request'
    // While we have paused the connection, a timeout is not the client's fault: the rest of its request may lie unread in the system's
    // buffer. The price: Node reports each timeout once, so from now on this request may take as long as it likes. What is left is
    // Node's limit for a connection on which nothing moves (idleMs).
    if (code === 'request_timeout' && this.#socket.isPaused()) return
    this.hasStoppedParsing = true
    const response = this.#lastResponse
    if (response === undefined || response.req.complete) {
      // All requests that were parsed are complete. So the error is in the head of another one, for which Node has made no response.
      this.#closeWhenAnswered(code)
    } else if (response.headersSent) {
      // The error is in the body of the last request, which has its response already.
      this.#closeWhenAnswered()
    } else {
      // The error is in the body of the last request. This response to it closes the connection.
      this.#context.handler.refuse(response, code)
    }
  }

  /** There are no tunnels here (RFC 9110 section 9.3.6), and Node no longer parses what follows the request for one. */
  refuseTunnel(): void {
    this.hasStoppedParsing = true
    // Node no longer looks after the socket: an error would end the process, and a client that closes would not be noticed.
    this.#socket.on('error', () => {})
    this.#socket.resume()
    this.#closeWhenAnswered('method_not_allowed')
  }

  closeSoon(): void {
    // After a refusal it closes by itself.
    if (this.hasStoppedParsing) return
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
   * A client may still be sending, and a reset would make it lose the response. So our sending half is closed first, and
   * for a while `add` drops what still comes (RFC 9112 section 9.6).
   */
  #close(refusal?: ErrorCode): void {
    const socket = this.#socket
    if (!socket.writable) return
    socket.end(refusal === undefined ? '' : this.#context.handler.formatRefusal(refusal), () => {
      const timer = clock.setTimeout(() => socket.destroy(), lingerMs).unref()
      socket.once('close', () => clock.clearTimeout(timer))
    })
  }

  /** Refuses the request that is being handled, if it has no response yet. Cuts off the connection when the refusal is on its way. */
  giveUp(): void {
    const response = this.#current
    if (response?.headersSent === false) this.#context.handler.refuse(response, 'shutting_down')
    clock.setImmediate(() => this.cutOff())
  }

  cutOff(): void {
    this.#socket.destroy()
    this.#dropWaiting()
  }
}

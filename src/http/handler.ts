/** What the listener needs of the app: the response to each request, and to what is none. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorCode } from './error-codes.ts'

/** What a request's Expect header asks for (RFC 9110 section 10.1.1). */
export type Expectation = 'none' | 'continue' | 'unknown'

/** Ends a response, at once or in the next tick. Its head and body are written. */
export type EndResponse = (response: ServerResponse) => void

/** One method for each way that a request can arrive. */
export interface Handler {
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    expectation?: Expectation,
    endResponse?: EndResponse,
  ): void
  /** Responds to a request whose body could not be read to its end; the connection closes. */
  refuse(response: ServerResponse, code: ErrorCode): void
  /** The response, as the text to send, to what could not be parsed; the connection closes. */
  formatRefusal(code: ErrorCode): string
}

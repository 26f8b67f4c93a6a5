/** What the listener needs of the request handler: the response to each request, and to what is not a request. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorCode } from './response.ts'

/** What a request's Expect header asks for (RFC 9110 section 10.1.1). */
export type Expectation = 'none' | 'continue' | 'unknown'

/** The bytes of a body, or undefined as soon as there are more than `maxBodyBytes`. Never settles if the client goes away before. */
export type CollectedBody = Promise<Buffer | undefined>

/** A request as it arrives. One that comes through the app that mounts the service has only the first two. */
export interface Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** 'none' unless given. */
  readonly expectation?: Expectation
  /** The body, if it is collected already. */
  readonly body?: CollectedBody | undefined
  /** Ends the response when its head and body are written, at once or in the next tick. */
  readonly endResponse?: (response: ServerResponse) => void
}

/** One method for each way that a request can arrive. */
export interface Handler {
  /** Resolves when the response is written; never rejects. */
  handle(arrival: Arrival): Promise<void>
  /** Responds to a request whose body could not be read to its end, or that is in flight for too long; the connection closes. */
  refuse(response: ServerResponse, code: ErrorCode): void
  /** The response, as the text to send, to what could not be parsed or asks for a tunnel; tells onResponse of it. The connection closes. */
  formatRefusal(code: ErrorCode, socket: Socket): string
}

/** A reply as a value, for each door to send; and the errors of HTTP itself. */
import type { Int64 } from '../json/int64.ts'
import { maxHeadBytes } from './limits.ts'

/** Names and values in turn, as in `['Allow', 'GET']`. */
export type HeaderList = readonly string[]

export interface Reply {
  /** 0: nothing is to be sent that a client could take for a response. */
  readonly status: number
  readonly headers: HeaderList
  /** Absent where nothing follows the head. */
  readonly body?: string | undefined
  /** The code of an error, for the request log. */
  readonly code?: string | undefined
  /** For the request log: the failure is one that somebody asked for. */
  readonly isOnPurpose?: boolean
  /** For the request log: the id of what a 201 has created. */
  readonly id?: Int64
  /** Nothing that follows on its HTTP/1 connection is answered. */
  readonly closes?: boolean
  /** The request hangs: a door gets the reply only when the client has gone, or at a stop or a reset. */
  readonly hangs?: boolean
}

/** Adds Content-Type and Content-Length to `headers`. */
export function textReply(
  status: number,
  text: string,
  headers: HeaderList = [],
  type = 'application/json',
): Reply {
  const length = String(Buffer.byteLength(text))
  return { status, headers: [...headers, 'Content-Type', type, 'Content-Length', length], body: text }
}

export function pairHeaders(headers: HeaderList): [name: string, value: string][] {
  return headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1] ?? '']] : []))
}

/**
 * Browsers send a request again by themselves if its connection was used before and closes without a response
 * (RFC 9110 section 9.2.2), and some take a single byte for a response. So a request that is dropped gets a
 * head with two lengths, which every client has to refuse (RFC 9112 section 6.3).
 */
export const unusableHead = 'HTTP/1.1 dropped\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'

/**
 * One thing that is wrong with a request, and where: in a member of the body, a query parameter, or `body`
 * for all of it.
 */
export interface FieldError {
  readonly field: string
  readonly message: string
}

/** What a response with an Error body says. */
interface Refusal {
  /** A code of interface section 7.1. */
  readonly code: string
  readonly status: number
  readonly message: string
  /** An extension: what the message says, for programs. */
  readonly errors?: readonly FieldError[]
  readonly headers?: HeaderList
  readonly closes?: boolean
}

/** Makes the Error body of interface section 2, whose `status` member repeats the response's status. */
export function refusalReply({ code, message, status, errors, headers, closes = false }: Refusal): Reply {
  const text = JSON.stringify({ code, message, status, errors })
  return { ...textReply(status, text, headers), code, closes }
}

/**
 * These are the errors that need no store. Those that only a store or its health has stand in
 * api/refusals.ts.
 */
export const httpErrors = {
  malformed_request: { status: 400, message: 'The request is not well-formed HTTP.' },
  invalid_parameter: { status: 400, message: 'A query parameter is not valid.' },
  malformed_json: { status: 400, message: 'The body is not valid JSON.' },
  invalid_body: { status: 400, message: 'The body is not valid.' },
  unauthorized: { status: 401, message: 'Send your API key in a header: "Authorization: Bearer <API_KEY>".' },
  not_found: { status: 404, message: 'There is no such path.' },
  method_not_allowed: { status: 405, message: 'This resource does not take that method.' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  content_too_large: { status: 413, message: 'The body is too large.' },
  unsupported_media_type: {
    status: 415,
    message: 'Send the body as "Content-Type: application/json", without a Content-Encoding.',
  },
  expectation_failed: { status: 417, message: 'The only expectation that can be met is "100-continue".' },
  request_header_fields_too_large: {
    status: 431,
    message: `The request line and headers are larger than ${maxHeadBytes} bytes.`,
  },
  internal_error: { status: 500, message: 'Something went wrong in the service.' },
  failed_on_purpose: { status: 500, message: 'This failed on purpose, as this server was told to.' },
  not_implemented: { status: 501, message: 'This operation is not implemented.' },
  shutting_down: { status: 503, message: 'The service is shutting down.' },
} satisfies Record<string, { readonly status: number; readonly message: string }>

export type HttpErrorCode = keyof typeof httpErrors

/** An HttpError becomes a response with the Error body of interface section 2. */
export class HttpError extends Error implements Refusal {
  readonly code: HttpErrorCode
  readonly status: number
  readonly headers: HeaderList
  readonly closes: boolean

  constructor(
    code: HttpErrorCode,
    message: string = httpErrors[code].message,
    { headers = [], closes = false }: Pick<Refusal, 'headers' | 'closes'> = {},
  ) {
    super(message)
    this.code = code
    this.status = httpErrors[code].status
    this.headers = headers
    this.closes = closes
  }
}

/**
 * Names all that is wrong with the values of a request, in its message for people and in `errors` for
 * programs.
 */
export class InvalidValues extends HttpError {
  readonly errors: readonly FieldError[]

  constructor(code: 'invalid_body' | 'invalid_parameter', errors: readonly FieldError[]) {
    super(code, errors.map(({ field, message }) => `${field}: ${message}`).join('; '))
    this.errors = errors
  }
}

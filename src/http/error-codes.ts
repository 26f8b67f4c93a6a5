/** The error codes (interface section 7.1): each with its status, and the message for when there is nothing more to say. */
import { maxHeadBytes } from './limits.ts'

export const errorCodes = {
  malformed_request: { status: 400, message: 'The request is not well-formed HTTP.' },
  invalid_parameter: { status: 400, message: 'A query parameter is not valid.' },
  malformed_json: { status: 400, message: 'The body is not valid JSON.' },
  invalid_body: { status: 400, message: 'The body is not a valid pet.' },
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
  not_implemented: { status: 501, message: 'This operation is not implemented.' },
  data_file_invalid: { status: 503, message: 'The data file is not valid.' },
  storage_failed: { status: 503, message: 'The storage failed.' },
  shutting_down: { status: 503, message: 'The service is shutting down.' },
  insufficient_storage: { status: 507, message: 'There is no room left.' },
} satisfies Record<string, { readonly status: number; readonly message: string }>

export type ErrorCode = keyof typeof errorCodes

/** Becomes a response with the Error body of interface section 2. */
export class HttpError extends Error {
  readonly code: ErrorCode
  /** Names and values in turn. */
  readonly headers: readonly string[]

  /** Without a message, the client gets that of the code. */
  constructor(code: ErrorCode, message = '', headers: readonly string[] = []) {
    super(message)
    this.code = code
    this.headers = headers
  }
}

/** The one catalogue of errors: each code with its status and the message for when there is nothing more to say. */

export const catalogue = {
  malformed_request: [400, 'The request is not well-formed HTTP.'],
  invalid_parameter: [400, 'A query parameter is not valid.'],
  malformed_json: [400, 'The body is not valid JSON.'],
  invalid_body: [400, 'The body is not a valid pet.'],
  unauthorized: [401, 'Send your API key in a header of the form "Authorization: Bearer <API_KEY>".'],
  not_found: [404, 'The requested resource could not be found.'],
  method_not_allowed: [
    405,
    'This resource does not take that method; the Allow header names those it takes.',
  ],
  request_timeout: [408, 'The request did not arrive in time.'],
  content_too_large: [413, 'The body is larger than 65536 bytes.'],
  unsupported_media_type: [
    415,
    'Send the body as "Content-Type: application/json", without a Content-Encoding.',
  ],
  expectation_failed: [417, 'The only expectation that can be met is "100-continue".'],
  request_header_fields_too_large: [431, 'The request line and headers are larger than 16384 bytes.'],
  internal_error: [500, 'Something went wrong in the service.'],
  not_implemented: [501, 'This operation is not implemented.'],
  data_file_invalid: [503, 'The data file is not valid; pets can be listed, but not added.'],
  storage_failed: [503, 'The storage failed.'],
  shutting_down: [503, 'The service is shutting down.'],
  insufficient_storage: [507, 'There is no room left.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

/** The other message of unauthorized, for a request that has a key. */
export const wrongKeyMessage = 'The API key is not valid.'

export type ErrorCode = keyof typeof catalogue

/** A refusal: becomes a response with the Error body of interface section 2. */
export class HttpError extends Error {
  readonly code: ErrorCode
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]

  constructor(code: ErrorCode, message: string = catalogue[code][1], headers: readonly string[] = []) {
    super(message)
    this.code = code
    this.status = catalogue[code][0]
    this.headers = headers
  }
}

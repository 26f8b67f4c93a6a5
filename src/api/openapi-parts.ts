/** The parts that the descriptions of operations are made of (OpenAPI 3.1): parameters, headers, bodies and error responses. */
import { errorCodes, type ErrorCode } from '../http/error-codes.ts'
import { maxBodyBytes } from '../http/limits.ts'
import { notStored, perhapsStored, storageFailure } from '../store/store-refusals.ts'
import { ref } from './openapi-schemas.ts'

/** What this service adds to the interface. */
export const extension = { 'x-extension': true }

/** What is not on every response. */
export const optional = { required: false }

export const exampleFault = 'line 7, column 3: expected a pet after the comma, got "]"'

/** Example messages, where those of the error codes are not what clients get. */
const exampleMessages: Partial<Record<ErrorCode, string>> = {
  malformed_request: 'request target: "%zz" has an invalid percent escape: expected UTF-8, such as "%C3%A9"',
  malformed_json: 'body: is empty; expected a JSON object',
  invalid_body: 'name: is required; categoryId: expected an int64 integer, got "x"',
  content_too_large: `The body is larger than ${maxBodyBytes} bytes.`,
  not_found: 'There is no pet with the id "99".',
  data_file_invalid: `The data file is not valid (${exampleFault}); ${notStored}.`,
  storage_failed: storageFailure(false, notStored).message,
  insufficient_storage: storageFailure(true, notStored).message,
}

/** And when it is not known whether the pet was stored. */
const unknownOutcomes: Partial<Record<ErrorCode, string>> = {
  storage_failed: storageFailure(false, perhapsStored).message,
  insufficient_storage: storageFailure(true, perhapsStored).message,
}

export const unauthorized = errorResponse('The API key is missing or not valid.', ['unauthorized'], {
  'WWW-Authenticate': header(
    'The authentication scheme (RFC 6750), with `error="invalid_token"` if a key was sent but is not valid.',
    { example: 'Bearer realm="petstore"' },
  ),
})

/** The codes that any operation may give; the others are described where they can come. The cast: they are the table's own names. */
const otherCodes = (Object.keys(errorCodes) as ErrorCode[]).filter(
  (code) => ![400, 401, 404, 413, 415].includes(errorCodes[code].status) && code !== 'data_file_invalid',
)

export const otherError = errorResponse('Any other error.', otherCodes, {
  Allow: header('Sent with 405: the methods that the path supports.', optional),
})

export const sharedErrors = { 401: ref('Unauthorized', 'responses'), default: ref('OtherError', 'responses') }

export function queryParameter(name: string, description: string, schema: object, example: unknown): object {
  return { name, in: 'query', description, schema, example }
}

/** A header; it is text and always sent, unless `more` says otherwise. */
export function header(description: string, more: object = {}): object {
  return { description, required: true, schema: { type: 'string' }, ...more }
}

export function json(schema: object, examples: Readonly<Record<string, unknown>>): object {
  const values = Object.entries(examples).map(([name, value]) => [name, { value }])
  return { 'application/json': { schema, examples: Object.fromEntries(values) } }
}

/** An error response with any of these codes, and examples of each. `messages`: of its own. */
export function errorResponse(
  description: string,
  codes: readonly ErrorCode[],
  headers?: Record<string, object>,
  messages: Partial<Record<ErrorCode, string>> = {},
) {
  const examples: Record<string, object> = {}
  for (const code of codes) {
    const { status, message } = errorCodes[code]
    examples[code] = { code, message: messages[code] ?? exampleMessages[code] ?? message, status }
    const unknown = unknownOutcomes[code]
    if (unknown !== undefined) examples[`${code}_outcome_unknown`] = { code, message: unknown, status }
  }
  return { description, headers, content: json(ref('Error'), examples) }
}

/** The parts that the descriptions of operations are made of (OpenAPI 3.1): parameters, headers, bodies and error responses. */
import { errorCodes, type ErrorCode } from '../http/error-codes.ts'
import { maxBodyBytes } from '../http/limits.ts'
import { notStored, perhapsStored, storageFailure } from '../store/store-refusals.ts'
import { ref } from './openapi-schemas.ts'

export const exampleFault = 'line 7, column 3: expected a pet after the comma, got "]"'

/** Example messages, where those of the error codes are not what clients get. */
const exampleMessages: Partial<Record<ErrorCode, string>> = {
  malformed_request: 'request target: "%zz" has an invalid percent escape: expected UTF-8, such as "%C3%A9"',
  invalid_parameter: 'limit: expected an integer from 1 to 100, got "0"',
  malformed_json: 'body: is empty; expected a JSON object',
  invalid_body: 'name: is required; categoryId: expected an int64 integer, got "x"',
  content_too_large: `The body is larger than ${maxBodyBytes} bytes.`,
  not_found: 'There is no pet with the id "99".',
  data_file_invalid: `The data file is not valid (${exampleFault}); ${notStored}.`,
  storage_failed: storageFailure(false, perhapsStored).message,
  insufficient_storage: storageFailure(true, notStored).message,
}

export const unauthorized = errorResponse('The API key is missing or not valid.', ['unauthorized'], {
  'WWW-Authenticate': header(
    'The authentication scheme (RFC 6750), with `error="invalid_token"` if a key was sent but is not valid.',
    { required: true, example: 'Bearer realm="petstore"' },
  ),
})

/** The codes that any operation may give; the others are described where they can come. The cast: they are the table's own names. */
const otherCodes = (Object.keys(errorCodes) as ErrorCode[]).filter(
  (code) => ![400, 401, 404, 413, 415].includes(errorCodes[code].status) && code !== 'data_file_invalid',
)

export const otherError = errorResponse('Any other error.', otherCodes, {
  Allow: header('Sent with 405: the methods that the path supports.'),
})

export const sharedErrors = { 401: ref('Unauthorized', 'responses'), default: ref('OtherError', 'responses') }

export function parameter(name: string, text: string, schema: object, example: unknown, place = 'query') {
  return { name, in: place, description: text, required: place === 'path', schema, example }
}

/** A header; it is text and not always sent, unless `more` says otherwise. */
export function header(description: string, more: object = {}) {
  return { description, schema: { type: 'string' }, ...more }
}

/** Marks a parameter or a header as what this service adds to the interface. */
export function extension(part: { readonly description: string }): object {
  const description = `${part.description} An extension of this service.`
  return { ...part, description, 'x-extension': true }
}

export function json(schema: object, examples: Readonly<Record<string, unknown>>): object {
  const values = Object.entries(examples).map(([name, value]) => [name, { value }])
  return { 'application/json': { schema, examples: Object.fromEntries(values) } }
}

/** An error response with any of these codes, and an example of each. */
export function errorResponse(description: string, codes: readonly ErrorCode[], headers?: object) {
  const examples = codes.map((code) => {
    const { status, message } = errorCodes[code]
    return [code, { code, message: exampleMessages[code] ?? message, status }]
  })
  return { description, headers, content: json(ref('Error'), Object.fromEntries(examples)) }
}

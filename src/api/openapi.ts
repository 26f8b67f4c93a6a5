/**
 * The interface as an OpenAPI 3.1 document: the three operations under `/v1`, with the page sizes, names and error codes of the
 * code. The descriptions are for people; the page at `/` shows them, as other tools do.
 */
import { errorCodes, type ErrorCode } from '../http/error-codes.ts'
import { maxBodyBytes } from '../http/limits.ts'
import { idSchema, mia, newPet, ref, rex, schemas } from './openapi-schemas.ts'
import { deprecation, pageSizes, sunset } from './operations.ts'
import type { Pet } from '../pet/pet.ts'
import { notStored, perhapsStored, storageFailure } from '../store/store-refusals.ts'

/** The version of the interface (section 9), not of this package. */
const interfaceVersion = '1.0.0'

/** What this service adds to the interface. */
const extension = { 'x-extension': true }

/** What is not on every response. */
const optional = { required: false }

const exampleFault = 'line 7, column 3: expected a pet after the comma, got "]"'

const createdPet: Pet = { id: 13, ...newPet }

/** Example messages, where those of the error codes are not what clients get. */
const exampleMessages: Partial<Record<ErrorCode, string>> = {
  malformed_request: 'request target: "%zz" has an invalid percent escape: expected UTF-8, such as "%C3%A9"',
  invalid_parameter: `limit: expected an integer from ${pageSizes.minimum} to ${pageSizes.maximum}, got "0"`,
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

/** Of an operation, what is bound to certain values (interface section 9). None carries a stability marker now. */
interface OperationDescription {
  readonly [member: string]: unknown
  readonly 'x-stability'?: 'experimental' | 'beta'
}

/** The document of a service that is mounted under `basePath`, which is empty at the root of a server. */
export function openApiDocument(basePath: string): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Petstore',
      version: interfaceVersion,
      summary: 'Lists, adds and fetches the pets of a store.',
      description:
        'Clients send and receive JSON in UTF-8. Every operation requires an API key in the header ' +
        '`Authorization: Bearer <API_KEY>`.\n\n' +
        'Integers of format `int64` are in the range from -2^63 to 2^63-1. The service keeps all of them exactly, ' +
        'including those that a double-precision number would round (beyond 2^53).\n\n' +
        'Every error response has an `Error` body. Its message names all errors of the request together.',
      contact: { name: 'The operator of this service' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: `${basePath}/v1`, description: 'This server, relative to this document.' }],
    security: [{ apiKey: [] }],
    tags: [{ name: 'animals', description: 'The pets in the store; the interface also calls them animals.' }],
    'x-tagGroups': [
      { name: 'Store', tags: [] },
      { name: 'Pets', tags: ['animals'] },
    ],
    paths: {
      '/pets': { get: listPets(basePath), post: createPet(basePath) },
      '/pets/{petId}': { get: getPet() },
    },
    components: {
      schemas,
      responses: { Unauthorized: unauthorized, OtherError: otherError },
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'The API key as a bearer token (RFC 6750).' },
      },
    },
  }
}

function listPets(basePath: string): OperationDescription {
  const { minimum, maximum } = pageSizes
  const limitDescription = `The size of a page: plain decimal digits from ${minimum} to ${maximum}, without a sign or a leading zero.`
  const statusDescription = 'Lists only the pets with this status. Without it, all are listed.'
  const afterDescription =
    'Lists only pets with a higher id than this: `0` to start, or the id of the last pet of the previous page, as ' +
    'in the `Link` header of that page. An extension of this service.'
  const nextLink = `<${basePath}/v1/pets?limit=20&status=sold&after=37>; rel="next"`
  return {
    operationId: 'listPets',
    tags: ['animals'],
    summary: 'List animals',
    description:
      'Lists pets in ascending order of `id`, a page at a time: all of them, or those with one status. To get the ' +
      'next page, follow the `Link` header. Other query parameters are ignored; each parameter may be given only once.',
    parameters: [
      query('limit', limitDescription, { type: 'integer', ...pageSizes }, pageSizes.default),
      query('status', statusDescription, ref('PetStatus'), 'sold'),
      { ...query('after', afterDescription, { ...idSchema, minimum: 0 }, 37), ...extension },
    ],
    responses: {
      200: {
        description: 'The pets of this page; an empty array if there are none.',
        headers: {
          'X-Total-Count': header(
            'The number of pets on all pages, if known. An extension of this service.',
            { ...optional, schema: { type: 'integer', minimum: 0 }, example: 2, ...extension },
          ),
          Link: header(
            'The URL of the next page (RFC 8288); absent on the last page. An extension of this service.',
            { ...optional, example: nextLink, ...extension },
          ),
          'X-Data-File-Error': header(
            'Where or what the error in the data file is, after a hand edit that is not valid. While it is present, ' +
              'the last valid data is still served, and no pet can be added. An extension of this service.',
            { ...optional, example: exampleFault, ...extension },
          ),
        },
        content: json(ref('Pets'), { page: [mia], empty: [] }),
      },
      400: errorResponse(
        `A query parameter is given twice or is not valid: \`limit\` is not a plain decimal from ${minimum} to ` +
          `${maximum}, \`status\` is unknown or empty, or \`after\` is neither 0 nor an id. Or the request is not ` +
          'well-formed HTTP.',
        ['invalid_parameter', 'malformed_request'],
      ),
      ...sharedErrors,
    },
  }
}

function createPet(basePath: string): OperationDescription {
  return {
    operationId: 'createPet',
    tags: ['animals'],
    summary: 'Add an animal',
    description:
      'Puts a new pet into the store. The service chooses its `id`, and responds once the pet is stored durably. ' +
      'Unknown members of the body, such as `id`, are ignored and not stored.',
    requestBody: {
      description: `The pet to add, in at most ${maxBodyBytes} bytes, without a Content-Encoding.`,
      required: true,
      content: json(ref('NewPet'), { complete: newPet, shortest: { name: 'Rex', categoryId: 1 } }),
    },
    responses: {
      201: {
        description: 'The pet as it is now stored durably, with its `id`.',
        headers: {
          Location: header('The path of the new pet.', { example: `${basePath}/v1/pets/${createdPet.id}` }),
        },
        content: json(ref('Pet'), { added: createdPet }),
      },
      400: errorResponse(
        'The body is not a pet that can be added; the message names each member that is missing or wrong. Or the body ' +
          'is not JSON, or the request is not well-formed HTTP.',
        ['invalid_body', 'malformed_json', 'malformed_request'],
      ),
      413: errorResponse(`The body is larger than ${maxBodyBytes} bytes.`, ['content_too_large']),
      415: errorResponse(
        'The media type of the body is not `application/json`, or the body has a Content-Encoding.',
        ['unsupported_media_type'],
        {
          'Accept-Encoding': header('Sent if the body has a Content-Encoding: none is supported.', optional),
        },
      ),
      503: errorResponse(
        'The pet could not be added now. With the code `shutting_down`, or if the message says that nothing was ' +
          'stored, send the request again later. Otherwise the message says that it is not known whether the pet was ' +
          'stored: list the pets before you send the request again.',
        ['data_file_invalid', 'storage_failed', 'shutting_down'],
      ),
      507: errorResponse(
        'There is no room left for the pet, or no id is left. As with 503, the message says whether it is certain that ' +
          'nothing was stored.',
        ['insufficient_storage'],
      ),
      ...sharedErrors,
    },
  }
}

function getPet(): OperationDescription {
  const headers = {
    Deprecation: header('When the operation was deprecated (RFC 9745).', { schema: { const: deprecation } }),
    Sunset: header('When the operation is to be removed (RFC 8594).', { schema: { const: sunset } }),
  }
  // They stand on errors of the operation itself, such as a failing storage, but not on all others.
  const perhapsSent = {
    Deprecation: { ...headers.Deprecation, ...optional },
    Sunset: { ...headers.Sunset, ...optional },
  }
  return {
    operationId: 'getPet',
    tags: ['animals'],
    summary: 'Get an animal',
    description:
      'Fetches one pet. This operation is deprecated, and is to be removed on 5 December 2030; until then it works as described ' +
      'here. Move to `GET /pets` and its `status` filter.',
    deprecated: true,
    'x-sunset': new Date(sunset).toISOString().slice(0, 10),
    parameters: [
      {
        name: 'petId',
        in: 'path',
        description: 'The `id` of the pet, in plain decimal digits. Anything else is answered with 404.',
        required: true,
        schema: idSchema,
        example: rex.id,
      },
    ],
    responses: {
      200: { description: 'The pet with this `id`.', headers, content: json(ref('Pet'), { found: rex }) },
      400: errorResponse('The request is not well-formed HTTP.', ['malformed_request']),
      401: { ...unauthorized, headers: { ...unauthorized.headers, ...headers } },
      404: errorResponse('There is no pet with this `id`.', ['not_found'], headers),
      default: { ...otherError, headers: { ...otherError.headers, ...perhapsSent } },
    },
  }
}

const unauthorized = errorResponse('The API key is missing or not valid.', ['unauthorized'], {
  'WWW-Authenticate': header(
    'The authentication scheme (RFC 6750), with `error="invalid_token"` if a key was sent but is not valid.',
    { example: 'Bearer realm="petstore"' },
  ),
})

/** The codes that any operation may give; the others are described where they can come. The cast: they are the table's own names. */
const otherCodes = (Object.keys(errorCodes) as ErrorCode[]).filter(
  (code) => ![400, 401, 404, 413, 415].includes(errorCodes[code].status) && code !== 'data_file_invalid',
)

const otherError = errorResponse('Any other error.', otherCodes, {
  Allow: header('Sent with 405: the methods that the path supports.', optional),
})

const sharedErrors = { 401: ref('Unauthorized', 'responses'), default: ref('OtherError', 'responses') }

function query(name: string, description: string, schema: object, example: unknown): object {
  return { name, in: 'query', description, schema, example }
}

/** A header; it is text and always sent, unless `more` says otherwise. */
function header(description: string, more: object = {}): object {
  return { description, required: true, schema: { type: 'string' }, ...more }
}

function json(schema: object, examples: Readonly<Record<string, unknown>>): object {
  const values = Object.entries(examples).map(([name, value]) => [name, { value }])
  return { 'application/json': { schema, examples: Object.fromEntries(values) } }
}

/** An error response with any of these codes, and examples of each. */
function errorResponse(description: string, codes: readonly ErrorCode[], headers?: Record<string, object>) {
  const examples: Record<string, object> = {}
  for (const code of codes) {
    const { status, message } = errorCodes[code]
    examples[code] = { code, message: exampleMessages[code] ?? message, status }
    const unknown = unknownOutcomes[code]
    if (unknown !== undefined) examples[`${code}_outcome_unknown`] = { code, message: unknown, status }
  }
  return { description, headers, content: json(ref('Error'), examples) }
}

/**
 * The interface as an OpenAPI 3.1 document, from the same limits, names and catalogue as the code. It describes the
 * three operations under `/v1`, in words for a person: the page at `/` shows these, and so do other tools.
 */
import { catalogue, type ErrorCode } from './http/http-error.ts'
import { maxBodyBytes } from './http/json-body.ts'
import { deprecation, limits, sunset } from './operations.ts'
import { defaultStatus, petStatuses } from './pets/pet-status.ts'
import type { NewPet, Pet } from './types.ts'

/** The version of the interface (section 9), not of this package. */
const interfaceVersion = '1.0.0'

/** Marks what this service adds where the interface is silent. */
const extension = { 'x-extension': true }

const rex: Pet = { id: 1, name: 'Rex', categoryId: 1, status: 'available' }
const mia: Pet = { id: 2, name: 'Mia', categoryId: 2, status: 'sold' }
const newPet: NewPet = { name: 'Pip', categoryId: 3, status: 'pending' }
const createdPet: Pet = { id: 13, ...newPet }

/** Messages of the examples for codes whose own says too little. */
const exampleMessages: Partial<Record<ErrorCode, string>> = {
  malformed_request: 'request target: "%zz" has an escape ("%…") that is not one of UTF-8',
  invalid_parameter: `limit: expected an integer from ${limits.minimum} to ${limits.maximum}, got "0"`,
  malformed_json: 'body: is empty; expected a JSON object',
  invalid_body: 'name: is required; categoryId: expected an int64 integer, got "x"',
  not_found: 'There is no pet with the id "99".',
}

/** The document for a service that is mounted under `basePath`; empty at the root of a server. */
export function openApiDocument(basePath: string): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Petstore',
      version: interfaceVersion,
      summary: 'Lists, adds and fetches the animals of a pet store.',
      description:
        'Bodies are JSON in UTF-8. Every operation needs an API key, sent as `Authorization: Bearer <API_KEY>`.\n\n' +
        'An integer of format `int64` is from -2^63 to 2^63-1 and is kept exactly, also where a double would round ' +
        'it (beyond 2^53).\n\n' +
        'Every refusal has an `Error` as its body, whose message names each fault.',
      contact: { name: 'Whoever runs this service' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: `${basePath}/v1`, description: 'This server.' }],
    security: [{ apiKey: [] }],
    tags: [{ name: 'animals', description: 'The animals that the store holds.' }],
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
      responses: { Unauthorized: unauthorized, OtherRefusal: otherRefusal },
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'The API key, as the bearer token.' },
      },
    },
  }
}

function listPets(basePath: string): object {
  const { minimum, maximum } = limits
  const afterDescription =
    'Return only animals with an id above this: the page after the one that ends with it, as the `Link` header of ' +
    'that page says. An extension of this service.'
  return {
    operationId: 'listPets',
    tags: ['animals'],
    summary: 'List animals',
    description:
      'Returns a paginated list of animals, by ascending id; `limit` controls page size and `status` filters by ' +
      'availability. Other query parameters are ignored.',
    parameters: [
      query('limit', 'Maximum number of animals returned.', { type: 'integer', ...limits }, limits.default),
      query('status', 'Return only animals with this status.', ref('PetStatus'), 'sold'),
      {
        ...query('after', afterDescription, idSchema, 37),
        ...extension,
      },
    ],
    responses: {
      200: {
        description: 'The animals of this page; an empty array when there are none.',
        headers: {
          'X-Total-Count': header('How many animals match, on all pages. An extension of this service.', {
            schema: { type: 'integer', minimum: 0 },
            example: 2,
            ...extension,
          }),
          Link: header('The next page (RFC 8288); absent on the last one. An extension of this service.', {
            required: false,
            example: `<${basePath}/v1/pets?limit=20&status=sold&after=37>; rel="next"`,
            ...extension,
          }),
        },
        content: json(ref('Pets'), { page: [rex, mia], empty: [] }),
      },
      400: refusal(
        `A query parameter is given twice or is not valid: a \`limit\` that is no plain decimal from ${minimum} to ` +
          `${maximum}, an unknown \`status\`, an \`after\` that is no id. Or the request is not well-formed HTTP.`,
        ['invalid_parameter', 'malformed_request'],
      ),
      401: ref('Unauthorized', 'responses'),
      default: ref('OtherRefusal', 'responses'),
    },
  }
}

function createPet(basePath: string): object {
  return {
    operationId: 'createPet',
    tags: ['animals'],
    summary: 'Add an animal',
    description:
      'Adds a new animal to the store. The `id` is assigned by the service; one in the body is ignored, as every ' +
      'unknown member is.',
    requestBody: {
      description: `The animal, in at most ${maxBodyBytes} bytes, without a Content-Encoding.`,
      required: true,
      content: json(ref('NewPet'), { complete: newPet, shortest: { name: 'Rex', categoryId: 1 } }),
    },
    responses: {
      201: {
        description: 'Animal added, durably; the body carries the assigned `id`.',
        headers: {
          Location: header('The path of the new animal.', {
            example: `${basePath}/v1/pets/${createdPet.id}`,
          }),
        },
        content: json(ref('Pet'), { added: createdPet }),
      },
      400: refusal(
        'Body is missing required fields or contains invalid values, each of which is named. Or it is not JSON, or ' +
          'the request is not well-formed HTTP.',
        ['invalid_body', 'malformed_json', 'malformed_request'],
      ),
      401: ref('Unauthorized', 'responses'),
      413: refusal(`The body is larger than ${maxBodyBytes} bytes.`, ['content_too_large']),
      415: refusal(
        'The body is of another media type than `application/json`, or has a Content-Encoding.',
        ['unsupported_media_type'],
        { 'Accept-Encoding': header('With a Content-Encoding: none is understood.', { required: false }) },
      ),
      503: refusal('Nothing was stored; the animal can be sent again later.', [
        'data_file_invalid',
        'storage_failed',
        'shutting_down',
      ]),
      507: refusal('No room is left to store the animal; nothing was stored.', ['insufficient_storage']),
      default: ref('OtherRefusal', 'responses'),
    },
  }
}

function getPet(): object {
  const headers = {
    Deprecation: header('Since when it is deprecated (RFC 9745).', { schema: { const: deprecation } }),
    Sunset: header('When it is scheduled for removal (RFC 8594).', { schema: { const: sunset } }),
  }
  return {
    operationId: 'getPet',
    tags: ['animals'],
    summary: 'Get an animal',
    description:
      'Returns details for a single animal. Deprecated, to be removed on 5 December 2030: use `GET /pets` with the ' +
      '`status` filter instead.',
    deprecated: true,
    'x-sunset': new Date(sunset).toISOString().slice(0, 10),
    parameters: [
      {
        name: 'petId',
        in: 'path',
        description: 'Identifier of the animal to retrieve, a plain decimal; anything else is not found.',
        required: true,
        schema: idSchema,
        example: rex.id,
      },
    ],
    responses: {
      200: { description: 'The requested animal.', headers, content: json(ref('Pet'), { found: rex }) },
      400: refusal('The request is not well-formed HTTP.', ['malformed_request']),
      401: { ...unauthorized, headers: { ...unauthorized.headers, ...headers } },
      404: refusal('The requested resource could not be found.', ['not_found'], headers),
      default: ref('OtherRefusal', 'responses'),
    },
  }
}

const idSchema = { type: 'integer', format: 'int64', minimum: 1 }

const newPetProperties = {
  name: { type: 'string', description: "The animal's name: any well-formed Unicode, the empty string too." },
  // Its limits are left to the format: most tools read a JSON number as a double, which cannot hold them.
  categoryId: { type: 'integer', format: 'int64', description: 'Identifier of the category it belongs to.' },
  // In words, not as `default`: openapi-typescript makes a member with one required.
  status: { ...ref('PetStatus'), description: `Availability status; \`${defaultStatus}\` when omitted.` },
}

const schemas = {
  Pet: {
    type: 'object',
    description: 'An animal in the store.',
    required: ['id', 'name', 'categoryId', 'status'],
    properties: {
      id: { ...idSchema, description: 'Unique identifier, assigned by the service on creation.' },
      ...newPetProperties,
      status: { ...ref('PetStatus'), description: 'Availability status of the animal.' },
    },
    examples: [rex],
  },
  NewPet: {
    type: 'object',
    description: 'An animal to add.',
    required: ['name', 'categoryId'],
    properties: newPetProperties,
    examples: [newPet],
  },
  Pets: { type: 'array', description: 'Animals, by ascending id.', items: ref('Pet') },
  PetStatus: { type: 'string', description: 'Availability of an animal.', enum: petStatuses },
  Error: {
    type: 'object',
    description: 'Why a request was refused.',
    required: ['code', 'message', 'status'],
    properties: {
      code: { type: 'string', enum: Object.keys(catalogue), description: 'Machine-readable error code.' },
      message: { type: 'string', description: 'Human-readable description, with the place of each fault.' },
      status: { type: 'integer', description: 'The HTTP status code of the response.' },
    },
  },
}

const unauthorized = refusal('Missing or invalid API key.', ['unauthorized'], {
  'WWW-Authenticate': header(
    'The scheme (RFC 6750), with `error="invalid_token"` when a key was sent but is not valid.',
    { example: 'Bearer realm="petstore"' },
  ),
})

const otherRefusal = refusal(
  'What any request may meet besides.',
  [
    'method_not_allowed',
    'request_timeout',
    'expectation_failed',
    'request_header_fields_too_large',
    'internal_error',
    'not_implemented',
    'storage_failed',
    'shutting_down',
    'insufficient_storage',
  ],
  { Allow: header('With a 405: the methods that the path takes.', { required: false }) },
)

function ref(name: string, kind: 'schemas' | 'responses' = 'schemas'): { $ref: string } {
  return { $ref: `#/components/${kind}/${name}` }
}

function query(name: string, description: string, schema: object, example: unknown): object {
  return { name, in: 'query', description, schema, example }
}

/** A header that is text and always there, unless `more` says otherwise. */
function header(description: string, more: object = {}): object {
  return { description, required: true, schema: { type: 'string' }, ...more }
}

function json(schema: object, examples: Readonly<Record<string, unknown>>): object {
  const values = Object.entries(examples).map(([name, value]) => [name, { value }])
  return { 'application/json': { schema, examples: Object.fromEntries(values) } }
}

/** A refusal for any of these codes, with an example of each. */
function refusal(description: string, codes: readonly ErrorCode[], headers?: Record<string, object>) {
  const examples = codes.map((code) => {
    const [status, message] = catalogue[code]
    return [code, { code, message: exampleMessages[code] ?? message, status }]
  })
  return { description, headers, content: json(ref('Error'), Object.fromEntries(examples)) }
}

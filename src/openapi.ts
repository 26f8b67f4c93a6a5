/**
 * The interface as an OpenAPI 3.1 document, from the same limits, names and catalogue as the code. It describes the
 * three operations under `/v1`; what a reader needs is said here, since the page at `/` shows nothing else.
 */
import { catalogue, type ErrorCode } from './http/http-error.ts'
import { maxBodyBytes } from './http/json-body.ts'
import { deprecation, limits, sunset } from './operations.ts'
import { defaultStatus, type NewPet, type Pet, petStatuses } from './pets/pet.ts'

/** The version of the interface (section 9), not of this package. */
const interfaceVersion = '1.0.0'

/** Marks what the interface is silent about and this service adds. */
const extension = { 'x-extension': true }

const description = `A pet store: list the animals, add one, fetch one.

Every operation needs an API key, sent as \`Authorization: Bearer <API_KEY>\`.

Bodies are JSON in UTF-8. A number of format \`int64\` is any integer from -2^63 to 2^63-1, and is kept exactly; beyond 2^53 a client must not read it into a double.

Every refusal has the same body, an \`Error\`: a \`code\` for programs, a \`message\` for people that names each fault, and the \`status\` of the answer.`

const rex: Pet = { id: 1, name: 'Rex', categoryId: 1, status: 'available' }
const mia: Pet = { id: 2, name: 'Mia', categoryId: 2, status: 'sold' }
const newPet: NewPet = { name: 'Pip', categoryId: 3, status: 'pending' }
const createdPet: Pet = { id: 13, ...newPet }

/** What the service says where the catalogue is not specific enough to be an example. */
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
      description,
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
    components: { schemas, responses, headers, securitySchemes },
  }
}

function listPets(basePath: string): object {
  const { minimum, maximum } = limits
  const next = `<${basePath}/v1/pets?limit=${limits.default}&status=sold&after=37>; rel="next"`
  return {
    operationId: 'listPets',
    tags: ['animals'],
    summary: 'List animals',
    description:
      'Returns a paginated list of animals, by ascending id; `limit` controls page size and `status` filters by ' +
      'availability. Other query parameters are ignored.',
    parameters: [
      query('limit', 'Maximum number of animals returned.', { type: 'integer', ...limits }, limits.default),
      query('status', 'Return only animals with this status.', ref('schemas', 'PetStatus'), 'sold'),
      {
        ...query(
          'after',
          'Return only animals with a greater id: the page after the one that ends with this id. An extension of ' +
            'this service; the `Link` header of a page has it filled in.',
          idSchema,
          37,
        ),
        ...extension,
      },
    ],
    responses: {
      200: {
        description: 'The animals of this page; an empty array when there are none.',
        headers: {
          'X-Total-Count': {
            description: 'The number of animals that match, on all pages. An extension of this service.',
            required: true,
            schema: { type: 'integer', minimum: 0 },
            example: 2,
            ...extension,
          },
          Link: {
            description:
              'The next page (RFC 8288), with the same `limit` and `status`; absent on the last one. An extension ' +
              'of this service.',
            schema: { type: 'string' },
            example: next,
            ...extension,
          },
        },
        content: json(ref('schemas', 'Pets'), { page: [rex, mia], empty: [] }),
      },
      400: refusal(
        `A query parameter is given twice or is not valid: a \`limit\` that is no plain decimal from ${minimum} to ` +
          `${maximum}, an unknown \`status\`, an \`after\` that cannot be an id. Or the request is not well-formed HTTP.`,
        ['invalid_parameter', 'malformed_request'],
      ),
      401: ref('responses', 'Unauthorized'),
      default: ref('responses', 'OtherRefusal'),
    },
  }
}

function createPet(basePath: string): object {
  return {
    operationId: 'createPet',
    tags: ['animals'],
    summary: 'Add an animal',
    description:
      'Adds a new animal to the store. It is on disk when the answer comes. The `id` is assigned by the service: one ' +
      'in the body is ignored, as every unknown member is.',
    requestBody: {
      description: `The animal as a JSON object in UTF-8, at most ${maxBodyBytes} bytes, without a Content-Encoding.`,
      required: true,
      content: json(ref('schemas', 'NewPet'), { complete: newPet, shortest: { name: 'Rex', categoryId: 1 } }),
    },
    responses: {
      201: {
        description: 'Animal added; the body carries the assigned `id`.',
        headers: {
          Location: {
            description: 'The path of the new animal.',
            required: true,
            schema: { type: 'string', format: 'uri-reference' },
            example: `${basePath}/v1/pets/${createdPet.id}`,
          },
        },
        content: json(ref('schemas', 'Pet'), { added: createdPet }),
      },
      400: refusal(
        'Body is missing required fields or contains invalid values; all of them are named. Or the body is not JSON, ' +
          'or the request is not well-formed HTTP.',
        ['invalid_body', 'malformed_json', 'malformed_request'],
      ),
      401: ref('responses', 'Unauthorized'),
      413: refusal('The body is too large.', ['content_too_large']),
      415: refusal(
        'The body is of another media type than `application/json`, or is encoded.',
        ['unsupported_media_type'],
        {
          'Accept-Encoding': {
            description: 'Sent when the body came with a Content-Encoding: none is understood.',
            schema: { type: 'string', const: 'identity' },
          },
        },
      ),
      503: refusal('The animal cannot be stored now. Nothing was stored; it can be sent again later.', [
        'data_file_invalid',
        'storage_failed',
        'shutting_down',
      ]),
      507: refusal('No room is left, on the disk or in the ids. Nothing was stored.', [
        'insufficient_storage',
      ]),
      default: ref('responses', 'OtherRefusal'),
    },
  }
}

function getPet(): object {
  const headers = { Deprecation: ref('headers', 'Deprecation'), Sunset: ref('headers', 'Sunset') }
  return {
    operationId: 'getPet',
    tags: ['animals'],
    summary: 'Get an animal',
    description:
      'Returns details for a single animal. Deprecated, and to be removed on 5 December 2030: use `GET /pets` with ' +
      'the `status` filter instead. Until then it behaves as described.',
    deprecated: true,
    // The date by itself, as tools that compare documents read it.
    'x-sunset': new Date(sunset).toISOString().slice(0, 10),
    parameters: [
      {
        name: 'petId',
        in: 'path',
        description: 'Identifier of the animal to retrieve, as a plain decimal; anything else is not found.',
        required: true,
        schema: idSchema,
        example: rex.id,
      },
    ],
    responses: {
      200: {
        description: 'The requested animal.',
        headers,
        content: json(ref('schemas', 'Pet'), { found: rex }),
      },
      400: refusal('The request is not well-formed HTTP.', ['malformed_request']),
      401: { ...unauthorized, headers: { ...unauthorized.headers, ...headers } },
      404: refusal('The requested resource could not be found.', ['not_found'], headers),
      default: ref('responses', 'OtherRefusal'),
    },
  }
}

const idSchema = { type: 'integer', format: 'int64', minimum: 1 }

const newPetProperties = {
  name: {
    type: 'string',
    description: "The animal's name: any well-formed Unicode text, an empty one too.",
  },
  categoryId: {
    type: 'integer',
    // Its limits are left to the format: a JSON number that holds them is rounded by most readers, and by this writer.
    format: 'int64',
    description: 'Identifier of the category the animal belongs to.',
  },
  status: { ...ref('schemas', 'PetStatus'), description: 'Availability status of the animal.' },
}

const schemas = {
  Pet: {
    type: 'object',
    description: 'An animal in the store.',
    required: ['id', 'name', 'categoryId', 'status'],
    properties: {
      id: {
        ...idSchema,
        description: 'Unique identifier assigned by the service on creation, counted up from 1.',
      },
      ...newPetProperties,
    },
    examples: [rex],
  },
  NewPet: {
    type: 'object',
    description: 'An animal to add.',
    required: ['name', 'categoryId'],
    properties: {
      ...newPetProperties,
      status: {
        ...ref('schemas', 'PetStatus'),
        description: `Availability status of the animal; \`${defaultStatus}\` when omitted.`,
        default: defaultStatus,
      },
    },
    examples: [newPet],
  },
  Pets: {
    type: 'array',
    description: 'Animals, by ascending id.',
    items: ref('schemas', 'Pet'),
    examples: [[rex, mia]],
  },
  PetStatus: {
    type: 'string',
    description: 'Availability of an animal.',
    enum: petStatuses,
    examples: [defaultStatus],
  },
  Error: {
    type: 'object',
    description: 'Why a request was refused.',
    required: ['code', 'message', 'status'],
    properties: {
      code: { type: 'string', enum: Object.keys(catalogue), description: 'Machine-readable error code.' },
      message: { type: 'string', description: 'Human-readable description, each fault with its place.' },
      status: {
        type: 'integer',
        minimum: 400,
        maximum: 599,
        description: 'The HTTP status code of the response.',
      },
    },
    examples: [errorExample('not_found')],
  },
}

const headers = {
  Deprecation: {
    description: 'When the operation was deprecated (RFC 9745): seconds since 1970.',
    required: true,
    schema: { type: 'string', const: deprecation },
  },
  Sunset: {
    description: 'When the operation is scheduled for removal (RFC 8594).',
    required: true,
    schema: { type: 'string', const: sunset },
  },
}

const unauthorized = refusal('Missing or invalid API key.', ['unauthorized'], {
  'WWW-Authenticate': {
    description:
      'How to authenticate (RFC 6750); it has `error="invalid_token"` when a key was sent but is not valid.',
    required: true,
    schema: { type: 'string' },
    example: 'Bearer realm="petstore"',
  },
})

const responses = {
  Unauthorized: unauthorized,
  OtherRefusal: refusal(
    'What any request may meet besides: a method that the path does not take, a request that is too slow or whose ' +
      'headers are too large, an expectation that cannot be met, a fault in the service, or its end.',
    [
      'method_not_allowed',
      'request_timeout',
      'expectation_failed',
      'request_header_fields_too_large',
      'internal_error',
      'not_implemented',
      'shutting_down',
    ],
    {
      Allow: {
        description: 'The methods that the path takes, with a 405.',
        schema: { type: 'string' },
        example: 'GET, HEAD, POST, OPTIONS',
      },
    },
  ),
}

const securitySchemes = {
  apiKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'The API key as the bearer token: `Authorization: Bearer <API_KEY>`.',
  },
}

function ref(kind: 'schemas' | 'responses' | 'headers', name: string): { $ref: string } {
  return { $ref: `#/components/${kind}/${name}` }
}

function query(name: string, text: string, schema: object, example: unknown): object {
  return { name, in: 'query', description: text, schema, example }
}

function json(schema: object, examples: Readonly<Record<string, unknown>>): object {
  const values = Object.entries(examples).map(([name, value]) => [name, { value }])
  return { 'application/json': { schema, examples: Object.fromEntries(values) } }
}

function errorExample(code: ErrorCode): object {
  const [status, message] = catalogue[code]
  return { code, message: exampleMessages[code] ?? message, status }
}

/** A refusal for any of these codes, each with an example. */
function refusal<Headers extends object>(text: string, codes: readonly ErrorCode[], headers?: Headers) {
  const examples = Object.fromEntries(codes.map((code) => [code, errorExample(code)]))
  return { description: text, ...(headers && { headers }), content: json(ref('schemas', 'Error'), examples) }
}

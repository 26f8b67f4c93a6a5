/**
 * What the descriptions of the operations in openapi.ts are made of: schemas, shared responses, examples, and how a parameter, a
 * header and an error response is written. Knows no operation.
 */
import { errorCodes, type ErrorCode } from './http/error-codes.ts'
import { maxBodyBytes } from './http/limits.ts'
import { pageSizes } from './operations.ts'
import { defaultStatus, petStatuses } from './pet/pet-status.ts'
import type { NewPet, Pet } from './pet/pet.ts'

/** Marks what this service adds to the interface. */
export const extension = { 'x-extension': true }

export const rex: Pet = { id: 1, name: 'Rex', categoryId: 1, status: 'available' }
export const mia: Pet = { id: 2, name: 'Mia', categoryId: 2, status: 'sold' }
export const newPet: NewPet = { name: 'Pip', categoryId: 3, status: 'pending' }
export const createdPet: Pet = { id: 13, ...newPet }

/** Example messages, where those of the error codes are not what clients get. */
const exampleMessages: Partial<Record<ErrorCode, readonly [known: string, outcomeUnknown?: string]>> = {
  malformed_request: [
    'request target: "%zz" has an invalid percent escape: expected UTF-8, such as "%C3%A9"',
  ],
  invalid_parameter: [
    `limit: expected an integer from ${pageSizes.minimum} to ${pageSizes.maximum}, got "0"`,
  ],
  malformed_json: ['body: is empty; expected a JSON object'],
  invalid_body: ['name: is required; categoryId: expected an int64 integer, got "x"'],
  content_too_large: [`The body is larger than ${maxBodyBytes} bytes.`],
  not_found: ['There is no pet with the id "99".'],
  data_file_invalid: [
    'The data file is not valid (line 7, column 3: expected a pet after the comma, got "]"); nothing was stored.',
  ],
  storage_failed: [
    'The storage failed; nothing was stored.',
    'The storage failed; it is not known whether the pet was stored.',
  ],
  insufficient_storage: [
    'There is no room left; nothing was stored.',
    'There is no room left; it is not known whether the pet was stored.',
  ],
}

export const idSchema = { type: 'integer', format: 'int64', minimum: 1 }

const newPetProperties = {
  name: {
    type: 'string',
    description: 'What the pet is called: any well-formed Unicode string, including the empty one.',
  },
  // Without minimum and maximum: most tools read JSON numbers as doubles, which cannot hold the limits of an int64.
  categoryId: {
    type: 'integer',
    format: 'int64',
    description:
      'Which category the pet is in: any integer from -2^63 to 2^63-1. `5.0` and `1e2` are integers too; numbers ' +
      'that would have to be rounded are rejected.',
  },
  // Not as `default`: openapi-typescript makes a member with a default required.
  status: { ...ref('PetStatus'), description: `\`${defaultStatus}\` unless given.` },
}

export const schemas = {
  Pet: {
    type: 'object',
    description: 'A pet in the store.',
    required: ['id', 'name', 'categoryId', 'status'],
    properties: {
      id: {
        ...idSchema,
        description: 'The number of the pet, which the service chose. No other pet has it.',
      },
      ...newPetProperties,
      status: { ...ref('PetStatus'), description: 'Whether the pet can be had.' },
    },
    examples: [rex],
  },
  NewPet: {
    type: 'object',
    description: 'A pet to add.',
    required: ['name', 'categoryId'],
    properties: newPetProperties,
    examples: [newPet],
  },
  Pets: { type: 'array', description: 'Pets in ascending order of `id`.', items: ref('Pet') },
  PetStatus: { type: 'string', description: 'Whether a pet can be had.', enum: petStatuses },
  Error: {
    type: 'object',
    description: 'Why a request failed.',
    required: ['code', 'message', 'status'],
    properties: {
      code: { type: 'string', enum: Object.keys(errorCodes), description: 'What went wrong, for programs.' },
      message: {
        type: 'string',
        description: 'What went wrong, for people: the place and the fault of each error.',
      },
      status: { type: 'integer', description: 'Repeats the status code of the response.' },
    },
  },
}

export const unauthorized = errorResponse('The API key is missing or not valid.', ['unauthorized'], {
  'WWW-Authenticate': header(
    'The authentication scheme (RFC 6750), with `error="invalid_token"` if a key was sent but is not valid.',
    { example: 'Bearer realm="petstore"' },
  ),
})

export const otherError = errorResponse(
  'Any other error.',
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
  { Allow: header('Sent with 405: the methods that the path supports.', { required: false }) },
)

export function ref(name: string, kind: 'schemas' | 'responses' = 'schemas'): { $ref: string } {
  return { $ref: `#/components/${kind}/${name}` }
}

export function query(name: string, description: string, schema: object, example: unknown): object {
  return { name, in: 'query', description, schema, example }
}

/** The same headers, which may be absent. */
export function optional(headers: Readonly<Record<string, object>>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, each]) => [name, { ...each, required: false }]),
  )
}

/** A header; it is text and always sent, unless `more` says otherwise. */
export function header(description: string, more: object = {}): object {
  return { description, required: true, schema: { type: 'string' }, ...more }
}

export function json(schema: object, examples: Readonly<Record<string, unknown>>): object {
  const values = Object.entries(examples).map(([name, value]) => [name, { value }])
  return { 'application/json': { schema, examples: Object.fromEntries(values) } }
}

/** An error response with any of these codes, and examples of each. */
export function errorResponse(
  description: string,
  codes: readonly ErrorCode[],
  headers?: Record<string, object>,
) {
  const examples = codes.flatMap((code) => {
    const { status, message } = errorCodes[code]
    const messages = exampleMessages[code] ?? [message]
    return messages.map((text, i) => [
      i === 0 ? code : `${code}_outcome_unknown`,
      { code, message: text, status },
    ])
  })
  return { description, headers, content: json(ref('Error'), Object.fromEntries(examples)) }
}

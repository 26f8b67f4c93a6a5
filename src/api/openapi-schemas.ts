/** The schemas of the OpenAPI document (interface section 2), and the pets in its examples. Knows no operation. */
import { errorCodes } from '../http/error-codes.ts'
import { defaultStatus, petStatuses } from '../pet/pet-status.ts'
import type { Pet, PetWithoutId } from '../pet/pet.ts'

export const rex: Pet = { id: 1, name: 'Rex', categoryId: 1, status: 'available' }
export const mia: Pet = { id: 2, name: 'Mia', categoryId: 2, status: 'sold' }
export const newPet: PetWithoutId = { name: 'Pip', categoryId: 3, status: 'pending' }

export const idSchema = { type: 'integer', format: 'int64', minimum: 1 }
export const countSchema = { ...idSchema, minimum: 0 }

const newPetProperties = {
  name: { type: 'string', description: 'Any well-formed Unicode string, including the empty one.' },
  // Without minimum and maximum: most tools read JSON numbers as doubles, which cannot hold the limits of an int64.
  categoryId: {
    type: 'integer',
    format: 'int64',
    description: 'Any integer from -2^63 to 2^63-1, also as `5.0` or `1e2`; none is rounded.',
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
      id: { ...idSchema, description: 'The number of the pet, chosen by the service. No other pet has it.' },
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
      message: { type: 'string', description: 'The place and the fault of each error, for people.' },
      status: { type: 'integer', description: 'Repeats the status code of the response.' },
    },
  },
}

export function ref(name: string, kind: 'schemas' | 'responses' = 'schemas'): { $ref: string } {
  return { $ref: `#/components/${kind}/${name}` }
}

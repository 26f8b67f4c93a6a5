/** What a pet is: the schemas of interface section 2, their types, and a pet's JSON text. */
import * as v from 'valibot'
import { InexactNumber, type Int64, isInt64 } from '../int64.ts'

export const petStatuses = ['available', 'pending', 'sold'] as const

/** The status of a pet that is created without one. */
export const defaultStatus = 'available'

const required = 'is required'

export const PetStatusSchema = v.picklist(
  petStatuses,
  ({ input }) => `expected available, pending or sold, got ${describe(input)}`,
)
export type PetStatus = v.InferOutput<typeof PetStatusSchema>

const NameSchema = v.pipe(
  v.string(({ input }) => `expected a string, got ${describe(input)}`),
  v.check((name) => name.isWellFormed(), 'expected well-formed Unicode, got a lone surrogate'),
)

const Int64Schema = v.custom<Int64>(
  isInt64,
  ({ input }) => `expected an int64 integer, got ${describe(input)}`,
)

const entries = {
  name: NameSchema,
  categoryId: Int64Schema,
  status: v.exactOptional(PetStatusSchema, defaultStatus),
}

/** The body that creates a pet (interface section 2, NewPet). Unknown members, `id` among them, are dropped. */
export const NewPetSchema = v.pipe(
  v.custom<object>(isObject, ({ input }) => `expected a JSON object, got ${describe(input)}`),
  v.object(entries, required),
)
export type NewPet = v.InferOutput<typeof NewPetSchema>

/** A stored pet (interface section 2, Pet). Its id is from 1 to 2^63-1. */
export interface Pet extends Readonly<NewPet> {
  readonly id: Int64
}

/** A pet as a person writes it into the data file or into a test: id and status are given when missing. */
export const SeedPetSchema = v.pipe(
  v.custom<object>(isObject, ({ input }) => `expected a pet, got ${describe(input)}`),
  v.object(
    {
      id: v.exactOptional(
        v.custom<Int64>(
          (id) => isInt64(id) && id > 0,
          ({ input }) => `expected an integer from 1 to 2^63-1, got ${describe(input)}`,
        ),
      ),
      ...entries,
    },
    required,
  ),
)
export type SeedPet = v.InferInput<typeof SeedPetSchema>

/** The pet as one line of JSON, in the interface's order of fields; exact for every int64. */
export function formatPet({ id, name, categoryId, status }: Pet): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}`
}

/** A value in a few words, for a message: scalars as JSON, the rest by their kind. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'an array'
  if (value instanceof InexactNumber) return shorten(value.text)
  if (typeof value === 'object' && value !== null) return 'an object'
  return shorten(typeof value === 'bigint' ? String(value) : JSON.stringify(value))
}

function shorten(text: string): string {
  // The cut may fall into a pair of surrogates.
  return text.length > 60 ? `${text.slice(0, 60).toWellFormed()}…` : text
}

function isObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  return !Array.isArray(value) && !(value instanceof InexactNumber)
}

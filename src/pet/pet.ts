/** A pet: its members and statuses (interface sections 2 and 3), and its JSON text. What each member may be is in pet-rules.ts. */
import type { Int64 } from '../json/json.ts'

/** In the interface's order. */
export const petMembers: readonly string[] = ['id', 'name', 'categoryId', 'status']

/** A pet to create, as a client sends it (interface section 2, NewPet). A missing status means `available`. */
export interface NewPet {
  readonly name: string
  readonly categoryId: Int64
  readonly status?: PetStatus
}

/** A pet to create whose status is filled in: all of a pet but its id. */
export interface PetWithoutId extends NewPet {
  readonly status: PetStatus
}

/** A stored pet (interface section 2, Pet). Its id is from 1 to 2^63-1. */
export interface Pet extends PetWithoutId {
  readonly id: Int64
}

/** A pet to start with. A missing id becomes the next one. */
export interface SeedPet extends NewPet {
  readonly id?: Int64
}

/** A pet that was checked. Its id may still be missing. */
export type CheckedSeed = SeedPet & PetWithoutId

/** Where a pet keeps its JSON text. Not enumerable, so that copies of the pet and what compares it do not see it. */
const keptText = Symbol('text')

/**
 * The pet as one line of JSON, in the interface's order of fields; exact for every int64. Made once, and kept with the pet: it
 * goes into the file, into the 201 and into every list. (That the id comes first is how torn-end.ts recognizes an append.)
 */
export function formatPet(pet: Pet & { readonly [keptText]?: string }): string {
  const kept = pet[keptText]
  if (kept !== undefined) return kept
  const { id, name, categoryId, status } = pet
  const members = ['{"id":', id, ',"name":', JSON.stringify(name), ',"categoryId":', categoryId]
  // A template would make it of pieces, which take three times the memory.
  const text = [...members, ',"status":"', status, '"}'].join('')
  Object.defineProperty(pet, keptText, { value: text })
  return text
}

export function formatPetCount(count: number): string {
  return `${count} ${count === 1 ? 'pet' : 'pets'}`
}

/**
 * The statuses of a pet (interface section 3). Types, schemas and the index derive from this list. Where it has to be repeated,
 * such as in data/pets.schema.json and page.css, a test compares it.
 */
export const petStatuses = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof petStatuses)[number]

/** The status of a pet that is created without one. */
export const defaultStatus = 'available' satisfies PetStatus

/** For messages: `available, pending or sold`. */
export const petStatusChoice = petStatuses.join(', ').replace(/, (\w+)$/, ' or $1')

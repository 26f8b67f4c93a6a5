/** A pet: its members (interface section 2), and its JSON text. What each member may be is in pet-rules.ts. */
import type { Int64 } from '../json/int64.ts'
import type { PetStatus } from './pet-status.ts'

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

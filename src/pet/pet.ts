/** What a pet is (interface section 2), and its JSON text. */
import type { Int64 } from '../json/int64.ts'
import type { PetStatus } from './pet-status.ts'

/** A pet to create (interface section 2, NewPet), with its status filled in. */
export interface NewPet {
  readonly name: string
  readonly categoryId: Int64
  readonly status: PetStatus
}

/** A stored pet (interface section 2, Pet). Its id is from 1 to 2^63-1. */
export interface Pet extends NewPet {
  readonly id: Int64
}

/** A pet to start with. A missing id becomes the next one; a missing status means `available`. */
export interface SeedPet {
  readonly id?: Int64
  readonly name: string
  readonly categoryId: Int64
  readonly status?: PetStatus
}

/** The pet as one line of JSON, in the interface's order of fields; exact for every int64. */
export function formatPet({ id, name, categoryId, status }: Pet): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}`
}

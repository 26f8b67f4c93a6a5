/** What a pet is (interface section 2). */
import { type Int64, isInt64 } from '../json/int64.ts'
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

/** What keeps a text from being a name, if anything. The schemas and the fast reader of the data file both ask here. */
export function nameFault(name: string): string | undefined {
  return name.isWellFormed() ? undefined : 'expected well-formed Unicode, got a lone surrogate'
}

export function isId(id: unknown): id is Int64 {
  return isInt64(id) && id > 0
}

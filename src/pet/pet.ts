/** The members of a pet (interface section 2). What each may be is in pet-rules.ts. */
import type { Int64 } from '../json/int64.ts'
import type { PetStatus } from './pet-status.ts'

/** In the interface's order. */
export const petMembers: readonly string[] = ['id', 'name', 'categoryId', 'status']

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

/** A pet that was checked. Its id may still be missing. */
export type CheckedSeed = Omit<Pet, 'id'> & { readonly id?: Int64 }

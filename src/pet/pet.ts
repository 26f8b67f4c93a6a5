/** A pet: its members and statuses (interface sections 2 and 3), its id, and its JSON text. */
import { nextInt64, type Int64 } from '../json/json.ts'

/** In the interface's order. */
export const petMembers: readonly string[] = ['id', 'name', 'categoryId', 'status']

/** Interface section 2. A missing status means `available`. */
export interface NewPet {
  readonly name: string
  readonly categoryId: Int64
  readonly status?: PetStatus | undefined
}

export interface PetWithoutId extends NewPet {
  readonly status: PetStatus
}

/** Interface section 2. Its id is from 1 to 2^63-1. */
export interface Pet extends PetWithoutId {
  readonly id: Int64
}

/** A pet to start with. A missing id becomes the next one. */
export interface SeedPet extends NewPet {
  readonly id?: Int64 | undefined
}

/** A pet that was checked. Its id may still be missing. */
export type CheckedSeed = SeedPet & PetWithoutId

/** A missing id becomes the next one above `highestId`. Undefined if none is left. */
export function fillIds(seeds: readonly CheckedSeed[], highestId: Int64): readonly (Pet | undefined)[] {
  let last = highestId
  return seeds.map((seed) => {
    if (hasId(seed)) return seed
    const id = nextInt64(last)
    if (id === undefined) return undefined
    last = id
    const { name, categoryId, status } = seed
    return { id, name, categoryId, status }
  })
}

export function hasId(seed: CheckedSeed): seed is Pet {
  return seed.id !== undefined
}

/** The pet as one line of JSON, in the interface's order of fields; exact for every int64. torn-end.ts knows an append by its `{"id":`. */
export function formatPet({ id, name, categoryId, status }: Pet): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}`
}

export function formatPetCount(count: number): string {
  return `${count} ${count === 1 ? 'pet' : 'pets'}`
}

/** Interface section 3. Where the list is repeated, as in data/pets.schema.json and page.css, a test compares it. */
export const petStatuses = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof petStatuses)[number]

export const defaultStatus = 'available' satisfies PetStatus

/** For messages: `available, pending or sold`. */
export const petStatusChoice = petStatuses.join(', ').replace(/, (\w+)$/, ' or $1')

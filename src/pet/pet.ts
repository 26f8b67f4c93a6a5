/** A pet: its members and statuses (interface sections 2 and 3), its id, and its JSON text. */
import { nextInt64, type Int64 } from '../json/int64.ts'

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

/** Makes each missing id the next one above `highestId`. Where none is left, the pet is undefined. */
export function fillIds(seeds: readonly CheckedSeed[], highestId: Int64): readonly (Pet | undefined)[] {
  let last = highestId
  return seeds.map((seed) => {
    if (hasId(seed)) return seed
    const id = nextInt64(last)
    if (id === undefined) return undefined
    last = id
    const { name, categoryId, status } = seed
    // All pets have one shape, which takes less memory and time than a copy of any object.
    return { id, name, categoryId, status } satisfies EachMember<unknown>
  })
}

export function hasId(seed: CheckedSeed): seed is Pet {
  return seed.id !== undefined
}

/**
 * A value for each member of a pet, those that a pet may lack included: the compiler tells who leaves one
 * out.
 */
export type EachMember<Value> = { readonly [Member in keyof Pet]-?: Value }

/** The text of every pet begins and ends so. A part of one in a damaged file is known by these. */
export const petTextStart = '{"id":'
export const petTextEnd = /"categoryId":-?\d+,"status":"[a-z]+"\}/

/**
 * These return the JSON text of each member, in the interface's order of fields; empty where a pet may lack
 * one.
 */
const memberTexts: EachMember<(pet: Pet) => string> = {
  id: ({ id }) => petTextStart + id,
  name: ({ name }) => `,"name":${JSON.stringify(name)}`,
  categoryId: ({ categoryId }) => `,"categoryId":${categoryId}`,
  status: ({ status }) => `,"status":"${status}"`,
}

// To TypeScript, the keys are just strings.
export const petMembers = Object.keys(memberTexts) as readonly (keyof Pet)[]
const formatMembers = Object.values(memberTexts)

export const isPetMember = (name: string): boolean => Object.hasOwn(memberTexts, name)

/** Returns the pet as one line of JSON, exact for every int64. */
export function formatPet(pet: Pet): string {
  let text = ''
  for (const formatMember of formatMembers) {
    text += formatMember(pet)
  }
  return `${text}}`
}

export function isSamePet(one: Pet, other: Pet): boolean {
  return petMembers.every((member) => one[member] === other[member])
}

export function formatPetCount(count: number): string {
  return `${count} ${count === 1 ? 'pet' : 'pets'}`
}

/**
 * Interface section 3 has these. Where the list is repeated, as in data/pets.schema.json and page.css, a test
 * compares it.
 */
export const petStatuses = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof petStatuses)[number]

export const defaultStatus = 'available' satisfies PetStatus

/** Messages name the choice so: `available, pending or sold`. */
export const petStatusChoice = petStatuses.join(', ').replace(/, (\w+)$/, ' or $1')

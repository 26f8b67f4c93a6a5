/**
 * Pets as a person writes them, in the data file or in a test: checks them, finds ids that are given twice, and fills in
 * the ids and statuses that were left out. Does not depend on files or JSON.
 */
import * as v from 'valibot'
import { shorten } from '../json/describe.ts'
import { nextInt64, normalizeInt64, type Int64 } from '../json/int64.ts'
import { SeedPetSchema } from './pet-schemas.ts'
import type { Pet } from './pet.ts'

/** A pet that was checked. Its id may still be missing. */
export type CheckedSeed = Omit<Pet, 'id'> & { readonly id?: Int64 }

/** What is wrong with a seed; `member` is undefined when the seed is no pet at all. */
export interface SeedFault {
  readonly member: string | undefined
  readonly message: string
}

/** The members of a pet, in the interface's order. */
export const petMembers: readonly string[] = ['id', 'name', 'categoryId', 'status']

/** Returns the pet, or everything that is wrong with it. */
export function checkSeed(
  value: unknown,
): { readonly seed: CheckedSeed } | { readonly faults: readonly SeedFault[] } {
  const { success, output, issues = [] } = v.safeParse(SeedPetSchema, value)
  const faults = issues.map(({ path, message }): SeedFault => {
    const member = path?.[0]?.key
    return { member: member === undefined ? undefined : String(member), message }
  })
  if (faults.some(({ member }) => member === undefined)) return { faults }
  for (const member of Object.keys(Object(value))) {
    if (!petMembers.includes(member)) faults.push({ member, message: 'is not a member of a pet' })
  }
  return success && faults.length === 0 ? { seed: output } : { faults }
}

/** For a message: where a seed stands, and what is wrong with it. */
export function formatSeedFault(index: number, { member, message }: SeedFault): string {
  return `pets[${index}]${member === undefined ? '' : `.${shorten(member)}`}: ${message}`
}

/** What is wrong with an id that another seed has too: `firstAt` is where that one is written. */
export type TakenId = SeedFault & { readonly firstAt: number }

export const noIdLeftFault: SeedFault = { member: undefined, message: 'no id is left for it' }

/** Seeds in the order in which they are written. Missing ids are assigned last, above the highest id given. */
export class SeedList {
  /** A missing id is 0 until it is filled in. */
  readonly #pets: Pet[] = []
  readonly #places: number[] = []
  readonly #withoutId: number[] = []
  #highestId: Int64 = 0
  /** All ids so far. Kept only once an id is not higher than the one before; while ids ascend, none can be given twice. */
  #ids: Set<Int64> | undefined

  /** Adds the seed, which is written `at` this place. If its id is taken, returns that fault instead. */
  add({ id, name, categoryId, status }: CheckedSeed, at: number): TakenId | undefined {
    if (id === undefined) {
      this.#withoutId.push(this.#pets.length)
    } else if (id > this.#highestId) {
      this.#highestId = id
      this.#ids?.add(id)
    } else {
      this.#ids ??= new Set(this.#pets.map((pet) => pet.id))
      if (this.#ids.has(id)) {
        const firstAt = this.#places[this.#pets.findIndex((pet) => pet.id === id)] ?? 0
        return { member: 'id', message: `${id} is given twice`, firstAt }
      }
      this.#ids.add(id)
    }
    this.#pets.push({ id: id ?? 0, name, categoryId, status })
    this.#places.push(at)
    return undefined
  }

  /**
   * Fills in the missing ids, in the order of the seeds: each is higher than all ids so far and than `highestId`. Returns the
   * pets by ascending id, the ids that were filled in, and the place of the first seed for which none was left.
   */
  complete(highestId: Int64): {
    readonly pets: Pet[]
    readonly filledIds: readonly { readonly at: number; readonly id: Int64 }[]
    readonly noIdLeft: { readonly index: number; readonly at: number } | undefined
  } {
    let last = this.#highestId > highestId ? this.#highestId : highestId
    const filledIds: { at: number; id: Int64 }[] = []
    for (const index of this.#withoutId) {
      const id = nextInt64(last)
      const pet = this.#pets[index]
      if (id === undefined || pet === undefined) break
      last = id
      filledIds.push({ at: this.#places[index] ?? 0, id })
      this.#pets[index] = { ...pet, id }
    }
    const isInOrder = this.#ids === undefined && this.#withoutId.length === 0
    const pets = isInOrder ? this.#pets : this.#pets.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const index = this.#withoutId[filledIds.length]
    const noIdLeft = index === undefined ? undefined : { index, at: this.#places[index] ?? 0 }
    return { pets, filledIds, noIdLeft }
  }
}

/** The pets of an in-memory store, by ascending id. Throws a TypeError that names everything that is wrong. */
export function completeSeeds(seeds: readonly unknown[]): Pet[] {
  const list = new SeedList()
  const faults: string[] = []
  for (const [index, value] of seeds.entries()) {
    const checked = checkSeed(withoutUndefined(value))
    if ('faults' in checked) {
      faults.push(...checked.faults.map((fault) => formatSeedFault(index, fault)))
    } else {
      const { id, categoryId, ...rest } = checked.seed
      const seed = { ...rest, categoryId: normalizeInt64(categoryId) }
      const fault = list.add(id === undefined ? seed : { ...seed, id: normalizeInt64(id) }, index)
      if (fault !== undefined)
        faults.push(`${formatSeedFault(index, fault)}, first in pets[${fault.firstAt}]`)
    }
  }
  const { pets, noIdLeft } = list.complete(0)
  if (noIdLeft !== undefined) faults.push(formatSeedFault(noIdLeft.at, noIdLeftFault))
  if (faults.length > 0) throw new TypeError(faults.join('; '))
  return pets
}

/** In JavaScript, `{ id: undefined }` usually means a missing id. */
function withoutUndefined(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))
}

/**
 * The ids of pets as a person writes them, in the data file or in a test: finds those that are given twice, and fills in
 * those that were left out. So it also completes the pets that a store in memory begins with. Does not depend on files or JSON.
 */
import { nextInt64, type Int64 } from '../json/int64.ts'
import { checkSeed, formatSeedFault, type SeedFault } from './pet-rules.ts'
import type { CheckedSeed, Pet } from './pet.ts'

/** What is wrong with an id that another seed has too: `firstAt` is where that one is written. */
export type TakenId = SeedFault & { readonly firstAt: number }

export const noIdLeftFault: SeedFault = { member: undefined, message: 'no id is left for it' }

/** Seeds in the order in which they are written. Missing ids are assigned last, above the highest id given. */
export class SeedList {
  readonly #pets: Pet[] = []
  readonly #places: number[] = []
  readonly #withoutId: { readonly seed: CheckedSeed; readonly at: number; readonly index: number }[] = []
  #highestId: Int64 = 0
  /** Where each id is. Kept only once an id is not higher than the one before; while ids ascend, none can be given twice. */
  #placeOfId: Map<Int64, number> | undefined

  /** Adds the seed, which is written `at` this place, as the one of this index. If its id is taken, returns that fault instead. */
  add(seed: CheckedSeed, at: number, index: number): TakenId | undefined {
    const { id, name, categoryId, status } = seed
    if (id === undefined) {
      this.#withoutId.push({ seed, at, index })
      return undefined
    }
    if (id > this.#highestId) this.#highestId = id
    else this.#placeOfId ??= new Map(this.#pets.map((pet, i) => [pet.id, this.#places[i] ?? 0]))
    const firstAt = this.#placeOfId?.get(id)
    if (firstAt !== undefined) return { member: 'id', message: `${id} is given twice`, firstAt }
    this.#placeOfId?.set(id, at)
    this.#pets.push({ id, name, categoryId, status })
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
    const pets =
      this.#placeOfId === undefined ? this.#pets : this.#pets.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const filledIds: { at: number; id: Int64 }[] = []
    let last = this.#highestId > highestId ? this.#highestId : highestId
    for (const { seed, at } of this.#withoutId) {
      const id = nextInt64(last)
      if (id === undefined) break
      const { name, categoryId, status } = seed
      pets.push({ id, name, categoryId, status })
      filledIds.push({ at, id })
      last = id
    }
    return { pets, filledIds, noIdLeft: this.#withoutId[filledIds.length] }
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
      const fault = list.add(checked.seed, index, index)
      if (fault !== undefined)
        faults.push(`${formatSeedFault(index, fault)}, first in pets[${fault.firstAt}]`)
    }
  }
  const { pets, noIdLeft } = list.complete(0)
  if (noIdLeft !== undefined) faults.push(formatSeedFault(noIdLeft.index, noIdLeftFault))
  if (faults.length > 0) throw new TypeError(faults.join('; '))
  return pets
}

/** In JavaScript, `{ id: undefined }` usually means a missing id. */
function withoutUndefined(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))
}

/** Pets by id, and for each status, so that a page costs its length and a filter costs nothing. In memory only. */
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'
import type { PetPage, PetQuery } from './pet-storage.ts'
import { type PetStatus, petStatuses } from '../pet/pet-status.ts'

export class PetIndex {
  readonly #all: Pet[] = []
  readonly #byStatus = new Map<PetStatus, Pet[]>(petStatuses.map((status) => [status, []]))

  /** The pets come by ascending id. */
  constructor(pets: readonly Pet[] = []) {
    for (const pet of pets) this.add(pet)
  }

  get size(): number {
    return this.#all.length
  }

  get highestId(): Int64 {
    return this.#all.at(-1)?.id ?? 0
  }

  /** The pet's id is higher than any so far. */
  add(pet: Pet): void {
    this.#all.push(pet)
    this.#byStatus.get(pet.status)?.push(pet)
  }

  get(id: Int64): Pet | undefined {
    // Ids count up from 1, so a pet is at the position of its id unless an edit has left a gap before it. A search among a
    // million pets would make this a third slower than among a hundred (test/bench/growth.ts).
    const expected = this.#all[Number(id) - 1]
    if (expected?.id === id) return expected
    const pet = this.#all[firstAfter(this.#all, id) - 1]
    return pet?.id === id ? pet : undefined
  }

  list({ limit, status, after }: PetQuery): PetPage {
    const matches = status === undefined ? this.#all : (this.#byStatus.get(status) ?? [])
    const from = after === undefined ? 0 : firstAfter(matches, after)
    const pets = matches.slice(from, from + limit)
    return { pets, total: matches.length, hasMore: from + limit < matches.length }
  }

  /** How many pets an edit added, removed and changed. */
  changesTo(next: PetIndex): { added: number; removed: number; changed: number } {
    let kept = 0
    let changed = 0
    for (const old of this.#all) {
      const now = next.get(old.id)
      if (now === undefined) continue
      kept++
      if (!isSamePet(old, now)) changed++
    }
    return { added: next.size - kept, removed: this.size - kept, changed }
  }
}

export function isSamePet(a: Pet, b: Pet): boolean {
  return a.id === b.id && a.name === b.name && a.categoryId === b.categoryId && a.status === b.status
}

/** The position of the first pet with a higher id. */
function firstAfter(pets: readonly Pet[], id: Int64): number {
  let low = 0
  let high = pets.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const pet = pets[middle]
    if (pet !== undefined && pet.id <= id) low = middle + 1
    else high = middle
  }
  return low
}

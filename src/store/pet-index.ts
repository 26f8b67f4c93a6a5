/** Finds pets by id, and for each status, so that a page costs its length and a filter costs nothing. */
import type { Int64 } from '../json/int64.ts'
import { isSamePet, petStatuses, type Pet, type PetStatus } from '../pet/pet.ts'
import type { PetPage, PetQuery } from './store.ts'

/**
 * Works on the array of its owner, without a copy. DataFile, lowdb and this class share one: a store appends
 * to it, and showAdded() lists what was appended.
 */
export class PetIndex {
  /** By ascending id. Those beyond #size are on their way to the disk, and not to be seen yet. */
  readonly #pets: readonly Pet[]
  #size = 0
  readonly #byStatus = new Map<PetStatus, Pet[]>(petStatuses.map((status) => [status, []]))

  constructor(pets: readonly Pet[]) {
    this.#pets = pets
    this.showAdded()
  }

  get size(): number {
    return this.#size
  }

  get highestListedId(): Int64 {
    return this.#pets[this.#size - 1]?.id ?? 0
  }

  showAdded(): void {
    for (; this.#size < this.#pets.length; this.#size++) {
      const pet = this.#pets[this.#size]
      if (pet !== undefined) this.#byStatus.get(pet.status)?.push(pet)
    }
  }

  get(id: Int64): Pet | undefined {
    // A pet is at the position of its id unless an edit has left a gap before it. So most are found without a
    // search, which takes longer among a million pets than among a hundred (test/bench/growth.ts).
    const index = Number(id) - 1
    const expected = index < this.#size ? this.#pets[index] : undefined
    if (expected?.id === id) return expected
    const pet = this.#pets[firstAfter(this.#pets, id, this.#size) - 1]
    return pet?.id === id ? pet : undefined
  }

  list({ limit, status, after = 0 }: PetQuery): PetPage {
    const matches = status === undefined ? this.#pets : (this.#byStatus.get(status) ?? [])
    const total = status === undefined ? this.#size : matches.length
    const from = firstAfter(matches, after, total)
    const pets = matches.slice(from, Math.min(from + limit, total))
    return { pets, total, hasMore: from + limit < total }
  }

  changesTo(next: PetIndex): { added: number; removed: number; changed: number } {
    let common = 0
    let changed = 0
    for (const old of this.#pets) {
      const now = next.get(old.id)
      if (now === undefined) continue
      common++
      if (!isSamePet(old, now)) changed++
    }
    return { added: next.size - common, removed: this.size - common, changed }
  }
}

/** Returns the position of the first pet with a higher id. */
function firstAfter(pets: readonly Pet[], id: Int64, count: number): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    const pet = pets[middle]
    if (pet !== undefined && pet.id <= id) low = middle + 1
    else high = middle
  }
  return low
}

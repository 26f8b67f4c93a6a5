/** Lists, filters and counts, against a plain array that does the same the slow way. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pet } from '../src/options/types.ts'
import { petStatuses } from '../src/pet/pet.ts'
import { PetIndex } from '../src/store/pet-index.ts'
import { limitEachTest } from './time-limit.ts'

limitEachTest()

const pets = Array.from({ length: 50 }, (_, index): Pet => {
  const status = petStatuses[(index * 7) % 3] ?? 'sold'
  // Gaps between the ids, and the last beyond 2^53.
  const id = index < 45 ? index * 3 + 1 : 2n ** 60n + BigInt(index)
  return { id, name: `pet ${index}`, categoryId: index, status }
})

test('lists as a filter over all pets would', () => {
  const index = new PetIndex(pets)
  for (const status of [undefined, ...petStatuses]) {
    for (const after of [undefined, 0, 1, 2, 66, 133, 134, 2n ** 60n + 47n, 2n ** 63n - 1n]) {
      for (const limit of [1, 7, 100]) {
        const all = pets.filter((pet) => status === undefined || pet.status === status)
        const behind = all.filter((pet) => after === undefined || pet.id > after)
        const expected = {
          pets: behind.slice(0, limit),
          total: all.length,
          hasMore: behind.length > limit,
        }
        assert.deepEqual(index.list({ limit, status, after }), expected, `${limit} ${status} ${after}`)
      }
    }
  }
})

test('finds each pet by its id, and no other', () => {
  const index = new PetIndex(pets)
  for (const pet of pets) assert.equal(index.get(pet.id), pet)
  for (const id of [0, 2, 134, 2n ** 60n, 2n ** 63n - 1n]) assert.equal(index.get(id), undefined)
  assert.equal(new PetIndex().get(1), undefined)
  assert.equal(new PetIndex().highestId, 0)
})

test('counts what an edit added, removed and changed', () => {
  const index = new PetIndex(pets)
  const [first, second, third, ...rest] = pets
  assert.ok(first && second && third)
  const changed = { ...third, name: 'another' }
  const last: Pet = { id: 2n ** 62n, name: 'new', categoryId: 1, status: 'sold' }
  const edited = new PetIndex([second, changed, ...rest, last])
  assert.deepEqual(index.changesTo(edited), { added: 1, removed: 1, changed: 1 })
  assert.deepEqual(index.changesTo(index), { added: 0, removed: 0, changed: 0 })
  assert.deepEqual(index.changesTo(new PetIndex()), { added: 0, removed: 50, changed: 0 })
  assert.deepEqual(new PetIndex().changesTo(index), { added: 50, removed: 0, changed: 0 })
})

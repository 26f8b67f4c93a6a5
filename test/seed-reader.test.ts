/** The fast reader of one pet takes what the schema takes, and nothing else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maxInt64, minInt64 } from '../src/json/int64.ts'
import { JsonReader } from '../src/json/json.ts'
import { parseSeed } from '../src/pet/pet-rules.ts'
import { petMembers, petStatuses, type EachMember } from '../src/pet/pet.ts'
import { readPlainPet } from '../src/pet/seeds.ts'
import { createRandom } from './support.ts'

const limits = [maxInt64, maxInt64 + 1n, minInt64, minInt64 - 1n].map(String)
const numbers = ['0', '-0', '1', '-1', '7', '12.0', '1e2', '1.5', '9007199254740993', '1e999', ...limits]
const others = ['null', 'true', '[]', '{}', '"5"', '{"name":"Rex"}']
const statuses = petStatuses.map((status) => `"${status}"`)
const characters = ['a', 'Z', '0', ' ', '\t', '\n', '\0', '\u007f', '"', '\\', '/', '<', '.', '-', "'"]
const rareCharacters = ['é', '\u0301', '\u200b', '\u202e', '\ufeff', '\uffff', '🐾', '\ud83d', '\udc3e']

/** A missing member may be undefined. */
function withoutUndefined(pet: object): object {
  return Object.fromEntries(Object.entries(pet).filter(([, value]) => value !== undefined))
}

for (const seed of [1]) {
  test(`the fast reader takes exactly the pets that the schema takes, with seed ${seed}`, () => {
    const random = createRandom(seed)
    const pick = (values: readonly string[]): string => values[random(values.length)] ?? ''
    const createName = (): string => {
      const alphabet = random(2) === 0 ? characters : [...characters, ...rareCharacters]
      return JSON.stringify(Array.from({ length: random(2 ** random(10)) }, () => pick(alphabet)).join(''))
    }
    // Of a hundred values, this many are of another member or of none.
    const strangePercent = 6
    const strangeValues = [...others, ...numbers, ...statuses, '"lost"', '"Sold"']
    const createValues: EachMember<() => string> = {
      id: () => pick(numbers),
      name: createName,
      categoryId: () => pick(numbers),
      status: () => pick(statuses),
    }
    const createPet = (): string => {
      const members = petMembers.filter((member) => random(100) < (member === 'id' ? 50 : 90))
      const space = pick(['', ' ', '\r\n\t'])
      const texts = members.map((member) => {
        const value = random(100) < strangePercent ? pick(strangeValues) : createValues[member]()
        return `${space}"${member}"${space}:${space}${value}`
      })
      if (random(100) < strangePercent) texts.push('"color":"brown"')
      // In any order: each begins with another.
      const from = random(texts.length)
      texts.push(...texts.splice(0, from))
      return `{${texts.join(`${space},`)}${space}}`
    }
    let taken = 0
    const count = 3000
    for (let i = 0; i < count; i++) {
      const text = createPet()
      let isFaulty = false
      const checked = parseSeed(new JsonReader(Buffer.from(text)).readValue(), () => (isFaulty = true))
      const reader = new JsonReader(Buffer.from(text))
      const pet = readPlainPet(reader)
      assert.deepEqual(pet && withoutUndefined(pet), isFaulty ? undefined : checked, text)
      if (pet === undefined) continue
      taken++
      assert.equal(reader.at, Buffer.byteLength(text), text)
    }
    // Otherwise these pets would not show much.
    assert.ok(taken > count / 10 && taken < (count * 9) / 10, `${taken} of ${count} taken`)
  })
}

/** The text of the data file, without a file: what is a torn append and what is a person's slip. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pet } from '../src/types.ts'
import {
  closingText,
  formatAppend,
  formatPetsText,
  healPetsText,
  maxAppendPets,
  parsePetsText,
  PetsFault,
} from '../src/data-file/pets-text.ts'
import { petLine } from './file-system.ts'

const pet: Pet = { id: 2, name: 'Mia', categoryId: 1, status: 'available' }
const head = `{\n  "pets": [\n    ${petLine(1, 'Rex')}`
const closing = closingText.toString()
const append = formatAppend([pet], false).toString()

/** Where a torn append begins in it; undefined when it is a mistake, or none. */
function findTorn(text: string): number | undefined {
  try {
    parsePetsText(Buffer.from(text, 'latin1'))
    return undefined
  } catch (error) {
    assert.ok(error instanceof PetsFault)
    return error.tornAt
  }
}

/** A text whose first pet ends so many bytes before the border of a sector. */
function headBefore(border: number): string {
  return head.replace('Rex', 'x'.repeat(512 - border - head.length + 3))
}

test('reads back what it wrote', () => {
  const text = Buffer.from(head + append)
  const { pets, end, isAppendable } = parsePetsText(text)
  assert.deepEqual(pets[1], pet)
  assert.equal(isAppendable, true)
  assert.equal(end, text.length - closing.length)
  assert.deepEqual(formatPetsText(text, parsePetsText(text)), text)
})

test('takes each cut of an append for torn, and heals it to the last whole pet', () => {
  const wholePet = append.length - closing.length
  for (let length = 0; length < append.length; length++) {
    const text = head + append.slice(0, length)
    const tornAt = findTorn(text)
    // The line feed at the very end may be missing.
    if (length === append.length - 1) assert.equal(tornAt, undefined)
    else assert.equal(tornAt, head.length + (length < wholePet ? 0 : wholePet), JSON.stringify(text))
    if (tornAt === undefined) continue
    const healed = parsePetsText(healPetsText(Buffer.from(text), tornAt))
    assert.equal(healed.pets.length, length < wholePet ? 1 : 2)
  }
})

test('takes a mixture of old closing and new pet for torn only at the border of a sector', () => {
  for (let cut = 1; cut <= closing.length; cut++) {
    const border = headBefore(cut)
    const newBehindOld = closing.slice(0, cut) + append.slice(cut)
    const oldBehindNew = append.slice(0, cut) + closing.slice(cut)
    assert.equal(findTorn(border + newBehindOld), border.length, `${cut}`)
    if (cut < closing.length) assert.equal(findTorn(border + oldBehindNew), border.length, `${cut}`)
    assert.equal(findTorn(`${headBefore(cut + 20)}${newBehindOld}`), undefined, `${cut}`)
  }
  for (const slip of [',\n  ]\n}\n', ',\n ]\n}\n', ',]\n}\n', `\n\n    ${petLine(2, 'Mia')}${closing}`]) {
    assert.equal(findTorn(head + slip), undefined, JSON.stringify(slip))
  }
})

describe('takes NULs for torn', () => {
  const cases: readonly [what: string, text: string, isTorn: boolean][] = [
    ['from the old end to the end', `${head}${closing}${'\0'.repeat(30)}`, true],
    ['from a border to the end', `${headBefore(20)}${append.slice(0, 20)}${'\0'.repeat(40)}`, true],
    ['a whole sector', `${headBefore(0)}${'\0'.repeat(512)}${append.slice(30)}`, true],
    ['not within a sector', `${head}${append.slice(0, 12)}\0\0\0${append.slice(15)}`, false],
    [
      'not from a border to somewhere',
      `${headBefore(20)}${append.slice(0, 20)}\0\0\0${append.slice(23)}`,
      false,
    ],
    ['not before the first pet', `{"pets":[${'\0'.repeat(503)}${petLine(1, 'Rex')}]}`, false],
  ]
  for (const [what, text, isTorn] of cases) {
    test(what, () => assert.equal(findTorn(text) !== undefined, isTorn))
  }
})

test('takes nothing for torn that has more pets behind it than one append', () => {
  const start = `${headBefore(0)}${'\0'.repeat(512)}`
  const torn = (count: number): string => start + `,\n    ${petLine(2, 'x')}`.repeat(count) + closing
  assert.equal(findTorn(torn(maxAppendPets)), 512)
  assert.equal(findTorn(torn(maxAppendPets + 1)), undefined)
})

test('takes a cut of the first append for torn, but not a file that a person began', () => {
  const empty = '{\n  "pets": ['
  const first = formatAppend([pet], true).toString()
  for (let length = closing.length; length < first.length - closing.length; length++) {
    assert.equal(findTorn(empty + first.slice(0, length)), empty.length)
  }
  for (const text of [empty, `${empty}\n`, `${empty}{"name":"Mia","cat`, '{"pets":', '{']) {
    assert.equal(findTorn(text), undefined, text)
  }
})

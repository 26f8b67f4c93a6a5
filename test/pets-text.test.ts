/** The text of the data file, without a file: what is read from it, and what is appended. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatAppend, formatPetsText, parsePetsText, PetsTextInvalid } from '../src/data-file/pets-text.ts'
import type { Pet } from '../src/types.ts'
import { petLine } from './file-system.ts'

const pet: Pet = { id: 2, name: 'Mia', categoryId: 1, status: 'available' }
const head = `{\n  "pets": [\n    ${petLine(1, 'Rex')}`
const closing = '\n  ]\n}\n'

function findErrors(text: string): PetsTextInvalid {
  try {
    parsePetsText(Buffer.from(text))
  } catch (error) {
    assert.ok(error instanceof PetsTextInvalid)
    return error
  }
  throw new assert.AssertionError({ message: `valid: ${text}` })
}

test('reads back what it wrote', () => {
  const text = Buffer.from(head + formatAppend([pet], false).toString())
  const { pets, end, isAppendable } = parsePetsText(text)
  assert.deepEqual(pets[1], pet)
  assert.equal(isAppendable, true)
  assert.equal(end, text.length - closing.length)
  assert.deepEqual(formatPetsText(text, parsePetsText(text)), text)
})

test('fills in ids above those in the file and above those given before', () => {
  const text = Buffer.from(
    `{"pets":[{"name":"a","categoryId":1},${petLine(7, 'b')},{"name":"c","categoryId":1}]}`,
  )
  const ids = (highestId: number): unknown =>
    parsePetsText(text, highestId).pets.map(({ id, name }) => `${id}${name}`)
  assert.deepEqual(ids(0), ['7b', '8a', '9c'])
  assert.deepEqual(ids(20), ['7b', '21a', '22c'])
})

test('names all errors together, each with its line and column', () => {
  const text = [
    '{"dogs": [], "pets": [',
    '  {"name": "Rex", "categoryId": "x", "age": 3},',
    '  5,',
    '  {"id": 4, "name": "Mia", "categoryId": 1},',
    '  {"id": 4, "id": 5, "categoryId": 1.5, "status": "lost"},',
    '  {"id": 4, "name": "Kit", "categoryId": 1},',
    ']}',
  ]
  assert.deepEqual(
    findErrors(text.join('\n')).faults.map(({ line, column, message }) => `${line}:${column} ${message}`),
    [
      '1:2 dogs: is not a member of the file',
      '2:19 pets[0].categoryId: expected an int64 integer, got "x"',
      '2:38 pets[0].age: is not a member of a pet',
      '3:3 pets[1]: expected a pet, got 5',
      '5:3 pets[3].name: is required',
      '5:13 pets[3].id: is given twice',
      '5:22 pets[3].categoryId: expected an int64 integer, got 1.5',
      '5:41 pets[3].status: expected available, pending or sold, got "lost"',
      '6:3 pets[4].id: 4 is given twice',
      '7:1 expected a pet after the comma, got "]"',
    ],
  )
})

test('names the first ten errors, and counts all', () => {
  const { faults, faultCount } = findErrors(`{"pets":[${Array.from({ length: 25 }, () => '0').join()}]}`)
  assert.equal(faults.length, 10)
  assert.equal(faultCount, 25)
})

/** The text of the data file, without a file: what is read from it, and what is appended. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatAppend } from '../src/data-file/appender.ts'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { formatFile, formatWithIds, parseUsableFileText, parseFileText } from '../src/data-file/file-text.ts'
import type { Pet } from '../src/options/types.ts'
import { petStatusChoice } from '../src/pet/pet.ts'
import { petLine } from './file-system.ts'
import { formatDataFile, isThorough } from './support.ts'

const pet: Pet = { id: 2, name: 'Mia', categoryId: 1, status: 'available' }
const head = `{\n  "pets": [\n    ${petLine(1, 'Rex')}`
const closing = '\n  ]\n}\n'

/** The errors in a text, a line each. */
function findErrors(text: string): readonly string[] {
  try {
    parseUsableFileText('pets.json', Buffer.from(text))
  } catch (error) {
    assert.ok(error instanceof DataFileUnusable)
    return error.message.split('\n')
  }
  throw new assert.AssertionError({ message: `valid: ${text}` })
}

test('reads back what it wrote', () => {
  const text = Buffer.from(head + formatAppend([pet], false).toString())
  const parsed = parseUsableFileText('pets.json', text)
  assert.deepEqual(parsed.pets[1], pet)
  assert.equal(parsed.petsEnd, text.length - closing.length)
  assert.deepEqual(parsed.tail, Buffer.from(closing))
  assert.deepEqual(formatWithIds(parsed), text)
})

test('writes any number of pets as if they were appended', () => {
  for (const count of [0, 1, 127, 128, 129, 300]) {
    const pets = Array.from({ length: count }, (_, index) => ({ ...pet, id: index + 1 }))
    const lines = pets.map(({ id }) => petLine(id, 'Mia'))
    assert.equal(
      Buffer.concat([...formatFile(pets)]).toString(),
      count === 0 ? '{\n  "pets": [\n  ]\n}\n' : formatDataFile(...lines),
    )
  }
})

test('fills in ids above those in the file and above those given before', () => {
  const text = Buffer.from(
    `{"pets":[{"name":"a","categoryId":1},${petLine(7, 'b')},{"name":"c","categoryId":1}]}`,
  )
  const ids = (highestId: number): unknown =>
    parseFileText(text, highestId).pets.map(({ id, name }) => `${id}${name}`)
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
  assert.deepEqual(findErrors(text.join('\n')), [
    'pets.json:1:2: dogs: is not a member of the file',
    'pets.json:2:19: pets[0].categoryId: expected an int64 integer, got "x"',
    'pets.json:2:38: pets[0].age: is not a member of a pet',
    'pets.json:3:3: pets[1]: expected a pet, got 5',
    'pets.json:5:3: pets[3].name: is required',
    'pets.json:5:13: pets[3].id: is given twice',
    'pets.json:5:22: pets[3].categoryId: expected an int64 integer, got 1.5',
    `pets.json:5:41: pets[3].status: expected ${petStatusChoice}, got "lost"`,
    'pets.json:6:3: pets[4].id: 4 is given twice, first in line 4, column 3',
    'pets.json:7:1: expected a pet after the comma, got "]"',
  ])
})

test('loses no error of several, whichever comes first', () => {
  const last = petLine(9223372036854775807n, 'a')
  const wrongTexts: Readonly<Record<string, readonly string[]>> = {
    '5': ['1:1: expected "{", got "5"'],
    '{"dogs":1}': ['1:1: pets: is required', '1:2: dogs: is not a member of the file'],
    '{"$schema":5,"pets":5,"dogs":1}': [
      '1:12: $schema: expected a string',
      '1:21: pets: expected an array',
      '1:23: dogs: is not a member of the file',
    ],
    '{"$schema":"a","$schema":"b","pets":[],"pets":[5]}': [
      '1:16: $schema: is given twice',
      '1:40: pets: is given twice',
    ],
    '{"pets":[{"id":1,"id":2,"id":3,"name":"a"}]}': [
      '1:10: pets[0].categoryId: is required',
      '1:18: pets[0].id: is given twice',
      '1:25: pets[0].id: is given twice',
    ],
    '{"pets":[{"id":1,"name":"a","name":"b","categoryId":1},{"id":1,"name":"c","categoryId":1},5]}': [
      '1:29: pets[0].name: is given twice',
      '1:56: pets[1].id: 1 is given twice, first in line 1, column 10',
      '1:91: pets[2]: expected a pet, got 5',
    ],
    '{"pets":[{"id":1,"name":"a","name":}]}': [
      '1:29: pets[0].name: is given twice',
      '1:36: expected a value, got "}"',
    ],
    '\ufeff\ufeff{"pets":[]}': ['1:1: expected "{", got U+FEFF'],
    '\ufeff{"pets":x}': ['1:9: pets: expected an array', '1:9: expected a value, got "x"'],
    '{"pets":[]\u00a0}': ['1:11: expected "," or "}", got U+00A0'],
    '{"pets":[\u2800]}': ['1:10: expected a value, got U+2800'],
    '{"pets":[{"name":"a","categoryId":1,"sta\u00adtus":"sold"}]}': [
      '1:37: pets[0].sta<U+00AD>tus: is not a member of a pet',
    ],
    '{"pets":[{"name":"a","categoryId":1,"status":"\u{e0020}sold 🐾\u2028"}]}': [
      '1:37: pets[0].status: expected available, pending or sold, got "<U+E0020>sold 🐾<U+2028>"',
    ],
    '{"pets":["ab"]}': ['1:10: pets[0]: expected a pet, got "ab"'],
    '{"pets":[],"dogs":[}': ['1:12: dogs: is not a member of the file', '1:20: expected a value, got "}"'],
    '{"dogs":1,"pets":[{]}': [
      '1:2: dogs: is not a member of the file',
      '1:20: expected a member name in double quotes, got "]"',
    ],
    [`{"pets":[5,${last},{"name":"b","categoryId":1}]}`]: [
      '1:10: pets[0]: expected a pet, got 5',
      `1:${12 + last.length + 2}: pets[2]: no id is left for it`,
    ],
    [`{"pets":[${last},\n{"name":"b","categoryId":1},\n5]}`]: [
      '2:2: pets[1]: no id is left for it',
      '3:1: pets[2]: expected a pet, got 5',
    ],
  }
  for (const [text, errors] of Object.entries(wrongTexts)) {
    assert.deepEqual(
      findErrors(text),
      errors.map((error) => `pets.json:${error}`),
      text,
    )
  }
})

test('names the ids of a large list that was pasted twice, each with its first place', () => {
  const count = isThorough ? 100_000 : 20_000
  const pets = Array.from({ length: count }, (_, index) => petLine(index + 1, 'a')).join(',\n')
  const errors = findErrors(`{"pets":[\n${pets},\n${pets}]}`)
  assert.equal(
    errors[0],
    `pets.json:${count + 2}:1: pets[${count}].id: 1 is given twice, first in line 2, column 1`,
  )
  assert.equal(errors.at(-1), `pets.json: and ${count - 10} more errors`)
})

test('names the first pet for which no id is left, and keeps the last id for the one before it', () => {
  const first = `{"pets":[${petLine(9223372036854775806n, 'a')},{"name":"b","categoryId":1},`
  assert.deepEqual(findErrors(`${first}{"name":"c","categoryId":1}]}`), [
    `pets.json:1:${first.length + 2}: pets[2]: no id is left for it`,
  ])
})

test('names the error that ends the reading, also after ten others', () => {
  const errors = findErrors(`{"pets":[${Array.from({ length: 12 }, () => '0').join()},]}`)
  assert.deepEqual(errors.slice(9), [
    'pets.json:1:34: expected a pet after the comma, got "]"',
    'pets.json: and 3 more errors',
  ])
})

test('names the first ten errors, and counts the others', () => {
  const errors = findErrors(`{"pets":[${Array.from({ length: 25 }, () => '0').join()}]}`)
  assert.equal(errors.length, 11)
  assert.equal(errors.at(-1), 'pets.json: and 15 more errors')
  const eleven = findErrors(`{"pets":[${Array.from({ length: 11 }, () => '0').join()}]}`)
  assert.equal(eleven.at(-1), 'pets.json: and 1 more error')
})

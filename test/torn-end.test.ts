/** What a crash or a copy leaves of an append is repaired; a person's mistake is not, however much it looks like that. */
import assert from 'node:assert/strict'
import { constants } from 'node:buffer'
import { test } from 'node:test'
import { closingBrackets, FileText, maxAppendPets, parseFileText } from '../src/data-file/file-text.ts'
import { formatAppend } from '../src/data-file/appender.ts'
import { findTornEnd, type TornEnd } from '../src/data-file/torn-end.ts'
import type { Pet } from '../src/options/types.ts'
import { petLine } from './file-system.ts'

function pet(id: number): Pet {
  return { id, name: `pet ${id} "ä\\ö🐕"`, categoryId: 1, status: 'available' }
}

const closing = closingBrackets.toString()
const empty = '{\n  "pets": ['
const head = `${empty}\n    ${petLine(1, 'Rex')}`
const append = formatAppend([pet(2)], false).toString()

/** How many pets stay, where the damage begins and what it is; undefined when it is not repaired. */
function repair(text: string | Buffer): { count: number; petsEnd: number; cause: TornEnd } | undefined {
  const torn = new FileText(Buffer.from(text))
  const cause = findTornEnd(torn)
  if (cause === undefined) return undefined
  const { pets } = parseFileText('pets.json', Buffer.concat(torn.formatWithIds(closingBrackets)))
  return { count: pets.length, petsEnd: torn.petsEnd, cause }
}

/** A text whose first pet ends so many bytes before a sector does. */
function headBefore(border: number): string {
  return head.replace('Rex', 'x'.repeat(512 - border - head.length + 3))
}

test('repairs an append that is cut off at any byte', () => {
  const bytes = Buffer.from(append)
  const wholePet = bytes.length - closing.length
  for (let length = 0; length < bytes.length - 1; length++) {
    const text = Buffer.concat([Buffer.from(head), bytes.subarray(0, length)])
    const isWhole = length >= wholePet
    const expected = {
      count: isWhole ? 2 : 1,
      petsEnd: head.length + (isWhole ? wholePet : 0),
      cause: isWhole || length === 0 ? 'brackets' : 'append',
    }
    assert.deepEqual(repair(text), expected, JSON.stringify(text.toString()))
  }
  for (let length = closing.length; length < bytes.length - closing.length - 1; length++) {
    const text = Buffer.concat([Buffer.from(empty), Buffer.from(append.slice(1)).subarray(0, length)])
    assert.equal(repair(text)?.count, 0, text.toString())
  }
})

test('takes what is too long for a text of Node for no append', () => {
  const torn = new FileText(Buffer.from(`${head},\n  {"id":2,"na`))
  assert.equal(findTornEnd(torn), undefined)
  Object.defineProperty(torn, 'tail', { value: Buffer.alloc(constants.MAX_STRING_LENGTH + 1) })
  assert.equal(findTornEnd(torn), undefined)
})

test('gives a file its closing brackets that lacks them, or a part of them, in any layout', () => {
  for (const tail of ['', '\n', ' ', '\n  ]', ']', '\r\n\t]\r\n', '\n\n\n\n\n\n\n\n\n]']) {
    assert.deepEqual(
      repair(head + tail),
      { count: 1, petsEnd: head.length, cause: 'brackets' },
      JSON.stringify(tail),
    )
  }
})

test('repairs every mixture of closing brackets and opening bytes that a partial write or roll back leaves', () => {
  for (const [start, opening] of [
    [head, append.slice(0, 7)],
    [empty, append.slice(1, 8)],
  ] as const) {
    for (let written = 0; written <= 7; written++) {
      for (let rolledBack = 0; rolledBack <= written; rolledBack++) {
        const tail =
          closing.slice(0, rolledBack) + opening.slice(rolledBack, written) + closing.slice(written)
        const text = start + tail
        if (isValid(text)) continue
        const { count, petsEnd } = repair(text) ?? {}
        assert.deepEqual([count, petsEnd], [start === head ? 1 : 0, start.length], JSON.stringify(tail))
      }
    }
  }
})

function isValid(text: string): boolean {
  try {
    parseFileText('pets.json', Buffer.from(text))
    return true
  } catch {
    return false
  }
}

test('cuts a copy whose parts were read between appends where the first of them ends', () => {
  const texts = [head + closing]
  for (let id = 2; id < 12; id++) {
    texts.push(texts.at(-1)?.slice(0, -closing.length) + formatAppend([pet(id)], false).toString())
  }
  const versions = texts.map((text) => Buffer.from(text))
  const last = versions.at(-1) ?? Buffer.alloc(0)
  for (const step of [1, 2, 3]) {
    // `cp` reads to the end, finds that there is more, and reads on.
    const parts: Buffer[] = []
    let length = 0
    for (let index = 0; index < versions.length; index += step) {
      const version = versions[index] ?? last
      parts.push(version.subarray(length))
      length = version.length
    }
    parts.push(last.subarray(length))
    assert.deepEqual(
      repair(Buffer.concat(parts)),
      { count: 1, petsEnd: head.length, cause: 'copy' },
      `${step}`,
    )
  }
})

test('repairs an append of which a sector that ends within the closing brackets was not written', () => {
  for (let border = 1; border <= closing.length; border++) {
    const start = headBefore(border)
    for (const length of [20, append.length]) {
      const text = start + closing.slice(0, border) + append.slice(border, length)
      assert.deepEqual(repair(text)?.petsEnd, start.length, JSON.stringify(text))
    }
  }
})

test('cuts a copy that ends in the middle of an append where a page ends, and in no other place', () => {
  const start = headBefore(50)
  for (const length of [4096, 4095, 4097]) {
    const text =
      start +
      closing +
      formatAppend([{ ...pet(2), name: 'x'.repeat(5000) }], false)
        .toString()
        .slice(7)
    const cause = length === 4096 ? 'copy' : undefined
    assert.equal(repair(text.slice(0, length))?.cause, cause)
  }
})

test("cuts a copy that has a person's closing brackets and then the rest of the first append", () => {
  for (const theirs of [']}', ']}\n', '\n]\n}\n', '\r\n]\r\n}\r\n', '\n    ]\n}\n']) {
    assert.deepEqual(
      repair(head + theirs + append.slice(theirs.length)),
      { count: 1, petsEnd: head.length, cause: 'copy' },
      JSON.stringify(theirs),
    )
  }
})

test('repairs sectors that were never written, and no other NULs', () => {
  const cases: readonly [text: string, isRepaired: boolean][] = [
    [`${head}${closing}${'\0'.repeat(30)}`, true],
    [`${headBefore(20)}${append.slice(0, 20)}${'\0'.repeat(40)}`, true],
    [`${headBefore(0)}${'\0'.repeat(512)}${append.slice(30)}`, true],
    [`${head}${append.slice(0, 12)}\0\0\0${append.slice(15)}`, false],
    [`${headBefore(20)}${append.slice(0, 20)}\0\0\0${append.slice(23)}`, false],
    [`${'x'.repeat(512)}\0`, false],
  ]
  for (const [text, isRepaired] of cases) assert.equal(repair(text) !== undefined, isRepaired, text)
})

test('does not cut off more pets than one append can hold: they were acknowledged', () => {
  const start = `${headBefore(0)}${'\0'.repeat(512)}`
  const torn = (count: number): string => start + `,\n    ${petLine(2, 'x')}`.repeat(count) + closing
  assert.equal(repair(torn(maxAppendPets))?.petsEnd, 512)
  assert.equal(repair(torn(maxAppendPets + 1)), undefined)
})

test('leaves a mistake in the middle alone, wherever a sector ends', () => {
  const mia = petLine(2, 'Mia')
  for (let border = 1; border <= 12; border++) {
    const start = headBefore(border)
    for (const gap of ['\r\n    ', ' \n    ', '\t\n    ', ']\n    ', '}\n    ', '\n    ', ';\n    ']) {
      const text = `${start}${gap}${mia},\n    ${petLine(3, 'Tom')}${closing}`
      assert.equal(repair(text), undefined, `${border} ${JSON.stringify(gap)}`)
    }
    const withoutQuotes = `${start},\n    ${mia.replace('"Mia"', 'Mia')},\n    ${petLine(3, 'Tom')}${closing}`
    assert.equal(repair(withoutQuotes), undefined, `${border}`)
  }
})

test('leaves a pet alone that was pasted after the end', () => {
  for (const text of [
    `${head}\n  ]\n}${petLine(2, 'Mia')}\n`,
    `${head}\n ]\n}\n${petLine(2, 'Mia')}\n`,
    `{"pets":[]}\n  ${petLine(2, 'Mia')}\n`,
    `{"pets": [\n]\n}\n${petLine(2, 'Mia')}`,
  ]) {
    assert.equal(repair(text), undefined, text)
  }
})

test("leaves a person's mistake alone", () => {
  const mia = petLine(2, 'Mia')
  const mistakes = [
    // Trailing commas.
    `${head},\n  ]\n}\n`,
    `${head},]\n}\n`,
    `${head},\n]}\n`,
    // Missing commas.
    `${head}\n    ${mia}${closing}`,
    `${head}\n\n    ${mia}${closing}`,
    `${head} ${mia}${closing}`,
    // Values that are not valid, in an otherwise torn text.
    `${head.replace('available', 'lost')},\n    {"id":2`,
    // Beginnings.
    empty,
    `${empty}\n`,
    `${empty}{"name":"Mia","cat`,
    '{"pets":',
    '{',
    // Something behind the end.
    `${head}${closing}x`,
    `${head}${closing}${mia}`,
    `${head}${closing}}`,
    // A forgotten comma, in the layout of a file with CRLF, and with deeper indents.
    `${head}\r\n    ${mia}${closing}`,
    `${head}\n     ${mia}${closing}`,
  ]
  for (const text of mistakes) assert.equal(repair(text), undefined, text)
})

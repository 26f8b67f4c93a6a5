/**
 * What a crash, a lost sector or a copy leaves is repaired, and no whole pet is taken out; a person's mistake is not, however much it looks
 * like that.
 */
import assert from 'node:assert/strict'
import { constants } from 'node:buffer'
import { describe, test } from 'node:test'
import {
  closingBrackets,
  parseFileText,
  maxAppendPets,
  parseUsableFileText,
} from '../src/data-file/file-text.ts'
import { formatAppend } from '../src/data-file/appender.ts'
import { findDamage } from '../src/data-file/damage.ts'
import type { Pet } from '../src/options/types.ts'
import { isValidFile, petLine } from './file-system.ts'
import { formatDataFile, share } from './support.ts'

function pet(id: number): Pet {
  return { id, name: `pet ${id} "ä\\ö🐕"`, categoryId: 1, status: 'available' }
}

const closing = closingBrackets.toString()
const empty = '{\n  "pets": ['
const head = `${empty}\n    ${petLine(1, 'Rex')}`
const append = formatAppend([pet(2)], false).toString()

/** How many pets stay, where the damage begins and what it is; undefined when it is not repaired. */
function repair(text: string | Buffer): { count: number; petsEnd: number; isOfCopy: boolean } | undefined {
  const torn = parseFileText(Buffer.from(text))
  const damage = findDamage(torn)
  if (damage === undefined) return undefined
  const { pets } = parseUsableFileText('pets.json', damage.repaired)
  return { count: pets.length, petsEnd: torn.petsEnd, isOfCopy: damage.isOfCopy }
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
      isOfCopy: false,
    }
    assert.deepEqual(repair(text), expected, JSON.stringify(text.toString()))
  }
  for (let length = closing.length; length < bytes.length - closing.length - 1; length++) {
    const text = Buffer.concat([Buffer.from(empty), Buffer.from(append.slice(1)).subarray(0, length)])
    assert.equal(repair(text)?.count, 0, text.toString())
  }
})

test('takes what is too long for a text of Node for no append', () => {
  const torn = parseFileText(Buffer.from(`${head},\n  {"id":2,"na`))
  assert.equal(findDamage(torn), undefined)
  const tail = Buffer.alloc(constants.MAX_STRING_LENGTH + 1)
  assert.equal(findDamage({ ...torn, tail }), undefined)
})

test('gives a file its closing brackets that lacks them, or a part of them, in any layout', () => {
  for (const tail of ['', '\n', ' ', '\n  ]', ']', '\r\n\t]\r\n', '\n\n\n\n\n\n\n\n\n]']) {
    assert.deepEqual(
      repair(head + tail),
      { count: 1, petsEnd: head.length, isOfCopy: false },
      JSON.stringify(tail),
    )
  }
})

test('leaves a save alone that was cut off before its first pet, however far the next line was indented', () => {
  for (const space of ['', '\n    ', `\n${' '.repeat(16)}`]) assert.equal(repair(empty + space), undefined)
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
        if (isValidFile(text)) continue
        const { count, petsEnd } = repair(text) ?? {}
        assert.deepEqual([count, petsEnd], [start === head ? 1 : 0, start.length], JSON.stringify(tail))
      }
    }
  }
})

test('keeps each whole pet of a copy whose parts were read between appends', () => {
  const texts = [head + closing]
  for (let id = 2; id < 12; id++) {
    texts.push(texts.at(-1)?.slice(0, -closing.length) + formatAppend([pet(id)], false).toString())
  }
  const versions = texts.map((text) => Buffer.from(text))
  const last = versions.at(-1) ?? Buffer.alloc(0)
  for (const step of [1, 2, 3]) {
    // `cp` reads to the end, finds that there is more, and reads on. The first pet of each further part lacks its beginning.
    const parts: Buffer[] = []
    let length = 0
    let count = 1
    let read = 0
    for (let index = 0; index < versions.length; index += step) {
      const version = versions[index] ?? last
      parts.push(version.subarray(length))
      length = version.length
      count += Math.max(0, index - read - 1)
      read = index
    }
    parts.push(last.subarray(length))
    count += Math.max(0, versions.length - 1 - read - 1)
    assert.deepEqual(repair(Buffer.concat(parts)), { count, petsEnd: head.length, isOfCopy: true }, `${step}`)
  }
})

test('keeps more pets than one append can hold in a copy that was read before and after them', () => {
  const count = 3 * maxAppendPets
  const later = Array.from({ length: count }, (_, index) => pet(index + 2))
  const after = Buffer.from(head + formatAppend(later, false).toString())
  const before = Buffer.from(head + closing)
  // The first of them lacks its beginning.
  const copy = Buffer.concat([before, after.subarray(before.length)])
  assert.deepEqual(repair(copy), { count, petsEnd: head.length, isOfCopy: true })
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
    const isOfCopy = length === 4096 ? true : undefined
    assert.equal(repair(text.slice(0, length))?.isOfCopy, isOfCopy)
  }
})

test('keeps the whole pets of a copy whose last append is cut off where a page ends', () => {
  const long = { ...pet(4), name: 'x'.repeat(5000) }
  const appended = formatAppend([pet(2), pet(3), long], false).toString()
  const text = Buffer.from(headBefore(50) + closing + appended.slice(closing.length))
  // Of the first pet, `cp` read the old end instead of the beginning.
  assert.equal(repair(text.subarray(0, 4096))?.count, 2)
  assert.equal(repair(text.subarray(0, 4095)), undefined)
})

test('leaves a copy alone in which somebody forgot a comma, or left one over', () => {
  const appended = formatAppend([pet(2), pet(3), pet(4), pet(5)], false).toString()
  const copy = head + closing + appended.slice(closing.length)
  assert.equal(repair(copy)?.count, 4)
  assert.equal(repair(copy.replace('},\n    {"id":4', '}\n    {"id":4')), undefined)
  assert.equal(repair(`${copy.slice(0, -closing.length)},${closing}`), undefined)
})

test('leaves a mistake alone where a page ends, in the file or with it', () => {
  const start = head.replace('Rex', 'x'.repeat(4095 - head.length + 3))
  for (const mistake of [';', ':', '.'])
    assert.equal(repair(`${start}${mistake}${append.slice(1)}`), undefined, mistake)
  // At the end of the file, nothing of an append follows.
  const withBrace = (length: number): string =>
    `${head.replace('Rex', 'x'.repeat(length - head.length + 3))}}\n  ]\n}\n`
  assert.equal(repair(withBrace(4096 - 8)), undefined)
})

test("repairs a copy that has a person's closing brackets of any length, and then the rest of an append", () => {
  const three = formatAppend([pet(2), pet(3), pet(4)], false).toString()
  for (const theirs of [
    '\r\n    ]\r\n}\r\n',
    '\n        ]\n}\n',
    '\n\t\t]\n}\n\n\n\n\n\n',
    '\r\n        ]\r\n    }\r\n',
  ]) {
    const what = JSON.stringify(theirs)
    const expected = { petsEnd: head.length, isOfCopy: true }
    assert.deepEqual(repair(head + theirs + three.slice(theirs.length)), { count: 3, ...expected }, what)
    assert.deepEqual(repair(head + theirs + append.slice(theirs.length)), { count: 1, ...expected }, what)
    // Two files, one behind the other, and other texts behind the end are no copies.
    const whole = head + theirs
    for (const behind of [whole, `x${closing}`, `${petLine(2, 'x')}${closing}`, `1,"name":"x"}${closing}`])
      assert.equal(repair(whole + behind), undefined, what + behind)
  }
})

test('repairs a copy that was read to a page that ends within the closing brackets, and later on', () => {
  const many = formatAppend(
    Array.from({ length: 300 }, (_, index) => pet(index + 2)),
    false,
  ).toString()
  for (const theirs of [closing, '\r\n  ]\r\n}\r\n', '\n\t]\n}\n', '\r\n    ]\r\n}\r\n']) {
    for (let length = 1; length < theirs.length; length++) {
      const start = head.replace('Rex', 'x'.repeat(4096 - length - head.length + 3))
      const copy = start + theirs.slice(0, length) + many.slice(length)
      const count = length <= 6 ? 301 : 300
      assert.deepEqual(repair(copy), { count, petsEnd: start.length, isOfCopy: true }, `${theirs} ${length}`)
    }
  }
})

test("keeps the pet of a copy that has a person's closing brackets and then the rest of the first append, if it is whole", () => {
  for (const theirs of [']}', ']}\n', '\n]\n}\n', '\r\n]\r\n}\r\n', '\n    ]\n}\n']) {
    assert.deepEqual(
      repair(head + theirs + append.slice(theirs.length)),
      { count: append.indexOf('{') < theirs.length ? 1 : 2, petsEnd: head.length, isOfCopy: true },
      JSON.stringify(theirs),
    )
  }
})

test('leaves an append alone that lacks its first sector and has a hole besides', () => {
  const start = headBefore(3)
  const long = { ...pet(2), name: 'x'.repeat(2_000) }
  const appended = formatAppend([long, pet(3)], false).toString()
  const text = start + closing.slice(0, 3) + appended.slice(3)
  assert.equal(repair(text)?.count, 3)
  const whole = start + appended
  for (const [lacking, count] of [
    [text, undefined],
    [whole, 2],
  ] as const) {
    const holed = lacking.slice(0, 1024) + '\0'.repeat(512) + lacking.slice(1536)
    assert.equal(repair(holed)?.count, count)
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
    ['\0'.repeat(700), false],
    ['\0'.repeat(4096), false],
  ]
  for (const [text, isRepaired] of cases) assert.equal(repair(text) !== undefined, isRepaired, text)
})

test('leaves more pets than one append can hold alone behind a hole', () => {
  const start = `${headBefore(0)}${'\0'.repeat(512)}`
  const torn = (count: number): string => {
    const lines = Array.from({ length: count }, (_, index) => `,\n    ${petLine(index + 2, 'x')}`)
    return start + lines.join('') + closing
  }
  assert.deepEqual(repair(torn(maxAppendPets)), { count: maxAppendPets + 1, petsEnd: 512, isOfCopy: false })
  assert.equal(repair(torn(maxAppendPets + 1)), undefined)
})

/** How a file of many pets may look. The last two are no list with ascending ids. */
const layouts: readonly [what: string, format: (pets: readonly Pet[]) => string][] = [
  ['ours', (pets) => formatDataFile(...pets.map((one) => JSON.stringify(one)))],
  ['in one line', (pets) => JSON.stringify({ $schema: './pets.schema.json', pets })],
  ['indented', (pets) => JSON.stringify({ pets }, null, 4)],
  ['with CRLF', (pets) => JSON.stringify({ pets }, null, '\t').replaceAll('\n', '\r\n')],
  ['with the ids from the highest on', (pets) => JSON.stringify({ pets: pets.toReversed() }, null, 1)],
  [
    'without ids',
    (pets) => JSON.stringify({ pets: pets.map((one) => ({ ...one, id: undefined })) }, null, 1),
  ],
]

describe('takes out a hole, wherever it is, and keeps each whole pet before and behind it', () => {
  const pets = Array.from({ length: 100 }, (_, index): Pet => {
    const name = index % 7 === 0 ? `{"id":${index},"}, {` : `pet ${index} "ä\\ö🐕"`
    return { id: index + 1, name, categoryId: index, status: 'available' }
  })
  for (const [what, format] of layouts) {
    test(`in a file ${what}`, () => {
      const text = Buffer.from(format(pets))
      const spans = petSpans(text)
      assert.equal(spans.length, pets.length)
      const holes: { from: number; to: number }[] = []
      for (const sectors of [1, 2, 8])
        for (let from = 0; from < text.length; from += 512)
          holes.push({ from, to: Math.min(from + 512 * sectors, text.length) })
      for (const { from, to } of share(holes, 40)) {
        const holed = Buffer.from(text).fill(0, from, to)
        const torn = parseFileText(holed)
        const damage = findDamage(torn)
        const whole = spans.filter(({ start, end }) => end <= from || start >= to)
        if (damage === undefined) {
          assert.equal(whole.length === 0 || text.indexOf('[') >= 512, true, `${from} to ${to}`)
          continue
        }
        const repaired = parseUsableFileText('pets.json', damage.repaired)
        assert.deepEqual(sortedNames(repaired.pets), sortedNames(whole), `${from} to ${to}`)
        const rest = damage.damaged.length
        assert.ok(rest <= to - from + 500, `${from} to ${to}: ${rest} bytes`)
        if (what.startsWith('with the ids') || what === 'without ids') continue
        const lost = pets.filter(({ name }) => !whole.some((one) => one.name === name))
        const [first] = lost
        const last = lost.at(-1)
        const isLast = to > (spans.at(-1)?.start ?? 0)
        let expected = `ids ${first?.id} to ${last?.id} were there, or were never given`
        if (lost.length === 1) expected = `id ${first?.id} was there, or was never given`
        if (lost.length === 0) expected = 'no id is missing there'
        if (isLast) expected = `ids above ${pets.length - lost.length} may be given again`
        assert.equal(damage.missingWords, expected, `${from} to ${to}`)
      }
    })
  }
})

function sortedNames(pets: readonly { readonly name: string }[]): readonly string[] {
  return pets.map(({ name }) => name).toSorted()
}

/** Where each pet stands in the text, by its name. */
function petSpans(text: Buffer): readonly { name: string; start: number; end: number }[] {
  const latin1 = text.toString('latin1')
  return [...latin1.matchAll(/\{\s*"(?:id|name)"(?:[^"}]|"(?:[^"\\]|\\.)*")*\}/g)].map((match) => {
    const { name } = JSON.parse(Buffer.from(match[0], 'latin1').toString())
    return { name, start: match.index, end: match.index + match[0].length }
  })
}

/** What is found in a file of these pets that lacks one sector, which begins with this part of the pet with this index. */
function holeBefore(pets: readonly Pet[], index: number, part: string) {
  const lines = pets.map((each) => JSON.stringify(each))
  // The name of the first pet moves the place to the bounds of a sector.
  for (let length = 0; length < 512; length++) {
    const moved = lines.with(0, JSON.stringify({ ...pets[0], name: 'x'.repeat(length) }))
    const text = formatDataFile(...moved)
    const from = text.indexOf(part, text.indexOf(moved[index] ?? ''))
    if (from % 512 === 0) return findDamage(parseFileText(Buffer.from(text).fill(0, from, from + 512)))
  }
  throw new Error('no such place')
}

test('takes out a hole that begins behind the sign, the dot or the e of a number', () => {
  const pets = Array.from({ length: 60 }, (_, index) => ({ ...pet(index + 1), categoryId: -7 }))
  assert.equal(holeBefore(pets, 20, '7,"status"')?.isOfCopy, false)
  const part = '0,"status"'
  for (const number of ['1.0', '1e0']) {
    const filler = 'x'.repeat(512)
    const text = formatDataFile(
      petLine(1, filler),
      `{"id":2,"name":"a","categoryId":${number},"status":"sold"}`,
    )
    const at = text.indexOf(part, text.indexOf('"id":2'))
    const moved = text.replace(filler, 'x'.repeat(512 + 512 - (at % 512)))
    const from = moved.indexOf(part, moved.indexOf('"id":2'))
    assert.equal(from % 512, 0)
    assert.equal(findDamage(parseFileText(Buffer.from(moved).fill(0, from)))?.isOfCopy, false, number)
  }
})

test('takes out a hole in a pet behind which 128 whole ones stand, and none before more', () => {
  for (const [behind, isOfCopy] of [
    [maxAppendPets, false],
    [maxAppendPets + 1, undefined],
  ] as const) {
    const pets = Array.from({ length: behind + 20 }, (_, index) => ({ ...pet(index + 1), name: 'x' }))
    const long = { ...pet(20), name: 'y'.repeat(800) }
    const damage = holeBefore(pets.with(19, long), 19, 'yyy')
    assert.equal(damage?.isOfCopy, isOfCopy, `${behind}`)
    if (damage !== undefined) assert.equal(damage.missingWords, 'id 20 was there, or was never given')
  }
})

test('takes no object in a member of its own for a pet, where a hole is in the pet', () => {
  const pets = Array.from({ length: 40 }, (_, index) => ({ ...pet(index + 1), name: 'x' }))
  const long = { visits: [{ day: 1 }, { day: 2 }], ...pet(20), name: 'y'.repeat(800) }
  assert.equal(
    holeBefore(pets.with(19, long), 19, 'yyy')?.missingWords,
    'id 20 was there, or was never given',
  )
})

test('takes out no pet with a mistake just behind a hole', () => {
  const mistakes = ['{"id":3,"name":"Rex","categoryId":"x"}', '{"id":3,"name":"Rex" "categoryId":1}']
  const behind = `,\n    ${petLine(4, 'Mia')}${closing}`
  assert.equal(repair(`${headBefore(0)}${'\0'.repeat(512)}${behind}`)?.count, 2)
  for (const wrong of mistakes)
    assert.equal(repair(`${headBefore(0)}${'\0'.repeat(512)},\n    ${wrong}${behind}`), undefined, wrong)
})

test('leaves a mistake between the last pet and a hole alone', () => {
  const wrong = [3, 4, 5].map((id) => petLine(id, 'x').replaceAll('"', "'")).join(',\n    ')
  for (const mistake of [`,\n    ${wrong},`, '\n', ';']) {
    const torn = `${head}${mistake}\n    {"id":6,"name":"`
    const start = torn.padEnd(Math.ceil(torn.length / 512) * 512, 'x')
    const behind = `xxx","categoryId":1,"status":"sold"},\n    ${petLine(7, 'Mia')}${closing}`
    assert.equal(repair(`${start}${'\0'.repeat(512)}${behind}`), undefined, mistake)
  }
})

test('names no ids of a hole in a file whose ids do not ascend', () => {
  const orders = [
    [2, 1, ...Array.from({ length: 40 }, (_, index) => index + 3)],
    [1, 2, 100, ...Array.from({ length: 38 }, (_, index) => index + 3), 101, 102, 103, 104],
    [...Array.from({ length: 20 }, (_, index) => index + 1), 60, 61, 62, 63, 64, 65, 66, 30, 31, 32, 33, 34],
  ]
  for (const ids of orders) {
    const text = Buffer.from(formatDataFile(...ids.map((id) => JSON.stringify(pet(id)))))
    for (let from = 512; from + 1024 < text.length; from += 512) {
      const damage = findDamage(parseFileText(Buffer.from(text).fill(0, from, from + 512)))
      const holed = parseUsableFileText('pets.json', damage?.repaired ?? Buffer.alloc(0))
      const kept = ids.filter((id) => holed.pets.some((each) => each.id === id))
      const doAscend = kept.every((id, index) => index === 0 || id > (kept[index - 1] ?? 0))
      if (!doAscend) assert.equal(damage?.missingWords, 'pets may have been there', `${from}`)
    }
  }
})

test('says that no id is missing where a hole has taken white space only', () => {
  const behind = `,\n    ${petLine(2, 'Mia')}${closing}`
  const damage = findDamage(parseFileText(Buffer.from(`${headBefore(0)}${'\0'.repeat(512)}${behind}`)))
  assert.equal(damage?.missingWords, 'no id is missing there')
})

test('names the highest id behind a hole where the end is cut off, too', () => {
  const behind = `,\n    ${petLine(9, 'Mia')},\n    {"id":10,"na`
  const damage = findDamage(parseFileText(Buffer.from(`${headBefore(0)}${'\0'.repeat(512)}${behind}`)))
  const expected = 'ids 2 to 8 were there, or were never given, ids above 9 may be given again'
  assert.equal(damage?.missingWords, expected)
})

test('names no ids of a hole behind a pet whose id is still to be filled in', () => {
  const withoutId = `,\n    {"name":"${'x'.repeat(400)}","categoryId":1}`
  const before = Buffer.from(head + withoutId)
  const padded = `${head}${withoutId.replace('x', 'x'.repeat(513 - (before.length % 512)))}`
  const text = `${padded}${'\0'.repeat(512)},\n    ${petLine(9, 'Mia')}${closing}`
  assert.equal(findDamage(parseFileText(Buffer.from(text)))?.missingWords, 'pets may have been there')
})

test('never lets text before and behind a hole join into a pet', () => {
  const lines = Array.from({ length: 40 }, (_, index) => petLine(index + 1, 'x'.repeat(20 + (index % 9))))
  const text = Buffer.from(formatDataFile(...lines))
  const known = new Set(lines)
  for (let from = 512; from < text.length - 512; from += 512) {
    const damage = findDamage(parseFileText(Buffer.from(text).fill(0, from, from + 512)))
    const repaired = (damage?.repaired ?? Buffer.alloc(0)).toString()
    for (const line of repaired.match(/\{"id".*\}/g) ?? []) assert.ok(known.has(line), line)
  }
})

test('leaves anything else alone than one hole on the bounds of sectors', () => {
  const lines = Array.from({ length: 100 }, (_, index) => petLine(index + 1, `pet ${index}`))
  const text = formatDataFile(...lines)
  const fill = (from: number, to: number, filler = '\0', on = text): string =>
    on.slice(0, from) + filler.repeat(to - from) + on.slice(to)
  const holed = fill(1536, 2048)
  assert.ok((repair(holed)?.count ?? 0) > 85)
  const cutAppend = holed.replace(
    closing,
    formatAppend([pet(101)], false)
      .toString()
      .slice(0, 30),
  )
  const sectorEnd = Math.ceil(cutAppend.length / 512) * 512
  const others: readonly [what: string, text: string][] = [
    ['two holes', fill(4096, 4608, '\0', holed)],
    ['a hole, and another at the end of an append', `${cutAppend.padEnd(sectorEnd, 'x')}${'\0'.repeat(20)}`],
    ['a hole that begins within a sector', fill(1500, 2048)],
    ['a hole that ends within a sector', fill(1536, 2100)],
    ['a sector of spaces', fill(1536, 2048, ' ')],
    ['a sector of something else', fill(1536, 2048, 'x')],
    ['a stale sector', text.slice(0, 1536) + text.slice(512, 1024) + text.slice(2048)],
    ['a missing quote behind the hole', holed.replace('"pet 80"', 'pet 80"')],
    ['a missing comma behind the hole', holed.replace(/("pet 80".*\}),/, '$1')],
    ['a missing quote before the hole', holed.replace('"pet 3"', 'pet 3"')],
    ['a wrong value behind the hole', holed.replace(/("pet 80".*)"available"/, '$1"lost"')],
    ['a wrong value before the hole', holed.replace(/("pet 3".*)"available"/, '$1"lost"')],
    ['an id twice behind the hole', holed.replace('"id":80,', '"id":70,')],
    ['an id behind the hole that stands before it', holed.replace('"id":80,', '"id":2,')],
    ['a trailing comma behind the hole', holed.replace('\n  ]\n}\n', ',\n  ]\n}\n')],
    ['text behind the end', `${holed}x`],
  ]
  for (const [what, other] of others) {
    assert.notEqual(other, holed, what)
    assert.equal(repair(other), undefined, what)
  }
})

test('reads a hole, and what looks like one, in time that is proportional to it', () => {
  const start = headBefore(0) + '\0'.repeat(512)
  const measure = (count: number): number => {
    const text = parseFileText(Buffer.from(`${start}${'"name":"{x'.repeat(count)}`))
    const before = performance.now()
    assert.equal(findDamage(text)?.isOfCopy, false)
    return performance.now() - before
  }
  measure(1000)
  const short = Math.min(measure(20_000), measure(20_000), measure(20_000))
  assert.ok(Math.min(measure(200_000), measure(200_000)) < 100 * short + 100)
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
    `${empty}\n  ]`,
    `${empty}\n  ]\n `,
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
    // A forgotten brace.
    `${head}\n    ${mia.slice(1)}${closing}`,
    `${head}\n    ${mia.slice(1)},\n    ${petLine(3, 'Tom')}${closing}`,
  ]
  for (const text of mistakes) assert.equal(repair(text), undefined, text)
})

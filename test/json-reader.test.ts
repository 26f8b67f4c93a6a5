/** Exact JSON: held against JSON.parse for what it reads and refuses, and against BigInt for its integers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInt64, maxInt64, minInt64, parseNumber } from '../src/json/int64.ts'
import { JsonFault, JsonReader, parseJson, lineAndColumnOf } from '../src/json/json.ts'
import { InexactNumber } from '../src/text/words.ts'
import { createRandom } from './support.ts'

const seed = 20_301_205

/** What this throws, if anything. */
function failureOf(read: () => unknown): unknown {
  try {
    read()
    return undefined
  } catch (error) {
    return error
  }
}

/** As JSON.parse rounds it, as text: so the order of members counts, and -0 is 0. */
const round = (exact: unknown): string =>
  JSON.stringify(exact, (_, value: unknown) => {
    if (value instanceof InexactNumber) return Number(value.text)
    return typeof value === 'bigint' ? Number(value) : value
  })

/** Random JSON texts, all of the grammar of RFC 8259 in them. */
function createTexts(random: (bound: number) => number): () => string {
  const pick = <T>(items: readonly [T, ...T[]]): T => items[random(items.length)] ?? items[0]
  const repeat = (most: number, make: () => string, separator = ''): string =>
    Array.from({ length: random(most + 1) }, make).join(separator)
  const space = (): string => repeat(2, () => pick([' ', '\n', '\r', '\t']))
  const digits = (most: number): string => repeat(most, () => String(random(10)))
  const number = (): string => {
    const whole = pick(['0', `${1 + random(9)}${digits(pick([2, 17, 25]))}`])
    const fraction = pick(['', '', `.${random(10)}${digits(pick([1, 20]))}`, '.0'])
    const exponent = pick(['', '', '', `${pick(['e', 'E'])}${pick(['', '+', '-'])}${random(30)}`])
    return `${pick(['', '-'])}${whole}${fraction}${exponent}`
  }
  const character = (): string =>
    pick([
      () => String.fromCharCode(0x20 + random(95)).replace(/["\\]/, 'x'),
      () => pick(['ä', '€', '🐾', '\u2028', '\u007f', '\ufeff']),
      () => `\\${pick(['"', '\\', '/', 'b', 'f', 'n', 'r', 't'])}`,
      () => `\\u${random(0x10000).toString(16).padStart(4, '0')}`,
    ])()
  const string = (): string => `"${repeat(6, character)}"`
  const key = (): string => pick([string(), '"a"', '"1"', '"__proto__"', '"constructor"', '""'])
  const value = (depth: number): string => {
    const member = (): string => `${key()}${space()}:${value(depth - 1)}`
    const kinds = [
      () => pick(['true', 'false', 'null']),
      () => `[${repeat(3, () => value(depth - 1), ',')}]`,
      () => `{${space()}${repeat(3, member, ',')}}`,
    ]
    return space() + pick([number, number, string, ...kinds.slice(0, depth > 0 ? 3 : 1)])() + space()
  }
  return () => value(4)
}

test('reads what JSON.parse reads, and rounds nothing', () => {
  const next = createTexts(createRandom(seed))
  for (let i = 0; i < 4000; i++) {
    const text = next()
    assert.equal(round(parseJson(Buffer.from(text))), JSON.stringify(JSON.parse(text)), text)
  }
})

test('refuses what JSON.parse refuses, of texts with a byte changed, dropped, added or cut', () => {
  const random = createRandom(seed + 1)
  const next = createTexts(random)
  const bytes = '{}[]",:\\0123456789+-.eEtrufalsn \n\u0001\u000b\u00a0\ufeff/*\'x'
  let refused = 0
  for (let i = 0; i < 6000; i++) {
    const text = next()
    const at = random(text.length + 1)
    const added = random(2) === 0 ? '' : bytes[random(bytes.length)]
    const rest = random(4) === 0 ? '' : text.slice(at + random(2))
    // As UTF-8 has it: a cut surrogate pair is U+FFFD.
    const mutant = Buffer.from(`${text.slice(0, at)}${added}${rest}`)
    const isRefused = failureOf(() => JSON.parse(mutant.toString())) !== undefined
    const fault = failureOf(() => parseJson(mutant))
    assert.equal(fault !== undefined, isRefused, mutant.toString())
    assert.equal(fault instanceof JsonFault, isRefused, mutant.toString())
    if (isRefused) refused++
  }
  assert.ok(refused > 2000 && refused < 5500, `${refused} were refused`)
})

test('knows a text that is right as far as it goes from one that is wrong', () => {
  const random = createRandom(seed + 2)
  const next = createTexts(random)
  for (let i = 0; i < 2000; i++) {
    // A literal that is cut off is none.
    const text = Buffer.from(`[${next().replace(/true|false|null/g, '5')}]`)
    const cut = text.subarray(0, random(text.length))
    const fault = failureOf(() => parseJson(cut))
    assert.equal(fault instanceof JsonFault && fault.offset, cut.length, cut.toString())
  }
})

/** How far it goes, or the fault. */
function outcomeOf(read: (reader: JsonReader) => unknown, text: Buffer): unknown {
  const reader = new JsonReader(text)
  const fault = failureOf(() => read(reader))
  return fault instanceof JsonFault ? [fault.message, fault.offset] : reader.at
}

test('goes past a value as far as it would read it, or finds the same fault', () => {
  const random = createRandom(seed + 7)
  const next = createTexts(random)
  let faults = 0
  for (let i = 0; i < 3000; i++) {
    const text = Buffer.from(`${next()} 5`)
    if (random(2) === 0) text[random(text.length)] = 0x20 + random(0x60)
    const read = outcomeOf((reader) => reader.readValue(), text)
    assert.deepEqual(
      outcomeOf((reader) => reader.skipValue(), text),
      read,
      text.toString(),
    )
    if (typeof read !== 'number') faults++
  }
  assert.ok(faults > 200 && faults < 2800, `${faults} had a fault`)
})

test('goes past values in any depth, each closed by its own bracket', () => {
  for (let depth = 60; depth < 140; depth++) {
    // Arrays and objects in turn, the innermost of either kind.
    const kinds = Array.from({ length: depth }, (_, level) => (level * 7) % 3 === 0)
    const start = kinds.map((isArray) => (isArray ? '[' : '{"a":')).join('')
    const end = kinds.toReversed().map((isArray) => (isArray ? ']' : '}'))
    const text = Buffer.from(`${start}5${end.join('')} 5`)
    assert.equal(
      outcomeOf((reader) => reader.skipValue(), text),
      text.length - 2,
    )
    for (let level = 0; level < depth; level++) {
      const wrong = Buffer.from(`${start}5${end.with(level, end[level] === ']' ? '}' : ']').join('')}`)
      assert.ok(Array.isArray(outcomeOf((reader) => reader.skipValue(), wrong)), `${depth} ${level}`)
    }
  }
})

test('keeps integers exact, held against BigInt', () => {
  const random = createRandom(seed + 3)
  for (let i = 0; i < 4000; i++) {
    const digits = Array.from({ length: 1 + random(22) }, () => random(10)).join('')
    const text = `${random(2) === 0 ? '-' : ''}${digits.replace(/^0+(?=\d)/, '')}`
    const integer = BigInt(text)
    const value = parseNumber(text)
    if (integer > maxInt64 * 10n || integer < minInt64 * 10n) continue
    assert.deepEqual(new JsonReader(Buffer.from(text)).readValue(), value)
    if (value instanceof InexactNumber) assert.ok(integer > maxInt64 || integer < minInt64, text)
    else assert.equal(BigInt(value), integer)
    assert.equal(isInt64(value), integer <= maxInt64 && integer >= minInt64, text)
    assert.equal(typeof value === 'number', Number.isSafeInteger(Number(text)), text)
  }
})

test('a number is read with its exponent and its zeros, or kept as the text that it is', () => {
  const exact = {
    '0e999999999': 0,
    '150e-1': 15,
    '0.00000000000000000001e20': 1,
    '1e-2': 0.01,
    '-9007199254740993.0': -(2n ** 53n) - 1n,
  }
  for (const [text, value] of Object.entries(exact)) assert.equal(parseNumber(text), value)
  for (const text of ['-1e999999999', '1e-999999999', '0.99999999999999999999', '123456789012345678.5'])
    assert.deepEqual(parseNumber(text), new InexactNumber(text))
  assert.deepEqual(parseJson(Buffer.from('[-0,-0.0]')), [0, 0])
})

test('names the character that is wrong, whatever comes behind it', () => {
  const fault = new JsonFault('expected a value, got "x"', 1)
  assert.throws(() => parseJson(Buffer.from([0x5b, 0x78, 0xff])), fault)
})

test('a byte that is not UTF-8 is found behind characters of any length, in a string and outside', () => {
  const codes = [0x61, 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff]
  const characters = codes.map((code) => String.fromCodePoint(code))
  // A byte of no character, one that begins none, and characters that are cut off by the next one.
  for (const bad of [[0xff], [0x80], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x90]])
    for (const text of ['', ...characters, 'aä€🐾']) {
      const start = Buffer.from(`"${text}`)
      const inside = new JsonReader(Buffer.concat([start, Buffer.from([...bad, 0x22])]))
      assert.throws(() => inside.readString(), new JsonFault('expected UTF-8', start.length), text)
      const behind = new JsonReader(Buffer.concat([start, Buffer.from([0x22, ...bad])]))
      assert.equal(behind.readString(), text)
      const escaped = new JsonReader(
        Buffer.concat([Buffer.from('"\\n'), start.subarray(1), Buffer.from([...bad, 0x22])]),
      )
      assert.throws(() => escaped.readString(), new JsonFault('expected UTF-8', start.length + 2), text)
      assert.throws(() => behind.readEnd(), new JsonFault('expected UTF-8', start.length + 1), text)
    }
})

for (const [text, expected] of [
  ['\r\n{\n\r  "ä": tru\n}', '4:8 expected a value, got "t"'],
  ['{"a" 1}', '1:6 expected ":", got "1"'],
  ['["🐾\\x"]', '1:4 expected an escape such as \\n or \\u00e4'],
  ['["a\tb"]', '1:4 expected an escape such as \\n instead of a control character in a string'],
  ['[🐾]', '1:2 expected a value, got "🐾"'],
  ['[1e+x]', '1:2 expected a number, got 1e+'],
] as const)
  test(`names the place of the fault in ${JSON.stringify(text)}`, () => {
    const bytes = Buffer.from(text)
    const fault = failureOf(() => parseJson(bytes))
    assert.ok(fault instanceof JsonFault)
    const { line, column } = lineAndColumnOf(bytes, fault.offset)
    assert.equal(`${line}:${column} ${fault.message}`, expected)
  })

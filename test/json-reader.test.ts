/** Exact JSON: held against JSON.parse for what it reads and refuses, and against BigInt for its integers. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  JsonFault,
  JsonReader,
  parseJson,
  placeOf,
  InexactNumber,
  isInt64,
  maxInt64,
  minInt64,
  nextInt64,
  parseNumber,
} from '../src/json/json.ts'
import { createRandom } from './support.ts'

const seed = 20_301_205

/** Whether the exact value is the one that JSON.parse rounded. */
function isSame(exact: unknown, rounded: unknown): boolean {
  if (typeof exact === 'bigint') return Number(exact) === rounded
  if (exact instanceof InexactNumber) return Number(exact.text) === rounded
  if (typeof exact !== 'object' || exact === null) return exact === rounded
  if (typeof rounded !== 'object' || rounded === null) return false
  if (Array.isArray(exact) !== Array.isArray(rounded)) return false
  const others = Object.entries(rounded)
  const entries = Object.entries(exact)
  return (
    entries.length === others.length &&
    entries.every(([key, value], i) => key === others[i]?.[0] && isSame(value, others[i]?.[1]))
  )
}

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
  const key = (): string => pick([string, () => pick(['"a"', '"1"', '"__proto__"', '"constructor"', '""'])])()
  const value = (depth: number): string => {
    const kinds = [number, string, () => pick(['true', 'false', 'null'])]
    if (depth > 0) {
      const member = (): string => `${key()}${space()}:${value(depth - 1)}`
      kinds.push(
        () => `[${repeat(3, () => value(depth - 1), ',')}]`,
        () => `{${space()}${repeat(3, member, ',')}}`,
      )
    }
    return space() + pick([number, ...kinds])() + space()
  }
  return () => value(4)
}

function isFault(read: () => unknown): boolean {
  try {
    read()
    return false
  } catch (error) {
    if (!(error instanceof JsonFault || error instanceof SyntaxError)) throw error
    return true
  }
}

describe('parseJson', () => {
  test('reads what JSON.parse reads, and rounds nothing', () => {
    const next = createTexts(createRandom(seed))
    for (let i = 0; i < 4000; i++) {
      const text = next()
      const rounded: unknown = JSON.parse(text)
      assert.ok(isSame(parseJson(Buffer.from(text)), rounded), text)
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
      const byte = bytes[random(bytes.length)] ?? ''
      const kinds = [text.slice(0, at), text.slice(0, at) + text.slice(at + 1)]
      kinds.push(text.slice(0, at) + byte + text.slice(at), text.slice(0, at) + byte + text.slice(at + 1))
      // As UTF-8 has it: a cut surrogate pair is U+FFFD.
      const mutant = Buffer.from(kinds[random(kinds.length)] ?? '')
      const isRefused = isFault(() => JSON.parse(mutant.toString()))
      if (isRefused) refused++
      assert.equal(
        isFault(() => parseJson(mutant)),
        isRefused,
        mutant.toString(),
      )
    }
    assert.ok(refused > 2000 && refused < 5500, `${refused} were refused`)
  })

  test('knows a text that is right as far as it goes from one that is wrong', () => {
    const random = createRandom(seed + 2)
    const next = createTexts(random)
    for (let i = 0; i < 2000; i++) {
      const text = Buffer.from(`[${next()}]`)
      const cut = text.subarray(0, random(text.length))
      assert.throws(
        () => parseJson(cut),
        (error) => error instanceof JsonFault && error.offset === cut.length,
        cut.toString(),
      )
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

  test('reads -0 as 0, with a small and with a large number beside it', () => {
    for (const beside of ['1', '12345678901234567890', '1e2'])
      for (const zero of ['-0', '-0.0']) {
        const value = parseJson(Buffer.from(`[${zero},${beside}]`))
        assert.ok(Array.isArray(value))
        assert.ok(Object.is(value[0], 0), `${zero} beside ${beside}`)
      }
  })

  test('reads `__proto__` as a member and leaves prototypes alone', () => {
    for (const number of ['1', '12345678901234567890']) {
      const value = parseJson(Buffer.from(`{"__proto__":{"polluted":${number}},"a":{"__proto__":null}}`))
      assert.ok(typeof value === 'object' && value !== null)
      assert.equal(Object.getPrototypeOf(value), Object.prototype)
      assert.deepEqual(Object.keys(value), ['__proto__', 'a'])
      assert.equal('polluted' in {}, false)
    }
  })

  test('reads any depth, with a small and with a large number inside', () => {
    for (const inner of ['1', '12345678901234567'])
      for (const [open, close] of [
        ['[', ']'],
        ['{"a":', '}'],
      ] as const) {
        const text = open.repeat(30_000) + inner + close.repeat(30_000)
        let value = parseJson(Buffer.from(text))
        let depth = 0
        while (typeof value === 'object' && value !== null && !(value instanceof InexactNumber)) {
          depth++
          value = Object.values(value)[0]
        }
        assert.equal(depth, 30_000)
        assert.equal(String(value), inner)
      }
  })
})

describe('parseNumber', () => {
  const exact: Record<string, number | bigint> = {
    '0': 0,
    '-0': 0,
    '-0.0e-5': 0,
    '5.0': 5,
    '1e2': 100,
    '1E+2': 100,
    '1.5e1': 15,
    '150e-1': 15,
    '0.1e1': 1,
    '-1e0': -1,
    '1.5': 1.5,
    '1e-2': 0.01,
    '9007199254740991': 9007199254740991,
    '9007199254740992': 9007199254740992n,
    '-9007199254740993': -9007199254740993n,
    '9007199254740993.0': 9007199254740993n,
    '9.223372036854775807e18': maxInt64,
    '9223372036854775807': maxInt64,
    '-9223372036854775808': minInt64,
    '9223372036854775808': 9223372036854775808n,
    '0e999999999': 0,
  }
  for (const [text, value] of Object.entries(exact))
    test(`reads ${text} as ${value}`, () => assert.equal(parseNumber(text), value))

  const inexact = [
    '1e400',
    '-1e999999999',
    '1e99999999999999999999',
    '1e-400',
    '1e-999999999',
    '1.0000000000000000001',
    '0.99999999999999999999',
    '123456789012345678.5',
    '12345678901234567890123',
  ]
  for (const text of inexact)
    test(`does not round ${text}`, () => {
      const value = parseNumber(text)
      assert.ok(value instanceof InexactNumber)
      assert.equal(value.text, text)
      assert.equal(isInt64(value), false)
    })
})

test('the next id crosses 2^53 exactly and ends at 2^63-1', () => {
  assert.equal(nextInt64(9007199254740990), 9007199254740991)
  assert.equal(nextInt64(9007199254740991), 9007199254740992n)
  assert.equal(nextInt64(9007199254740992n), 9007199254740993n)
  assert.equal(nextInt64(maxInt64), undefined)
})

test('a byte that is not UTF-8 is found behind characters of any length, in a string and outside', () => {
  const texts = [
    '',
    'a',
    '\u007f',
    '\u0080',
    '\u07ff',
    '\u0800',
    '\uffff',
    '\u{10000}',
    '\u{10ffff}',
    'aä€🐾',
  ]
  // A byte of no character, one that begins none, and characters that are cut off by the next one.
  for (const bad of [[0xff], [0x80], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x90]])
    for (const text of texts) {
      const bytes = Buffer.concat([Buffer.from(`"${text}`), Buffer.from(bad), Buffer.from('"')])
      const fault = new JsonFault('expected UTF-8', bytes.length - 1 - bad.length)
      assert.throws(() => new JsonReader(bytes).readValue(), fault, text)
      const unquoted = Buffer.concat([Buffer.from(`"${text}"`), Buffer.from(bad)])
      const reader = new JsonReader(unquoted)
      assert.equal(reader.readString(), text)
      assert.throws(
        () => reader.readEnd(),
        new JsonFault('expected UTF-8', unquoted.length - bad.length),
        text,
      )
    }
})

describe('a fault names its place', () => {
  const cases: [text: string, place: string][] = [
    ['', '1:1 expected a value, got the end'],
    ['{\n  "ä": tru\n}', '2:8 expected a value, got "t"'],
    ['{"a" 1}', '1:6 expected ":", got "1"'],
    ['[1.]', '1:2 expected a number, got 1.'],
    ['["🐾\\x"]', '1:4 expected an escape such as \\n or \\u00e4'],
    ['["a\tb"]', '1:4 expected an escape such as \\n instead of a control character in a string'],
    ['["a', '1:4 expected the closing quote, got the end'],
    ['[🐾]', '1:2 expected a value, got "🐾"'],
    ['\r\n[NaN]', '2:2 expected a value, got "N"'],
    ['[nul', '1:5 expected a value, got the end'],
    ['[nulx]', '1:2 expected a value, got "n"'],
    ['{"a":}', '1:6 expected a value, got "}"'],
    ['{"a":1 "b"}', '1:8 expected "," or "}", got "\\""'],
    ['["\\u12g4"]', '1:3 expected an escape such as \\n or \\u00e4'],
    ['[1e+x]', '1:2 expected a number, got 1e+'],
    ['[1e+', '1:5 expected a number, got 1e+'],
    ['[01', '1:2 expected a number, got 01'],
    ['[1.e', '1:2 expected a number, got 1.e'],
  ]
  for (const [text, expected] of cases)
    test(JSON.stringify(text), () => {
      const bytes = Buffer.from(text)
      assert.throws(
        () => parseJson(bytes),
        (error) => {
          assert.ok(error instanceof JsonFault)
          const { line, column } = placeOf(bytes, error.offset)
          assert.equal(`${line}:${column} ${error.message}`, expected)
          return true
        },
      )
    })
})

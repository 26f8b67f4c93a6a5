/** Exact JSON (RFC 8259), with the place of every error. */
import buffer from 'node:buffer'
import { InexactNumber, nameCodePoint, unseen } from '../text/words.ts'
import { parseNumber } from './int64.ts'

/**
 * The text is not JSON from this offset on. An offset at its length means that the text ends too soon: what
 * is there is right, except perhaps its last number, or the UTF-8 of a string without an end.
 */
export class JsonFault extends Error {
  readonly offset: number
  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/**
 * Returns what `JSON.parse` does, but with numbers as parseNumber reads them. The bytes have to be UTF-8.
 * Throws a JsonFault.
 */
export function parseJson(bytes: Buffer): unknown {
  const text = bytes.toString()
  // JSON.parse is several times faster, and differs only for -0, and for numbers with 16 or more digits or an
  // exponent.
  if (!/[\d.]{16}|\d[eE]|-0/.test(text)) {
    try {
      return JSON.parse(text)
    } catch {
      // The text is read again below, for the place and the fault.
    }
  }
  const reader = new JsonReader(bytes)
  const value = reader.readValue()
  reader.readEnd()
  return value
}

/**
 * Returns the length of a byte order mark at the beginning of a text, which may be ignored (RFC 8259 section
 * 8.1).
 */
export function byteOrderMarkLength(bytes: Buffer): number {
  return bytes.toString('latin1', 0, 3) === '\xef\xbb\xbf' ? 3 : 0
}

/**
 * Returns where a byte is in a UTF-8 text, which may be one line of 100 MB. Both count from 1, the column in
 * characters.
 */
export function lineAndColumnOf(bytes: Buffer, offset: number): { line: number; column: number } {
  let line = 1
  let column = 1
  for (let at = byteOrderMarkLength(bytes); at < offset; at++) {
    const byte = bytes[at] ?? 0
    // A line ends with \n, \r\n or \r.
    if (byte === 0x0a || (byte === 0x0d && bytes[at + 1] !== 0x0a)) {
      line++
      column = 1
    } else if (byte < 0x80 || byte >= 0xc0) column++
  }
  return { line, column }
}

const openBrace = 0x7b
const openBracket = 0x5b
const quote = 0x22
const backslash = 0x5c
const minus = 0x2d
const zero = 0x30
const nine = 0x39
const numberMarks = new Set([...'+-.eE'].map((mark) => mark.charCodeAt(0)))
const literals = ['true', 'false', 'null']
const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/

/**
 * A pull parser over UTF-8 bytes: each `read…` takes one thing, white space before it included, or throws.
 */
export class JsonReader {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** Goes past white space, up to the byte that it returns; -1 at the end. */
  peek(): number {
    for (; ; this.at++) {
      const byte = this.bytes[this.at]
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte ?? -1
    }
  }

  fail(expected: string): never {
    const byte = this.peek()
    if (byte === -1) throw new JsonFault(`expected ${expected}, got the end`, this.at)
    this.#checkUtf8(this.at, this.at + 1)
    const [character = ''] = this.bytes.toString('utf8', this.at, this.at + 4)
    const isUnseen = character.replace(unseen, '') === ''
    const got = isUnseen ? nameCodePoint(character) : JSON.stringify(character)
    throw new JsonFault(`expected ${expected}, got ${got}`, this.at)
  }

  accept(mark: '{' | '}' | '[' | ']' | ',' | ':'): boolean {
    if (this.peek() !== mark.charCodeAt(0)) return false
    this.at++
    return true
  }

  /**
   * Goes up to the next member or item, past the comma. After the last, takes the bracket, and returns false.
   */
  acceptMore(close: '}' | ']', first: boolean, what = close === '}' ? 'a member name' : 'a value'): boolean {
    if (first) return !this.accept(close)
    const isMore = this.accept(',')
    if (isMore && this.peek() === close.charCodeAt(0)) this.fail(`${what} after the comma`)
    if (!isMore && !this.accept(close)) this.fail(`"," or "${close}"`)
    return isMore
  }

  /** If the name is not wanted, it is only checked (see readString). */
  readName(isWanted = true): string {
    const name = this.readString('a member name in double quotes', isWanted)
    if (!this.accept(':')) this.fail('":"')
    this.peek()
    return name
  }

  readEnd(): void {
    if (this.peek() !== -1) this.fail('the end')
  }

  /**
   * If one of the texts (JSON strings, quotes included) comes next, takes it, and returns its index;
   * otherwise -1.
   */
  acceptOneOf(texts: readonly Buffer[]): number {
    this.peek()
    const { bytes, at } = this
    for (let index = 0; index < texts.length; index++) {
      const text = texts[index]
      if (text === undefined) continue
      let i = 0
      while (i < text.length && bytes[at + i] === text[i]) i++
      if (i === text.length) {
        this.at = at + i
        return index
      }
    }
    return -1
  }

  /** Reads a string. If it is not wanted, it is only checked: a long one would take its length in memory. */
  readString(what = 'a string', isWanted = true): string {
    if (this.peek() !== quote) this.fail(what)
    const { bytes } = this
    const start = this.at + 1
    let at = start
    let allBits = 0
    let hasEscape = false
    for (; bytes[at] !== quote; at++) {
      const byte = bytes[at]
      if (byte === undefined) throw new JsonFault('expected the closing quote, got the end', at)
      if (byte < 0x20)
        throw new JsonFault('expected an escape such as \\n instead of a control character in a string', at)
      allBits |= byte
      if (byte !== backslash) continue
      // If the text ends within the escape, the last alternative takes what is there, and the loop finds the
      // end.
      const after = bytes.toString('latin1', at + 1, at + 6)
      const [escape] = /^(?:["\\/bfnrt]|u[\dA-Fa-f]{4}|(?:u[\dA-Fa-f]{0,3})?$)/.exec(after) ?? []
      if (escape === undefined) throw new JsonFault('expected an escape such as \\n or \\u00e4', at)
      hasEscape = true
      at += escape.length
    }
    this.at = at + 1
    if (allBits >= 0x80) this.#checkUtf8(start, at)
    if (!isWanted) return ''
    if (hasEscape) return String(JSON.parse(bytes.toString('utf8', start - 1, at + 1)))
    return bytes.toString(allBits < 0x80 ? 'latin1' : 'utf8', start, at)
  }

  /** Checks the characters that begin between `start` and `end`. The last may go on after `end`. */
  #checkUtf8(start: number, end: number): void {
    const { bytes } = this
    if (buffer.isUtf8(bytes.subarray(start, end))) return
    for (let at = start; at < end;) {
      const lead = bytes[at] ?? 0
      const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
      if (!buffer.isUtf8(bytes.subarray(at, at + length))) {
        const isUtf16 = /^(?:\xff\xfe|\xfe\xff)/.test(bytes.toString('latin1', 0, 2))
        throw new JsonFault(`expected UTF-8${isUtf16 ? ', got UTF-16' : ''}`, at)
      }
      at += length
    }
  }

  #readNumber(): number | bigint | InexactNumber {
    const { bytes, at: start } = this
    let at = start
    let value = 0
    let isPlain = true
    for (; ; at++) {
      const byte = bytes[at] ?? 0
      if (byte >= zero && byte <= nine) value = value * 10 + (byte - zero)
      else if (numberMarks.has(byte)) isPlain = false
      else break
    }
    const length = at - start
    this.at = at
    if (isPlain && length < 16 && (length === 1 || bytes[start] !== zero)) return value
    const text = bytes.toString('latin1', start, at)
    if (numberPattern.test(text)) return parseNumber(text)
    // At the end of the text, `-`, `1.` or `1.5e+` may be a number that was cut off.
    throw new JsonFault(`expected a number, got ${text.slice(0, 40)}`, at === bytes.length ? at : start)
  }

  /** Does not call itself, so that no depth overflows the stack. */
  readValue(): unknown {
    /** These have not ended yet, the innermost last. `names` is undefined for an array. */
    const open: { readonly items: unknown[]; readonly names: string[] | undefined }[] = []
    let value = this.readScalar()
    for (;;) {
      const isOpening = value === undefined
      if (isOpening) open.push({ items: [], names: this.bytes[this.at++] === openBrace ? [] : undefined })
      const container = open.at(-1)
      if (container === undefined) return value
      const { items, names } = container
      if (!isOpening) items.push(value)
      if (this.acceptMore(names ? '}' : ']', isOpening)) {
        if (names !== undefined) names.push(this.readName())
        value = this.readScalar()
      } else {
        open.pop()
        value = names ? Object.fromEntries(names.map((name, i) => [name, items[i]])) : items
      }
    }
  }

  /** Returns the value of a scalar; `[]` or `{}` for what is in brackets, however large it is. */
  readShallowValue(): unknown {
    const kind = this.peek()
    if (kind !== openBrace && kind !== openBracket) return this.readScalar()
    this.skipValue()
    return kind === openBrace ? {} : []
  }

  /** Checks a value and goes past it. It is not built, so that it takes no memory. */
  skipValue(): void {
    /** These brackets are open, a byte each; `depth` is how many they are. */
    let open = Buffer.alloc(64)
    let depth = 0
    do {
      const byte = this.peek()
      let isFirst = byte === openBrace || byte === openBracket
      if (isFirst) {
        if (depth === open.length) open = Buffer.concat([open, open])
        open[depth++] = byte
        this.at++
      } else if (byte === quote) this.readString('a value', false)
      else this.readScalar()
      while (depth > 0 && !this.#acceptMoreIn(open[depth - 1] === openBrace, isFirst)) {
        depth--
        isFirst = false
      }
    } while (depth > 0)
  }

  /**
   * Goes up to the next value in an object or an array, past its name. Behind the last, takes the bracket,
   * and returns false.
   */
  #acceptMoreIn(hasNames: boolean, isFirst: boolean): boolean {
    if (!this.acceptMore(hasNames ? '}' : ']', isFirst)) return false
    if (hasNames) this.readName(false)
    return true
  }

  /** Returns undefined before an object or an array. */
  readScalar(): unknown {
    const byte = this.peek()
    if (byte === openBrace || byte === openBracket) return undefined
    if (byte === quote) return this.readString()
    if (byte === minus || (byte >= zero && byte <= nine)) return this.#readNumber()
    const { bytes, at } = this
    const literal = literals.find((name) => bytes.toString('latin1', at, at + name.length) === name)
    if (literal === undefined) this.fail('a value')
    this.at += literal.length
    return JSON.parse(literal)
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  return !Array.isArray(value) && !(value instanceof InexactNumber)
}

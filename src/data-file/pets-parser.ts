/**
 * Reads the text of the data file in one pass over its bytes. What is wrong with a value is noted and the pass goes on, so
 * that a person sees all errors together; a syntax error ends it. Touches no file.
 */
import { isUtf8 } from 'node:buffer'
import { JsonFault, JsonReader } from '../json/exact-json.ts'
import { isInt64 } from '../json/int64.ts'
import { defaultStatus, petStatuses } from '../pets/pet-status.ts'
import { type CheckedSeed, checkSeed, formatSeedFault, petMembers, SeedList } from '../pets/seeds.ts'
import type { Pet } from '../types.ts'

/** Something that is wrong with the text, and at which byte. */
export interface TextFault {
  readonly message: string
  readonly offset: number
}

/** More errors than these are only counted. */
const maxFaults = 10

const memberTexts = petMembers.map((name) => Buffer.from(`"${name}"`))
const statusTexts = petStatuses.map((status) => Buffer.from(`"${status}"`))
/** Positions in `petMembers`. */
const idMember = 0
const nameMember = 1
const categoryIdMember = 2
const requiredMembers = (1 << nameMember) | (1 << categoryIdMember)

const doubleQuote = 0x22
const openBracket = 0x5b
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

export class PetsParser {
  readonly #bytes: Buffer
  /** Reads up to the first byte that is not UTF-8. */
  readonly #reader: JsonReader
  /** The members of the file so far. */
  readonly #seenMembers = new Set<string>()
  readonly seeds = new SeedList()
  /** For each pet without an id, where in the text its id belongs. */
  readonly idOffsets: number[] = []
  /** The first ten errors, by their place in the text. */
  readonly faults: TextFault[] = []
  faultCount = 0
  /** The syntax error that ended the pass. */
  syntaxFault: JsonFault | undefined
  /** How many whole pets were read, valid or not. */
  petCount = 0
  /** After the `[` of the pets; undefined while none was read. */
  petsStart: number | undefined
  /** After the last whole pet, or `petsStart` before the first. */
  petsEnd = 0
  /** The value of `$schema` as it is written, and whether it comes after the pets. */
  schema: { readonly text: Buffer; readonly followsPets: boolean } | undefined

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#reader = new JsonReader(isUtf8(bytes) ? bytes : bytes.subarray(0, findInvalidUtf8(bytes)))
    if (bytes.subarray(0, 3).equals(byteOrderMark)) this.#reader.at = byteOrderMark.length
  }

  /** Whether there is nothing to read but white space. */
  get isBlank(): boolean {
    return this.#reader.peek() === -1 && this.#reader.bytes.length === this.#bytes.length
  }

  /** Whether the text is valid but cut off. The cut may fall within a UTF-8 character: up to 3 bytes of it can be left. */
  get endsTooEarly(): boolean {
    const isCutCharacter = this.#reader.bytes.length + 3 >= this.#bytes.length
    return this.syntaxFault?.atEnd === true && isCutCharacter
  }

  parse(): void {
    try {
      this.#readFile()
      if (this.#reader.bytes.length < this.#bytes.length) this.#reader.fail('UTF-8')
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error
      this.syntaxFault = error
      const isNotUtf8 = error.offset === this.#reader.bytes.length && error.offset < this.#bytes.length
      this.addFault(isNotUtf8 ? 'expected UTF-8' : error.message, error.offset)
    }
    this.faults.sort((a, b) => a.offset - b.offset)
  }

  addFault(message: string, offset: number): void {
    this.faultCount++
    if (this.faults.length < maxFaults) this.faults.push({ message, offset })
  }

  #readFile(): void {
    const reader = this.#reader
    if (reader.peek() === openBracket) {
      this.addFault('expected an object; put the array into one: {"pets": […]}', reader.at)
      return
    }
    if (!reader.acceptObjectStart()) reader.fail('"{"')
    for (let first = true; reader.acceptMore('}', first, 'a member name'); first = false) {
      reader.peek()
      const offset = reader.at
      const name = reader.readString('a member name in double quotes')
      reader.readColon()
      reader.peek()
      this.#readMember(name, offset)
    }
    reader.readEnd()
    if (!this.#seenMembers.has('pets')) this.addFault('pets: is required', 0)
  }

  #readMember(name: string, offset: number): void {
    const reader = this.#reader
    const isKnown = name === 'pets' || name === '$schema'
    if (!isKnown || this.#seenMembers.has(name)) {
      this.addFault(`${name}: ${isKnown ? 'is given twice' : 'is not a member of the file'}`, offset)
      reader.readValue()
    } else if (name === 'pets') {
      this.#readPets()
    } else {
      const valueOffset = reader.at
      if (typeof reader.readValue() !== 'string') this.addFault('$schema: expected a string', valueOffset)
      const text = reader.bytes.subarray(valueOffset, reader.at)
      this.schema = { text, followsPets: this.#seenMembers.has('pets') }
    }
    this.#seenMembers.add(name)
  }

  #readPets(): void {
    const reader = this.#reader
    if (!reader.acceptArrayStart()) {
      this.addFault('pets: expected an array', reader.at)
      reader.readValue()
      return
    }
    this.petsStart = reader.at
    this.petsEnd = reader.at
    for (let first = true; reader.acceptMore(']', first, 'a pet'); first = false) {
      reader.peek()
      const offset = reader.at
      const seed = this.#readPlainPet() ?? this.#readAnyPet(offset)
      if (seed !== undefined) this.#addSeed(seed, offset)
      this.petCount++
      this.petsEnd = reader.at
    }
  }

  #addSeed(seed: CheckedSeed, offset: number): void {
    if (seed.id === undefined) this.idOffsets.push(offset + 1)
    const fault = this.seeds.add(seed)
    if (fault !== undefined) this.addFault(formatSeedFault(this.petCount, fault), offset)
  }

  /** The fast path: a valid pet, with each member at most once. Undefined for any other, which #readAnyPet then reads. */
  #readPlainPet(): CheckedSeed | undefined {
    const reader = this.#reader
    if (!reader.acceptObjectStart()) return undefined
    let seen = 0
    let id: unknown
    let name = ''
    let categoryId: unknown
    let status: Pet['status'] | undefined = defaultStatus
    for (let first = true; reader.acceptMore('}', first, 'a member name'); first = false) {
      const member = reader.acceptOneOf(memberTexts)
      if (member === -1 || (seen & (1 << member)) !== 0) return undefined
      seen |= 1 << member
      reader.readColon()
      const byte = reader.peek()
      const isNumber = byte === 0x2d || (byte >= 0x30 && byte <= 0x39)
      const expectsNumber = member === idMember || member === categoryIdMember
      if (expectsNumber ? !isNumber : byte !== doubleQuote) return undefined
      if (member === idMember) id = reader.readNumber()
      else if (member === categoryIdMember) categoryId = reader.readNumber()
      else if (member === nameMember) name = reader.readString()
      else status = petStatuses[reader.acceptOneOf(statusTexts)]
      if (status === undefined) return undefined
    }
    const isComplete = (seen & requiredMembers) === requiredMembers
    if (!isComplete || !isInt64(categoryId) || !name.isWellFormed()) return undefined
    if (id === undefined) return { name, categoryId, status }
    return isInt64(id) && id > 0 ? { id, name, categoryId, status } : undefined
  }

  /** Reads any value as a pet. Notes everything that is wrong with it, and then gives undefined. */
  #readAnyPet(offset: number): CheckedSeed | undefined {
    const reader = this.#reader
    reader.at = offset
    const faultCount = this.faultCount
    const offsets = new Map<string, number>()
    let value: unknown
    if (reader.acceptObjectStart()) {
      const members: [string, unknown][] = []
      for (let first = true; reader.acceptMore('}', first, 'a member name'); first = false) {
        reader.peek()
        const memberOffset = reader.at
        const name = reader.readString('a member name in double quotes')
        if (offsets.has(name)) {
          const fault = { member: name, message: 'is given twice' }
          this.addFault(formatSeedFault(this.petCount, fault), memberOffset)
        } else {
          offsets.set(name, memberOffset)
        }
        reader.readColon()
        members.push([name, reader.readValue()])
      }
      value = Object.fromEntries(members)
    } else {
      value = reader.readValue()
    }
    const checked = checkSeed(value)
    if ('faults' in checked) {
      for (const fault of checked.faults) {
        const place = offsets.get(fault.member ?? '') ?? offset
        this.addFault(formatSeedFault(this.petCount, fault), place)
      }
      return undefined
    }
    return this.faultCount === faultCount ? checked.seed : undefined
  }
}

/** The offset of the first byte that is not UTF-8. */
function findInvalidUtf8(bytes: Buffer): number {
  let start = 0
  for (let end = 0; end < bytes.length; start = end) {
    const newline = bytes.indexOf(0x0a, start)
    end = newline === -1 ? bytes.length : newline + 1
    if (!isUtf8(bytes.subarray(start, end))) break
  }
  for (;;) {
    const lead = bytes[start] ?? 0
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    if (!isUtf8(bytes.subarray(start, start + length))) return start
    start += length
  }
}

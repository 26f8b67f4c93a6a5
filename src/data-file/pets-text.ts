/**
 * The text of the data file: reads it with the place of every fault, finds where the next pet goes, and tells an append
 * that was cut off from a mistake. Bytes in, values and bytes out; it touches no file.
 */
import { isUtf8 } from 'node:buffer'
import * as v from 'valibot'
import { JsonFault, JsonReader, placeOf } from '../json/exact-json.ts'
import { isInt64, nextInt64 } from '../json/int64.ts'
import { formatPet, SeedPetSchema } from '../pets/pet.ts'
import { defaultStatus, petStatuses } from '../pets/pet-status.ts'
import type { Int64, Pet } from '../types.ts'

/** How the file ends behind its last pet: what a commit overwrites, and what takes it back. */
const closing = '\n  ]\n}\n'
export const closingText = Buffer.from(closing)

/** What a commit puts between the last pet and the next. */
const separator = ',\n    '

/** A commit never adds more pets, so a torn one did not either. */
export const maxAppendPets = 128

/** A data file's text, understood. Offsets are in bytes. */
export interface PetsText {
  /** By ascending id, each id once. */
  readonly pets: Pet[]
  /** Where the last pet ends; the next one goes here. */
  readonly end: number
  /** Whether `closing` follows `end`, so that the next pet can go there in place. */
  readonly isAppendable: boolean
  /** The ids given to pets that had none, and the offsets in the text where they belong. */
  readonly assigned: readonly { readonly offset: number; readonly id: Int64 }[]
  /** What comes before the first pet in a text that has the pets last. */
  readonly head: Buffer
  /** Where the first pet may begin. */
  readonly start: number
}

/** What is wrong with a data file's text. `tornAt` is where a torn append begins, when it is nothing worse. */
export class PetsFault extends Error {
  readonly line: number
  readonly column: number
  readonly tornAt: number | undefined
  constructor(message: string, bytes: Buffer, offset: number, tornAt?: number) {
    super(message)
    const { line, column } = placeOf(bytes, offset)
    this.line = line
    this.column = column
    this.tornAt = tornAt
  }
}

/** Reads a data file's text; an empty one holds no pets. Throws a PetsFault. */
export function parsePetsText(bytes: Buffer): PetsText {
  const validLength = isUtf8(bytes) ? bytes.length : findInvalidUtf8(bytes)
  const parser = new PetsParser(bytes.subarray(0, validLength))
  try {
    const text = parser.parse()
    if (validLength < bytes.length) throw new JsonFault('expected UTF-8', validLength)
    return text
  } catch (error) {
    if (error instanceof ValueFault) throw new PetsFault(error.message, bytes, error.offset)
    if (!(error instanceof JsonFault)) throw error
    const isCutCharacter = error.offset === validLength && validLength < bytes.length
    const atEnd = error.atEnd && validLength + 3 >= bytes.length
    const isTorn = parser.end > 0 && isTornAppend(bytes, parser.end, parser.count === 0, atEnd)
    const message = isCutCharacter ? 'expected UTF-8' : error.message
    throw new PetsFault(message, bytes, error.offset, isTorn ? parser.end : undefined)
  }
}

/** The bytes that put pets behind the last one, or first, and close the file again; to be written at `end`. */
export function formatAppend(pets: readonly Pet[], isFirst: boolean): Buffer {
  const text = pets.map((pet) => separator + formatPet(pet)).join('') + closing
  return Buffer.from(isFirst ? text.slice(1) : text)
}

/** The whole text, appendable, with ids where they were missing; the rest as it was written. */
export function formatPetsText(bytes: Buffer, text: PetsText): Buffer {
  const pieces: Buffer[] = [text.head]
  let from = text.start
  for (const { offset, id } of text.assigned) {
    pieces.push(bytes.subarray(from, offset), Buffer.from(`"id":${id},`))
    from = offset
  }
  pieces.push(bytes.subarray(from, text.end), closingText)
  return Buffer.concat(pieces)
}

/** The text up to `tornAt`, closed again. */
export function healPetsText(bytes: Buffer, tornAt: number): Buffer {
  return Buffer.concat([bytes.subarray(0, tornAt), closingText])
}

/** A member with a value that the schema refuses; the message begins with its path. */
class ValueFault extends Error {
  readonly offset: number
  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

const memberNames = ['id', 'name', 'categoryId', 'status']
const memberTexts = memberNames.map((name) => Buffer.from(`"${name}"`))
const statusTexts = petStatuses.map((status) => Buffer.from(`"${status}"`))
const idMember = 0
const nameMember = 1
const categoryIdMember = 2
const requiredMembers = (1 << nameMember) | (1 << categoryIdMember)

class PetsParser {
  readonly #reader: JsonReader
  readonly #pets: Pet[] = []
  /** Pets without an id, by their index, and where it belongs. */
  readonly #withoutId = new Map<number, number>()
  /** The ids so far, once they are seen to be out of order: only then can one come twice. */
  #ids: Set<Int64> | undefined
  #highest: Int64 = 0
  /** Where the last whole pet ends. */
  end = 0

  constructor(bytes: Buffer) {
    this.#reader = new JsonReader(bytes)
    const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
    if (bytes.subarray(0, 3).equals(byteOrderMark)) this.#reader.at = 3
  }

  /** How many whole pets were read. */
  get count(): number {
    return this.#pets.length
  }

  parse(): PetsText {
    const reader = this.#reader
    const { bytes } = reader
    if (reader.peek() === -1) return blankText(reader.at)
    let start: number | undefined
    let schema: Buffer | undefined
    let schemaIsLast = false
    if (!reader.takeObjectStart()) reader.fail('"{"')
    for (let first = true; reader.readMore('}', first, 'a member name'); first = false) {
      reader.peek()
      const offset = reader.at
      const name = reader.readString('a member name in double quotes')
      reader.readColon()
      reader.peek()
      const valueOffset = reader.at
      if (name === 'pets' && start === undefined) {
        start = this.#readPets()
      } else if (name === '$schema' && schema === undefined) {
        if (typeof reader.readValue() !== 'string')
          throw new ValueFault('$schema: expected a string', valueOffset)
        schema = bytes.subarray(valueOffset, reader.at)
        schemaIsLast = start !== undefined
      } else {
        const isKnown = name === 'pets' || name === '$schema'
        throw new ValueFault(
          isKnown ? `${name}: is given twice` : `${name}: is not a member of the file`,
          offset,
        )
      }
    }
    reader.readEnd()
    if (start === undefined) throw new ValueFault('pets: is required', 0)
    const isAppendable = bytes.subarray(this.end).equals(closingText)
    const head = schemaIsLast && schema !== undefined ? `{\n  "$schema": ${schema},\n  "pets": [` : undefined
    const assigned = this.#assignIds()
    const isInOrder = this.#ids === undefined && assigned.length === 0
    return {
      assigned,
      pets: isInOrder ? this.#pets : this.#pets.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      end: this.end,
      isAppendable,
      head: head === undefined ? bytes.subarray(0, start) : Buffer.from(head),
      start,
    }
  }

  #readPets(): number {
    const reader = this.#reader
    const offset = reader.at
    if (!reader.takeArrayStart()) {
      reader.readValue()
      throw new ValueFault('pets: expected an array', offset)
    }
    const start = reader.at
    this.end = start
    for (let first = true; reader.readMore(']', first, 'a pet'); first = false) {
      reader.peek()
      const petOffset = reader.at
      const { id, ...rest } = this.#readPet()
      this.#addPet(id, rest, petOffset)
      this.end = reader.at
    }
    return start
  }

  #addPet(id: Int64 | undefined, rest: Omit<Pet, 'id'>, offset: number): void {
    const { name, categoryId, status } = rest
    if (id === undefined) {
      this.#withoutId.set(this.count, offset + 1)
    } else if (id > this.#highest) {
      this.#highest = id
      this.#ids?.add(id)
    } else {
      this.#ids ??= new Set(this.#pets.map((pet) => pet.id))
      if (this.#ids.has(id)) throw new ValueFault(`pets[${this.count}].id: ${id} is given twice`, offset)
      this.#ids.add(id)
    }
    this.#pets.push({ id: id ?? 0, name, categoryId, status })
  }

  /** One pet. What is not plainly right is read again by the schema, which knows the words for it. */
  #readPet(): Omit<Pet, 'id'> & { id?: Int64 | undefined } {
    const reader = this.#reader
    const offset = reader.at
    if (!reader.takeObjectStart()) return this.#readUnusualPet(offset)
    let seen = 0
    let id: unknown
    let name = ''
    let categoryId: unknown
    let status: Pet['status'] | undefined = defaultStatus
    for (let first = true; reader.readMore('}', first, 'a member name'); first = false) {
      const member = reader.takeOneOf(memberTexts)
      if (member === -1 || (seen & (1 << member)) !== 0) return this.#readUnusualPet(offset)
      seen |= 1 << member
      reader.readColon()
      const byte = reader.peek()
      const isString = byte === 0x22
      const isNumber = byte === 0x2d || (byte >= 0x30 && byte <= 0x39)
      if (isString ? member === idMember || member === categoryIdMember : !isNumber)
        return this.#readUnusualPet(offset)
      if (member === idMember) id = reader.readNumber()
      else if (member === categoryIdMember) categoryId = reader.readNumber()
      else if (!isString) return this.#readUnusualPet(offset)
      else if (member === nameMember) name = reader.readString()
      else status = petStatuses[reader.takeOneOf(statusTexts)]
      if (status === undefined) return this.#readUnusualPet(offset)
    }
    const isComplete = (seen & requiredMembers) === requiredMembers
    const hasId = (seen & (1 << idMember)) !== 0
    if (!isComplete || !isInt64(categoryId) || !name.isWellFormed()) return this.#readUnusualPet(offset)
    if (!hasId) return { name, categoryId, status }
    if (!isInt64(id) || id <= 0) return this.#readUnusualPet(offset)
    return { id, name, categoryId, status }
  }

  #readUnusualPet(offset: number): v.InferOutput<typeof SeedPetSchema> {
    const reader = this.#reader
    const path = `pets[${this.count}]`
    const offsets = new Map<string, number>()
    reader.at = offset
    let value: unknown
    if (reader.takeObjectStart()) {
      const members: [string, unknown][] = []
      for (let first = true; reader.readMore('}', first, 'a member name'); first = false) {
        reader.peek()
        const memberOffset = reader.at
        const name = reader.readString('a member name in double quotes')
        if (offsets.has(name)) throw new ValueFault(`${path}.${name}: is given twice`, memberOffset)
        if (!memberNames.includes(name)) {
          throw new ValueFault(`${path}.${name}: is not a member of a pet`, memberOffset)
        }
        offsets.set(name, memberOffset)
        reader.readColon()
        members.push([name, reader.readValue()])
      }
      value = Object.fromEntries(members)
    } else {
      value = reader.readValue()
    }
    const result = v.safeParse(SeedPetSchema, value)
    if (result.success) return result.output
    const [issue] = result.issues
    const member = issue.path?.[0]?.key
    const place = offsets.get(String(member)) ?? offset
    throw new ValueFault(
      `${path}${member === undefined ? '' : `.${String(member)}`}: ${issue.message}`,
      place,
    )
  }

  /** Gives the pets that lack one the next ids, in their order in the file. */
  #assignIds(): PetsText['assigned'] {
    let last = this.#highest
    return Array.from(this.#withoutId, ([index, offset]) => {
      const id = nextInt64(last)
      const pet = this.#pets[index]
      if (id === undefined || pet === undefined)
        throw new ValueFault(`pets[${index}]: no id is left for it`, offset)
      last = id
      this.#pets[index] = { ...pet, id }
      return { offset, id }
    })
  }
}

/** A file with nothing in it, as it was before its first pet. */
function blankText(at: number): PetsText {
  const head = Buffer.from('{\n  "pets": [')
  return { pets: [], end: at, isAppendable: false, assigned: [], head, start: at }
}

/**
 * Whether the bytes from `end`, behind the last whole pet, are what a crash can leave of one append: its beginning, or
 * sectors of it still empty or not yet replaced. A person's slip (a trailing comma, a missing one) is none of these.
 */
function isTornAppend(bytes: Buffer, end: number, isFirst: boolean, atEnd: boolean): boolean {
  const rest = bytes.toString('latin1', end)
  const opening = `${isFirst ? separator.slice(1) : separator}{"id":`
  // More pets than one append holds were acknowledged before it.
  if (rest.split(lineOfPet).length - 1 > maxAppendPets) return false
  if (hasEmptySector(bytes, end) || isMixture(rest, opening, end)) return true
  // The old closing was there to be overwritten, so what is shorter was not the first pet's append.
  if (!atEnd || (isFirst && rest.length < closing.length)) return false
  return opening.startsWith(rest.slice(0, opening.length)) || closing.startsWith(rest)
}

const lineOfPet = `${separator.slice(1)}{"id":`

/** A disk writes each whole or not at all. */
const sectorBytes = 512

/** Whether the first run of NULs is one that a disk makes: whole sectors, from where the text ended before, to the end. */
function hasEmptySector(bytes: Buffer, end: number): boolean {
  const from = bytes.indexOf(0, end)
  if (from === -1) return false
  let to = from
  while (bytes[to] === 0) to++
  const wasEnd = end + closing.length
  return (from === wasEnd || from % sectorBytes === 0) && (to % sectorBytes === 0 || to === bytes.length)
}

/** Whether the border of a sector cuts the rest into old closing and new pet, or the other way round. */
function isMixture(rest: string, opening: string, end: number): boolean {
  const cut = sectorBytes - (end % sectorBytes)
  if (cut > closing.length) return false
  const newBehindOld = closing.slice(0, cut) + opening.slice(cut)
  return (
    rest === opening.slice(0, cut) + closing.slice(cut) ||
    newBehindOld.startsWith(rest.slice(0, newBehindOld.length))
  )
}

/** The offset of the first byte that is not UTF-8. */
function findInvalidUtf8(bytes: Buffer): number {
  for (let line = 0; line < bytes.length;) {
    const newline = bytes.indexOf(0x0a, line)
    const next = newline === -1 ? bytes.length : newline + 1
    if (!isUtf8(bytes.subarray(line, next))) {
      for (let at = line; ;) {
        const lead = bytes[at] ?? 0
        const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
        if (!isUtf8(bytes.subarray(at, at + length))) return at
        at += length
      }
    }
    line = next
  }
  return bytes.length
}

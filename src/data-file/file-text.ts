/**
 * The text of the data file: how it is read, with everything that is wrong with it; where the next pet goes; and how it is written.
 * Each appended pet gets a line of its own. The pets come last, so that an append overwrites only the closing brackets. Does no file
 * I/O.
 */
import { JsonFault, JsonReader, openBrace, openBracket } from '../json/json-reader.ts'
import { shorten } from '../messages/describe.ts'
import type { Int64 } from '../json/int64.ts'
import { readPet } from '../pet/seed-reader.ts'
import { formatSeedFault, type SeedFault } from '../pet/pet-rules.ts'
import { noIdLeftFault, SeedList } from '../pet/seed-list.ts'
import { formatPet, type Pet } from '../pet/pet.ts'
import { DataFileUnusable, maxFaults, type TextFault } from './data-file-errors.ts'

const closingText = '\n  ]\n}\n'
/** How we end the file after its last pet. An append overwrites these bytes. */
export const closingBrackets = Buffer.from(closingText)

/** What stands between two pets. */
export const separator = ',\n    '

/** One write of the store adds at most this many pets, so that a crash cannot damage more. */
export const maxAppendPets = 128

/** The end of a valid text: an append overwrites it, and a failed one puts it back. */
export interface TextEnd {
  /** Where the next pet goes: after the last one or, if there is none, after the `[`. */
  readonly petsEnd: number
  /** What follows: closing brackets, which are ours or a person's, with white space. */
  readonly closing: Buffer
}

/** A valid text. Offsets are in bytes. */
export interface FileText extends Readonly<Pick<ParsedPets, 'pets' | 'filledIds'>> {
  readonly bytes: Buffer
  readonly end: TextEnd
}

/**
 * Reads a text. Throws a DataFileUnusable that names its faults, for the person who has to find them. `parsed`, if that was done already,
 * is what parsePets makes of it.
 */
export function parseFileText(path: string, bytes: Buffer, parsed = parsePets(bytes)): FileText {
  // A power cut, or `jq … pets.json > pets.json`, leaves an empty file: to take it for a store without pets would hide the loss.
  if (isBlank(bytes)) {
    const remedy = 'put the pets back, or delete it to start without any'
    throw new DataFileUnusable(`${path}: is empty; ${remedy}`, 'it is empty')
  }
  const { pets, filledIds, petsEnd, faults, faultCount } = parsed
  if (faultCount > 0) throw DataFileUnusable.ofText(path, bytes, faults, faultCount)
  // Copied: `end` is kept while the file is open, and a subarray would keep the whole text in memory for as long.
  const closing = Buffer.from(bytes.subarray(petsEnd))
  return { bytes, pets, filledIds, end: { petsEnd, closing } }
}

/** The bytes to write at `petsEnd`: the pets, then the closing brackets again. The very first pet has no comma before it. */
export function formatAppend(pets: readonly Pet[], isFirst: boolean): Buffer {
  const text = pets.map((pet) => separator + formatPet(pet)).join('') + closingText
  return Buffer.from(isFirst ? text.slice(1) : text)
}

/** The same text, with the ids that were filled in: each comes first in its pet, with a comma, since at least the `name` follows. */
export function formatWithIds({ bytes, filledIds }: FileText): Buffer {
  const pieces: Buffer[] = []
  let from = 0
  for (const { offset, id } of filledIds) {
    pieces.push(bytes.subarray(from, offset), Buffer.from(`"id":${id},`))
    from = offset
  }
  return Buffer.concat([...pieces, bytes.subarray(from)])
}

/** The text of a new file with these pets. `schema` is the value of `$schema`, if it has one. */
export function formatFile(pets: readonly Pet[], schema: string | undefined): Buffer {
  const schemaLine = schema === undefined ? '' : `  "$schema": ${JSON.stringify(schema)},\n`
  const head = Buffer.from(`{\n${schemaLine}  "pets": [`)
  // In parts, since a string cannot hold the text of several million pets.
  const parts: Buffer[] = []
  for (let i = 0; i < pets.length; i += 1000)
    parts.push(formatAppend(pets.slice(i, i + 1000), i === 0).subarray(0, -closingBrackets.length))
  return Buffer.concat([head, ...parts, closingBrackets])
}

/** What was read, up to the syntax error if there is one. Offsets are in bytes. */
export class ParsedPets {
  /** The valid pets by ascending id, missing ids filled in. */
  pets: Pet[] = []
  /** The ids that were filled in, and where in the text they belong. */
  filledIds: { readonly offset: number; readonly id: Int64 }[] = []
  /** At most `maxFaults`, in the order of their places. */
  faults: TextFault[] = []
  faultCount = 0
  /** The syntax error that ended the pass; it is one of the faults. */
  syntaxFault: JsonFault | undefined
  /** How many whole pets were read, valid or not. */
  petCount = 0
  /** After the last whole pet or, before the first, after the `[`; 0 if that was not reached. */
  petsEnd = 0
}

const byteOrderMark = Buffer.from('\ufeff')

/** Whether there is nothing but white space in the text, and perhaps a byte order mark. */
export function isBlank(bytes: Buffer): boolean {
  return createReader(bytes).peek() === -1
}

/**
 * Reads the text in one pass over its bytes. A wrong value is noted and the pass goes on, so that a person sees the faults together; a
 * syntax error ends it. Ids that are filled in are above `highestId`.
 */
export function parsePets(bytes: Buffer, highestId: Int64 = 0): Readonly<ParsedPets> {
  return new PetsParser(bytes).parse(highestId)
}

class PetsParser {
  readonly #reader: JsonReader
  readonly #seeds = new SeedList()
  /** The members of the file so far. */
  readonly #seenMembers = new Set<string>()
  readonly #parsed = new ParsedPets()

  constructor(bytes: Buffer) {
    this.#reader = createReader(bytes)
  }

  parse(highestId: Int64): ParsedPets {
    const parsed = this.#parsed
    try {
      this.#readFile()
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error
      // It ended the pass, so it is reported even after `maxFaults` others.
      if (parsed.faults.length === maxFaults) parsed.faults.pop()
      this.#addFault(error.message, error.offset)
      parsed.syntaxFault = error
    }
    const { pets, filledIds, noIdLeft } = this.#seeds.complete(highestId)
    parsed.pets = pets
    // A missing id belongs right after the `{` of its pet.
    parsed.filledIds = filledIds.map(({ at, id }) => ({ id, offset: at + 1 }))
    if (noIdLeft !== undefined)
      this.#addFault(formatSeedFault(noIdLeft.index, noIdLeftFault), noIdLeft.at + 1)
    parsed.faults.sort((a, b) => a.offset - b.offset)
    return parsed
  }

  /** `firstAt`: for an id that is given twice, where it was first given. */
  #addFault(message: string, offset: number, firstAt?: number): void {
    this.#parsed.faultCount++
    if (this.#parsed.faults.length < maxFaults) this.#parsed.faults.push({ message, offset, firstAt })
  }

  #readFile(): void {
    const reader = this.#reader
    if (reader.accept(openBracket)) {
      this.#addFault('expected an object; put the array into one: {"pets": […]}', reader.at - 1)
      return
    }
    if (!reader.accept(openBrace)) reader.fail('"{"')
    reader.readMembers((name, offset) => this.#readMember(name, offset))
    reader.readEnd()
    if (!this.#seenMembers.has('pets')) this.#addFault('pets: is required', 0)
  }

  #readMember(name: string, offset: number): void {
    const reader = this.#reader
    const isKnown = name === 'pets' || name === '$schema'
    if (!isKnown || this.#seenMembers.has(name)) {
      const fault = isKnown ? 'is given twice' : 'is not a member of the file'
      this.#addFault(`${shorten(name)}: ${fault}`, offset)
      reader.readValue()
    } else if (name === 'pets') {
      this.#readPets()
    } else {
      // An append replaces whatever follows the last pet.
      if (this.#seenMembers.has('pets')) this.#addFault('$schema: has to come before the pets', offset)
      const valueOffset = reader.at
      if (typeof reader.readValue() !== 'string') this.#addFault('$schema: expected a string', valueOffset)
    }
    this.#seenMembers.add(name)
  }

  #readPets(): void {
    const reader = this.#reader
    if (!reader.accept(openBracket)) {
      this.#addFault('pets: expected an array', reader.at)
      reader.readValue()
      return
    }
    this.#parsed.petsEnd = reader.at
    // Made once, not for each of a million pets.
    const addFault = (fault: SeedFault, offset: number, firstAt?: number): void =>
      this.#addFault(formatSeedFault(this.#parsed.petCount, fault), offset, firstAt)
    for (let first = true; reader.acceptMore(']', first, 'a pet'); first = false) {
      reader.skipSpace()
      const offset = reader.at
      const seed = readPet(reader, addFault)
      // A fault if another pet has the id.
      const idFault = seed && this.#seeds.add(seed, offset, this.#parsed.petCount)
      if (idFault !== undefined) addFault(idFault, offset, idFault.firstAt)
      this.#parsed.petCount++
      this.#parsed.petsEnd = reader.at
    }
  }
}

/** Begins after the byte order mark, if there is one. */
function createReader(bytes: Buffer): JsonReader {
  const reader = new JsonReader(bytes)
  if (bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark)) reader.at = byteOrderMark.length
  return reader
}

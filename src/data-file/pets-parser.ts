/**
 * Reads the text of the data file in one pass over its bytes, without file I/O. A wrong value is noted and the pass goes on, so
 * that a person sees the faults together; a syntax error ends it.
 */
import { JsonFault, JsonReader, openBrace, openBracket, placeOf } from '../json/exact-json.ts'
import { shorten } from '../json/describe.ts'
import type { Int64 } from '../json/int64.ts'
import { readPet } from '../pet/pet-json.ts'
import { formatSeedFault, noIdLeftFault, type SeedFault, SeedList } from '../pet/seeds.ts'
import type { Pet } from '../pet/pet.ts'

/** What was read, up to the syntax error if there is one. Offsets are in bytes. */
export class ParsedPets {
  /** The valid pets by ascending id, missing ids filled in. */
  pets: Pet[] = []
  /** The ids that were filled in, and where in the text they belong. */
  filledIds: { readonly offset: number; readonly id: Int64 }[] = []
  /** The ten faults that were noted first, in the order of their places. */
  faults: { readonly message: string; readonly offset: number }[] = []
  faultCount = 0
  /** The syntax error that ended the pass; it is one of the faults. At the end: the text is right as far as it goes. */
  syntaxFault: JsonFault | undefined
  /** How many whole pets were read, valid or not. */
  petCount = 0
  /** After the last whole pet or, before the first, after the `[`; 0 if that was not reached. */
  petsEnd = 0
}

/** Further faults are only counted. */
const maxFaults = 10

const byteOrderMark = Buffer.from('\ufeff')

/** Whether there is nothing but white space in the text. */
export function isBlank(bytes: Buffer): boolean {
  return createReader(bytes).peek() === -1
}

/** Reads the text. Ids that are filled in are above `highestId`. */
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
      // It ended the pass, so it is told of even after ten others.
      if (parsed.faults.length === maxFaults) parsed.faults.pop()
      this.#addFault(error.message, error.offset)
      parsed.syntaxFault = error
    }
    const { pets, filledIds, noIdLeft } = this.#seeds.complete(highestId)
    parsed.pets = pets
    parsed.filledIds = filledIds.map(({ at, id }) => ({ id, offset: at + 1 }))
    if (noIdLeft !== undefined)
      this.#addFault(formatSeedFault(noIdLeft.index, noIdLeftFault), noIdLeft.at + 1)
    parsed.faults.sort((a, b) => a.offset - b.offset)
    return parsed
  }

  #addFault(message: string, offset: number): void {
    this.#parsed.faultCount++
    if (this.#parsed.faults.length < maxFaults) this.#parsed.faults.push({ message, offset })
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
      this.#addFault(
        `${shorten(name)}: ${isKnown ? 'is given twice' : 'is not a member of the file'}`,
        offset,
      )
      reader.readValue()
    } else if (name === 'pets') {
      this.#readPets()
    } else {
      // An append replaces whatever follows the last pet.
      if (this.#seenMembers.has('pets')) this.#addFault('$schema: has to stand before the pets', offset)
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
    const addFault = (fault: SeedFault, offset: number): void =>
      this.#addFault(formatSeedFault(this.#parsed.petCount, fault), offset)
    for (let first = true; reader.acceptMore(']', first, 'a pet'); first = false) {
      reader.skipSpace()
      const offset = reader.at
      const seed = readPet(reader, addFault)
      const taken = seed && this.#seeds.add(seed, offset)
      if (taken !== undefined) {
        const { line, column } = placeOf(reader.bytes, taken.firstAt)
        addFault({ ...taken, message: `${taken.message}, first in line ${line}, column ${column}` }, offset)
      }
      this.#parsed.petCount++
      this.#parsed.petsEnd = reader.at
    }
  }
}

/** Reads the bytes from behind the byte order mark, if there is one. */
function createReader(bytes: Buffer): JsonReader {
  const reader = new JsonReader(bytes)
  if (bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark)) reader.at = byteOrderMark.length
  return reader
}

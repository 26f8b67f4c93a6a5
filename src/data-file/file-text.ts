/**
 * Reads the text of the data file, with everything that is wrong with it, and formats the text of pets. In a
 * file the pets come last, so that an append overwrites only the closing brackets.
 */
import { maxInt64, type Int64 } from '../json/int64.ts'
import { byteOrderMarkLength, JsonFault, JsonReader, lineAndColumnOf } from '../json/json.ts'
import { formatSeedFault, type SeedFault } from '../pet/pet-rules.ts'
import { formatPet, type Pet } from '../pet/pet.ts'
import { readPet, noIdLeftFault, SeedList } from '../pet/seeds.ts'
import { shorten } from '../text/words.ts'
import { DataFileUnusable } from './data-file-errors.ts'

export const openingBrackets = Buffer.from('{\n  "pets": [')
export const closingBrackets = Buffer.from('\n  ]\n}\n')

export const separator = ',\n    '
export const firstSeparator = separator.slice(1)

/** An append has at most this many pets: a crash damages no more, and damage.ts counts on it. */
export const maxAppendPets = 128

/** An id that is filled in takes at most this many bytes. */
const maxIdBytes = `"id":${maxInt64},`.length

const maxFaults = 10

/** Returns each pet with what stands before it. */
export function formatPets(pets: readonly Pet[], isFirst: boolean): string {
  const lines = pets.map((pet, index) => {
    return (isFirst && index === 0 ? firstSeparator : separator) + formatPet(pet)
  })
  return lines.join('')
}

/** Yields parts, which do not take as much memory as the pets. */
export function* formatFile(pets: readonly Pet[]): Generator<Buffer> {
  yield openingBrackets
  for (let i = 0; i < pets.length; i += 1000) {
    yield Buffer.from(formatPets(pets.slice(i, i + 1000), i === 0))
  }
  yield closingBrackets
}

const andMore = (count: number): string => `and ${count} more error${count === 1 ? '' : 's'}`

interface Fault {
  readonly message: string
  readonly offset: number
  /** Where an id that is given twice stands first. */
  readonly firstAt: number | undefined
}

/** What was read of a text. Offsets are in bytes. */
export interface FileText {
  readonly bytes: Buffer
  /** By ascending id, missing ids filled in. */
  readonly pets: Pet[]
  /** `at`: the `{` of the pet. */
  readonly filledIds: readonly { readonly at: number; readonly id: Int64 }[]
  /** Whether each pet has its id written down, in ascending order. */
  readonly hasAscendingIds: boolean
  /** At most `maxFaults`, by offset. */
  readonly faults: readonly Fault[]
  readonly faultCount: number
  readonly syntaxFault: JsonFault | undefined
  /** The offset behind the last whole pet or, if there is none, behind the `[`; 0 if that was not reached. */
  readonly petsEnd: number
  /** What stands behind `petsEnd`. */
  readonly tail: Buffer
}

/**
 * Reads a text in one pass over its bytes. A wrong value is noted and the pass goes on, so that a person sees
 * the faults together; a syntax error ends the pass, and the pets are those before it. Ids that are filled in
 * are above `highestGivenId`.
 */
export function parseFileText(bytes: Buffer, highestGivenId: Int64 = 0): FileText {
  return new FilePass(bytes).read(highestGivenId)
}

/** Throws a DataFileUnusable. */
export function parseUsableFileText(shownPath: string, bytes: Buffer): FileText {
  const text = parseFileText(bytes)
  const unusable = findUnusable(text, shownPath)
  if (unusable !== undefined) throw unusable
  return text
}

export function findUnusable(
  { bytes, faults, faultCount }: FileText,
  shownPath: string,
): DataFileUnusable | undefined {
  // `jq … pets.json > pets.json` leaves an empty file. To take it for a store without pets would hide the
  // loss.
  if (isBlank(bytes)) {
    const startRemedy = '; put the pets back, or delete it to start without any'
    return new DataFileUnusable(`${shownPath}: is empty`, 'it is empty', startRemedy)
  }
  const located = faults.map(({ message, offset, firstAt }) => {
    const first = firstAt === undefined ? undefined : lineAndColumnOf(bytes, firstAt)
    const where = first === undefined ? '' : `, first in line ${first.line}, column ${first.column}`
    return { ...lineAndColumnOf(bytes, offset), message: message + where }
  })
  const [first] = located
  if (first === undefined) return undefined
  const lines = located.map(({ line, column, message }) => `${shownPath}:${line}:${column}: ${message}`)
  if (faultCount > maxFaults) lines.push(`${shownPath}: ${andMore(faultCount - maxFaults)}`)
  const more = faultCount === 1 ? '' : ` (${andMore(faultCount - 1)})`
  const summary = `line ${first.line}, column ${first.column}: ${first.message}${more}`
  return new DataFileUnusable(lines.join('\n'), summary)
}

/** Returns whether there is nothing but white space, and perhaps a byte order mark. */
function isBlank(bytes: Buffer): boolean {
  const reader = new JsonReader(bytes)
  reader.at = byteOrderMarkLength(bytes)
  return reader.peek() === -1
}

/**
 * Returns the text with the ids that were filled in. Each comes with a comma, since at least the `name`
 * follows.
 */
export function formatWithIds({ bytes, filledIds }: FileText): Buffer {
  const text = Buffer.allocUnsafe(bytes.length + filledIds.length * maxIdBytes)
  let from = 0
  let length = 0
  for (const { at, id } of filledIds) {
    length += bytes.copy(text, length, from, at + 1)
    length += text.write(`"id":${id},`, length)
    from = at + 1
  }
  length += bytes.copy(text, length, from)
  return text.subarray(0, length)
}

/** One pass over a text, and what it has found so far. */
class FilePass {
  readonly #bytes: Buffer
  readonly #reader: JsonReader
  readonly #seeds = new SeedList()
  readonly #seenMembers = new Set<string>()
  readonly #faults: Fault[] = []
  #faultCount = 0
  #petsEnd = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#reader = new JsonReader(bytes)
    this.#reader.at = byteOrderMarkLength(bytes)
  }

  read(highestGivenId: Int64): FileText {
    const syntaxFault = this.#readFile()
    const { pets, filledIds, noIdLeft, hasAscendingIds } = this.#seeds.complete(highestGivenId)
    if (noIdLeft !== undefined)
      this.#addFault(formatSeedFault(noIdLeft.index, noIdLeftFault), noIdLeft.at + 1)
    return {
      bytes: this.#bytes,
      pets,
      filledIds,
      hasAscendingIds,
      faults: this.#faults.toSorted((a, b) => a.offset - b.offset),
      faultCount: this.#faultCount,
      syntaxFault,
      petsEnd: this.#petsEnd,
      tail: this.#bytes.subarray(this.#petsEnd),
    }
  }

  #addFault(message: string, offset: number, firstAt?: number): void {
    this.#faultCount++
    if (this.#faults.length < maxFaults) this.#faults.push({ message, offset, firstAt })
  }

  /** Returns the syntax error that has ended the pass, if there is one. */
  #readFile(): JsonFault | undefined {
    try {
      this.#readMembers()
      return undefined
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error
      // A syntax error is reported even after `maxFaults` others.
      if (this.#faults.length === maxFaults) this.#faults.pop()
      this.#addFault(error.message, error.offset)
      return error
    }
  }

  #readMembers(): void {
    const reader = this.#reader
    if (reader.accept('[')) {
      this.#addFault('expected an object; put the array into one: {"pets": […]}', reader.at - 1)
      return
    }
    if (!reader.accept('{')) reader.fail('"{"')
    for (let first = true; reader.acceptMore('}', first); first = false) {
      const offset = reader.at
      this.#readMember(reader.readName(), offset)
    }
    reader.readEnd()
    if (!this.#seenMembers.has('pets')) this.#addFault('pets: is required', 0)
  }

  #readMember(name: string, offset: number): void {
    const reader = this.#reader
    const isKnown = name === 'pets' || name === '$schema'
    if (!isKnown || this.#seenMembers.has(name)) {
      const fault = isKnown ? 'is given twice' : 'is not a member of the file'
      this.#addFault(`${shorten(name)}: ${fault}`, offset)
      reader.skipValue()
    } else if (name === 'pets') {
      this.#readPets()
    } else {
      // An append replaces whatever follows the last pet.
      if (this.#seenMembers.has('pets')) this.#addFault('$schema: has to come before the pets', offset)
      const valueOffset = reader.at
      if (typeof reader.readShallowValue() !== 'string')
        this.#addFault('$schema: expected a string', valueOffset)
    }
    if (isKnown) this.#seenMembers.add(name)
  }

  #readPets(): void {
    const reader = this.#reader
    if (!reader.accept('[')) {
      this.#addFault('pets: expected an array', reader.at)
      reader.skipValue()
      return
    }
    this.#petsEnd = reader.at
    // This function is made once, not for each of a million pets.
    let index = 0
    const addFault = (fault: SeedFault, offset: number, firstAt?: number): void =>
      this.#addFault(formatSeedFault(index, fault), offset, firstAt)
    for (; reader.acceptMore(']', index === 0, 'a pet'); index++) {
      const offset = reader.at
      const seed = readPet(reader, addFault)
      const idFault = seed && this.#seeds.add(seed, offset, index)
      if (idFault !== undefined) addFault(idFault, offset, idFault.firstAt)
      this.#petsEnd = reader.at
    }
  }
}

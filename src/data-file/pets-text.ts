/**
 * The text of the data file: what it says, where the next pet goes, and how it is written. One pet a line, the pets last, so
 * that an append overwrites only the closing brackets. Bytes in, values and bytes out; it touches no file.
 */
import { placeOf } from '../json/exact-json.ts'
import { formatPet } from '../pets/pet.ts'
import { formatSeedFault } from '../pets/seeds.ts'
import type { Int64, Pet } from '../types.ts'
import { DataFileInvalid } from './data-file-error.ts'
import { PetsParser } from './pets-parser.ts'

/** How the file ends after its last pet. An append overwrites these bytes; a roll back writes them again. */
export const closingBrackets = Buffer.from('\n  ]\n}\n')

/** What stands between two pets. */
export const separator = ',\n    '

/** An append never holds more pets than this, so a crash cannot damage more. */
export const maxAppendPets = 128

/** A valid text. Offsets are in bytes. */
export interface PetsText {
  /** Whether there is nothing but white space in it. */
  readonly isBlank: boolean
  /** By ascending id, each id once. */
  readonly pets: Pet[]
  /** Where the first pet may begin, after the `[`. */
  readonly start: number
  /** Where the last pet ends; the next one goes here. */
  readonly end: number
  /** Whether the closing brackets follow `end`, so that the next pet can be appended in place. */
  readonly isAppendable: boolean
  /** The ids that were filled in, and where in the text they belong. */
  readonly filledIds: readonly { readonly offset: number; readonly id: Int64 }[]
  /** What a rewritten text begins with, up to and including the `[`. */
  readonly head: Buffer
}

/**
 * Reads a text; a blank one holds no pets. Ids that are filled in are above `highestId`. Throws a DataFileInvalid that names
 * all errors, and the path for the person who has to find them.
 */
export function parsePetsText(path: string, bytes: Buffer, highestId: Int64 = 0): PetsText {
  const parser = new PetsParser(bytes)
  if (parser.isBlank) return blankText()
  parser.parse()
  const { petsStart: start, petsEnd: end, schema } = parser
  const completed = parser.seeds.complete(highestId)
  if ('fault' in completed) {
    parser.addFault(formatSeedFault(completed.index, completed.fault), parser.idOffsets[0] ?? 0)
  }
  if ('fault' in completed || start === undefined || parser.faultCount > 0) {
    const faults = parser.faults.map(({ message, offset }) => ({ ...placeOf(bytes, offset), message }))
    throw DataFileInvalid.ofText(path, faults, parser.faultCount)
  }
  const { pets, filledIds } = completed
  return {
    isBlank: false,
    pets,
    start,
    end,
    isAppendable: bytes.subarray(end).equals(closingBrackets),
    filledIds: filledIds.map((id, index) => ({ id, offset: parser.idOffsets[index] ?? 0 })),
    // The pets have to be last: a `$schema` after them moves to the front.
    head: schema?.followsPets === true ? formatHead(schema.text.toString()) : bytes.subarray(0, start),
  }
}

/** The bytes to write at `end`: the pets, then the closing brackets again. The first pet of all has no comma before it. */
export function formatAppend(pets: readonly Pet[], isFirst: boolean): Buffer {
  const text = pets.map((pet) => separator + formatPet(pet)).join('')
  return Buffer.concat([Buffer.from(isFirst ? text.slice(1) : text), closingBrackets])
}

/** The whole text with the ids that were filled in, so that it is appendable; the rest stays as it is written. */
export function formatPetsText(bytes: Buffer, text: PetsText): Buffer {
  const pieces: Buffer[] = [text.head]
  let from = text.start
  for (const { offset, id } of text.filledIds) {
    pieces.push(bytes.subarray(from, offset), Buffer.from(`"id":${id},`))
    from = offset
  }
  pieces.push(bytes.subarray(from, text.end), closingBrackets)
  return Buffer.concat(pieces)
}

/** The text of a new file. `schema` is the value of `$schema`, if it has one. */
export function formatEmptyText(schema: string | undefined): Buffer {
  return Buffer.concat([
    formatHead(schema === undefined ? undefined : JSON.stringify(schema)),
    closingBrackets,
  ])
}

function formatHead(schemaText: string | undefined): Buffer {
  return Buffer.from(`{\n${schemaText === undefined ? '' : `  "$schema": ${schemaText},\n`}  "pets": [`)
}

function blankText(): PetsText {
  const head = formatHead(undefined)
  return { isBlank: true, pets: [], start: 0, end: 0, isAppendable: false, filledIds: [], head }
}

/**
 * The text of the data file: what it says, where the next pet goes, and how it is written. Each appended pet gets a line of its
 * own. The pets come last, so that an append overwrites only the closing brackets. Does no file I/O.
 */
import { placeOf } from '../json/exact-json.ts'
import { DataFileUnusable } from './data-file-error.ts'
import { isBlank, parsePets, type ParsedPets } from './pets-parser.ts'
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'
import { formatPet } from '../pet/pet-json.ts'

const closingText = '\n  ]\n}\n'
/** How the file ends after its last pet. An append overwrites these bytes; a rollback writes them again. */
export const closingBrackets = Buffer.from(closingText)

/** What stands between two pets. */
export const separator = ',\n    '

/** One write of the store adds at most this many pets, so that a crash cannot damage more. */
export const maxAppendPets = 128

/** A valid text. Offsets are in bytes. */
export interface PetsText extends Readonly<Pick<ParsedPets, 'pets' | 'filledIds'>> {
  readonly bytes: Buffer
  /** Where the first pet may begin, after the `[`. */
  readonly start: number
  /** Where the last pet ends; the next one goes here. */
  readonly end: number
  /** Whether the closing brackets follow `end`, so that the next pet can be appended in place. */
  readonly isAppendable: boolean
  /** What a rewritten text begins with, up to and including the `[`. */
  readonly head: Buffer
}

/**
 * Reads a text. Ids that are filled in are above `highestId`. Throws a DataFileUnusable that names the first ten faults and the
 * path, for the person who has to find them.
 */
export function parsePetsText(path: string, bytes: Buffer, highestId: Int64 = 0): PetsText {
  // A blank file is treated like a new one: the result describes the text of a new file, which is written before the first append.
  if (isBlank(bytes)) return { ...parsePetsText(path, formatEmptyText(undefined)), isAppendable: false }
  const parsed = parsePets(bytes, highestId)
  const { pets, filledIds, petsStart, petsEnd, schema } = parsed
  if (petsStart === undefined || parsed.faultCount > 0) throw invalidText(path, bytes, parsed)
  return {
    bytes,
    pets,
    filledIds,
    start: petsStart,
    end: petsEnd,
    isAppendable: bytes.subarray(petsEnd).equals(closingBrackets),
    // The pets have to be last: a `$schema` after them moves to the front.
    head: schema?.followsPets === true ? formatHead(schema.text.toString()) : bytes.subarray(0, petsStart),
  }
}

/** Names the faults with line and column for the person who edits the file, and the place of the first for clients. */
function invalidText(path: string, bytes: Buffer, parsed: Readonly<ParsedPets>): DataFileUnusable {
  const { faults, faultCount } = parsed
  const places = faults.map(({ offset }) => placeOf(bytes, offset))
  const lines = places.map(
    ({ line, column }, index) => `${path}:${line}:${column}: ${faults[index]?.message}`,
  )
  if (faultCount > faults.length) lines.push(`${path}: and ${faultCount - faults.length} more errors`)
  return new DataFileUnusable(lines.join('\n'), `line ${places[0]?.line}, column ${places[0]?.column}`)
}

/** The bytes to write at `end`: the pets, then the closing brackets again. The first pet of all has no comma before it. */
export function formatAppend(pets: readonly Pet[], isFirst: boolean): Buffer {
  const text = pets.map((pet) => separator + formatPet(pet)).join('') + closingText
  return Buffer.from(isFirst ? text.slice(1) : text)
}

/**
 * The whole text, appendable and with the ids that were filled in. The pets stay as they are written, and so does the head, unless
 * `$schema` followed the pets.
 */
export function formatAppendable({ bytes, head, start, end, filledIds }: PetsText): Buffer {
  const pieces: Buffer[] = [head]
  let from = start
  for (const { offset, id } of filledIds) {
    pieces.push(bytes.subarray(from, offset), Buffer.from(`"id":${id},`))
    from = offset
  }
  pieces.push(bytes.subarray(from, end), closingBrackets)
  return Buffer.concat(pieces)
}

/** The text of a new file. `schema` is the value of `$schema`, if it has one. */
export function formatEmptyText(schema: string | undefined): Buffer {
  const schemaText = schema === undefined ? undefined : JSON.stringify(schema)
  return Buffer.concat([formatHead(schemaText), closingBrackets])
}

function formatHead(schemaText: string | undefined): Buffer {
  return Buffer.from(`{\n${schemaText === undefined ? '' : `  "$schema": ${schemaText},\n`}  "pets": [`)
}

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

/** The end of a valid text. */
export interface TextEnd {
  /** After the last pet, where the next one goes. */
  readonly petsEnd: number
  /** Whether our closing brackets follow, and nothing else: an append overwrites them. */
  readonly isClosedByUs: boolean
}

/** A valid text. Offsets are in bytes. */
export interface PetsText extends Readonly<Pick<ParsedPets, 'pets' | 'filledIds'>> {
  readonly bytes: Buffer
  readonly end: TextEnd
}

/**
 * Reads a text. Ids that are filled in are above `highestId`. Throws a DataFileUnusable that names the first ten faults and the
 * path, for the person who has to find them.
 */
export function parsePetsText(path: string, bytes: Buffer, highestId: Int64 = 0): PetsText {
  if (isBlank(bytes)) throw emptyFile(path)
  const parsed = parsePets(bytes, highestId)
  const { pets, filledIds, petsEnd } = parsed
  if (parsed.faultCount > 0) throw invalidText(path, bytes, parsed)
  const isClosedByUs = bytes.subarray(petsEnd).equals(closingBrackets)
  return { bytes, pets, filledIds, end: { petsEnd, isClosedByUs } }
}

/** A power cut, or `jq … pets.json > pets.json`, leaves an empty file: to take it for a store without pets would hide the loss. */
function emptyFile(path: string): DataFileUnusable {
  const remedy = 'put the pets back, or delete it to start without any'
  return new DataFileUnusable(`${path}: is empty; ${remedy}`, 'it is empty', 'lost')
}

/** Names the faults with line and column for the person who edits the file, and the first one for clients. */
function invalidText(path: string, bytes: Buffer, parsed: Readonly<ParsedPets>): DataFileUnusable {
  const { faults, faultCount } = parsed
  const places = faults.map(({ offset, message }) => ({ ...placeOf(bytes, offset), message }))
  const lines = places.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`)
  if (faultCount > faults.length) lines.push(`${path}: and ${faultCount - faults.length} more errors`)
  const [first] = places
  return new DataFileUnusable(
    lines.join('\n'),
    `line ${first?.line}, column ${first?.column}: ${first?.message}`,
  )
}

/** The bytes to write at `petsEnd`: the pets, then the closing brackets again. The first pet of all has no comma before it. */
export function formatAppend(pets: readonly Pet[], isFirst: boolean): Buffer {
  const text = pets.map((pet) => separator + formatPet(pet)).join('') + closingText
  return Buffer.from(isFirst ? text.slice(1) : text)
}

/** The whole text as it is written, with the ids that were filled in. */
export function formatWithIds({ bytes, filledIds }: PetsText): Buffer {
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
  return Buffer.concat([head, pets.length === 0 ? closingBrackets : formatAppend(pets, true)])
}

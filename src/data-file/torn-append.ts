/**
 * Repairs the end of a text that a crash, or a copy made in the middle of an append, has left damaged. What may be a person's
 * fault is never repaired. Does no file I/O. (A write that fails while the server runs is undone in appender.ts.)
 *
 * An append overwrites the last 7 bytes of the file (`⏎  ]⏎}⏎`, the *closing brackets*) with the first 7 bytes of what it
 * appends (`,⏎    {`, or `⏎    {"` for the first pet of all), and goes on after them:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                                  before
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after
 *                      ^^^^^^^
 *
 * After a crash, or in a copy, one of these can follow the last whole pet:
 *
 * 1. The 7 new bytes and a part of what follows them: the process was killed, or the disk was full.
 * 2. Exactly 7 bytes, each of them old or new: a write, or a rollback, ended within them or was only partly stored. Or fewer, all
 *    of them new: an append of several pets was cut off between two of them.
 * 3. 7 bytes, some or all of them old, and then the rest of the append: `cp` read the first part of the file before the append
 *    and the rest after it. Later appends can have made further such seams.
 * 4. The append with NULs in whole sectors after the 7 bytes: the power failed before the disk had written them.
 *
 * In case 3 the new bytes are known: they are put in, and no pet is lost. In the other cases the append was never
 * acknowledged, and the text is cut after the last whole pet.
 */
import { parsePets, type ParsedPets } from './pets-parser.ts'
import { closingBrackets, maxAppendPets, separator } from './pets-text.ts'

export interface RepairedText {
  readonly bytes: Buffer
  /** Where the damage begins. */
  readonly damagedAt: number
  /** Whether it is a copy whose parts were read at different times: case 3. */
  readonly isCopy: boolean
}

/** A disk writes each sector whole or not at all. `cp` reads whole pages of several sectors each. */
const sectorBytes = 512

/** What every append begins with; the first one of all has no comma. */
const appendPrefix = Buffer.from(`${separator}{"id":`)
const firstAppendPrefix = appendPrefix.subarray(1)
/** How many bytes of it overwrite the closing brackets. */
const overwritingBytes = closingBrackets.length

/**
 * The file beside the data file that keeps its damaged end. If a crash interrupts the repair, the next start keeps the same bytes
 * again, and under the same name: the damaged file has not changed, so neither has `lastWriteMs`.
 */
export function tornEndPath(target: string, lastWriteMs: number): string {
  return `${target}.torn-${new Date(lastWriteMs).toISOString().replaceAll(':', '-')}`
}

/** Returns undefined when the text is not damaged in one of these ways. */
export function repairTornAppend(damaged: Buffer): RepairedText | undefined {
  let bytes = damaged
  let damagedAt: number | undefined
  let isCopy = false
  // Each round mends one seam (case 3). The last one finds a valid text, or cuts off a torn end (the other cases), or gives up.
  for (;;) {
    const parsed = parsePets(bytes)
    const { faultCount, petCount, petsEnd, petsStart, syntaxFault } = parsed
    // Any fault besides the syntax error means that a person made it.
    if (petsStart === undefined || faultCount > (syntaxFault === undefined ? 0 : 1)) return undefined
    if (syntaxFault === undefined) return damagedAt === undefined ? undefined : { bytes, damagedAt, isCopy }
    damagedAt ??= petsEnd
    const prefix = petCount === 0 ? firstAppendPrefix : appendPrefix
    if (isCopySeam(bytes, petsEnd, prefix)) {
      isCopy = true
      bytes = Buffer.from(bytes)
      prefix.copy(bytes, petsEnd, 0, overwritingBytes)
    } else if (isTornAppend(bytes, parsed, prefix)) {
      return { bytes: Buffer.concat([bytes.subarray(0, petsEnd), closingBrackets]), damagedAt, isCopy }
    } else {
      return undefined
    }
  }
}

/** Case 3. */
function isCopySeam(bytes: Buffer, petsEnd: number, prefix: Buffer): boolean {
  const expected = prefix.subarray(0, overwritingBytes)
  const found = bytes.subarray(petsEnd, petsEnd + overwritingBytes)
  const goesOn = bytes.length > petsEnd + overwritingBytes
  if (!goesOn || found.equals(expected) || !isMixture(found, prefix)) return false
  // `⏎⏎    {` can mean two things: a person left a blank line and forgot the comma, or `cp` read the old `⏎` and then the new
  // `⏎    {`. `cp` goes from old to new bytes only between two pages, where a sector ends too; elsewhere it was a person.
  const isBlankLine = found.subarray(1).equals(expected.subarray(1))
  return !isBlankLine || (petsEnd + 1) % sectorBytes === 0
}

/** Cases 1, 2 and 4. */
function isTornAppend(
  bytes: Buffer,
  { petCount, petsEnd, endsTooEarly }: ParsedPets,
  prefix: Buffer,
): boolean {
  const tail = bytes.subarray(petsEnd)
  // More pets than one append adds: some of them were acknowledged, so nothing may be cut off.
  if (countPets(tail) > maxAppendPets) return false
  // Case 4.
  if (hasUnwrittenSectors(bytes, petsEnd)) return true
  // An empty list was followed by all 7 closing bytes, and an append never shortens the file. So if fewer than 7 bytes follow the
  // `[`, a person typed them.
  if (petCount === 0 && tail.length < overwritingBytes) return false
  // Case 2.
  if (tail.length <= overwritingBytes) return isMixture(tail, prefix) && !isTrailingComma(bytes, tail)
  // Case 1.
  return endsTooEarly && tail.subarray(0, prefix.length).equals(prefix.subarray(0, tail.length))
}

/** How many pets begin in the tail, in the layout of an append. */
function countPets(tail: Buffer): number {
  return tail.toString('latin1').split(firstAppendPrefix.toString()).length - 1
}

/** Whether each byte is what the closing brackets have at this place (old), or what the append has there (new). */
function isMixture(found: Buffer, prefix: Buffer): boolean {
  return found.every((byte, index) => byte === prefix[index] || byte === closingBrackets[index])
}

const trailingComma = Buffer.from(',\n ]\n}\n')

/**
 * A person who indents by one space and leaves a comma after the last pet writes `,⏎ ]⏎}⏎`: the same as the first two bytes of an
 * append and the last five of the old closing brackets. The server writes `"pets"` after two spaces. If there is one, a person
 * wrote at least the beginning of the file, so it is left alone, although the server may have appended to it since.
 */
function isTrailingComma(bytes: Buffer, tail: Buffer): boolean {
  return tail.equals(trailingComma) && bytes.includes('\n "pets"')
}

/** Whether the first run of NULs goes from the old end of the file, or a sector boundary, to a sector boundary or the end. */
function hasUnwrittenSectors(bytes: Buffer, petsEnd: number): boolean {
  const from = bytes.indexOf(0, petsEnd)
  if (from === -1) return false
  let to = from
  while (bytes[to] === 0) to++
  const oldEnd = petsEnd + closingBrackets.length
  return (from === oldEnd || from % sectorBytes === 0) && (to % sectorBytes === 0 || to === bytes.length)
}

/**
 * Repairs the end of a text that a crash, or a copy made in the middle of an append, has left damaged; tells it from a
 * person's mistake, which is never repaired. Does no file I/O.
 *
 * An append overwrites the last 7 bytes of the file (`⏎  ]⏎}⏎`, the *closing brackets*) with the first 7 bytes of what it
 * appends (`,⏎    {`, or `⏎    {"` for the first pet of all), and goes on after them:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                                  before
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after
 *                      ^^^^^^^
 *
 * Between the two states, one of these can follow the last whole pet:
 *
 * 1. The append ends too early: the process was killed, or the disk was full.
 * 2. Nothing follows the 7 bytes, and each of them is either the old or the new one: a write, or a rollback, was only partly
 *    stored.
 * 3. Some of the 7 bytes are old, and the append goes on after them: `cp` read the first part of the file before the append
 *    and the rest after it. One copy can have several such seams.
 * 4. Whole sectors after the 7 bytes are NULs: the power failed before the disk had written them.
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

/** A disk writes each sector whole or not at all. `cp` reads whole pages, which are some sectors each. */
const sectorBytes = 512

/** Returns undefined when the text is not damaged in one of these ways. */
export function repairTornAppend(damaged: Buffer): RepairedText | undefined {
  let bytes = damaged
  let damagedAt: number | undefined
  let isCopy = false
  for (;;) {
    const parsed = parsePets(bytes)
    const { faultCount, petCount, petsEnd, petsStart, syntaxFault } = parsed
    // Any fault besides the syntax error means that a person made it.
    if (petsStart === undefined || faultCount > (syntaxFault === undefined ? 0 : 1)) return undefined
    if (syntaxFault === undefined) return damagedAt === undefined ? undefined : { bytes, damagedAt, isCopy }
    damagedAt ??= petsEnd
    const appended = formatAppendStart(petCount === 0)
    const overwriting = appended.subarray(0, closingBrackets.length)
    if (isCopySeam(bytes, petsEnd, overwriting)) {
      isCopy = true
      const rest = bytes.subarray(petsEnd + overwriting.length)
      bytes = Buffer.concat([bytes.subarray(0, petsEnd), overwriting, rest])
    } else if (isTornAppend(bytes, parsed, appended)) {
      return { bytes: Buffer.concat([bytes.subarray(0, petsEnd), closingBrackets]), damagedAt, isCopy }
    } else {
      return undefined
    }
  }
}

/** What every append begins with. Its first 7 bytes overwrite the closing brackets. */
function formatAppendStart(isFirst: boolean): Buffer {
  return Buffer.from(`${isFirst ? separator.slice(1) : separator}{"id":`)
}

/** Case 3. */
function isCopySeam(bytes: Buffer, petsEnd: number, overwriting: Buffer): boolean {
  const tail = bytes.subarray(petsEnd)
  const found = tail.subarray(0, overwriting.length)
  if (tail.length <= overwriting.length || found.equals(overwriting) || !isMixture(found, overwriting))
    return false
  // A person who leaves out a comma before a blank line has written a line feed where the comma should be, and the right bytes
  // after it. That is a seam only where a sector ends, since `cp` can have changed from one read to the next there.
  const isBlankLine = found.subarray(1).equals(overwriting.subarray(1))
  return !isBlankLine || (petsEnd + 1) % sectorBytes === 0
}

/** Cases 1, 2 and 4. */
function isTornAppend(
  bytes: Buffer,
  { petCount, petsEnd, endsTooEarly }: ParsedPets,
  appended: Buffer,
): boolean {
  const tail = bytes.subarray(petsEnd)
  // More pets than one append adds: some of them were acknowledged, so nothing may be cut off.
  if (countPets(tail) > maxAppendPets) return false
  if (hasUnwrittenSectors(bytes, petsEnd)) return true
  // The first append of all overwrites the closing brackets. A tail shorter than those was typed by a person.
  if (petCount === 0 && tail.length < closingBrackets.length) return false
  if (tail.length <= closingBrackets.length) return isMixture(tail, appended) && !isTrailingComma(bytes, tail)
  return endsTooEarly && tail.subarray(0, appended.length).equals(appended.subarray(0, tail.length))
}

/** How many pets begin in the tail, each on its line as an append writes it. */
function countPets(tail: Buffer): number {
  return tail.toString('latin1').split(formatAppendStart(true).toString()).length - 1
}

/** Whether each byte is either the old one, a closing bracket's, or the new one. */
function isMixture(found: Buffer, appended: Buffer): boolean {
  return found.every((byte, index) => byte === appended[index] || byte === closingBrackets[index])
}

const trailingComma = Buffer.from(',\n ]\n}\n')

/**
 * A person who indents by one space and leaves a comma after the last pet writes the same 7 bytes as an append of which two
 * bytes were stored. The one space before `"pets"` tells them apart: the server writes two.
 */
function isTrailingComma(bytes: Buffer, tail: Buffer): boolean {
  return tail.equals(trailingComma) && bytes.includes('\n "pets"')
}

/** Case 4: whether the first NULs begin at the old end of the file or with a sector, and end with a sector or the file. */
function hasUnwrittenSectors(bytes: Buffer, petsEnd: number): boolean {
  const from = bytes.indexOf(0, petsEnd)
  if (from === -1) return false
  let to = from
  while (bytes[to] === 0) to++
  const oldEnd = petsEnd + closingBrackets.length
  return (from === oldEnd || from % sectorBytes === 0) && (to % sectorBytes === 0 || to === bytes.length)
}

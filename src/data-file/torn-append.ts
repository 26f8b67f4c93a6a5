/**
 * Repairs the end of a text that a crash, or a copy made in the middle of an append, has left damaged; tells it from a
 * person's mistake, which is never repaired. Bytes in, bytes out; it touches no file.
 *
 * An append overwrites the 7 closing brackets with the 7 bytes that open the next pet, and goes on after them:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                            before
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎   after
 *
 * What can be found in between, from the end of the last whole pet on:
 *
 * 1. The append ends too early: the process was killed, or the disk was full.
 * 2. Of the 7 bytes some are from before and some from after, and nothing follows: the write stored only its first
 *    bytes, or a roll back did.
 * 3. Some of the 7 bytes are from before, and the append goes on after them: `cp` read the first part of the file before
 *    the append and the rest after it. One copy can have several such seams.
 * 4. Whole sectors after the 7 bytes are NULs: the power failed before the disk had written them.
 *
 * In case 3 the missing bytes are known: they are put back, and no pet is lost. In the other cases the append was never
 * acknowledged, and the text is cut after the last whole pet.
 */
import { PetsParser } from './pets-parser.ts'
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

/** Undefined when the text is not damaged in one of these ways. */
export function repairTornAppend(damaged: Buffer): RepairedText | undefined {
  let bytes = damaged
  let damagedAt: number | undefined
  let isCopy = false
  for (;;) {
    const parser = new PetsParser(bytes)
    parser.parse()
    const { syntaxFault, faultCount, petsStart, petsEnd: end } = parser
    const hasWrongValue = faultCount > (syntaxFault === undefined ? 0 : 1)
    if (petsStart === undefined || hasWrongValue) return undefined
    if (syntaxFault === undefined) return damagedAt === undefined ? undefined : { bytes, damagedAt, isCopy }
    damagedAt ??= end
    const start = formatStart(parser.petCount === 0)
    const opening = start.subarray(0, closingBrackets.length)
    if (isCopySeam(bytes, end, opening)) {
      isCopy = true
      bytes = Buffer.concat([bytes.subarray(0, end), opening, bytes.subarray(end + opening.length)])
    } else if (isTornAppend(bytes, parser, start)) {
      return { bytes: Buffer.concat([bytes.subarray(0, end), closingBrackets]), damagedAt, isCopy }
    } else {
      return undefined
    }
  }
}

/** What an append begins with. Its first 7 bytes overwrite the closing brackets. */
function formatStart(isFirst: boolean): Buffer {
  return Buffer.from(`${isFirst ? separator.slice(1) : separator}{"id":`)
}

/** Case 3. */
function isCopySeam(bytes: Buffer, end: number, opening: Buffer): boolean {
  const found = bytes.subarray(end, end + opening.length)
  if (bytes.length <= end + opening.length || found.equals(opening) || !isMixture(found, opening))
    return false
  // A blank line and a missing comma look like a line feed and the rest of the opening. That is a seam only where a sector
  // ends, since `cp` can have changed from one read to the next there.
  const isBlankLine = found.subarray(1).equals(opening.subarray(1))
  return !isBlankLine || (end + 1) % sectorBytes === 0
}

/** Cases 1, 2 and 4. */
function isTornAppend(
  bytes: Buffer,
  { petCount, petsEnd: end, endsTooEarly }: PetsParser,
  start: Buffer,
): boolean {
  const tail = bytes.subarray(end)
  const isFirst = petCount === 0
  // One append holds at most so many pets. If more follow the damage, some of them were acknowledged: nothing is cut.
  if (tail.toString('latin1').split(`${separator.slice(1)}{"id":`).length - 1 > maxAppendPets) return false
  if (hasUnwrittenSectors(bytes, end)) return true
  // The first append of all overwrites the closing brackets. A tail shorter than those was typed by a person.
  if (isFirst && tail.length < closingBrackets.length) return false
  if (tail.length <= closingBrackets.length) return isMixture(tail, start) && !isTrailingComma(bytes, tail)
  return endsTooEarly && tail.subarray(0, start.length).equals(start.subarray(0, tail.length))
}

/** Whether each byte is the one before the append or the one after it. */
function isMixture(found: Buffer, opening: Buffer): boolean {
  return found.every((byte, index) => byte === opening[index] || byte === closingBrackets[index])
}

/** In a file that is indented by one space, a trailing comma looks like an append of which two bytes were stored. */
function isTrailingComma(bytes: Buffer, tail: Buffer): boolean {
  return tail.equals(trailingComma) && bytes.includes('\n "pets"')
}

const trailingComma = Buffer.from(',\n ]\n}\n')

/** Case 4: whether the first NULs begin at the old end of the file or with a sector, and end with a sector or the file. */
function hasUnwrittenSectors(bytes: Buffer, end: number): boolean {
  const from = bytes.indexOf(0, end)
  if (from === -1) return false
  let to = from
  while (bytes[to] === 0) to++
  const endBefore = end + closingBrackets.length
  return (from === endBefore || from % sectorBytes === 0) && (to % sectorBytes === 0 || to === bytes.length)
}

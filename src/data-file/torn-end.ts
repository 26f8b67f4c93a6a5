/**
 * Finds the damage at the end of a text after a crash, or in a copy that was made in the middle of an append. A person's mistake is not
 * taken for it, but at a missing end one cannot tell: then only brackets and a comma are at stake. Does no file I/O. (A write that
 * fails while the server runs is undone in appender.ts.)
 *
 * An append overwrites the last 7 bytes of the file (`⏎  ]⏎}⏎`, the *closing brackets*) with the first 7 bytes of what it
 * appends (`,⏎    {`, or `⏎    {"` for the first pet of all), and goes on after them:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                                  before
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after
 *                      ^^^^^^^
 *
 * A file that a person has closed in another way gets our closing brackets before the first append, so brackets and white space
 * of both kinds can stand there after a crash in between.
 */
import { closingBrackets, maxAppendPets, parsePets, separator } from './pets-text.ts'

/**
 * Everything from `petsEnd` on is to be replaced by the closing brackets. The pets in it were never acknowledged; in a copy they may have
 * been, but only after the copy began.
 */
export interface TornEnd {
  /** After the last whole pet before the damage. */
  readonly petsEnd: number
  /** `brackets`: only they are missing or damaged. `append`: cut off by a crash. `copy`: copied during an append. */
  readonly cause: 'brackets' | 'append' | 'copy'
}

/** A disk writes each sector whole or not at all, and `cp` reads whole pages of several: old and new bytes meet where one ends. */
const sectorBytes = 512

/** What every append begins with; the first one of all has no comma. */
const appendPrefix = Buffer.from(`${separator}{"id":`)
const firstAppendPrefix = appendPrefix.subarray(1)

/** Returns undefined when the text is not damaged in one of these ways. */
export function findTornEnd(bytes: Buffer): TornEnd | undefined {
  const { faultCount, petCount, petsEnd, syntaxFault } = parsePets(bytes)
  // Any fault besides the syntax error means that a person made it.
  if (petsEnd === 0 || syntaxFault === undefined || faultCount > 1) return undefined
  const tail = bytes.subarray(petsEnd)
  const prefix = petCount === 0 ? firstAppendPrefix : appendPrefix
  const isRightSoFar = syntaxFault.offset === bytes.length
  // One append adds at most this many. If there are more, some were acknowledged, and it is no append that was cut off.
  const isOneAppend = countPets(tail) <= maxAppendPets
  if (isOneAppend && hasUnwrittenSectors(bytes, petsEnd)) return { petsEnd, cause: 'append' }
  // Before the first append to an empty list, at least 7 bytes follow its `[` (appender.ts sees to that), and an append never shortens
  // the file. So if there are fewer, a person typed them, or a save was cut off before its first pet.
  if (petCount === 0 && tail.length < closingBrackets.length) return undefined
  // A save or a copy was cut off among its closing brackets. Or there is no bracket too few but a wrong one: a crash came while ours
  // replaced a person's, with the end of a sector among them, and only one of the two sectors was written.
  const isAcrossSectors = (petsEnd % sectorBytes) + closingBrackets.length >= sectorBytes
  if (isClosing(tail) && (isRightSoFar || isAcrossSectors)) return { petsEnd, cause: 'brackets' }
  if (isCopySeam(tail, petsEnd, prefix)) return { petsEnd, cause: 'copy' }
  return isOneAppend && isCutOff(tail, prefix, isRightSoFar) ? { petsEnd, cause: 'append' } : undefined
}

/**
 * `cp` read up to the end of the file, or of a page, before an append, and the rest after it. So closing bytes, a person's or ours, are
 * followed by what the append has from there on. With `…]⏎}⏎` as the old end and `,⏎    {"id":…` as the append, for example:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎
 */
function isCopySeam(tail: Buffer, petsEnd: number, prefix: Buffer): boolean {
  for (let seam = 1; seam < Math.min(prefix.length, tail.length); seam++) {
    const before = tail.subarray(0, seam)
    if (!isClosing(before)) return false
    // Before the seam is the whole old end, or a page ends there. Elsewhere it was a person, who left a blank line and forgot the
    // comma, say.
    const isWholeEnd = before.toString().replaceAll(/\s/g, '') === ']}'
    const canMeet = isWholeEnd || (petsEnd + seam) % sectorBytes === 0
    if (canMeet && tail.subarray(seam, prefix.length).equals(prefix.subarray(seam, tail.length))) return true
  }
  return false
}

/**
 * The process was killed, or the disk was full. Either an append is cut off anywhere, or there are at most 7 bytes, each of them old
 * or new: of a write over the closing brackets, or of its undoing, only a part was done.
 */
function isCutOff(tail: Buffer, prefix: Buffer, isRightSoFar: boolean): boolean {
  if (tail.length <= closingBrackets.length) {
    return tail.every((byte, index) => byte === prefix[index] || byte === closingBrackets[index])
  }
  return isRightSoFar && tail.subarray(0, prefix.length).equals(prefix.subarray(0, tail.length))
}

/** How many pets begin in the tail, in the layout of an append. */
function countPets(tail: Buffer): number {
  return tail.toString('latin1').split(firstAppendPrefix.toString()).length - 1
}

/**
 * The power failed before the disk had written all sectors of an append. Then a run of NULs begins at the old end of the file, or where a
 * sector ends, and goes on to where a sector ends, or to the end of the file.
 */
function hasUnwrittenSectors(bytes: Buffer, petsEnd: number): boolean {
  const from = bytes.indexOf(0, petsEnd)
  if (from === -1) return false
  let to = from
  while (bytes[to] === 0) to++
  // At the old end there are 7 bytes of the append before it, or still the closing bytes: ours, or a person's.
  const old = bytes.subarray(petsEnd, from)
  const isOldEnd = old.length > 0 && (old.length === closingBrackets.length || isClosing(old))
  return (isOldEnd || from % sectorBytes === 0) && (to % sectorBytes === 0 || to === bytes.length)
}

/** Whether there is nothing but white space and closing brackets. */
function isClosing(bytes: Buffer): boolean {
  return /^[ \t\r\n\]}]*$/.test(bytes.toString('latin1'))
}

/**
 * Finds the damage at the end of a text after a crash, or in a copy that was made in the middle of an append. Some mistakes of a person
 * look the same, and are repaired too: closing brackets that are missing or mixed, or a pet in our layout that has no end. Does no file
 * I/O: what is cut off is kept by kept-files.ts, and a write that fails while the server runs is undone in appender.ts.
 *
 * An append overwrites the last 7 bytes of the file (`⏎  ]⏎}⏎`, the *closing brackets*) with the first 7 bytes of what it
 * appends (`,⏎    {`, or `⏎    {"` for the first pet of all), and goes on after them:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                                  before
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after
 *                      ^^^^^^^
 *
 * A person may have closed the file in another way. Before the first append, Appender.#closeByUs puts our closing brackets there:
 *
 * 1. An end that is shorter, such as `⏎]⏎}`, grows to 7 bytes by line feeds. If the power fails, there may be NULs instead of them.
 * 2. One that is longer is cut to 7 bytes. For that the file system makes two writes: NULs over the rest of the sector, and the new length.
 *    If the power fails between them, NULs follow the 7 bytes, and after the NULs comes what the next sectors had before.
 * 3. Our 7 bytes overwrite what is there. If the power fails, and a sector ends among them, some may be ours and some a person's.
 *
 * Steps 2 and 3 are synced together, so either may reach the disk without the other.
 */
import { closingBrackets, maxAppendPets, parsePets, separator } from './file-text.ts'

/**
 * Everything from `petsEnd` on is to be replaced by the closing brackets. No acknowledged pet is in it: what a crash has cut off was not
 * acknowledged yet, and the pets that came while a copy was made are in the original.
 */
export interface TornEnd {
  /** After the last whole pet before the damage. */
  readonly petsEnd: number
  /** `brackets`: only they are missing or damaged. `append`: cut off by a crash. `copy`: copied during an append. */
  readonly cause: 'brackets' | 'append' | 'copy'
}

/** A disk writes whole sectors, and `cp` reads whole pages, of several sectors each: where one of them ends, old and new bytes may meet. */
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
  // The text is right as far as it goes (see JsonFault).
  const endsTooSoon = syntaxFault.offset === bytes.length
  // Whole pets may follow lost sectors. A crash loses those of one append. If there are more pets than it can add, a person has to look.
  if (hasUnwrittenSectors(bytes, petsEnd))
    return countPets(tail) > maxAppendPets ? undefined : { petsEnd, cause: 'append' }
  // After the `[` of an empty list, a crash of this server leaves at least 7 bytes (see Appender.#closeByUs). If there are fewer, an
  // editor was probably stopped before it had saved the first pet, and a repair would make an empty store of that.
  if (petCount === 0 && tail.length < closingBrackets.length) return undefined
  if (isClosing(tail) && (endsTooSoon || mayMixEnds(petsEnd))) return { petsEnd, cause: 'brackets' }
  if (isCopySeam(tail, petsEnd, prefix)) return { petsEnd, cause: 'copy' }
  return isCutOff(tail, prefix, endsTooSoon) ? { petsEnd, cause: 'append' } : undefined
}

/**
 * Whether the power may have failed in a step of #closeByUs (see above) that leaves no NULs:
 * - in step 2, if a sector ends right after the 7 bytes (hence `>=`): these may be ours already, while the new length is not written. There
 *   is no room for NULs, so the rest of the person's end follows our closing brackets;
 * - in step 3, if a sector ends among the 7 bytes: the first 3 may be those of `⏎]⏎}` with the line feeds of step 1, say, and the last 4
 *   those of our `⏎  ]⏎}⏎`.
 */
function mayMixEnds(petsEnd: number): boolean {
  return (petsEnd % sectorBytes) + closingBrackets.length >= sectorBytes
}

/**
 * `cp` reads in pieces. If an append comes between two of them, the copy has the old end up to the seam between the pieces, and the append
 * from there on. For example, with the seam after our brackets, at the `^`:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎
 *                             ^
 * A piece ends in one of two places:
 * - where the file ended at that moment: the whole old end comes before the seam;
 * - where a page ends.
 *
 * What looks like a seam in any other place is taken for a person's mistake.
 */
function isCopySeam(tail: Buffer, petsEnd: number, prefix: Buffer): boolean {
  // Only the prefix of an append can be recognized, so the seam has to be within it.
  const end = Math.min(prefix.length, tail.length)
  for (let seam = 1; seam < end; seam++) {
    const oldEnd = tail.subarray(0, seam)
    if (!isClosing(oldEnd)) return false
    const goesOnAsAppend = tail.subarray(seam, end).equals(prefix.subarray(seam, end))
    // The old end may also be a person's, such as `⏎]⏎}`: then both #closeByUs and the append came between the two pieces.
    const isWholeOldEnd = oldEnd.toString().replaceAll(/\s/g, '') === ']}'
    // A page ends where a sector ends.
    const maybePageEnd = (petsEnd + seam) % sectorBytes === 0
    if (goesOnAsAppend && (isWholeOldEnd || maybePageEnd)) return true
  }
  return false
}

/** An append or its rollback was interrupted: the process was killed, or the disk was full. */
function isCutOff(tail: Buffer, prefix: Buffer, endsTooSoon: boolean): boolean {
  // A tail of 7 bytes: the append was still overwriting our brackets, or its rollback was putting them back. So each byte is that of the
  // one or of the other. (There may be fewer bytes in a copy that was not finished.)
  if (tail.length <= closingBrackets.length)
    return tail.every((byte, index) => byte === prefix[index] || byte === closingBrackets[index])
  // A longer tail: the append had begun to make the file longer.
  const common = Math.min(tail.length, prefix.length)
  return endsTooSoon && tail.subarray(0, common).equals(prefix.subarray(0, common))
}

/** How many pets begin in the tail, in the layout of an append. Both prefixes contain that of the first append. */
function countPets(tail: Buffer): number {
  return tail.toString('latin1').split(firstAppendPrefix.toString()).length - 1
}

/**
 * Whether the power failed before the disk had written all sectors of an append, or in step 1 or 2 of #closeByUs (see above). If a new
 * length was written, but not the bytes, these are read as NULs, up to the end of a sector or of the file.
 */
function hasUnwrittenSectors(bytes: Buffer, petsEnd: number): boolean {
  const start = bytes.indexOf(0, petsEnd)
  if (start === -1) return false
  let end = start
  while (bytes[end] === 0) end++
  const before = bytes.subarray(petsEnd, start)
  // The NULs begin where the file ended before an append, or was cut in step 2,
  const isAfter7Bytes = before.length === closingBrackets.length
  // or where it ended before step 1,
  const isAfterPersonsEnd = before.length > 0 && isClosing(before)
  // or with a sector that was not written, of an append that has several.
  const isAfterSector = start % sectorBytes === 0
  const isRun = isAfter7Bytes || isAfterPersonsEnd || isAfterSector
  return isRun && (end % sectorBytes === 0 || end === bytes.length)
}

/** Whether there is nothing but white space and closing brackets. */
function isClosing(bytes: Buffer): boolean {
  return /^[ \t\r\n\]}]*$/.test(bytes.toString('latin1'))
}

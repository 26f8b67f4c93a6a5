/**
 * Finds the damage at the end of a text after a crash, or in a copy that was made in the middle of an append. Some mistakes of a person
 * look the same, and are repaired too: closing brackets that are missing, or a pet in our layout that has no end. Does no file I/O: what
 * is cut off is kept by kept-files.ts, and a write that fails while the server runs is undone in appender.ts.
 *
 * An append overwrites the last 7 bytes of the file (`⏎  ]⏎}⏎`, the *closing brackets*) with the first 7 bytes of what it
 * appends (`,⏎    {`, or `⏎    {"` for the first pet of all), and goes on after them:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                                  before
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after
 *                      ^^^^^^^
 *
 * A person may have closed the file with other bytes, which the first append overwrites. If the power fails during this one append, and
 * two sectors meet within these bytes, what is left may look like a mistake of the person, and is not repaired.
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

/** A disk writes whole sectors, and `cp` reads whole pages, of several sectors each. So where a sector ends, old and new bytes may meet. */
const sectorBytes = 512

/** What every append begins with; the first one of all has no comma. */
const appendPrefix = Buffer.from(`${separator}{"id":`)
const firstAppendPrefix = appendPrefix.subarray(1)

/**
 * The *tail* is what follows the last whole pet. It is damaged if it is one of these; otherwise returns undefined:
 *
 * | Tail                          | What has happened                                                |
 * | ----------------------------- | ---------------------------------------------------------------- |
 * | `⏎  ]`                        | only closing brackets are missing                                |
 * | `,⏎    {"id":13,"na`          | the process was killed, or the disk was full                     |
 * | `,⏎ ]⏎}⏎`                     | the same, when 2 of the 7 bytes were overwritten                 |
 * | `,⏎    {"id":13,"na` and NULs | the power failed: see hasUnwrittenSectors                        |
 * | `⏎  ]⏎}⏎"id":13,"name":"Rex"` | the file was copied meanwhile, in pieces: see isCopySeam         |
 */
export function findTornEnd(bytes: Buffer): TornEnd | undefined {
  const { faultCount, petCount, petsEnd, syntaxFault } = parsePets(bytes)
  // Any fault besides the syntax error means that a person made it.
  if (petsEnd === 0 || syntaxFault === undefined || faultCount > 1) return undefined
  const tail = bytes.subarray(petsEnd)
  const prefix = petCount === 0 ? firstAppendPrefix : appendPrefix
  // The text is right as far as it goes (see JsonFault).
  const endsTooSoon = syntaxFault.offset === bytes.length
  // Whole pets may follow the NULs, but no more than one append can add. If there are more, a person has to look.
  if (hasUnwrittenSectors(bytes, petsEnd))
    return countPets(tail) > maxAppendPets ? undefined : { petsEnd, cause: 'append' }
  // The first pet of all is appended over our 7 bytes, as a rule, so at least these are left. If there are fewer, an editor was probably
  // stopped before it had saved the first pet, and a repair would make an empty store of that.
  if (petCount === 0 && tail.length < closingBrackets.length) return undefined
  if (endsTooSoon && isClosing(tail)) return { petsEnd, cause: 'brackets' }
  if (isCopySeam(tail, petsEnd, prefix)) return { petsEnd, cause: 'copy' }
  const isCutOff = (endsTooSoon && beginsLike(tail, prefix)) || isHalfOverwritten(tail, prefix)
  return isCutOff ? { petsEnd, cause: 'append' } : undefined
}

function beginsLike(tail: Buffer, prefix: Buffer): boolean {
  const length = Math.min(tail.length, prefix.length)
  return tail.subarray(0, length).equals(prefix.subarray(0, length))
}

/** Whether there are 7 bytes, each of which is that of an append or that of our closing brackets. */
function isHalfOverwritten(tail: Buffer, prefix: Buffer): boolean {
  return (
    tail.length === closingBrackets.length &&
    tail.every((byte, index) => byte === prefix[index] || byte === closingBrackets[index])
  )
}

/**
 * `cp` reads in pieces, and an append may come between two of them. Then the copy has the old end of the file up to the *seam*, where the
 * one piece ends, and from there on what the append has at these places:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                                  the old end
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    the append
 *     …"status":"sold"}⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎    the copy
 *                             ^ the seam
 *
 * A piece ends where the file ended, or where a page does, and so a sector. (A power cut may leave the same, if the sector before the seam
 * was not written.) What looks like a seam elsewhere is a person's mistake.
 */
function isCopySeam(tail: Buffer, petsEnd: number, prefix: Buffer): boolean {
  // Only the prefix of an append can be recognized, so the seam has to be within it.
  const end = Math.min(prefix.length, tail.length)
  for (let seam = 1; seam < end; seam++) {
    const oldEnd = tail.subarray(0, seam)
    if (!isClosing(oldEnd)) return false
    const goesOnAsAppend = tail.subarray(seam, end).equals(prefix.subarray(seam, end))
    // The old end may also be a person's, such as `⏎]⏎}`.
    const isWholeOldEnd = oldEnd.toString().replaceAll(/\s/g, '') === ']}'
    const isSectorEnd = (petsEnd + seam) % sectorBytes === 0
    if (goesOnAsAppend && (isWholeOldEnd || isSectorEnd)) return true
  }
  return false
}

/** How many pets begin in the tail, in the layout of an append. Both prefixes contain that of the first append. */
function countPets(tail: Buffer): number {
  return tail.toString('latin1').split(firstAppendPrefix.toString()).length - 1
}

/**
 * Whether the power failed before the disk had written all sectors of an append: its new length may be there before its bytes. These are
 * then read as NULs, up to the end of a sector or of the file.
 */
function hasUnwrittenSectors(bytes: Buffer, petsEnd: number): boolean {
  const start = bytes.indexOf(0, petsEnd)
  if (start === -1) return false
  let end = start
  while (bytes[end] === 0) end++
  return end % sectorBytes === 0 || end === bytes.length
}

/** Whether there is nothing but white space and closing brackets. */
function isClosing(bytes: Buffer): boolean {
  return /^[ \t\r\n\]}]*$/.test(bytes.toString('latin1'))
}

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
 * The first append after an edit overwrites a person's closing brackets, which may be other bytes. If the power fails during it, and a
 * sector of the disk ends within these brackets, what is left may look like a mistake of the person, and is not repaired.
 */
import { closingBrackets, maxAppendPets, parsePets, separator } from './file-text.ts'

/**
 * Everything from `petsEnd` on is to be replaced by the closing brackets. No acknowledged pet is in it: what a crash has cut off was not
 * acknowledged yet, and the pets that came while a copy was made are in the original.
 */
export interface TornEnd {
  /** After the last whole pet before the damage. */
  readonly petsEnd: number
  /** `brackets`: only they are missing. `append`: cut off by a crash. `copy`: copied during an append. */
  readonly cause: 'brackets' | 'append' | 'copy'
}

/** A disk writes whole sectors. Where one ends, old and new bytes may meet. */
const sectorBytes = 512

/** An append that is being written becomes visible to `cp` page by page. */
const pageBytes = 4096

/** What every append begins with; the first one of all has no comma. */
const appendPrefix = Buffer.from(`${separator}{"id":`)
const firstAppendPrefix = appendPrefix.subarray(1)

/**
 * The *tail* is what follows the last whole pet. It is damaged if it is one of these; otherwise returns undefined:
 *
 * | Tail                                    | What has happened                                                                    |
 * | --------------------------------------- | ------------------------------------------------------------------------------------ |
 * | `⏎  ]`                                  | only closing brackets are missing                                                    |
 * | `,⏎    {"id":13,"na`                    | the process was killed, or the disk was full                                         |
 * | `,⏎ ]⏎}⏎` or `⏎  ]  {"id":13,"na`       | the same, or the power failed: only the first 2, or last 3, of 7 bytes are new       |
 * | `,⏎    {"id":13,"na` and NULs           | the power failed: see hasUnwrittenSectors                                            |
 * | `⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎` | the file was copied meanwhile, in pieces: see isCopy                                 |
 */
export function findTornEnd(bytes: Buffer): TornEnd | undefined {
  const { faultCount, petCount, petsEnd, syntaxFault } = parsePets(bytes)
  // Any fault besides the syntax error means that a person made it.
  if (petsEnd === 0 || syntaxFault === undefined || faultCount > 1) return undefined
  const tail = bytes.subarray(petsEnd)
  const prefix = petCount === 0 ? firstAppendPrefix : appendPrefix
  // The text is right as far as it goes (see JsonFault).
  const endsTooSoon = syntaxFault.offset === bytes.length
  // When an append to an empty list is cut off, the 7 bytes are there. If there are fewer, an editor was probably stopped before it had
  // saved the first pet, and a repair would make an empty store of that.
  if (petCount === 0 && tail.length < closingBrackets.length) return undefined
  if (endsTooSoon && isClosing(tail)) return { petsEnd, cause: 'brackets' }
  if (isCopy(tail, petsEnd, prefix)) return { petsEnd, cause: 'copy' }
  const isAppend =
    (endsTooSoon && beginsLike(tail, prefix)) ||
    isPartlyOverwritten(tail, petsEnd, prefix) ||
    hasUnwrittenSectors(bytes, petsEnd)
  // A crash cuts off one append. If there are more pets than it can add, a person has to look.
  return isAppend && countPets(tail) <= maxAppendPets ? { petsEnd, cause: 'append' } : undefined
}

function beginsLike(tail: Buffer, begin: Buffer): boolean {
  return tail.subarray(0, begin.length).equals(begin.subarray(0, tail.length))
}

/**
 * Whether each of the 7 bytes is that of the append or still that of our closing brackets, and what follows is the append's, if anything
 * does: after a power cut, this is possible if a sector ends within the 7 bytes.
 */
function isPartlyOverwritten(tail: Buffer, petsEnd: number, prefix: Buffer): boolean {
  const { length } = closingBrackets
  const isPossible = tail.length === length || sectorBytes - (petsEnd % sectorBytes) <= length
  const begin = tail.subarray(0, prefix.length)
  return isPossible && begin.every((byte, index) => byte === prefix[index] || byte === closingBrackets[index])
}

/**
 * `cp` reads in pieces, and an append may come between two of them. Then the copy has the old end of the file, ours or a person's, and
 * after it the append, but for its first bytes. The copy ends as the file does, or in the middle of an append that was being written:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                                  the old end
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    the append
 *     …"status":"sold"}⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎    the copy
 */
function isCopy(tail: Buffer, petsEnd: number, prefix: Buffer): boolean {
  const oldEnd = /^[ \t\r\n]*\][ \t\r\n]*\}[ \t\r\n]*/.exec(tail.toString('latin1'))?.[0]
  // After a person's end that is longer than the prefix, nothing that can be recognized is left of the append.
  if (oldEnd === undefined || oldEnd.length >= prefix.length) return false
  const goesOnAsAppend = beginsLike(tail.subarray(oldEnd.length), prefix.subarray(oldEnd.length))
  const endsAsFile = tail.subarray(-closingBrackets.length).equals(closingBrackets)
  return goesOnAsAppend && (endsAsFile || (petsEnd + tail.length) % pageBytes === 0)
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

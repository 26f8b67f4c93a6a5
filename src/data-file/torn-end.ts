/**
 * Finds the damage at the end of a text after a crash, or in a copy that was made in the middle of an append. Some mistakes of a person
 * look the same, and are repaired too: closing brackets that are missing, or a pet in our layout that has no end; but not beside kept
 * pets (kept-files.ts), which tell of a save that was cut off. Does no file I/O: data-file.ts repairs what is found here, and appender.ts
 * undoes a write that fails while the server runs.
 *
 * An append begins after the last pet, so it overwrites our closing brackets, which are 7 bytes. What follows from there on is the *tail*.
 * These are the tails before and after an append, and those that are damaged, aligned byte for byte:
 *
 *     ⏎  ]⏎}⏎                                  before: the 7 bytes
 *     ,⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after (without the comma in an empty list)
 *
 *     ⏎  ]                                     closing brackets are missing
 *     ,⏎    {"id":13,"na                       cut off: the process was killed, or the disk was full
 *     ,⏎ ]⏎}⏎                                  cut off even earlier: only 2 of the 7 bytes are overwritten
 *     ,⏎    {"id":13,"na␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀    the power failed, and a sector was not written: it reads as NULs
 *     ⏎  ]  {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    the power failed, and the sector of the first 4 bytes was not written: `⏎  ]` is old
 *     ⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎    `cp` read up to the old end before the append, and the rest after it
 *
 * The first append after an edit overwrites a person's closing brackets, which may be different bytes. If it is interrupted within these,
 * what is left may look like a mistake of that person, and is not repaired.
 */
import { closingBrackets, maxAppendPets, type ParsedPets, separator } from './file-text.ts'

/**
 * Everything from `petsEnd` on is to be replaced by the closing brackets. What a crash has cut off had not been acknowledged yet, and the
 * pets that came while a copy was made are in the original.
 */
export interface TornEnd {
  /** After the last whole pet before the damage or, if there is none, after the `[`. */
  readonly petsEnd: number
  /** `brackets`: only the closing brackets are missing. `append`: cut off by a crash. `copy`: copied during an append. */
  readonly cause: 'brackets' | 'append' | 'copy'
}

/** A disk writes whole sectors. */
const sectorBytes = 512

/** An append that is being written becomes visible to `cp` page by page. */
const pageBytes = 4096

/** What every append begins with; the very first one has no comma. */
const appendPrefix = Buffer.from(`${separator}{"id":`)
const firstAppendPrefix = appendPrefix.subarray(1)

/** Finds the damaged tail, if it is one of those at the top of this file. `parsed` is what was read of the text. */
export function findTornEnd(bytes: Buffer, parsed: Readonly<ParsedPets>): TornEnd | undefined {
  const { faultCount, petCount, petsEnd, syntaxFault } = parsed
  // Any fault besides the syntax error means that a person made a mistake.
  if (petsEnd === 0 || syntaxFault === undefined || faultCount > 1) return undefined
  const tail = bytes.subarray(petsEnd)
  const prefix = petCount === 0 ? firstAppendPrefix : appendPrefix
  // The text is right as far as it goes (see JsonFault).
  const endsTooSoon = syntaxFault.offset === bytes.length
  // An append to an empty list overwrites our 7 bytes, and the file becomes no shorter. So if fewer than 7 follow the list's `[`, it was
  // most likely an editor's save that was cut off, and a repair would make an empty store of it.
  if (petCount === 0 && tail.length < closingBrackets.length) return undefined
  const isClosing = /^[ \t\r\n\]}]*$/.test(tail.toString('latin1'))
  if (endsTooSoon && isClosing) return { petsEnd, cause: 'brackets' }
  if (isCopy(tail, petsEnd, prefix)) return { petsEnd, cause: 'copy' }
  const isAppend =
    (endsTooSoon && beginsLike(tail, prefix)) ||
    isHalfOverwritten(tail, prefix) ||
    lacksFirstSector(tail, petsEnd, prefix) ||
    hasUnwrittenSectors(bytes, petsEnd)
  // Whole pets may follow the damage. If there are more of them than a single append can add, it was not a crash, and a person has to look.
  return isAppend && countPets(tail) <= maxAppendPets ? { petsEnd, cause: 'append' } : undefined
}

function beginsLike(tail: Buffer, begin: Buffer): boolean {
  return tail.subarray(0, begin.length).equals(begin.subarray(0, tail.length))
}

/**
 * The tail has 7 bytes, each as it was before the append or as it is after it: the append was cut off within them. Or its
 * rollback was interrupted: that first cuts the tail to 7 bytes, and then writes the old ones over them.
 */
function isHalfOverwritten(tail: Buffer, prefix: Buffer): boolean {
  if (tail.length !== closingBrackets.length) return false
  return tail.every((byte, index) => byte === prefix[index] || byte === closingBrackets[index])
}

/** A sector ends within the 7 bytes. Up to there they are as before the append, and from there on as after it. */
function lacksFirstSector(tail: Buffer, petsEnd: number, prefix: Buffer): boolean {
  const oldLength = sectorBytes - (petsEnd % sectorBytes)
  if (oldLength > closingBrackets.length) return false
  return beginsLike(tail, Buffer.concat([closingBrackets.subarray(0, oldLength), prefix.subarray(oldLength)]))
}

/**
 * As in the line about `cp` at the top. There the old end, `⏎  ]⏎}⏎`, has hidden the first 7 bytes of the append, `,⏎    {`. The append is
 * recognized by the rest of its prefix, `"id":`, which follows the old end.
 */
function isCopy(tail: Buffer, petsEnd: number, prefix: Buffer): boolean {
  // The old end may be a person's, so all lengths are tried, from 0 to one less than the prefix's. A longer one would hide the whole
  // prefix, and nothing would be left to recognize.
  const oldLengths = [...prefix.keys()]
  const hasSeam = oldLengths.some((oldLength) => isSeam(tail, oldLength, prefix))
  // Either the copy has the whole append, which ends with our brackets; or the append was still being written, and the copy ends where a
  // page does.
  const hasWholeAppend = tail.subarray(-closingBrackets.length).equals(closingBrackets)
  return hasSeam && (hasWholeAppend || (petsEnd + tail.length) % pageBytes === 0)
}

/** Whether the first `oldLength` bytes are a whole old end, and the rest of the prefix follows them. */
function isSeam(tail: Buffer, oldLength: number, prefix: Buffer): boolean {
  const oldEnd = tail.toString('latin1', 0, oldLength)
  const isWholeEnd = /^[ \t\r\n]*\][ \t\r\n]*\}[ \t\r\n]*$/.test(oldEnd)
  return isWholeEnd && beginsLike(tail.subarray(oldLength), prefix.subarray(oldLength))
}

/** How many pets begin in the tail, in the layout of an append, with or without a comma before them. */
function countPets(tail: Buffer): number {
  return tail.toString('latin1').split(firstAppendPrefix.toString()).length - 1
}

/**
 * Whether there are NULs after the last whole pet, and the first run of them goes up to the end of a sector or of the file. It may begin
 * within a sector: what was never written reads as NULs from the old end of the file on.
 */
function hasUnwrittenSectors(bytes: Buffer, petsEnd: number): boolean {
  const start = bytes.indexOf(0, petsEnd)
  if (start === -1) return false
  let end = start
  while (bytes[end] === 0) end++
  return end % sectorBytes === 0 || end === bytes.length
}

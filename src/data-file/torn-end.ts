/**
 * Finds the damage at the end of a text after a crash, or in a copy that was made in the middle of an append. A person's mistake is taken
 * for it only if it looks the same: closing brackets that are missing or mixed, or a pet in our layout that has no end. Does no file I/O:
 * what is cut off is kept by kept-files.ts, and a write that fails while the server runs is undone in appender.ts.
 *
 * An append overwrites the last 7 bytes of the file (`⏎  ]⏎}⏎`, the *closing brackets*) with the first 7 bytes of what it
 * appends (`,⏎    {`, or `⏎    {"` for the first pet of all), and goes on after them:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎                                  before
 *     …"status":"sold"},⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after
 *                      ^^^^^^^
 *
 * A file that a person has closed in another way gets our closing brackets before the first append (Appender.#closeByUs). A crash while
 * they are written leaves a mixture of that end and ours (see mayMixEnds).
 */
import { closingBrackets, maxAppendPets, parsePets, separator } from './file-text.ts'

/**
 * Everything from `petsEnd` on is to be replaced by the closing brackets. No pet is lost by that: after a crash, those in it were never
 * acknowledged. In a copy they may have been, but the original has them: they came after the copy began.
 */
export interface TornEnd {
  /** After the last whole pet before the damage. */
  readonly petsEnd: number
  /** `brackets`: only they are missing or damaged. `append`: cut off by a crash. `copy`: copied during an append. */
  readonly cause: 'brackets' | 'append' | 'copy'
}

/** Old and new bytes meet at multiples of this: a disk writes whole sectors, and `cp` reads whole pages, of several sectors each. */
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
  // A fault at the very end means that the text is right as far as it goes (see JsonFault).
  const isOnlyCut = syntaxFault.offset === bytes.length
  // Whole pets may follow lost sectors. With more than one append can have, some were acknowledged: the file is left to a person.
  if (countPets(tail) <= maxAppendPets && hasUnwrittenSectors(bytes, petsEnd))
    return { petsEnd, cause: 'append' }
  // A crash of ours leaves at least 7 bytes (see Appender.#closeByUs). If fewer follow the `[` of an empty list, a save of many pets was
  // probably cut off before the first one, and a repair would hide that.
  if (petCount === 0 && tail.length < closingBrackets.length) return undefined
  if (isClosing(tail) && (isOnlyCut || mayMixEnds(petsEnd))) return { petsEnd, cause: 'brackets' }
  if (isCopySeam(tail, petsEnd, prefix)) return { petsEnd, cause: 'copy' }
  return isCutOff(tail, prefix, isOnlyCut) ? { petsEnd, cause: 'append' } : undefined
}

/**
 * Before the first append, Appender.#closeByUs cuts a person's end off, and writes our 7 bytes. If the power fails then, and a sector ends
 * within our bytes, one sector may be new and the next one old: `]]`, say. If one ends right after them, the old rest may still follow.
 */
function mayMixEnds(petsEnd: number): boolean {
  return (petsEnd % sectorBytes) + closingBrackets.length >= sectorBytes
}

/**
 * `cp` reads in pieces. If it read one before an append and the next after it, they do not fit together. The append was written over the
 * old end, from `petsEnd` on: so the tail has the bytes of the old end up to the seam, and those of the append from there on. For example,
 * with our brackets as the old end and the seam at the `^`:
 *
 *     …"status":"sold"}⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎
 *                             ^
 */
function isCopySeam(tail: Buffer, petsEnd: number, prefix: Buffer): boolean {
  // Only the prefix of an append can be recognized, so the seam has to be within it.
  const end = Math.min(prefix.length, tail.length)
  for (let seam = 1; seam < end; seam++) {
    const oldEnd = tail.subarray(0, seam)
    if (!isClosing(oldEnd)) return false
    const goesOnAsAppend = tail.subarray(seam, end).equals(prefix.subarray(seam, end))
    // The first piece stops at the end of the old file, or of a page. Anywhere else it is a person's mistake: a space for the comma, say.
    const isWholeOldEnd = oldEnd.toString().replaceAll(/\s/g, '') === ']}'
    const maybePageEnd = (petsEnd + seam) % sectorBytes === 0
    if (goesOnAsAppend && (isWholeOldEnd || maybePageEnd)) return true
  }
  return false
}

/** The process was killed while it wrote, or the disk was full. */
function isCutOff(tail: Buffer, prefix: Buffer, isOnlyCut: boolean): boolean {
  // The beginning of an append.
  if (tail.length > closingBrackets.length)
    return isOnlyCut && tail.subarray(0, prefix.length).equals(prefix.subarray(0, tail.length))
  // A mixture of append and brackets: writing the one over the other, or its rollback, stopped half-way. There are 7 bytes of it, or
  // fewer in a copy that was itself cut off.
  return tail.every((byte, index) => byte === prefix[index] || byte === closingBrackets[index])
}

/** How many pets begin in the tail, in the layout of an append. */
function countPets(tail: Buffer): number {
  return tail.toString('latin1').split(firstAppendPrefix.toString()).length - 1
}

/**
 * The power failed before the disk had written all sectors of an append, or of the line feeds of Appender.#closeByUs. Then there is a run
 * of NULs: from where the file ended before, or from where a sector ends, to where a sector ends, or to the end of the file.
 */
function hasUnwrittenSectors(bytes: Buffer, petsEnd: number): boolean {
  const from = bytes.indexOf(0, petsEnd)
  if (from === -1) return false
  let to = from
  while (bytes[to] === 0) to++
  // Where the file ended before: after our brackets (or what the append has put over them), or after a person's.
  const before = bytes.subarray(petsEnd, from)
  const isOurs = before.length === closingBrackets.length
  const isPersons = before.length > 0 && isClosing(before)
  return (isOurs || isPersons || from % sectorBytes === 0) && (to % sectorBytes === 0 || to === bytes.length)
}

/** Whether there is nothing but white space and closing brackets. */
function isClosing(bytes: Buffer): boolean {
  return /^[ \t\r\n\]}]*$/.test(bytes.toString('latin1'))
}

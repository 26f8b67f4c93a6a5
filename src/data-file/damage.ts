/**
 * Finds the damage that a crash, a lost sector or a copy during an append has left, and what can be done
 * without guessing: the damaged bytes are taken out, and every whole pet stays, before them and behind. Some
 * mistakes of a person look the same, and are mended in the same way.
 *
 * The *tail* is what follows the last pet before the damage. An append overwrites it; that of the server has
 * 7 bytes:
 *
 *     ⏎  ]⏎}⏎                                  before
 *     ,⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after (without the comma in an empty list)
 *
 *     ⏎  ]                                     closing brackets are missing (isOnlyBrackets)
 *     ,⏎    {"id":13,"na                       cut off: the process was killed, or the disk was full (isCutAppend)
 *     ,⏎ ]⏎}⏎                                  cut off within the 7 bytes (isMixture)
 *     ,⏎    {"id":13,"na␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀…    a hole: the power failed before a sector was written, or the disk has lost it since (hasHoles)
 *     ⏎  ]  {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    the power failed before the sector of the first 4 bytes was written (lacksFirstSector)
 *     ⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎    `cp` read the old end before the append, and the rest after it (isCopy)
 *
 * A hole in an append that was never confirmed and one in pets that were confirmed long ago look the same. So
 * no whole pet is taken out.
 */
import { constants } from 'node:buffer'
import type { Int64 } from '../json/int64.ts'
import { JsonFault, JsonReader } from '../json/json.ts'
import { type Pet, petTextEnd, petTextStart } from '../pet/pet.ts'
import { readPet } from '../pet/seeds.ts'
import {
  closingBrackets,
  type FileText,
  firstSeparator,
  maxAppendPets,
  openingBrackets,
  parseFileText,
  separator,
} from './file-text.ts'

export interface Damage {
  /** Whether the file is most likely a copy that was made during an append. */
  readonly isOfCopy: boolean
  /** The whole text without the damage. It is valid. */
  readonly repaired: Buffer
  /** What was taken out; empty if only closing brackets were missing. */
  readonly damaged: Buffer
  /** Whether no whole pet stands behind the damage. */
  readonly isAtEnd: boolean
  /** Which ids may have been in the damaged bytes. */
  readonly missingWords: string
}

/** A whole pet in the tail: from its `{` to behind its `}`, as offsets in the tail. */
interface FoundPet {
  readonly start: number
  readonly end: number
  readonly id: Int64 | undefined
}

const sectorBytes = 512

/** `cp` sees an append page by page, so a copy may end where a page does. */
const pageBytes = 4096

const closing = closingBrackets.toString()

/** Every append begins with this; the very first one has no comma. */
const appendPrefix = separator + petTextStart
const firstAppendPrefix = firstSeparator + petTextStart

/** In a copy, the rest of an append follows our closing brackets so. */
const copyJoint = closing + appendPrefix.slice(closing.length)

/** No id up to `highestGivenId`, if there is one, is given again, even if its pet is not in the file. */
export function findDamage(fileText: FileText, highestGivenId: Int64 = 0): Damage | undefined {
  const { bytes, pets, petsEnd, syntaxFault, tail } = fileText
  if (syntaxFault === undefined) return undefined
  // No append is so long that its text fits into no string.
  if (tail.length > constants.MAX_STRING_LENGTH) return undefined
  const text = tail.toString('latin1')
  // This is most likely an editor's save that was cut off: a repair would make an empty store of it.
  const isCutOff = tail.length < closing.length || text.trim() === ''
  if (petsEnd > 0 && pets.length === 0 && isCutOff) return undefined
  // Without its `[`, a file is a person's mistake, unless a hole is at its very beginning.
  if (petsEnd === 0 && !text.startsWith('\0')) return undefined
  const found = findWholePets(tail, text)
  if (found === undefined) return undefined
  const traces: Traces = {
    text,
    petsEnd,
    fileBytes: bytes.length,
    faultAt: syntaxFault.offset - petsEnd,
    prefix: pets.length === 0 ? firstAppendPrefix : appendPrefix,
    gaps: gapsBetween(text, found),
  }
  const isOfCopy = isCopy(traces)
  if (!isOfCopy && !isOfCrash(traces)) return undefined
  const damage = { isOfCopy, ...takeOut(fileText, text, found, highestGivenId) }
  // Any other fault is a person's, such as an id that stands both before the damage and behind it.
  return parseFileText(damage.repaired).faultCount === 0 ? damage : undefined
}

/** Returns undefined if a pet has a fault that comes neither from a hole nor from the end of the text. */
function findWholePets(tail: Buffer, text: string): readonly FoundPet[] | undefined {
  const found: FoundPet[] = []
  // This finds the `{` of a pet. A name may have a `{` too, but a quote behind it is escaped, unless it ends
  // the name: then `,` or `}` follows.
  const start = /\{\s*"(?!\s*[,}])/g
  for (let match = start.exec(text); match !== null; match = start.exec(text)) {
    const reader = new JsonReader(tail)
    reader.at = match.index
    try {
      // What is wrong with the pets is found when the repaired text is read.
      const pet = readPet(reader, () => {})
      if (pet === undefined) return undefined
      found.push({ start: match.index, end: reader.at, id: pet.id })
      start.lastIndex = reader.at
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error
      if (error.offset < tail.length && !isAtNul(text, error.offset)) return undefined
      // No pet stands within another one. To look for one there would take the square of a long tail.
      start.lastIndex = Math.max(start.lastIndex, error.offset)
    }
  }
  return found
}

/**
 * Returns whether a fault comes from a hole. That of an escape that was cut is at its backslash, that of a
 * number at its beginning.
 */
function isAtNul(text: string, at: number): boolean {
  const cut = /(?:\\u?[\dA-Fa-f]{0,3}|-?[\d.eE+-]*)\0/y
  cut.lastIndex = at
  return cut.test(text)
}

/** What is looked at to tell which of the pictures above the tail shows, if it is one of them. */
interface Traces {
  /** The tail, a character for each byte. */
  readonly text: string
  /** Where the tail begins in the file. */
  readonly petsEnd: number
  readonly fileBytes: number
  /** Where the first syntax fault is in the tail. */
  readonly faultAt: number
  /** What an append here begins with. */
  readonly prefix: string
  /**
   * What stands before each whole pet of the tail, and behind the last. Without any pet, it is all of the
   * tail.
   */
  readonly gaps: readonly string[]
}

/**
 * Returns whether a crash, or a disk that has lost a sector, leaves such a tail: behind the damage are no
 * more pets than one append can hold.
 */
function isOfCrash(traces: Traces): boolean {
  const { text, petsEnd, faultAt, prefix, gaps } = traces
  if (gaps.length > maxAppendPets + 1) return false
  const lacksOnlyBrackets = faultAt === text.length && isOnlyBrackets(text)
  // An append, or its roll-back, may have been cut off within the 7 bytes.
  if (lacksOnlyBrackets || isMixture(text, prefix)) return true
  if (!isCutAppend(traces) && !lacksFirstSector(traces) && !hasHoles(traces)) return false
  // If neither the `[` nor any whole pet is there, it may have been another file.
  return gaps.length === 1 ? petsEnd > 0 : isOnlyBeforeFirstPet(traces)
}

/**
 * Returns whether the file was copied during an append. `cp` may have waited for its next turn while any
 * number of pets were appended, each time that it came to the end. The last append is whole, or it was still
 * being written, and the copy ends where a page does.
 */
function isCopy(traces: Traces): boolean {
  const { text, fileBytes, gaps } = traces
  const hasWholeEnd = text.endsWith(closing) || fileBytes % pageBytes === 0
  const areCopied = gaps.slice(1, -1).every((gap) => isSeparatorGap(gap) || isJointGap(gap))
  const last = gaps.at(-1) ?? ''
  return hasWholeEnd && beginsAsCopy(traces) && areCopied && (gaps.length === 1 || isLastGapOfCopy(last))
}

/**
 * Returns whether the tail begins with an old end, which may be a person's, and goes on as an append that was
 * written over it. `cp` has read the old end to its end or, where a page ended within it, to there:
 *
 *     ⏎  ]⏎}⏎"id":13,"name":"Rex",…}     ours
 *     ]}    {"id":13,"name":"Rex",…}     a person's short one; the spaces are those of the append
 *     ⏎        ]⏎    }⏎"Rex",…}          a person's long one: the rest of a pet follows
 *     ⏎  ]  {"id":13,"name":"Rex",…}     ours, to a page that ends behind its `]`
 */
function beginsAsCopy({ text, petsEnd, prefix }: Traces): boolean {
  const maxLength = text.search(/[^\s\]}]|$/)
  const wholeLength = /^\s*\]\s*\}\s*/.exec(text)?.[0].length ?? Infinity
  const lengthToPage = pageBytes - (petsEnd % pageBytes)
  return [wholeLength, lengthToPage].some((length) => {
    // What ends there has nothing of an append.
    if (length > maxLength || length === text.length) return false
    if (length < prefix.length) return isAppendFrom(length, text, prefix)
    return restOfPet.test(text.slice(maxLength))
  })
}

/** A pet's line from somewhere behind its `{` on. */
const restOfPet = new RegExp(`^[^{\\n][^\\n]*${petTextEnd.source}(?:,?\\n|$)`)

/**
 * Returns whether the tail is as an append from this position on. Only the prefix is compared, as far as the
 * tail has it.
 */
function isAppendFrom(at: number, text: string, prefix: string): boolean {
  return prefix.startsWith(text.slice(at, prefix.length), at)
}

/** Returns whether each byte is that of the old end, or of an append that is written over it. */
function isMixture(part: string, prefix: string): boolean {
  if (part.length > prefix.length) return false
  return [...part].every((byte, at) => byte === closing[at] || byte === prefix[at])
}

function isCutAppend({ text, faultAt, prefix }: Traces): boolean {
  return faultAt === text.length && isAppendFrom(0, text, prefix)
}

/** Returns whether the sector that ends within the 7 bytes was not written, but those behind it were. */
function lacksFirstSector({ text, petsEnd, prefix }: Traces): boolean {
  const sectorEnd = sectorBytes - (petsEnd % sectorBytes)
  if (sectorEnd > closing.length || !closing.startsWith(text.slice(0, sectorEnd))) return false
  return isAppendFrom(sectorEnd, text, prefix)
}

/**
 * Returns whether the tail has holes: NULs from one border of sectors to another. Behind the old end, bytes
 * that were never written read as NULs, too, from the middle of a sector on.
 */
function hasHoles({ text, petsEnd, faultAt, prefix }: Traces): boolean {
  const holes = [...text.matchAll(/\0+/g)]
  const isBorder = (at: number): boolean => (petsEnd + at) % sectorBytes === 0
  const isBehindOldEnd = (at: number): boolean => {
    const before = text.slice(0, at)
    return before !== '' && (isOnlyBrackets(before) || isMixture(before, prefix))
  }
  const areHoles = holes.every(({ 0: nuls, index }) => {
    const end = index + nuls.length
    return (isBorder(index) || isBehindOldEnd(index)) && (isBorder(end) || end === text.length)
  })
  // A person's mistake may stand between the last pet and a hole.
  const isFaultOfHole = isAtNul(text, faultAt) || isBehindOldEnd(holes[0]?.index ?? 0)
  return holes.length > 0 && areHoles && isFaultOfHole
}

/**
 * Returns whether only what stands before the first whole pet is damaged, by one hole at most. At the end, an
 * append may be cut off, too.
 */
function isOnlyBeforeFirstPet(traces: Traces): boolean {
  const [first = '', ...later] = traces.gaps
  const last = later.pop() ?? ''
  // A first sector that was not written shows the old end instead of NULs, but is a hole, too.
  const holeCount = (first.match(/\0+/g)?.length ?? 0) + (lacksFirstSector(traces) ? 1 : 0)
  const isLastWhole = isEndGap(last) || (isCutGap(last) && !last.includes('\0'))
  return holeCount <= 1 && later.every(isSeparatorGap) && isLastWhole
}

const isSeparatorGap = (gap: string): boolean => /^\s*,\s*$/.test(gap)

const isEndGap = (gap: string): boolean => /^\s*\]\s*\}\s*$/.test(gap)

const isJointGap = (gap: string): boolean => gap.startsWith(copyJoint)

const isLastGapOfCopy = (gap: string): boolean => isEndGap(gap) || isCutGap(gap) || isJointGap(gap)

const isOnlyBrackets = (gap: string): boolean => /^[\s\]}]*$/.test(gap)

const isCutGap = (gap: string): boolean =>
  isOnlyBrackets(gap) || appendPrefix.startsWith(gap.slice(0, appendPrefix.length))

function gapsBetween(text: string, found: readonly FoundPet[]): readonly string[] {
  const starts = [...found.map(({ start }) => start), text.length]
  return starts.map((start, index) => text.slice(found[index - 1]?.end ?? 0, start))
}

/**
 * Keeps the separators between whole pets, and the end, as they are, and puts ours in the place of what is
 * damaged.
 */
function takeOut(
  { bytes, hasAscendingIds, pets, petsEnd, tail }: FileText,
  text: string,
  found: readonly FoundPet[],
  highestGivenId: Int64,
): Omit<Damage, 'isOfCopy'> {
  const repaired: Buffer[] = [petsEnd === 0 ? openingBrackets : bytes.subarray(0, petsEnd)]
  const damaged: Buffer[] = []
  const missing: string[] = []
  const listedIds = [pets.at(-1)?.id ?? 0, ...found.map(({ id }) => id)]
  const idsAscend = hasAscendingIds && isAscending(listedIds)
  let idBefore = idsAscend ? listedIds[0] : undefined
  let isFirst = pets.length === 0
  let from = 0
  for (const { start, end, id } of found) {
    if (from > 0 && isSeparatorGap(text.slice(from, start))) repaired.push(tail.subarray(from, start))
    else {
      repaired.push(Buffer.from(isFirst ? firstSeparator : separator))
      damaged.push(tail.subarray(from, start))
      missing.push(formatMissingIds(idBefore, id))
    }
    repaired.push(tail.subarray(start, end))
    idBefore = idsAscend ? id : undefined
    isFirst = false
    from = end
  }
  const rest = text.slice(from)
  const isRestWhole = from > 0 && isEndGap(rest)
  repaired.push(isRestWhole ? tail.subarray(from) : closingBrackets)
  if (!isRestWhole && !isOnlyBrackets(rest)) {
    damaged.push(tail.subarray(from))
    missing.push(`ids above ${highestIdOf(pets, found, highestGivenId)} may be given again`)
  }
  return {
    repaired: Buffer.concat(repaired),
    damaged: Buffer.concat(damaged),
    isAtEnd: found.length === 0,
    missingWords: missing.join(', '),
  }
}

function isAscending(ids: readonly (Int64 | undefined)[]): boolean {
  return ids.every((id, index) => {
    const before = index === 0 ? -1 : ids[index - 1]
    return id !== undefined && before !== undefined && id > before
  })
}

/**
 * Names the ids of pets that may have stood between two others. In a file whose ids do not ascend, `before`
 * is undefined, and nothing is known.
 */
function formatMissingIds(before: Int64 | undefined, behind: Int64 | undefined): string {
  if (before === undefined || behind === undefined) return 'pets may have been there'
  const first = BigInt(before) + 1n
  const last = BigInt(behind) - 1n
  if (first > last) return 'no id is missing there'
  return first === last
    ? `id ${first} was there, or was never given`
    : `ids ${first} to ${last} were there, or were never given`
}

function highestIdOf(pets: readonly Pet[], found: readonly FoundPet[], highestGivenId: Int64): Int64 {
  let highest = highestGivenId
  for (const { id = 0 } of [...pets.slice(-1), ...found]) {
    if (id > highest) highest = id
  }
  return highest
}

/**
 * Finds the damage at the end of a text after a crash, or in a copy that was made during an append. Some mistakes of a person look the same.
 *
 * The *tail* is what follows the last pet. An append overwrites it; ours is 7 bytes:
 *
 *     ⏎  ]⏎}⏎                                  before
 *     ,⏎    {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    after (without the comma in an empty list)
 *
 *     ⏎  ]                                     closing brackets are missing
 *     ,⏎    {"id":13,"na                       cut off: the process was killed, or the disk was full
 *     ,⏎ ]⏎}⏎                                  cut off within the 7 bytes
 *     ,⏎    {"id":13,"na␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀␀    the power failed before a sector was written
 *     ⏎  ]  {"id":13,"name":"Rex",…}⏎  ]⏎}⏎    the same, for the sector of the first 4 bytes
 *     ⏎  ]⏎}⏎"id":13,"name":"Rex",…}⏎  ]⏎}⏎    `cp` read the old end before the append, and the rest after it
 */
import { constants } from 'node:buffer'
import { closingBrackets, type FileText, maxAppendPets, separator } from './file-text.ts'

export type TornEnd = 'brackets' | 'append' | 'copy'

const sectorBytes = 512

/** `cp` sees an append page by page. */
const pageBytes = 4096

/** What every append begins with; the very first one has no comma. */
const appendPrefix = `${separator}{"id":`
const firstAppendPrefix = appendPrefix.slice(1)

/**
 * The closing brackets may replace what is found: what a crash has cut off was not acknowledged, and what came during a copy is in the
 * original.
 */
export function findTornEnd(fileText: FileText): TornEnd | undefined {
  const { bytes, faultCount, pets, petsEnd, syntaxFault, tail } = fileText
  // Any other fault is a person's.
  if (petsEnd === 0 || syntaxFault === undefined || faultCount > 1) return undefined
  // No append is as long.
  if (tail.length > constants.MAX_STRING_LENGTH) return undefined
  // Most likely an editor's save that was cut off: a repair would make an empty store of it.
  if (pets.length === 0 && tail.length < closingBrackets.length) return undefined
  // A character for each byte.
  const text = tail.toString('latin1')
  const closing = closingBrackets.toString()
  const prefix = pets.length === 0 ? firstAppendPrefix : appendPrefix
  /** Whether the tail is as an append from this position on, as far as its prefix and the tail go. */
  const isNewFrom = (at: number): boolean => prefix.startsWith(text.slice(at, prefix.length), at)
  const endsTooSoon = syntaxFault.offset === bytes.length
  if (endsTooSoon && /^[\s\]}]*$/.test(text)) return 'brackets'
  // In a copy, a whole old end, which may be a person's, hides the beginning of the append, but not all of its prefix. The append is whole,
  // or it was still being written, and the copy ends where a page does.
  const hasWholeEnd = text.endsWith(closing) || bytes.length % pageBytes === 0
  const isWholeEnd = (at: number): boolean => /^\s*\]\s*\}\s*$/.test(text.slice(0, at))
  if (hasWholeEnd && [...prefix].some((_, at) => isWholeEnd(at) && isNewFrom(at))) return 'copy'
  // The append, or its rollback, was cut off within the 7 bytes.
  const isMixed =
    text.length === closing.length &&
    [...text].every((byte, at) => byte === closing[at] || byte === prefix[at])
  // A sector ends within the 7 bytes.
  const toSectorEnd = sectorBytes - (petsEnd % sectorBytes)
  const lacksFirstSector =
    toSectorEnd <= closing.length && closing.startsWith(text.slice(0, toSectorEnd)) && isNewFrom(toSectorEnd)
  // NULs may begin within a sector: what was never written reads as NULs.
  const nuls = /\0+/.exec(text)
  const nulsEnd = nuls === null ? 0 : petsEnd + nuls.index + nuls[0].length
  const lacksSectors = nuls !== null && (nulsEnd % sectorBytes === 0 || nulsEnd === bytes.length)
  const isAppend = (endsTooSoon && isNewFrom(0)) || isMixed || lacksFirstSector || lacksSectors
  // More pets than one append can add were not written by one.
  return isAppend && text.split(firstAppendPrefix).length - 1 <= maxAppendPets ? 'append' : undefined
}

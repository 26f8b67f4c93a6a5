/**
 * Finds the damage at the end of a text after a crash, or in a copy that was made in the middle of an append. Some mistakes of a person
 * look the same, and are repaired too: closing brackets that are missing, or a pet in our layout that has no end; but not beside kept
 * pets (new-files.ts), which tell of a save that was cut off. Does no file I/O: data-file.ts repairs what is found here, and appender.ts
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
import { closingBrackets, type FileText, maxAppendPets, separator } from './file-text.ts'

/** `brackets`: only the closing brackets are missing. `append`: cut off by a crash. `copy`: copied during an append. */
export type TornEnd = 'brackets' | 'append' | 'copy'

/** A disk writes whole sectors. */
const sectorBytes = 512

/** An append that is being written becomes visible to `cp` page by page. */
const pageBytes = 4096

/** What every append begins with; the very first one has no comma. */
const appendPrefix = `${separator}{"id":`
const firstAppendPrefix = appendPrefix.slice(1)

/**
 * Finds out what has damaged the tail, if it is one of those at the top of this file. Then it is to be replaced by the closing brackets: what
 * a crash has cut off had not been acknowledged yet, and the pets that came while a copy was made are in the original.
 */
export function findTornEnd(fileText: FileText): TornEnd | undefined {
  const { bytes, faultCount, pets, petsEnd, syntaxFault, tail } = fileText
  // Any fault besides the syntax error means that a person made a mistake.
  if (petsEnd === 0 || syntaxFault === undefined || faultCount > 1) return undefined
  // An append to an empty list overwrites our 7 bytes, and the file becomes no shorter. So if fewer than 7 follow the list's `[`, it was
  // most likely an editor's save that was cut off, and a repair would make an empty store of it.
  if (pets.length === 0 && tail.length < closingBrackets.length) return undefined
  // A character for each byte.
  const text = tail.toString('latin1')
  const closing = closingBrackets.toString()
  const prefix = pets.length === 0 ? firstAppendPrefix : appendPrefix
  /** Whether the tail is as an append from this position on, as far as its prefix and the tail go. */
  const isNewFrom = (at: number): boolean => prefix.startsWith(text.slice(at, prefix.length), at)
  // The text is right as far as it goes (see JsonFault).
  const endsTooSoon = syntaxFault.offset === bytes.length
  if (endsTooSoon && /^[\s\]}]*$/.test(text)) return 'brackets'
  // In a copy, a whole old end, which may be a person's, has hidden the beginning of the append. The rest of its prefix, such as `"id":`, is
  // left to recognize it. Either the copy has the whole append, which ends with our brackets; or the append was still being written, and
  // the copy ends where a page does.
  const hasWholeEnd = text.endsWith(closing) || bytes.length % pageBytes === 0
  const isWholeEnd = (at: number): boolean => /^\s*\]\s*\}\s*$/.test(text.slice(0, at))
  if (hasWholeEnd && [...prefix].some((_, at) => isWholeEnd(at) && isNewFrom(at))) return 'copy'
  // The append, or its rollback, was cut off within the 7 bytes: each is as it was before the append or as it is after it.
  const isMixed =
    text.length === closing.length &&
    [...text].every((byte, at) => byte === closing[at] || byte === prefix[at])
  // A sector ends within the 7 bytes. Up to there they are as before the append, and from there on as after it.
  const toSectorEnd = sectorBytes - (petsEnd % sectorBytes)
  const lacksFirstSector =
    toSectorEnd <= closing.length && closing.startsWith(text.slice(0, toSectorEnd)) && isNewFrom(toSectorEnd)
  // The first NULs go up to the end of a sector or of the file. They may begin within a sector: what was never written reads as NULs from
  // the old end of the file on.
  const nuls = /\0+/.exec(text)
  const nulsEnd = nuls === null ? 0 : petsEnd + nuls.index + nuls[0].length
  const lacksSectors = nuls !== null && (nulsEnd % sectorBytes === 0 || nulsEnd === bytes.length)
  const isAppend = (endsTooSoon && isNewFrom(0)) || isMixed || lacksFirstSector || lacksSectors
  // Whole pets may follow the damage. If there are more of them than a single append can add, it was not a crash, and a person has to look.
  return isAppend && text.split(firstAppendPrefix).length - 1 <= maxAppendPets ? 'append' : undefined
}

/**
 * Why the data file cannot be read or written as it is: the errors, and the words for the file system's own. (What a client is told of
 * them: store/store-refusals.ts.)
 */
import { dirname, resolve } from 'node:path'
import { placeOf } from '../json/json-reader.ts'
import { describeSystemError, errorCode } from '../system/errors.ts'
import type { Disk } from './disk.ts'

/**
 * `fault`: somebody has to correct the file. `lost`: it is empty or missing, so that a running server is all that has the pets.
 * `being saved`: somebody is still writing it, and it is too early to report anything.
 */
type Reason = 'fault' | 'lost' | 'being saved'

/** So many faults of a text are named; further ones are only counted. */
export const maxFaults = 10

/** What is wrong at a byte of the text. `firstAt`: where the pet is that had the id before. */
export interface TextFault {
  readonly message: string
  readonly offset: number
  readonly firstAt?: number | undefined
}

/** The file cannot be used as it is. The message names the file, and what is wrong. */
export class DataFileUnusable extends Error {
  /** What is wrong, for clients too: it names no path. */
  readonly summary: string
  readonly reason: Reason
  constructor(message: string, summary: string, reason: Reason = 'fault') {
    super(message)
    this.summary = summary
    this.reason = reason
  }

  /** For a file as a whole, such as `is a folder`. */
  static ofFile(path: string, what: string, reason?: Reason): DataFileUnusable {
    return new DataFileUnusable(`${path}: ${what}`, `it ${what}`, reason)
  }

  /** Names the faults of a text with line and column for the person who edits it, and the first one for clients. `count` has all. */
  static ofText(path: string, bytes: Buffer, faults: readonly TextFault[], count: number): DataFileUnusable {
    const places = faults.map(({ offset, message, firstAt }) => {
      const first = firstAt === undefined ? undefined : placeOf(bytes, firstAt)
      const where = first === undefined ? '' : `, first in line ${first.line}, column ${first.column}`
      return { ...placeOf(bytes, offset), message: message + where }
    })
    const lines = places.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`)
    if (count > faults.length) lines.push(`${path}: and ${count - faults.length} more errors`)
    const [first] = places
    const summary = `line ${first?.line}, column ${first?.column}: ${first?.message}`
    return new DataFileUnusable(lines.join('\n'), summary)
  }
}

/** The file is no longer as it was read: somebody else has written it, or is writing it, or it was put back. It has to be read again. */
export class DataFileChanged extends Error {}

/** A system error in words. Names the folder when that is what cannot be written. */
export function describeFileError(disk: Disk, path: string, error: unknown): string {
  const isRefused = ['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error))
  const folder = resolve(dirname(path))
  const isFolder = isRefused && whyNot(() => disk.checkFolderWritable(folder)) !== undefined
  return `${isFolder ? `the folder ${folder} cannot be written: ` : ''}${describeSystemError(error)}`
}

/** What cannot be done because the file or its folder is not writable, and why; undefined when both are. */
export function describeUnwritable(disk: Disk, path: string): string | undefined {
  const target = disk.followLinks(resolve(path))
  const file = whyNot(() => disk.checkFileWritable(target))
  if (file !== undefined) return `${path}: cannot be written: ${file}; pets can be listed, but not added`
  const folder = whyNot(() => disk.checkFolderWritable(dirname(target)))
  if (folder === undefined) return undefined
  const consequence = 'pets can be added, but the file cannot be rewritten to fill in ids'
  return `${dirname(target)}: this folder cannot be written: ${folder}; ${consequence}`
}

/** Why the check throws, in words. */
function whyNot(check: () => void): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    return describeSystemError(error)
  }
}

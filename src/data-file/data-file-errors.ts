/** Why the data file cannot be used as it is. (What a client is told of that: store/store-refusals.ts.) */
import { placeOf } from '../json/json-reader.ts'

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
  constructor(message: string, summary: string) {
    super(message)
    this.summary = summary
  }

  /** For a file as a whole, such as `is a folder`. */
  static ofFile(path: string, what: string): DataFileUnusable {
    return new DataFileUnusable(`${path}: ${what}`, `it ${what}`)
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
    const others = count === 1 ? '' : ` (and ${count - 1} more error${count === 2 ? '' : 's'})`
    const summary = `line ${first?.line}, column ${first?.column}: ${first?.message}${others}`
    return new DataFileUnusable(lines.join('\n'), summary)
  }
}

/**
 * The file is no longer as it was read: somebody else has written it, or is writing it, or it was put back. It has to be read again, and it
 * is too early to report anything.
 */
export class DataFileChanged extends DataFileUnusable {
  constructor() {
    super('the data file is being written', 'it is being written, again and again')
  }
}

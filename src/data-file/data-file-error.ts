/** Why the data file cannot be read or written as it is. */
import { errorCode } from '../system-error.ts'

/** The file cannot be used as it is. The message names the file, and its first ten faults with line and column. */
export class DataFileUnusable extends Error {
  /** What is wrong, for clients too: it names no path and quotes nothing from the file. */
  readonly summary: string
  /** Whether somebody is still saving the file, so that it is too early to report it. */
  readonly isBeingSaved: boolean
  constructor(message: string, summary: string, isBeingSaved = false) {
    super(message)
    this.summary = summary
    this.isBeingSaved = isBeingSaved
  }

  /** For a file that is no text to read, such as `is missing`. */
  static ofFile(path: string, what: string): DataFileUnusable {
    return new DataFileUnusable(`${path}: ${what}`, `it ${what}`)
  }

  static beingSaved(path: string): DataFileUnusable {
    return new DataFileUnusable(`${path}: is being written`, 'it is being written', true)
  }
}

/** Somebody else wrote the file: it has to be read before it can be written. */
export class DataFileEdited extends Error {}

/** Some editors remove the file and write it again: it may be missing at any moment. */
export function rethrowMissingAsEdited(error: unknown): never {
  throw errorCode(error) === 'ENOENT' ? new DataFileEdited() : error
}

/** Undefined when somebody has edited the file in the meantime, so that it has to be read again. */
export async function unlessEdited<T>(task: Promise<T>): Promise<T | undefined> {
  try {
    return await task
  } catch (error) {
    if (error instanceof DataFileEdited) return undefined
    throw error
  }
}

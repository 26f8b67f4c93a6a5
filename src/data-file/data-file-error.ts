/** Why the data file cannot be read or written as it is. */
import { errorCode } from '../system-error.ts'

/**
 * `fault`: somebody has to correct the file. `lost`: it is empty or missing, so that only this process has the pets. `being saved`:
 * somebody is still writing it, and it is too early to report anything.
 */
type Reason = 'fault' | 'lost' | 'being saved'

/** The file cannot be used as it is. The message names the file, and its first ten faults with line and column. */
export class DataFileUnusable extends Error {
  /** What is wrong, for clients too: it names no path. */
  readonly summary: string
  readonly reason: Reason
  constructor(message: string, summary: string, reason: Reason = 'fault') {
    super(message)
    this.summary = summary
    this.reason = reason
  }

  /** For a file that is no text to read, such as `is a folder`. */
  static ofFile(path: string, what: string, reason?: Reason): DataFileUnusable {
    return new DataFileUnusable(`${path}: ${what}`, `it ${what}`, reason)
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

/** Why the data file cannot be read or written as it is. */

/**
 * `fault`: somebody has to correct the file. `lost`: it is empty or missing, so that only this process has the pets. `being saved`:
 * somebody is still writing it, and it is too early to report anything.
 */
type Reason = 'fault' | 'lost' | 'being saved'

/** The file cannot be used as it is. The message names the file, and up to ten faults with line and column. */
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
}

/** The file is no longer as it was read: somebody else has written it, or is writing it, or it was put back. It has to be read again. */
export class DataFileChanged extends Error {}

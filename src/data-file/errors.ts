/**
 * Why the data file cannot be used, in words for the log and for clients, and the signal that it has to be
 * read again.
 */

export class DataFileUnusable extends Error {
  /** Clients see it, too, so it names no path. */
  readonly summary: string
  /** What to do about it, as the end of the message, at a start that finds no kept pets. */
  readonly startRemedy: string
  constructor(message: string, summary: string, startRemedy = '') {
    super(message)
    this.summary = summary
    this.startRemedy = startRemedy
  }

  static ofFile(path: string, what: string): DataFileUnusable {
    return new DataFileUnusable(`${path}: ${what}`, `it ${what}`)
  }

  static stillBeingSaved(path: string): DataFileUnusable {
    return DataFileUnusable.ofFile(path, 'is being written, again and again')
  }
}

/**
 * Somebody else has written the file or is writing it, or it was put back. It has to be read again before
 * anything is reported.
 */
export class DataFileChanged extends Error {}

export const isChanged = (error: unknown): boolean => error instanceof DataFileChanged

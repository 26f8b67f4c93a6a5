/** What keeps a data file from being used: what is wrong with it, or that somebody else writes it. */

/** Why the data file cannot be used, in words for the log and for clients. */
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

  /** `shownPath`: see Disk. */
  static ofFile(shownPath: string, what: string): DataFileUnusable {
    return new DataFileUnusable(`${shownPath}: ${what}`, `it ${what}`)
  }

  static stillBeingSaved(shownPath: string): DataFileUnusable {
    return DataFileUnusable.ofFile(shownPath, 'is being written, again and again')
  }
}

/**
 * Somebody else has written the file or is writing it, or it was put back. It has to be read again before
 * anything is reported.
 */
export class DataFileChanged extends Error {}

export const isChanged = (error: unknown): boolean => error instanceof DataFileChanged

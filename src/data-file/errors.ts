/** Why the data file cannot be used, in words for the log and for clients, and the signal that it has to be read again. */

export class DataFileUnusable extends Error {
  /** Clients see it, too, so it names no path. */
  readonly summary: string
  /** What to do about it, as the end of the message, at a start that finds no kept pets. */
  readonly startRemedy: string
  /** Somebody still writes the file: it may be right in a moment. */
  readonly isBeingSaved: boolean
  constructor(message: string, summary: string, { startRemedy = '', isBeingSaved = false } = {}) {
    super(message)
    this.summary = summary
    this.startRemedy = startRemedy
    this.isBeingSaved = isBeingSaved
  }

  static ofFile(path: string, what: string): DataFileUnusable {
    return new DataFileUnusable(`${path}: ${what}`, `it ${what}`)
  }

  static stillBeingSaved(path: string): DataFileUnusable {
    const what = 'is being written, again and again'
    return new DataFileUnusable(`${path}: ${what}`, `it ${what}`, { isBeingSaved: true })
  }
}

/** Somebody else has written the file or is writing it, or it was put back. It has to be read again before anything is reported. */
export class DataFileChanged extends Error {}

export const isChanged = (error: unknown): boolean => error instanceof DataFileChanged

/** Why the data file cannot be read or written as it is. */
import { errorCode } from '../system-error.ts'

/** The file cannot be used as it is. The message names the file, and each error in it with its line and column. */
export class DataFileInvalid extends Error {
  /** What is wrong, for clients too: it names no path and quotes nothing from the file. */
  readonly place: string
  /** False while somebody may still be in the middle of saving it. */
  readonly isSettled: boolean
  constructor(message: string, place: string, isSettled = true) {
    super(message)
    this.place = place
    this.isSettled = isSettled
  }

  /** For a file that is no text to read, such as `is missing`. */
  static ofFile(path: string, what: string, isSettled = true): DataFileInvalid {
    return new DataFileInvalid(`${path}: ${what}`, `it ${what}`, isSettled)
  }
}

/** Somebody else wrote the file: it has to be read before it can be written. */
export class DataFileEdited extends Error {}

/** Some editors remove the file and write it again: it may be missing at any moment. */
export function throwEditedIfMissing(error: unknown): never {
  throw errorCode(error) === 'ENOENT' ? new DataFileEdited() : error
}

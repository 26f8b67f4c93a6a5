/** What of the data file and its folder cannot be written, in words. */
import { dirname, resolve } from 'node:path'
import { describeSystemError, errorCode } from '../system/errors.ts'
import type { Disk } from './disk.ts'

/** The file has to be written anew, which the system refuses with `cause`. The error has the code of that. */
export class RewriteFailed extends Error {
  readonly code: string
  /** `why`: to what end, such as `to fill in ids`. */
  constructor(why: string, cause: unknown) {
    super(why, { cause })
    this.code = errorCode(cause)
  }
}

/** A system error in words. Names the folder when that is what cannot be written. */
export function describeFileError(disk: Disk, path: string, error: unknown): string {
  if (error instanceof RewriteFailed)
    return `it has to be rewritten ${error.message}: ${describeFileError(disk, path, error.cause)}`
  if (disk.mayBeHeld(error)) {
    const certainty =
      errorCode(error) === 'EBUSY'
        ? 'another program holds it'
        : 'it may not be written, or another program holds it'
    return `${certainty}: ${describeSystemError(error)}`
  }
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

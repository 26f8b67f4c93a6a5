/** What of the data file and its folder cannot be written, in words. */
import { constants } from 'node:fs'
import { dirname } from 'node:path'
import { describeSystemError, errorCode } from '../system/errors.ts'
import type { Disk } from './disk.ts'

/** The file has to be written anew, which the system refuses with `cause`. The error has the code of that. */
export class RewriteFailed extends Error {
  readonly code: string
  constructor(cause: unknown) {
    super('', { cause })
    this.code = errorCode(cause)
  }
}

/** A system error in words, also when it is the folder that cannot be written. */
export function describeFileError(disk: Disk, error: unknown): string {
  if (error instanceof RewriteFailed) {
    const why = describeFileError(disk, error.cause)
    return `it has to be rewritten, since pets lack ids or for a repair: ${why}`
  }
  const fault = describeSystemError(error)
  if (disk.mayBeHeld(error)) return `it may not be written, or another program holds it: ${fault}`
  return whyFolderUnwritable(disk) === fault ? `its folder cannot be written: ${fault}` : fault
}

/** What cannot be done because the file or its folder is not writable, and why; undefined when both are. */
export function describeUnwritable(disk: Disk): string | undefined {
  const file = whyNot(() => disk.checkFileWritable())
  if (file !== undefined) return `cannot be written: ${file}; pets can be listed, but not added`
  const folder = whyFolderUnwritable(disk)
  const consequence = 'pets can be added, but the file cannot be rewritten to fill in ids'
  return folder && `its folder cannot be written: ${folder}; ${consequence}`
}

function whyFolderUnwritable(disk: Disk): string | undefined {
  return whyNot(() => disk.fs.accessSync(dirname(disk.target), constants.W_OK))
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

/** The errors of system calls, their codes and their words; and the error of code that embeds the service. */
import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'
import { isNativeError } from 'node:util/types'

/** Node calls this one `Unknown system error -122`. */
const quotaExceeded = 'EDQUOT'

/** Jest runs each test file with an Error of its own, of which Node's errors are no instances. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || isNativeError(value)
}

/** Returns a code such as `ENOSPC`; empty for an error without one. */
export function errorCode(error: unknown): string {
  if (!isError(error) || !('code' in error) || typeof error.code !== 'string') return ''
  return 'errno' in error && error.errno === -constants.errno.EDQUOT ? quotaExceeded : error.code
}

/**
 * A bug of ours, such as a wrong argument (`ERR_INVALID_ARG_TYPE`), is no system error. Node's permission
 * model has ERR_ACCESS_DENIED.
 */
export function isSystemError(error: unknown): boolean {
  return /^(?!ERR_(?!FS_|ACCESS_DENIED))./.test(errorCode(error))
}

/** Returns words such as `no space left on device (ENOSPC)`. */
export function describeSystemError(error: unknown): string {
  const code = errorCode(error)
  const meaning = new Map([...getSystemErrorMap().values(), [quotaExceeded, 'disk quota exceeded']]).get(code)
  return meaning === undefined ? String(error) : `${meaning} (${code})`
}

/** Returns whether there is no room on the disk, in the user's quota, or in a file of the largest size. */
export function isNoRoom(error: unknown): boolean {
  return ['ENOSPC', quotaExceeded, 'EFBIG'].includes(errorCode(error))
}

/** Returns whether the right to write is lacking, or the file system is read-only. */
export function isWriteRefused(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error))
}

/** Returns an error as a system call throws it. */
export function systemFailure(code: 'EFBIG' | 'EIO' | 'ENOSPC' | 'ENOSYS'): Error {
  return Object.assign(new Error(code), { code })
}

/** Returns the result of the call; undefined if it throws. */
export function attempt<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}

/** The error of a host with several addresses has no message of its own (AggregateError). */
export function describeError(error: unknown): string {
  return isError(error) ? error.message || errorCode(error) : String(error)
}

/**
 * The code that embeds the service, or its storage, has made a mistake. The message, which holds no secret,
 * is for onError.
 */
export class EmbeddingError extends Error {}

/** Describes an error for onError: only the message of an EmbeddingError is known to hold no secret. */
export function describeBug(error: unknown): string {
  if (error instanceof EmbeddingError) return error.message
  return isError(error) ? errorCode(error) || error.name : typeof error
}

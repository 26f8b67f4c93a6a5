/** The errors of system calls: their codes, and their meaning in words. */
import { getSystemErrorMap } from 'node:util'

/** The code of a system error, such as `ENOSPC`; empty for any other error. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** A system error for a person, such as `no space left on device (ENOSPC)`. */
export function describeSystemError(error: unknown): string {
  const code = errorCode(error)
  const known = [...getSystemErrorMap().values()].find(([name]) => name === code)
  return known === undefined ? String(error) : `${known[1]} (${code})`
}

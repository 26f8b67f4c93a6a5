/** The errors of system calls: their codes, and what they mean in words. */
import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'

/** Node has no name for this one: it calls it `Unknown system error -122`. */
const quotaExceeded = { code: 'EDQUOT', errno: -constants.errno.EDQUOT, meaning: 'disk quota exceeded' }

/** The code of a system error, such as `ENOSPC`; empty for any other error. */
export function errorCode(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return ''
  return 'errno' in error && error.errno === quotaExceeded.errno ? quotaExceeded.code : error.code
}

/** A system error for a person, such as `no space left on device (ENOSPC)`. */
export function describeSystemError(error: unknown): string {
  const code = errorCode(error)
  if (code === quotaExceeded.code) return `${quotaExceeded.meaning} (${code})`
  const known = [...getSystemErrorMap().values()].find(([name]) => name === code)
  return known === undefined ? String(error) : `${known[1]} (${code})`
}

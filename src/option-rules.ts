/** What counts as a port, a host, a path and a delay, for the environment (config.ts) and for embedding code (options.ts). */

/** The longest that a response may be delayed, in milliseconds. */
export const maxDelayMs = 10_000

/** 0 stands for any free port. */
export function isPort(value: unknown): boolean {
  return isInteger(value, 0, 65_535)
}

/** Whether a host of this name exists is for the system to say, but white space in it is a typo. */
export function isHost(value: unknown): boolean {
  return typeof value === 'string' && /^[^\s\p{Cc}]+$/u.test(value)
}

export function isPath(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0')
}

/** A number of milliseconds, or a range of them: `[minimum, maximum]`. */
export function isDelay(value: unknown): boolean {
  const [minimum, maximum, ...others] = Array.isArray(value) ? value : [value, value]
  const isInRange = [minimum, maximum].every((ms) => typeof ms === 'number' && ms >= 0 && ms <= maxDelayMs)
  return isInRange && minimum <= maximum && others.length === 0
}

export function isInteger(value: unknown, minimum: number, maximum: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= maximum
}

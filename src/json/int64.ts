/** Integers of the interface's format int64: from -2^63 to 2^63-1, held exactly. */

/** An integer from -2^63 to 2^63-1: a `number` from -(2^53-1) to 2^53-1, and a `bigint` outside of that range. */
export type Int64 = number | bigint

export const maxInt64 = 2n ** 63n - 1n
export const minInt64 = -(2n ** 63n)

/** A JSON number that a double would round to an integer, or that is far beyond int64: only its text is true. */
export class InexactNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export function isInt64(value: unknown): value is Int64 {
  return typeof value === 'bigint' ? value >= minInt64 && value <= maxInt64 : Number.isSafeInteger(value)
}

/** The one form of an int64 that is kept here: a bigint that a number can hold becomes that number. */
export function normalizeInt64(value: Int64): Int64 {
  const double = Number(value)
  return Number.isSafeInteger(double) ? double : value
}

/** Returns the integer after this one, or undefined past 2^63-1. */
export function nextInt64(value: Int64): Int64 | undefined {
  const next = BigInt(value) + 1n
  return next <= maxInt64 ? normalizeInt64(next) : undefined
}

/** Reads a canonical decimal from 1 to 2^63-1 (no sign, no leading zero); anything else is undefined. */
export function parseId(text: string): Int64 | undefined {
  if (!/^[1-9]\d{0,18}$/.test(text)) return undefined
  const id = BigInt(text)
  return id <= maxInt64 ? normalizeInt64(id) : undefined
}

/**
 * Reads a JSON number: `5.0` and `1e2` are integers (JSON Schema 2020-12, section 6.1.1), and an integer beyond 2^53 is a bigint.
 * `1.0000000000000000001`, which a double would round to 1, and integers of 20 and more digits are InexactNumbers. Other fractions
 * are doubles.
 */
export function parseNumber(text: string): number | bigint | InexactNumber {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return 0
  const zeros = Number(exponent) - fraction.length + (digits.length - significant.length)
  if (zeros < 0) return Number.isInteger(Number(text)) ? new InexactNumber(text) : Number(text)
  // 20 digits are past 2^63; without this bound `1e999999999` would ask for a gigabyte of zeros.
  if (significant.length + zeros > 19) return new InexactNumber(text)
  const magnitude = BigInt(significant + '0'.repeat(zeros))
  return normalizeInt64(text.startsWith('-') ? -magnitude : magnitude)
}

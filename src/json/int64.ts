/** 64-bit integers, and the numbers of JSON without a loss. */
import { InexactNumber } from '../text/words.ts'

/** From -2^63 to 2^63-1: a `number` from -(2^53-1) to 2^53-1, and a `bigint` outside of that range. */
export type Int64 = number | bigint

export const maxInt64 = 2n ** 63n - 1n
export const minInt64 = -(2n ** 63n)

export function isInt64(value: unknown): value is Int64 {
  return typeof value === 'bigint' ? value >= minInt64 && value <= maxInt64 : Number.isSafeInteger(value)
}

/** A bigint that a number can hold becomes that number. */
export function normalizeInt64(value: Int64): Int64 {
  const double = Number(value)
  return Number.isSafeInteger(double) ? double : value
}

/** Returns undefined past 2^63-1. */
export function nextInt64(value: Int64): Int64 | undefined {
  const next = BigInt(value) + 1n
  return next <= maxInt64 ? normalizeInt64(next) : undefined
}

/**
 * Reads a canonical decimal from 1 to 2^63-1 (no sign, no leading zero); returns undefined for anything else.
 */
export function parseId(text: string): Int64 | undefined {
  if (!/^[1-9]\d{0,18}$/.test(text)) return undefined
  if (text.length < 16) return Number(text)
  const id = BigInt(text)
  return id <= maxInt64 ? normalizeInt64(id) : undefined
}

/**
 * Reads a JSON number: `5.0` and `1e2` are integers (JSON Schema 2020-12, section 6.1.1). An integer beyond
 * 2^53 is a bigint, one of 20 and more digits an InexactNumber, and so is a fraction that a double would
 * round to an integer. Other fractions are doubles.
 */
export function parseNumber(text: string): number | bigint | InexactNumber {
  const double = Number(text)
  // No two numbers of 15 digits are the same double, unless they are too small for one: 1e-999 is 0.
  const isExact = double !== 0 && Math.abs(double) <= Number.MAX_SAFE_INTEGER
  if (text.length <= 15 && isExact) return double
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const digits = (whole + fraction).replace(/^0+/, '')
  // Without the lookbehind, zeros that stand before another digit would take time by the square of their
  // number.
  const significant = digits.replace(/(?<!0)0+$/, '')
  if (significant === '') return 0
  const zeros = Number(exponent) - fraction.length + (digits.length - significant.length)
  if (zeros < 0) return Number.isInteger(double) ? new InexactNumber(text) : double
  // 20 digits are past 2^63; without this bound `1e999999999` would ask for a gigabyte of zeros.
  if (significant.length + zeros > 19) return new InexactNumber(text)
  const magnitude = BigInt(significant + '0'.repeat(zeros))
  return normalizeInt64(text.startsWith('-') ? -magnitude : magnitude)
}

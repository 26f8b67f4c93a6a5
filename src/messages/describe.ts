/** Values in words, for messages. */
import { InexactNumber } from '../json/int64.ts'

/** A value in a few words: scalars as JSON, everything else by its kind. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value instanceof InexactNumber) return shorten(value.text)
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`
  return shorten(typeof value === 'string' ? JSON.stringify(value) : String(value))
}

/** At most 60 characters of it. */
export function shorten(text: string): string {
  // The cut may separate the two halves of a surrogate pair.
  return text.length > 60 ? `${text.slice(0, 60).toWellFormed()}…` : text
}

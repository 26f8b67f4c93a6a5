/** Values in words, and texts in which nothing is unseen, for messages. */

/** Keeps the text of a number that a double would falsify (see parseNumber in json/int64.ts). */
export class InexactNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Describes a value in a few words: scalars as JSON, everything else by its kind. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value instanceof InexactNumber) return shorten(value.text)
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`
  return shorten(typeof value === 'string' ? JSON.stringify(value) : String(value))
}

/** Returns at most 60 characters of the text, with a name for each that a person would not see. */
export function shorten(text: string): string {
  // The cut may separate the two halves of a surrogate pair.
  return nameUnseen(text.length > 60 ? `${text.slice(0, 60).toWellFormed()}…` : text)
}

/**
 * Returns the text with a name, such as `<U+001B>`, for each character that a person would not see, or that a
 * terminal would obey.
 */
export function nameUnseen(text: string): string {
  return text.replaceAll(unseen, (character) => `<${nameCodePoint(character)}>`)
}

/** These characters show nothing or, except for the space itself, look like a space. */
export const unseen = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu

export function nameCodePoint(character: string): string {
  return `U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`
}

/** Makes each character that is not plain ASCII an escape as in JSON, such as `\u00e4`. */
export function escapeNonAscii(text: string): string {
  return text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

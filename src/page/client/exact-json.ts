/**
 * JSON with exact integers: `JSON.parse` alone turns 9007199254740993 into 9007199254740992, and an int64 can
 * be larger still.
 */

const string = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`
const stringOrNumber = new RegExp(String.raw`${string}|-?\d[\d.eE+-]*`, 'g')
const stringOrPunctuation = new RegExp(String.raw`${string}|[[\]{},]`, 'g')

/**
 * Does what JSON.parse does, but an integer that a number cannot hold exactly becomes a string of its digits.
 */
export function parseExact(text: string): unknown {
  return JSON.parse(text.replace(stringOrNumber, (token) => (isUnsafe(token) ? `"${token}"` : token)))
}

function isUnsafe(token: string): boolean {
  return /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))
}

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Formats what the user typed as a JSON value: a number with the same digits, or a string. */
function formatTyped(text: string): string {
  return jsonNumber.test(text) ? text : JSON.stringify(text)
}

/** A field of a form. What is typed for a string is one, also if it looks like a number. */
export type Typed = readonly [name: string, text: string, isString: boolean]

/** Formats an object of members as the user typed them; empty ones are left out. */
export function formatMembers(members: readonly Typed[]): string {
  const texts = members.map(([name, text, isString]) => {
    const value = isString ? text && JSON.stringify(text) : text.trim() && formatTyped(text.trim())
    return value && `${JSON.stringify(name)}:${value}`
  })
  return `{${texts.filter((text) => text !== '').join()}}`
}

/** Returns the same JSON text with each item of the outermost array or object on a line of its own. */
export function breakLines(text: string): string {
  if (text.length <= 2) return text
  // The items of an array are long; an indent would leave an empty line before each of them on a narrow
  // screen.
  const indent = text.startsWith('[') ? '' : '  '
  let depth = 0
  return text.replace(stringOrPunctuation, (token) => {
    switch (token) {
      case '[':
      case '{':
        return depth++ === 0 ? `${token}\n${indent}` : token
      case ']':
      case '}':
        return --depth === 0 ? `\n${token}` : token
      case ',':
        return depth === 1 ? `,\n${indent}` : token
      default:
        return token
    }
  })
}

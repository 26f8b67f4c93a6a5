/** JSON as it was sent: `JSON.parse` alone makes 9007199254740992 of 9007199254740993, and int64 goes further than that. */

const string = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`
const stringOrNumber = new RegExp(String.raw`${string}|-?\d[\d.eE+-]*`, 'g')
const stringOrMark = new RegExp(String.raw`${string}|[[\]{},]`, 'g')

/** As JSON.parse, but an integer that a number cannot hold becomes a string of its digits. */
export function parseExact(text: string): unknown {
  return JSON.parse(text.replace(stringOrNumber, (token) => (isUnsafe(token) ? `"${token}"` : token)))
}

function isUnsafe(token: string): boolean {
  return /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))
}

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** What a person typed as a JSON value: a number with the very digits typed, anything else a string. */
export function formatTyped(text: string): string {
  return jsonNumber.test(text) ? text : JSON.stringify(text)
}

/** The same text, with every item of the outermost array or object on a line of its own. */
export function breakLines(text: string): string {
  if (text.length <= 2) return text
  // Items of an array are long: with an indent, a narrow screen would show an empty line before each.
  const indent = text.startsWith('[') ? '' : '  '
  let depth = 0
  return text.replace(stringOrMark, (token) => {
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

/**
 * JSON with exact integers, for judging answers: `JSON.parse` alone rounds beyond 2^53, and a rounded answer must not be
 * mistaken for an exact one (nor the other way round). Every integer comes back as a bigint, whatever its size. It is not the
 * service's own reader, so that a fault of that one cannot hide here.
 */

// A member name that no response has: a number stands as {"<mark>": "<its digits>"} between the two passes.
const mark = ' the digits of a number '

/** Throws a SyntaxError for what is no JSON. */
export function parseExactJson(text: string): unknown {
  JSON.parse(text)
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
    token.startsWith('"') ? token : `{"${mark}":"${token}"}`,
  )
  return withNumbers(JSON.parse(marked))
}

function withNumbers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNumbers)
  if (!isObject(value)) return value
  const digits = value[mark]
  if (typeof digits === 'string') return parseNumber(digits)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withNumbers(member)]))
}

function parseNumber(digits: string): bigint | number {
  const integer = /^(-?\d+)(?:\.0+)?$/.exec(digits)?.[1]
  if (integer !== undefined) return BigInt(integer)
  const number = Number(digits)
  return Number.isSafeInteger(number) ? BigInt(number) : number
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isInt64(value: unknown): value is bigint {
  return typeof value === 'bigint' && BigInt.asIntN(64, value) === value
}

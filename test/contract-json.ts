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

export interface MeantJson {
  /** Undefined when it cannot be guessed. */
  readonly json: unknown
  /** What makes it no JSON; undefined when it is. */
  readonly fault: string | undefined
}

/** What often stands for JSON, and what makes JSON of it. With `isPlaced`, its author has to be told where. */
const repairs: readonly (readonly [fault: string, repair: (text: string) => string, isPlaced?: boolean])[] = [
  [
    'a byte order mark (U+FEFF) in front of the JSON',
    (text) => (text.startsWith('\uFEFF') ? text.slice(1) : ''),
  ],
  [
    'single quotes where JSON has double quotes',
    (text) =>
      (text.includes("'") ? text : '')
        .replaceAll("'", '"')
        .replaceAll(/\bNone\b/g, 'null')
        .replaceAll(/\bTrue\b/g, 'true')
        .replaceAll(/\bFalse\b/g, 'false'),
  ],
  [
    '=> where JSON has a colon',
    (text) =>
      text
        .replaceAll(/:(\w+)\s*=>/g, '"$1":')
        .replaceAll(/(?<=")\s*=>/g, ':')
        .replaceAll(/\bnil\b/g, 'null'),
  ],
  ['a comma in front of a closing bracket', (text) => text.replaceAll(/,\s*(?=[}\]])/g, '')],
  [
    'a missing comma',
    (text) => mendTokens(text, (before, token) => (isEnd(before) && isStart(token) ? `,${token}` : token)),
    true,
  ],
  [
    'two commas in a row',
    (text) => mendTokens(text, (before, token) => (before === ',' && token === ',' ? '' : token)),
    true,
  ],
  [
    'a name without quotes',
    (text) => mendTokens(text, (before, token) => (isName(before, token) ? `"${token}"` : token)),
    true,
  ],
  [
    'a quote inside a text, which has to be \\"',
    (text) => text.replaceAll(/(?<!\\)(?<![{[,:]\s*)"(?!\s*[}\],:])/g, '\\"'),
    true,
  ],
  [
    'None, True, False, NaN or undefined, which JSON does not have',
    (text) =>
      mendTokens(
        text,
        (_before, token) =>
          ({ None: 'null', NaN: 'null', undefined: 'null', True: 'true', False: 'false' })[token] ?? token,
      ),
    true,
  ],
]

/** Makes another text of each token, which may depend on the one before it. */
function mendTokens(text: string, mend: (before: string, token: string) => string): string {
  let before = ''
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|[^\s"{}[\],:]+|[{}[\],:]/g, (token) => {
    const mended = mend(before, token)
    before = token
    return mended
  })
}

function isEnd(token: string): boolean {
  return token !== '' && !/^[{[,:]$/.test(token)
}

function isStart(token: string): boolean {
  return !/^[}\],:]$/.test(token)
}

function isName(before: string, token: string): boolean {
  return /^[{,]$/.test(before) && /^[A-Za-z_]\w*$/.test(token)
}

/** Where two texts begin to differ, with some of what stands there. */
function describePlace(text: string, other: string): string {
  let index = 0
  while (text[index] === other[index]) index += 1
  const excerpt = text.slice(Math.max(0, index - 10), index + 10).replaceAll(/\s+/g, ' ')
  return ` (character ${index + 1}, in ${excerpt})`
}

/** Reads also what was meant to be JSON and is not, so that one mistake in front of it does not hide what is in it. */
export function readMeantJson(text: string): MeantJson {
  const json = parseOrUndefined(text)
  if (typeof json === 'string' && isMeant(parseOrUndefined(json)))
    return { json: parseOrUndefined(json), fault: 'JSON inside a string: it was encoded twice' }
  if (json !== undefined) return { json, fault: undefined }
  for (const [fault, repair, isPlaced] of repairs) {
    const mended = repair(text)
    const meant = parseOrUndefined(mended)
    if (isMeant(meant))
      return { json: meant, fault: `${fault}${isPlaced ? describePlace(text, mended) : ''}` }
  }
  if (text === '') return { json, fault: 'an empty body' }
  if (/^\s*[{[]/.test(text) && endOfValue(text, 0) > text.length)
    return { json, fault: 'JSON that ends too early (is Content-Length smaller than the body?)' }
  // Such as a warning in front of it, or a second body behind it.
  for (const { index } of [...text.matchAll(/[{[]/g)].slice(0, 20)) {
    const end = endOfValue(text, index)
    const meant = parseOrUndefined(text.slice(index, end))
    if (!isMeant(meant)) continue
    const before = text.slice(0, index).trim()
    if (/^[{[]/.test(before)) break
    return {
      json: meant,
      fault:
        before === ''
          ? `text behind the JSON: ${text.slice(end).trim()}`
          : `text in front of the JSON: ${before}`,
    }
  }
  return { json, fault: 'what is no JSON' }
}

/** The index behind the object or array that begins at `start`; beyond the text if it does not end. */
function endOfValue(text: string, start: number): number {
  let depth = 0
  for (const { 0: token, index } of text.slice(start).matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (token === '{' || token === '[') depth += 1
    else if (token === '}' || token === ']') depth -= 1
    if (depth === 0) return start + index + token.length
  }
  return text.length + 1
}

/** Whether it looks like a body of the interface: a bracket in a sentence or a style sheet is none. */
function isMeant(value: unknown): boolean {
  return Array.isArray(value) ? value.every(isObject) : isObject(value) && Object.keys(value).length > 0
}

function parseOrUndefined(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch {
    return undefined
  }
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

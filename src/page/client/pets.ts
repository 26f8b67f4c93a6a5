/** What the answers say about pets, read exactly. */
import { parseExact } from './exact-json.ts'
import { findHeader, type WireAnswer } from './wire.ts'

export interface Pet {
  /** As digits. */
  readonly id: string
  readonly name: string
  /** As digits. */
  readonly categoryId: string
  readonly status: string
}

/** One page of the list, and where the next one is. */
export interface PetPage {
  readonly pets: readonly Pet[]
  /** On all pages. */
  readonly total: string
  readonly next: URL | undefined
}

export interface Fault {
  /** The field it is about; undefined when it is about none that can be pointed at. */
  readonly field: string | undefined
  readonly message: string
}

export function readPage(answer: WireAnswer, url: URL): PetPage {
  const items = parse(answer.body)
  const pets = (Array.isArray(items) ? items : []).map(readPet)
  const next = /<([^>]*)>\s*;\s*rel="?next"?/.exec(findHeader(answer, 'link') ?? '')?.[1]
  return {
    pets,
    total: findHeader(answer, 'x-total-count') ?? String(pets.length),
    next: next === undefined ? undefined : new URL(next, url),
  }
}

export function readCreated(answer: WireAnswer): Pet {
  return readPet(parse(answer.body))
}

function readPet(item: unknown): Pet {
  return {
    id: readMember(item, 'id'),
    name: readMember(item, 'name'),
    categoryId: readMember(item, 'categoryId'),
    status: readMember(item, 'status'),
  }
}

function readMember(item: unknown, name: string): string {
  if (typeof item !== 'object' || item === null) return ''
  return String(Object.getOwnPropertyDescriptor(item, name)?.value ?? '')
}

/** What a refusal says; it may be another one's, such as a proxy's, and say nothing. */
export function readMessage({ status, reason, body }: WireAnswer): string {
  return readMember(parse(body), 'message') || `The answer is ${status} ${reason}.`
}

function parse(body: string): unknown {
  try {
    return parseExact(body)
  } catch {
    return undefined
  }
}

/** Takes a message such as `name: is required; categoryId: expected …` apart, by the fields it names. */
export function splitFaults(message: string, fields: readonly string[]): readonly Fault[] {
  return splitOutsideQuotes(message).map((text) => {
    const field = fields.find((name) => text.startsWith(`${name}: `))
    return { field, message: field === undefined ? text : text.slice(field.length + 2) }
  })
}

/** Splits at `; `, but not within a quoted value, which may be cut short and then ends with `…`. */
function splitOutsideQuotes(message: string): readonly string[] {
  const parts = ['']
  for (const [token] of message.matchAll(/"(?:\\.|[^"\\])*?(?:"|…(?=; |$))|; |./gs)) {
    if (token === '; ') parts.push('')
    else parts[parts.length - 1] += token
  }
  return parts
}

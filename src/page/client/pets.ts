/** The requests for pets, and the pets and error messages of the responses; integers stay exact. */
import { parseExact } from './exact-json.ts'
import { base, findHeader, type WireRequest, type WireResponse } from './wire.ts'

export interface Pet {
  /** As digits. */
  readonly id: string
  readonly name: string
  /** As digits. */
  readonly categoryId: string
  readonly status: string
}

/** One page of the list. */
export interface PetPage {
  readonly pets: readonly Pet[]
  /** How many pets there are on all pages; undefined when the service does not say. */
  readonly total: number | undefined
  /** The URL of the next page; undefined on the last one. */
  readonly next: URL | undefined
  /** What is wrong with the data file, and where; undefined while it is valid. */
  readonly dataFileError: string | undefined
}

export interface FieldError {
  /** The member of the body that is wrong, or `body` for all of it. */
  readonly field: string
  readonly message: string
}

const accept = ['Accept', 'application/json'] as const

/** `isPoll`: the page asks by itself, and says so, since a request log would be full of it. */
export function listRequest(url: URL, isPoll: boolean): WireRequest {
  const headers = isPoll ? [accept, ['X-Petstore-Page', 'poll'] as const] : [accept]
  return { method: 'GET', url, headers }
}

/** Returns the address of the page that begins with this pet. */
export function pageUrlOf({ id }: Pet, list: URL): URL {
  const url = new URL(list)
  url.searchParams.set('after', String(BigInt(id) - 1n))
  return url
}

export function creationRequest(body: string): WireRequest {
  const headers = [accept, ['Content-Type', 'application/json']] as const
  return { method: 'POST', url: new URL('v1/pets', base), headers, body }
}

export function readListResponse(response: WireResponse, url: URL): PetPage {
  const pets = readItems(parse(response.body)).map(readPet)
  const next = /<([^>]*)>\s*;\s*rel="?next"?/.exec(findHeader(response, 'link') ?? '')?.[1]
  const total = findHeader(response, 'x-total-count')
  const dataFileError = findHeader(response, 'x-data-file-error')
  return {
    pets,
    total: total === undefined ? undefined : Number(total),
    next: next === undefined ? undefined : new URL(next, url),
    dataFileError: dataFileError && decodeEscapes(dataFileError),
  }
}

export function readPetResponse(response: WireResponse): Pet {
  return readPet(parse(response.body))
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
  return String(readValue(item, name) ?? '')
}

function readValue(item: unknown, name: string): unknown {
  if (typeof item !== 'object' || item === null) return undefined
  return Object.getOwnPropertyDescriptor(item, name)?.value
}

function readItems(list: unknown): readonly unknown[] {
  return Array.isArray(list) ? list : []
}

/**
 * Returns what an Error body says. A proxy's error response may have another body: then the status is all
 * there is to say.
 */
export function readError({ status, reason, body }: WireResponse): {
  readonly code: string
  readonly message: string
  /** Each fault that the message names, if it names the fields. */
  readonly errors: readonly FieldError[]
} {
  const error = parse(body)
  const code = readMember(error, 'code')
  const message = readMember(error, 'message') || `The response is ${status} ${reason}.`
  const errors = readItems(readValue(error, 'errors')).map((item) => ({
    field: readMember(item, 'field'),
    message: readMember(item, 'message'),
  }))
  return { code, message: code === 'data_file_invalid' ? decodeEscapes(message) : message, errors }
}

/**
 * Returns what is wrong with the data file in the characters of people. Since a header tells it, too, those
 * beyond ASCII stand as `\u00e9`. Those that have no picture of their own, or change the order of what
 * follows, stay so.
 */
function decodeEscapes(text: string): string {
  // A doubled backslash is one of the text itself, and what follows it is no escape.
  return text.replace(/\\\\|(?:\\u[\da-f]{4})+/gi, (token) => {
    const units = token.split(/\\u/i).slice(1)
    if (units.length === 0) return token
    const decoded = String.fromCharCode(...units.map((unit) => Number.parseInt(unit, 16)))
    return /[\p{C}\p{Z}]/u.test(decoded) ? token : decoded
  })
}

function parse(body: string): unknown {
  try {
    return parseExact(body)
  } catch {
    return undefined
  }
}

/** The operations of interface section 4, one function each, and `publish` for fixed texts: from a checked request to a reply. */
import * as v from 'valibot'
import { HttpError } from '../http/error-codes.ts'
import { jsonReply, type Reply } from '../http/reply.ts'
import { parseQuery } from '../http/router.ts'
import { describe } from '../messages/describe.ts'
import { parseId, type Int64 } from '../json/int64.ts'
import { NewPetSchema } from '../pet/pet-rules.ts'
import { petStatusChoice, petStatuses } from '../pet/pet-status.ts'
import type { Store } from '../store/store.ts'
import { formatPet } from '../pet/pet.ts'
import type { PetPage, PetQuery } from '../store/pet-storage.ts'

/** Page sizes of a list (interface section 8). */
export const pageSizes = { minimum: 1, maximum: 100, default: 20 } as const

/** When getPet was deprecated: 21 November 2026, in seconds since 1970 (RFC 9745). */
export const deprecation = '@1795219200'
/** When getPet is scheduled for removal (RFC 8594, interface section 9). */
export const sunset = 'Thu, 05 Dec 2030 00:00:00 GMT'

export interface OperationRequest {
  /** The path's parameter, decoded; empty when the path has none. */
  readonly parameter: string
  /** What follows the `?` of the request target; empty without one. */
  readonly query: string
  readBody(): Promise<unknown>
}

export interface Operation {
  readonly needsNoKey?: boolean
  /** Added to each of its responses, its errors included; names and values in turn. */
  readonly headers?: readonly string[]
  readonly handle: (request: OperationRequest) => Reply | Promise<Reply>
}

/**
 * Interface section 4.1. The next page is reached by `after` and the Link header (RFC 8288). `basePath` is where the
 * service is mounted; empty at the root of a server.
 */
export function listPets(store: Store, basePath: string): Operation {
  // Formatting a page again would be about half of the work of a list, so a reply serves until a pet changes.
  const replies = new Map<string, { readonly version: number; readonly reply: Reply }>()
  return {
    async handle({ query }) {
      const earlier = replies.get(query)
      if (earlier !== undefined && earlier.version === store.version) return earlier.reply
      const petQuery = parsePetQuery(parseQuery(query))
      const { version } = store
      const reply = formatPage(store, await store.list(petQuery), petQuery, basePath)
      // A storage has no version and is asked each time, since other servers may change it.
      if (version !== undefined && Number(reply.length) <= maxCachedBytes) {
        if (replies.size >= maxCachedReplies) replies.clear()
        replies.set(query, { version, reply })
      }
      return reply
    },
  }
}

/** Clients send few different queries. */
const maxCachedReplies = 64
/** A name can be long, so a large reply is not kept. */
const maxCachedBytes = 65_536

function formatPage(store: Store, page: PetPage, { limit, status }: PetQuery, basePath: string): Reply {
  const { pets, total, hasMore } = page
  const headers = total === undefined ? [] : ['X-Total-Count', String(total)]
  const last = pets.at(-1)
  if (hasMore && last !== undefined) {
    const filter = status === undefined ? '' : `&status=${status}`
    headers.push('Link', `<${basePath}/v1/pets?limit=${limit}${filter}&after=${last.id}>; rel="next"`)
  }
  if (store.dataFileError !== undefined)
    headers.push('X-Data-File-Error', escapeNonAscii(store.dataFileError))
  return jsonReply(200, `[${pets.map(formatPet).join()}]`, headers)
}

/** What a header cannot hold becomes an escape as in JSON, such as `\u00e4`. */
function escapeNonAscii(text: string): string {
  return text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Interface section 4.2. The pet is durable when the reply is there. */
export function createPet(store: Store, basePath: string): Operation {
  return {
    async handle({ readBody }) {
      const { issues, output, success } = v.safeParse(NewPetSchema, await readBody())
      if (!success) {
        const faults = issues.map(({ path, message }) => `${path?.[0].key ?? 'body'}: ${message}`)
        throw new HttpError('invalid_body', faults.join('; '))
      }
      const pet = await store.create(output)
      return jsonReply(201, formatPet(pet), ['Location', `${basePath}/v1/pets/${pet.id}`])
    },
  }
}

/** Interface section 4.3, deprecated. */
export function getPet(store: Store): Operation {
  return {
    headers: ['Deprecation', deprecation, 'Sunset', sunset],
    async handle({ parameter: petId }) {
      const id = parseId(petId)
      const pet = id === undefined ? undefined : await store.get(id)
      if (pet === undefined)
        throw new HttpError('not_found', `There is no pet with the id ${describe(petId)}.`)
      return jsonReply(200, formatPet(pet))
    },
  }
}

/** Named by the interface (section 1) without a contract. */
export function listOrders(): never {
  throw new HttpError('not_implemented')
}

/** An operation that needs no key, and always has this text as its reply. */
export function publish(text: string, headers: readonly string[] = [], type = 'application/json'): Operation {
  const reply = { ...jsonReply(200, text, headers), type }
  return { needsNoKey: true, handle: () => reply }
}

function parsePetQuery(query: URLSearchParams): PetQuery {
  const faults: string[] = []
  const read = <T>(name: string, parse: (text: string) => T | undefined, expected: string): T | undefined => {
    const values = query.getAll(name)
    const [text] = values
    if (text === undefined) return undefined
    const value = parse(text)
    if (values.length > 1) faults.push(`${name}: is given ${values.length} times`)
    else if (value === undefined) faults.push(`${name}: expected ${expected}, got ${describe(text)}`)
    return value
  }
  const { minimum, maximum } = pageSizes
  const limit = read('limit', parseLimit, `an integer from ${minimum} to ${maximum}`)
  const status = read('status', (text) => petStatuses.find((each) => each === text), petStatusChoice)
  // 0 is not an id; it stands for the first page, so that a client can start its loop with it.
  const after = read<Int64>('after', (text) => (text === '0' ? 0 : parseId(text)), 'the id of a pet or 0')
  if (faults.length > 0) throw new HttpError('invalid_parameter', faults.join('; '))
  return { limit: limit ?? pageSizes.default, status, after }
}

function parseLimit(text: string): number | undefined {
  const limit = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : 0
  return limit >= pageSizes.minimum && limit <= pageSizes.maximum ? limit : undefined
}

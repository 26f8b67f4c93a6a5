/**
 * The operations of the interface (section 4), each with its method, path and handler. They are described in
 * openapi.json. The checks that come before them are in core.ts.
 */
import * as v from 'valibot'
import {
  type FieldError,
  type HeaderList,
  HttpError,
  InvalidValues,
  textReply,
  type Reply,
} from '../http/response.ts'
import { parseId } from '../json/int64.ts'
import { NewPetSchema } from '../pet/pet-rules.ts'
import { petStatusChoice, petStatuses, formatPet } from '../pet/pet.ts'
import type { PetPage, PetQuery, Store } from '../store/store.ts'
import { describe, escapeNonAscii } from '../text/words.ts'
import { petNotFound } from './refusals.ts'

interface OperationRequest {
  /** The path's parameter, decoded; empty when the path has none. */
  readonly parameter: string
  /** The query of the request target with its `?`; empty without one. */
  readonly search: string
  readBody(): Promise<unknown>
}

export type Handler = (request: OperationRequest) => Reply | Promise<Reply>

export interface Operation {
  readonly method: 'GET' | 'POST'
  /**
   * The path below the base address, which ends in `/v1`; one segment can be a parameter, such as `{petId}`.
   */
  readonly path: string
  /** These headers are added to each of its responses, its errors included. */
  readonly headers?: HeaderList
  /** `basePath` is where the service is mounted; empty at the root of a server. */
  readonly createHandler: (store: Store, basePath: string) => Handler
}

/** A list has these page sizes (interface section 8). */
export const pageSizes = { minimum: 1, maximum: 100, default: 20 } as const

interface CachedReply {
  readonly version: number
  readonly dataFileError: string | undefined
  readonly reply: Reply
}

/** Lists pets (section 4.1). The next page is reached by `after` and the Link header (RFC 8288). */
export const listPets: Operation = {
  method: 'GET',
  path: '/pets',
  createHandler(store, basePath) {
    // To format a page again would be about half of the work of a list. So a reply is used until a pet
    // changes, or what is wrong with the data file.
    let replies = new Map<string, CachedReply>()
    return async ({ search }) => {
      const query = parsePetQuery(new URLSearchParams(search))
      // The key is what was understood, and not the client's text, which may differ in parameters that mean
      // nothing.
      const key = `${query.limit} ${query.status} ${query.after}`
      const earlier = replies.get(key)
      const { version, dataFileError } = store
      if (earlier !== undefined && earlier.version === version && earlier.dataFileError === dataFileError)
        return earlier.reply
      const reply = formatPage(await store.list(query), query, basePath, dataFileError)
      // A storage has no version and is asked each time, since other servers may change it.
      if (version !== undefined && (reply.body?.length ?? 0) <= maxCachedLength) {
        // V8 would keep a table that is cleared, with its dead replies, until the next full collection (see
        // inFlight in core.ts): with `clear`, lists that do not repeat took a third more processor time.
        if (replies.size >= maxCachedReplies) replies = new Map()
        replies.set(key, { version, dataFileError, reply })
      }
      return reply
    }
  },
}

/** Clients send few different queries, so few replies are kept. */
const maxCachedReplies = 64
/** A name can be long, so a reply with more characters is not kept. */
const maxCachedLength = 65_536

function formatPage(
  page: PetPage,
  query: PetQuery,
  basePath: string,
  dataFileError: string | undefined,
): Reply {
  const { pets, total, hasMore } = page
  const headers = total === undefined ? [] : ['X-Total-Count', String(total)]
  const last = pets.at(-1)
  if (hasMore && last !== undefined) {
    const filter = query.status === undefined ? '' : `&status=${query.status}`
    const next = `${basePath}/v1/pets?limit=${query.limit}${filter}&after=${last.id}`
    headers.push('Link', `<${next}>; rel="next"`)
  }
  if (dataFileError !== undefined) headers.push('X-Data-File-Error', escapeNonAscii(dataFileError))
  return textReply(200, `[${pets.map(formatPet).join()}]`, headers)
}

type ListQuery = Required<PetQuery>

interface ListParameter<Value> {
  /** Returns undefined for what is not valid. */
  readonly parse: (text: string) => Value | undefined
  readonly expected: string
}

/** These are the parameters of a list, in the order of the request log and of messages. */
const listParameters: { readonly [Name in keyof ListQuery]: ListParameter<ListQuery[Name]> } = {
  limit: {
    parse: parseLimit,
    expected: `an integer from ${pageSizes.minimum} to ${pageSizes.maximum}`,
  },
  status: {
    parse: (text) => petStatuses.find((each) => each === text),
    expected: petStatusChoice,
  },
  after: {
    // 0 is not an id; it stands for the first page, so that a client can start its loop with it.
    parse: (text) => (text === '0' ? 0 : parseId(text)),
    expected: 'the id of a pet or 0',
  },
}

/**
 * Returns what is given and valid, such as `?limit=20&status=sold`, for the request log. `search` is a query
 * with its `?`.
 */
export function formatValidQuery(search: string): string {
  const query = new URLSearchParams(search)
  const valid = Object.entries(listParameters).flatMap(([name, { parse }]) => {
    const [text = '', ...others] = query.getAll(name)
    return others.length === 0 && parse(text) !== undefined ? `${name}=${text}` : []
  })
  return valid.length === 0 ? '' : `?${valid.join('&')}`
}

function parsePetQuery(query: URLSearchParams): PetQuery {
  const errors: FieldError[] = []
  const read = <Name extends keyof ListQuery>(name: Name): ListQuery[Name] | undefined => {
    const texts = query.getAll(name)
    const text = texts[0]
    if (text === undefined) return undefined
    const { parse, expected } = listParameters[name]
    const value = parse(text)
    if (texts.length > 1) errors.push({ field: name, message: `is given ${texts.length} times` })
    else if (value === undefined)
      errors.push({ field: name, message: `expected ${expected}, got ${describe(text)}` })
    return value
  }
  const limit = read('limit')
  const status = read('status')
  const after = read('after')
  if (errors.length > 0) throw new InvalidValues('invalid_parameter', errors)
  return { limit: limit ?? pageSizes.default, status, after }
}

function parseLimit(text: string): number | undefined {
  const limit = Number(parseId(text) ?? 0)
  return limit >= pageSizes.minimum && limit <= pageSizes.maximum ? limit : undefined
}

/** Creates a pet (section 4.2), which is durable when the reply is there. */
export const createPet: Operation = {
  method: 'POST',
  path: '/pets',
  createHandler(store, basePath) {
    return async ({ readBody }) => {
      const { issues, output, success } = v.safeParse(NewPetSchema, await readBody())
      if (!success) {
        const errors = issues.map(({ path, message }) => ({
          field: String(path?.[0].key ?? 'body'),
          message,
        }))
        throw new InvalidValues('invalid_body', errors)
      }
      const pet = await store.create(output)
      const location = ['Location', `${basePath}/v1/pets/${pet.id}`]
      // The members are written out, since V8 copies those of a spread one by one, which made a creation
      // slower (test/bench/builds.ts).
      const { status, headers, body } = textReply(201, formatPet(pet), location)
      return { status, headers, body, id: pet.id }
    }
  },
}

/** On 21 November 2026, getPet was deprecated; in seconds since 1970 (RFC 9745). */
export const deprecation = '@1795219200'
/** On this day, getPet is scheduled for removal (RFC 8594, interface section 9). */
export const sunset = 'Thu, 05 Dec 2030 00:00:00 GMT'

/** Reads one pet (section 4.3). It is deprecated (section 9). */
export const getPet: Operation = {
  method: 'GET',
  path: '/pets/{petId}',
  headers: ['Deprecation', deprecation, 'Sunset', sunset],
  createHandler(store) {
    return async ({ parameter: petId }) => {
      const id = parseId(petId)
      const pet = id === undefined ? undefined : await store.get(id)
      if (pet === undefined) throw petNotFound(petId)
      return textReply(200, formatPet(pet))
    }
  },
}

/** The interface (section 1) names this operation without a contract, so there is nothing to describe. */
const listOrders: Operation = {
  method: 'GET',
  path: '/store/orders',
  createHandler: () => () => {
    throw new HttpError('not_implemented')
  },
}

/** A page of another origin may read these headers of the operations. */
export const exposedHeaders = [
  'Location',
  'Link',
  'X-Total-Count',
  'X-Data-File-Error',
  'Deprecation',
  'Sunset',
]

export const operations: readonly Operation[] = [listPets, createPet, getPet, listOrders]

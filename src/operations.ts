/** The operations of interface section 4, one function each: from a checked request to a reply. */
import * as v from 'valibot'
import { HttpError } from './http/error-codes.ts'
import { jsonReply, type Reply } from './http/reply.ts'
import { parseQuery } from './http/router.ts'
import { describe } from './json/describe.ts'
import { parseId } from './json/int64.ts'
import { formatPet, NewPetSchema } from './pets/pet.ts'
import { petStatusChoice, petStatuses } from './pets/pet-status.ts'
import type { Store } from './pets/store.ts'
import type { Int64, PetPage, PetQuery, PetStatus } from './types.ts'

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
  /** The path that the service is mounted under; empty at the root of a server. */
  readonly basePath: string
  readBody(): Promise<unknown>
}

export interface Operation {
  /** How far the operation can be relied on (interface section 9); none carries a marker now. */
  readonly stability?: 'experimental' | 'beta'
  /** Whether it answers without a key. */
  readonly isOpen?: boolean
  /** What its refusals carry besides their own headers. */
  readonly refusalHeaders?: readonly string[]
  readonly handle: (request: OperationRequest) => Reply | Promise<Reply>
}

/** How many pages are kept, and how long each may be: clients ask for few different ones, and names can be long. */
const maxCachedPages = 64
const maxCachedPageLength = 65_536

/**
 * Interface section 4.1. The next page is reached by `after` and the Link header (RFC 8288). A page of pets in memory is
 * kept until the store changes: formatting it again would be about half of the work of a list.
 */
export function listPets(store: Store): Operation {
  const pages = new Map<string, Reply>()
  let version = store.version
  return {
    handle({ query, basePath }) {
      if (version !== store.version || pages.size >= maxCachedPages) {
        pages.clear()
        version = store.version
      }
      const keptPage = pages.get(query)
      if (keptPage !== undefined) return keptPage
      const listQuery = parseListQuery(parseQuery(query))
      const reply = nowOrLater(store.list(listQuery), (page) => formatPage(store, page, listQuery, basePath))
      if (!(reply instanceof Promise) && (reply.body?.length ?? 0) <= maxCachedPageLength)
        pages.set(query, reply)
      return reply
    },
  }
}

function formatPage(store: Store, page: PetPage, { limit, status }: PetQuery, basePath: string): Reply {
  const { pets, total, hasMore } = page
  const headers = ['X-Total-Count', String(total)]
  const last = pets.at(-1)
  if (hasMore && last !== undefined) {
    const filter = status === undefined ? '' : `&status=${status}`
    headers.push('Link', `<${basePath}/v1/pets?limit=${limit}${filter}&after=${last.id}>; rel="next"`)
  }
  if (store.dataFileError !== undefined) headers.push('X-Data-File-Error', store.dataFileError)
  return jsonReply(200, `[${pets.map(formatPet).join()}]`, headers)
}

/** Interface section 4.2. The pet is durable when the reply is there. */
export function createPet(store: Store): Operation {
  return {
    async handle({ basePath, readBody }) {
      const result = v.safeParse(NewPetSchema, await readBody())
      if (!result.success) throw new HttpError('invalid_body', result.issues.map(describeIssue).join('; '))
      const pet = await store.create(result.output)
      return jsonReply(201, formatPet(pet), ['Location', `${basePath}/v1/pets/${pet.id}`])
    },
  }
}

/** Interface section 4.3, deprecated. */
export function getPet(store: Store): Operation {
  const retirement = ['Deprecation', deprecation, 'Sunset', sunset]
  return {
    refusalHeaders: retirement,
    handle({ parameter: petId }) {
      const id = parseId(petId)
      return nowOrLater(id === undefined ? undefined : store.get(id), (pet) => {
        if (pet === undefined)
          throw new HttpError('not_found', `There is no pet with the id ${describe(petId)}.`)
        return jsonReply(200, formatPet(pet), retirement)
      })
    },
  }
}

/** Formats a result now when the store has it in memory, and later when it is promised. */
function nowOrLater<T>(result: T | Promise<T>, format: (result: T) => Reply): Reply | Promise<Reply> {
  return result instanceof Promise ? result.then(format) : format(result)
}

/** Named by the interface (section 1) without a contract. */
export function listOrders(): Operation {
  return {
    handle() {
      throw new HttpError('not_implemented')
    },
  }
}

function parseListQuery(query: ReadonlyMap<string, readonly string[]>): PetQuery {
  const faults: string[] = []
  const read = <T>(name: string, parse: (text: string) => T | undefined, expected: string): T | undefined => {
    const values = query.get(name)
    if (values === undefined) return undefined
    const [text = ''] = values
    const value = parse(text)
    if (values.length > 1) faults.push(`${name}: is given ${values.length} times`)
    else if (value === undefined) faults.push(`${name}: expected ${expected}, got ${describe(text)}`)
    return value
  }
  const { minimum, maximum } = pageSizes
  const limit = read('limit', parseLimit, `an integer from ${minimum} to ${maximum}`)
  const status = read('status', parseStatus, petStatusChoice)
  const after = read('after', parseAfter, 'the id of a pet or 0')
  if (faults.length > 0) throw new HttpError('invalid_parameter', faults.join('; '))
  return { limit: limit ?? pageSizes.default, status, after }
}

function parseLimit(text: string): number | undefined {
  const limit = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : 0
  return limit >= pageSizes.minimum && limit <= pageSizes.maximum ? limit : undefined
}

/** With 0, which is no id, the list begins at its first page: a loop over all pages starts so. */
function parseAfter(text: string): Int64 | undefined {
  return text === '0' ? 0 : parseId(text)
}

function parseStatus(text: string): PetStatus | undefined {
  return petStatuses.find((status) => status === text)
}

function describeIssue(issue: v.BaseIssue<unknown>): string {
  return `${issue.path?.[0]?.key ?? 'body'}: ${issue.message}`
}

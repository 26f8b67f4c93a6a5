/** Lists the pets, a page at a time (interface section 4.1). The next page is reached by `after` and the Link header (RFC 8288). */
import { HttpError } from '../http/error-codes.ts'
import { textReply, type Reply } from '../http/reply.ts'
import { type Int64, parseId } from '../json/int64.ts'
import { describe as describeValue } from '../messages/describe.ts'
import { petStatusChoice, petStatuses } from '../pet/pet-status.ts'
import { formatPet } from '../pet/pet.ts'
import type { PetPage, PetQuery } from '../store/pet-storage.ts'
import type { Store } from '../store/store.ts'
import {
  errorResponse,
  exampleFault,
  extension,
  header,
  json,
  parameter,
  sharedErrors,
} from './openapi-parts.ts'
import { countSchema, mia, ref } from './openapi-schemas.ts'
import type { Operation } from './operation.ts'

/** Page sizes of a list (interface section 8). */
export const pageSizes = { minimum: 1, maximum: 100, default: 20 } as const

export const listPets: Operation = {
  method: 'GET',
  path: '/pets',
  describe: (basePath) => ({
    operationId: 'listPets',
    summary: 'List animals',
    description:
      'Lists pets in ascending order of `id`, a page at a time: all of them, or those with one status. To get the ' +
      'next page, follow the `Link` header. Each parameter may be given only once, a number in plain decimal digits; ' +
      'others are ignored.',
    parameters: [
      parameter('limit', 'The size of a page.', { type: 'integer', ...pageSizes }, pageSizes.default),
      parameter('status', 'Lists only the pets with this status.', ref('PetStatus'), mia.status),
      extension(
        parameter('after', 'Lists only pets whose `id` is above this, or all with `0`.', countSchema, 37),
      ),
    ],
    responses: {
      200: {
        description: 'The pets of this page; an empty array if there are none.',
        headers: {
          'X-Total-Count': extension(
            header('The number of pets on all pages, if known.', { schema: countSchema, example: 2 }),
          ),
          Link: extension(
            header('The URL of the next page (RFC 8288), unless this is the last.', {
              example: formatNextLink(basePath, { limit: 20, status: 'sold' }, 37),
            }),
          ),
          'X-Data-File-Error': extension(
            header(
              'Where or what the error in the data file is, after a hand edit that is not valid. While it is present, ' +
                'the last valid data is still served, and no pet can be added.',
              { example: exampleFault },
            ),
          ),
        },
        content: json(ref('Pets'), { page: [mia], empty: [] }),
      },
      400: errorResponse(
        'A query parameter is not valid or is given twice, or the request is not well-formed HTTP.',
        ['invalid_parameter', 'malformed_request'],
      ),
      ...sharedErrors,
    },
  }),
  createHandle(store, basePath) {
    // Formatting a page again would be about half of the work of a list, so a reply serves until a pet changes.
    const replies = new Map<string, { readonly version: number; readonly reply: Reply }>()
    return async ({ search }) => {
      const earlier = replies.get(search)
      if (earlier !== undefined && earlier.version === store.version) return earlier.reply
      const petQuery = parsePetQuery(new URLSearchParams(search))
      const { version } = store
      const reply = formatPage(store, await store.list(petQuery), petQuery, basePath)
      // A storage has no version and is asked each time, since other servers may change it.
      if (version !== undefined && Number(reply.body?.length) <= maxCachedLength) {
        if (replies.size >= maxCachedReplies) replies.clear()
        replies.set(search, { version, reply })
      }
      return reply
    }
  },
}

/** Clients send few different queries. */
const maxCachedReplies = 64
/** A name can be long, so a large reply is not kept. In bytes: only a short one is text. */
const maxCachedLength = 65_536

function formatPage(store: Store, page: PetPage, query: PetQuery, basePath: string): Reply {
  const { pets, total, hasMore } = page
  const headers = total === undefined ? [] : ['X-Total-Count', String(total)]
  const last = pets.at(-1)
  if (hasMore && last !== undefined) headers.push('Link', formatNextLink(basePath, query, last.id))
  if (store.dataFileError !== undefined)
    headers.push('X-Data-File-Error', escapeNonAscii(store.dataFileError))
  return textReply(200, `[${pets.map(formatPet).join()}]`, headers)
}

function formatNextLink(basePath: string, { limit, status }: PetQuery, after: Int64): string {
  const filter = status === undefined ? '' : `&status=${status}`
  return `<${basePath}/v1/pets?limit=${limit}${filter}&after=${after}>; rel="next"`
}

/** What a header cannot hold becomes an escape as in JSON, such as `\u00e4`. */
function escapeNonAscii(text: string): string {
  return text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function parsePetQuery(query: URLSearchParams): PetQuery {
  const faults: string[] = []
  const read = <T>(name: string, parse: (text: string) => T | undefined, expected: string): T | undefined => {
    const [text, ...others] = query.getAll(name)
    if (text === undefined) return undefined
    const value = parse(text)
    if (others.length > 0) faults.push(`${name}: is given ${others.length + 1} times`)
    else if (value === undefined) faults.push(`${name}: expected ${expected}, got ${describeValue(text)}`)
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
  const limit = Number(parseId(text) ?? 0)
  return limit >= pageSizes.minimum && limit <= pageSizes.maximum ? limit : undefined
}

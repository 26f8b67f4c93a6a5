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
  optional,
  queryParameter,
  sharedErrors,
} from './openapi-parts.ts'
import { idSchema, mia, ref } from './openapi-schemas.ts'
import type { Handle, Operation, OperationDescription } from './operation.ts'

/** Page sizes of a list (interface section 8). */
export const pageSizes = { minimum: 1, maximum: 100, default: 20 } as const

export const listPets: Operation = { method: 'GET', path: '/pets', describe, createHandle }

function describe(basePath: string): OperationDescription {
  const { minimum, maximum } = pageSizes
  const limitDescription = `The size of a page: plain decimal digits from ${minimum} to ${maximum}, without a sign or a leading zero.`
  const statusDescription = 'Lists only the pets with this status. Without it, all are listed.'
  const afterDescription =
    'Lists only pets with a higher id than this: `0` to start, or the id of the last pet of the previous page, as ' +
    'in the `Link` header of that page. An extension of this service.'
  const nextLink = `<${basePath}/v1/pets?limit=20&status=sold&after=37>; rel="next"`
  return {
    operationId: 'listPets',
    tags: ['animals'],
    summary: 'List animals',
    description:
      'Lists pets in ascending order of `id`, a page at a time: all of them, or those with one status. To get the ' +
      'next page, follow the `Link` header. Other query parameters are ignored; each parameter may be given only once.',
    parameters: [
      queryParameter('limit', limitDescription, { type: 'integer', ...pageSizes }, pageSizes.default),
      queryParameter('status', statusDescription, ref('PetStatus'), 'sold'),
      { ...queryParameter('after', afterDescription, { ...idSchema, minimum: 0 }, 37), ...extension },
    ],
    responses: {
      200: {
        description: 'The pets of this page; an empty array if there are none.',
        headers: {
          'X-Total-Count': header(
            'The number of pets on all pages, if known. An extension of this service.',
            { ...optional, schema: { type: 'integer', minimum: 0 }, example: 2, ...extension },
          ),
          Link: header(
            'The URL of the next page (RFC 8288); absent on the last page. An extension of this service.',
            { ...optional, example: nextLink, ...extension },
          ),
          'X-Data-File-Error': header(
            'Where or what the error in the data file is, after a hand edit that is not valid. While it is present, ' +
              'the last valid data is still served, and no pet can be added. An extension of this service.',
            { ...optional, example: exampleFault, ...extension },
          ),
        },
        content: json(ref('Pets'), { page: [mia], empty: [] }),
      },
      400: errorResponse(
        `A query parameter is given twice or is not valid: \`limit\` is not a plain decimal from ${minimum} to ` +
          `${maximum}, \`status\` is unknown or empty, or \`after\` is neither 0 nor an id. Or the request is not ` +
          'well-formed HTTP.',
        ['invalid_parameter', 'malformed_request'],
        undefined,
        {
          invalid_parameter: `limit: expected an integer from ${pageSizes.minimum} to ${pageSizes.maximum}, got "0"`,
        },
      ),
      ...sharedErrors,
    },
  }
}

function createHandle(store: Store, basePath: string): Handle {
  // Formatting a page again would be about half of the work of a list, so a reply serves until a pet changes.
  const replies = new Map<string, { readonly version: number; readonly reply: Reply }>()
  return async ({ search }) => {
    const earlier = replies.get(search)
    if (earlier !== undefined && earlier.version === store.version) return earlier.reply
    const petQuery = parsePetQuery(new URLSearchParams(search))
    const { version } = store
    const reply = formatPage(store, await store.list(petQuery), petQuery, basePath)
    // A storage has no version and is asked each time, since other servers may change it.
    if (version !== undefined && Number(reply.body?.length) <= maxCachedBytes) {
      if (replies.size >= maxCachedReplies) replies.clear()
      replies.set(search, { version, reply })
    }
    return reply
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
  return textReply(200, `[${pets.map(formatPet).join()}]`, headers)
}

/** What a header cannot hold becomes an escape as in JSON, such as `\u00e4`. */
function escapeNonAscii(text: string): string {
  return text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function parsePetQuery(query: URLSearchParams): PetQuery {
  const faults: string[] = []
  const read = <T>(name: string, parse: (text: string) => T | undefined, expected: string): T | undefined => {
    const values = query.getAll(name)
    const [text] = values
    if (text === undefined) return undefined
    const value = parse(text)
    if (values.length > 1) faults.push(`${name}: is given ${values.length} times`)
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
  const limit = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : 0
  return limit >= pageSizes.minimum && limit <= pageSizes.maximum ? limit : undefined
}

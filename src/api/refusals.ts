/**
 * What a refused client is told: each error code that it can see (interface section 7.1), with its status and
 * its usual message, the refusals that are made from these, and failures on purpose, which are as if real.
 */
import { unescape } from 'node:querystring'
import { invalidKey, missingKey } from '../http/bearer-auth.ts'
import type { Failure } from '../http/disturbance.ts'
import { type Arrival, isSafe } from '../http/request.ts'
import { refusalReply, HttpError, httpErrors, type Reply, InvalidValues } from '../http/response.ts'
import { findPath } from '../http/router.ts'
import {
  type NoCreationCode,
  type PetStoreError,
  notReadable,
  notStored,
  perhapsStored,
  storageFailure,
} from '../store/store.ts'
import { describe } from '../text/words.ts'

export const errorCodes = {
  ...httpErrors,
  data_file_invalid: { status: 503, message: 'The data file is not valid.' },
  read_only: { status: 503, message: 'Pets can be read, but not created.' },
  storage_failed: { status: 503, message: 'The storage failed.' },
  insufficient_storage: { status: 507, message: 'There is no room left.' },
} satisfies Record<
  PetStoreError['code'] | NoCreationCode,
  { readonly status: number; readonly message: string }
>

type ErrorCode = keyof typeof errorCodes

export function codeReply(code: ErrorCode, message: string = errorCodes[code].message): Reply {
  return refusalReply({ code, status: errorCodes[code].status, message })
}

export function petNotFound(petId: string): HttpError {
  return new HttpError('not_found', `There is no pet with the id ${describe(petId)}.`)
}

export function formatAllow(methods: readonly string[]): string {
  return [...methods, 'OPTIONS'].join(', ')
}

const changeHint = ' Pets are changed and removed in the data file, or wherever else they are kept.'

/** Names the methods in its message too, since a plain `curl` shows no headers. */
export function methodNotAllowed(method: string, allowed: readonly string[], path: string): HttpError {
  const isChange = path.includes('/v1/pets') && ['DELETE', 'PATCH', 'PUT'].includes(method)
  const allow = formatAllow(allowed)
  const message = `${method} is not allowed here, only ${allow}.${isChange ? changeHint : ''}`
  return new HttpError('method_not_allowed', message, { headers: ['Allow', allow] })
}

/** This stands in the place of a response, if none is to come at all. */
const dropped: Reply = {
  status: 0,
  headers: [],
  code: 'failed_on_purpose',
  isOnPurpose: true,
  closes: true,
}

/** Returns the reply of a failure on purpose. `methods` are all that any path takes. */
export function toFailureReply(failure: Failure, arrival: Arrival, methods: readonly string[]): Reply {
  const { outcome, isAskedFor, isAfterStore } = failure
  if (outcome === 'drop') return dropped
  if (outcome === 'hang') return { ...dropped, hangs: true }
  // Any other outcome is a known code, since settings take no others.
  if (!/^\d/.test(outcome))
    return { ...toReplyAsIfReal(outcome as ErrorCode, arrival, isAfterStore, methods), isOnPurpose: true }
  const headers = ['429', '503'].includes(outcome) ? ['Retry-After', '1'] : []
  if (isAskedFor) headers.push('Preference-Applied', `code=${outcome}`)
  const code = 'failed_on_purpose'
  const { message } = errorCodes[code]
  return { ...refusalReply({ code, status: Number(outcome), message, headers }), isOnPurpose: true }
}

/**
 * Returns the reply with this code as a client gets it when the failure is real, as far as that is known
 * without one.
 */
function toReplyAsIfReal(
  code: ErrorCode,
  arrival: Arrival,
  isAfterStore: boolean,
  methods: readonly string[],
): Reply {
  const { method, target, headers } = arrival
  const ofChange = isAfterStore ? perhapsStored : notStored
  const consequence = isSafe(method) ? notReadable : ofChange
  switch (code) {
    case 'unauthorized':
      return refusalReply(headers['authorization'] === undefined ? missingKey() : invalidKey())
    case 'method_not_allowed': {
      const others = methods.filter((each) => each !== method)
      return refusalReply(methodNotAllowed(method, others, ''))
    }
    case 'not_found': {
      const petId = /\/v1\/pets\/([^/]+)$/.exec(unescape(findPath(target)))?.[1]
      return petId === undefined ? codeReply(code) : refusalReply(petNotFound(petId))
    }
    case 'data_file_invalid':
      return codeReply(code, `The data file is not valid (it is refused on purpose); ${consequence}.`)
    case 'storage_failed':
    case 'insufficient_storage':
      return codeReply(code, storageFailure(code === 'insufficient_storage', consequence).message)
    case 'invalid_body':
      return refusalReply(new InvalidValues(code, [{ field: 'name', message: 'is refused on purpose' }]))
    case 'invalid_parameter':
      return refusalReply(new InvalidValues(code, [{ field: 'limit', message: 'is refused on purpose' }]))
    default:
      return codeReply(code)
  }
}

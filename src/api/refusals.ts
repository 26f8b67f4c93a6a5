/**
 * Says what a refused client is told: each error code that it can see (interface section 7.1), with its status and its usual message, and the
 * refusals that are made from these, on purpose too.
 */
import { unescape } from 'node:querystring'
import { invalidKey, missingKey } from '../http/bearer-auth.ts'
import type { Failure } from '../http/disturbance.ts'
import type { Arrival } from '../http/request.ts'
import { errorReply, HttpError, httpErrors, InvalidValues, type Reply } from '../http/response.ts'
import { findPath } from '../http/router.ts'
import { describe } from '../json/words.ts'
import { notStored, perhapsStored, type PetStoreError } from '../store/store.ts'

export const errorCodes = {
  ...httpErrors,
  data_file_invalid: { status: 503, message: 'The data file is not valid.' },
  read_only: { status: 503, message: 'Pets can be read, but not created.' },
  storage_failed: { status: 503, message: 'The storage failed.' },
  insufficient_storage: { status: 507, message: 'There is no room left.' },
} satisfies Record<PetStoreError['code'] | 'read_only', { readonly status: number; readonly message: string }>

type ErrorCode = keyof typeof errorCodes

/** Without a message, or with an empty one, the reply has the usual one. */
export function refusalReply(code: ErrorCode, message = ''): Reply {
  const { status, message: usual } = errorCodes[code]
  return errorReply({ code, status, message: message || usual })
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
  return new HttpError('method_not_allowed', message, ['Allow', allow])
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
export function failOnPurpose(failure: Failure, arrival: Arrival, methods: readonly string[]): Reply {
  const { outcome, isAskedFor, isAfter } = failure
  if (outcome === 'drop') return dropped
  if (outcome === 'hang') return { ...dropped, hangs: true }
  // Any other outcome is a known code, since settings take no others.
  if (!/^\d/.test(outcome))
    return { ...rehearse(outcome as ErrorCode, arrival, isAfter, methods), isOnPurpose: true }
  const headers = ['429', '503'].includes(outcome) ? ['Retry-After', '1'] : []
  if (isAskedFor) headers.push('Preference-Applied', `code=${outcome}`)
  const code = 'failed_on_purpose'
  const { message } = errorCodes[code]
  return { ...errorReply({ code, status: Number(outcome), message, headers }), isOnPurpose: true }
}

/** Returns the reply with this code as a client gets it when the failure is real. */
function rehearse(code: ErrorCode, arrival: Arrival, isAfter: boolean, methods: readonly string[]): Reply {
  const { method, target, headers } = arrival
  // Only a creation is told what became of it.
  const outcome = method === 'POST' ? `; ${isAfter ? perhapsStored : notStored}.` : '.'
  switch (code) {
    case 'unauthorized':
      return errorReply(headers['authorization'] === undefined ? missingKey() : invalidKey())
    case 'method_not_allowed': {
      const others = methods.filter((each) => each !== method)
      return errorReply(methodNotAllowed(method, others, ''))
    }
    case 'not_found': {
      const petId = /\/v1\/pets\/([^/]+)$/.exec(unescape(findPath(target)))?.[1]
      return petId === undefined ? refusalReply(code) : errorReply(petNotFound(petId))
    }
    case 'data_file_invalid':
      return refusalReply(code, `The data file is not valid (it is refused on purpose)${outcome}`)
    case 'storage_failed':
    case 'insufficient_storage':
      return refusalReply(code, errorCodes[code].message.replace(/\.$/, outcome))
    case 'invalid_body':
      return errorReply(new InvalidValues(code, [{ field: 'name', message: 'is refused on purpose' }]))
    case 'invalid_parameter':
      return errorReply(new InvalidValues(code, [{ field: 'limit', message: 'is refused on purpose' }]))
    default:
      return refusalReply(code)
  }
}

/**
 * Says what a refused client is told: each error code that it can see (interface section 7.1), with its
 * status and its usual message, and the refusals that are made from these.
 */
import { refusalReply, HttpError, httpErrors, type Reply } from '../http/response.ts'
import { describe } from '../json/words.ts'
import type { PetStoreError } from '../store/store.ts'

export const errorCodes = {
  ...httpErrors,
  data_file_invalid: { status: 503, message: 'The data file is not valid.' },
  read_only: { status: 503, message: 'Pets can be read, but not created.' },
  storage_failed: { status: 503, message: 'The storage failed.' },
  insufficient_storage: { status: 507, message: 'There is no room left.' },
} satisfies Record<PetStoreError['code'] | 'read_only', { readonly status: number; readonly message: string }>

export type ErrorCode = keyof typeof errorCodes

/** Without a message, or with an empty one, the reply has the usual one. */
export function codeReply(code: ErrorCode, message = ''): Reply {
  const { status, message: usual } = errorCodes[code]
  return refusalReply({ code, status, message: message || usual })
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

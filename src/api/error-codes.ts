/** Each error code that a client can see (interface section 7.1), with its status and its usual message. */
import { errorReply, httpErrors, type Reply } from '../http/response.ts'
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
export function refuseWith(code: ErrorCode, message = ''): Reply {
  const { status, message: usual } = errorCodes[code]
  return errorReply({ code, status, message: message || usual })
}

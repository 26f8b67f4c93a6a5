/** Fetches one pet (interface section 4.3); deprecated (section 9). */
import { HttpError } from '../http/error-codes.ts'
import { textReply } from '../http/reply.ts'
import { parseId } from '../json/int64.ts'
import { describe as describeValue } from '../messages/describe.ts'
import { formatPet } from '../pet/pet.ts'
import { errorResponse, header, json, otherError, parameter, unauthorized } from './openapi-parts.ts'
import { idSchema, ref, rex } from './openapi-schemas.ts'
import type { Operation } from './operation.ts'

/** When getPet was deprecated: 21 November 2026, in seconds since 1970 (RFC 9745). */
export const deprecation = '@1795219200'
/** When getPet is scheduled for removal (RFC 8594, interface section 9). */
export const sunset = 'Thu, 05 Dec 2030 00:00:00 GMT'

/** They stand on errors of the operation itself, such as a failing storage, but not on all others. */
const describeDates = (required: boolean) => ({
  Deprecation: header('When this was deprecated (RFC 9745).', { required, schema: { const: deprecation } }),
  Sunset: header('When this is to be removed (RFC 8594).', { required, schema: { const: sunset } }),
})

export const getPet: Operation = {
  method: 'GET',
  path: '/pets/{petId}',
  headers: ['Deprecation', deprecation, 'Sunset', sunset],
  describe: () => ({
    operationId: 'getPet',
    summary: 'Get an animal',
    description: 'Fetches one pet, until 5 December 2030. Move to `GET /pets` and its `status` filter.',
    deprecated: true,
    'x-sunset': new Date(sunset).toISOString().slice(0, 10),
    parameters: [
      parameter('petId', 'The `id` of the pet, in plain decimal digits.', idSchema, rex.id, 'path'),
    ],
    responses: {
      200: {
        description: 'The pet with this `id`.',
        headers: describeDates(true),
        content: json(ref('Pet'), { found: rex }),
      },
      400: errorResponse('The request is not well-formed HTTP.', ['malformed_request']),
      401: { ...unauthorized, headers: { ...unauthorized.headers, ...describeDates(true) } },
      404: errorResponse('There is no pet with this `id`.', ['not_found'], describeDates(true)),
      default: { ...otherError, headers: { ...otherError.headers, ...describeDates(false) } },
    },
  }),
  createHandle(store) {
    return async ({ parameter: petId }) => {
      const id = parseId(petId)
      const pet = id === undefined ? undefined : await store.get(id)
      if (pet === undefined)
        throw new HttpError('not_found', `There is no pet with the id ${describeValue(petId)}.`)
      return textReply(200, formatPet(pet))
    }
  },
}

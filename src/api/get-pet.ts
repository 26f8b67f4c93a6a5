/** Fetches one pet (interface section 4.3); deprecated (section 9). */
import { HttpError } from '../http/error-codes.ts'
import { textReply } from '../http/reply.ts'
import { parseId } from '../json/int64.ts'
import { describe as describeValue } from '../messages/describe.ts'
import { formatPet } from '../pet/pet.ts'
import type { Store } from '../store/store.ts'
import { errorResponse, header, json, optional, otherError, unauthorized } from './openapi-parts.ts'
import { idSchema, ref, rex } from './openapi-schemas.ts'
import type { Handle, Operation, OperationDescription } from './operation.ts'

/** When getPet was deprecated: 21 November 2026, in seconds since 1970 (RFC 9745). */
export const deprecation = '@1795219200'
/** When getPet is scheduled for removal (RFC 8594, interface section 9). */
export const sunset = 'Thu, 05 Dec 2030 00:00:00 GMT'

export const getPet: Operation = {
  method: 'GET',
  path: '/pets/{petId}',
  headers: ['Deprecation', deprecation, 'Sunset', sunset],
  describe,
  createHandle,
}

function describe(): OperationDescription {
  const headers = {
    Deprecation: header('When the operation was deprecated (RFC 9745).', { schema: { const: deprecation } }),
    Sunset: header('When the operation is to be removed (RFC 8594).', { schema: { const: sunset } }),
  }
  // They stand on errors of the operation itself, such as a failing storage, but not on all others.
  const perhapsSent = {
    Deprecation: { ...headers.Deprecation, ...optional },
    Sunset: { ...headers.Sunset, ...optional },
  }
  return {
    operationId: 'getPet',
    tags: ['animals'],
    summary: 'Get an animal',
    description:
      'Fetches one pet. This operation is deprecated, and is to be removed on 5 December 2030; until then it works as described ' +
      'here. Move to `GET /pets` and its `status` filter.',
    deprecated: true,
    'x-sunset': new Date(sunset).toISOString().slice(0, 10),
    parameters: [
      {
        name: 'petId',
        in: 'path',
        description: 'The `id` of the pet, in plain decimal digits. Anything else is answered with 404.',
        required: true,
        schema: idSchema,
        example: rex.id,
      },
    ],
    responses: {
      200: { description: 'The pet with this `id`.', headers, content: json(ref('Pet'), { found: rex }) },
      400: errorResponse('The request is not well-formed HTTP.', ['malformed_request']),
      401: { ...unauthorized, headers: { ...unauthorized.headers, ...headers } },
      404: errorResponse('There is no pet with this `id`.', ['not_found'], headers),
      default: { ...otherError, headers: { ...otherError.headers, ...perhapsSent } },
    },
  }
}

function createHandle(store: Store): Handle {
  return async ({ parameter: petId }) => {
    const id = parseId(petId)
    const pet = id === undefined ? undefined : await store.get(id)
    if (pet === undefined)
      throw new HttpError('not_found', `There is no pet with the id ${describeValue(petId)}.`)
    return textReply(200, formatPet(pet))
  }
}

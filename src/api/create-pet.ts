/** Adds a pet (interface section 4.2). It is durable when the reply is there. */
import * as v from 'valibot'
import { HttpError } from '../http/error-codes.ts'
import { maxBodyBytes } from '../http/limits.ts'
import { textReply } from '../http/reply.ts'
import { NewPetSchema } from '../pet/pet-rules.ts'
import { formatPet } from '../pet/pet.ts'
import { errorResponse, header, json, sharedErrors } from './openapi-parts.ts'
import { newPet, ref } from './openapi-schemas.ts'
import type { Operation } from './operation.ts'

export const createPet: Operation = {
  method: 'POST',
  path: '/pets',
  describe: (basePath) => ({
    operationId: 'createPet',
    summary: 'Add an animal',
    description:
      'Puts a new pet into the store. The service chooses its `id`, and responds once the pet is stored durably. ' +
      'Unknown members of the body, such as `id`, are ignored and not stored.',
    requestBody: {
      description: `The pet to add, in at most ${maxBodyBytes} bytes, without a Content-Encoding.`,
      required: true,
      content: json(ref('NewPet'), { complete: newPet, shortest: { name: 'Rex', categoryId: 1 } }),
    },
    responses: {
      201: {
        description: 'The pet as it is now stored durably, with its `id`.',
        headers: {
          Location: header('The path of the new pet.', { required: true, example: `${basePath}/v1/pets/13` }),
        },
        content: json(ref('Pet'), { added: { id: 13, ...newPet } }),
      },
      400: errorResponse(
        'The body is not JSON or not a pet that can be added, or the request is not well-formed HTTP.',
        ['invalid_body', 'malformed_json', 'malformed_request'],
      ),
      413: errorResponse('The body is too large.', ['content_too_large']),
      415: errorResponse(
        'The body is not `application/json`, or has a Content-Encoding.',
        ['unsupported_media_type'],
        { 'Accept-Encoding': header('Sent if the body has a Content-Encoding: none is supported.') },
      ),
      503: errorResponse(
        'The pet could not be added now. If the message says that it is not known whether it was stored, list the pets ' +
          'before you send the request again; otherwise nothing was stored, and you can send it again later.',
        ['data_file_invalid', 'storage_failed', 'shutting_down'],
      ),
      507: errorResponse(
        'There is no room or no `id` left. As with 503, the message says whether nothing was stored.',
        ['insufficient_storage'],
      ),
      ...sharedErrors,
    },
  }),
  createHandle(store, basePath) {
    return async ({ readBody }) => {
      const { issues, output, success } = v.safeParse(NewPetSchema, await readBody())
      if (!success) {
        const faults = issues.map(({ path, message }) => `${path?.[0].key ?? 'body'}: ${message}`)
        throw new HttpError('invalid_body', faults.join('; '))
      }
      const pet = await store.create(output)
      return textReply(201, formatPet(pet), ['Location', `${basePath}/v1/pets/${pet.id}`])
    }
  },
}

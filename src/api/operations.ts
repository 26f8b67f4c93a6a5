/**
 * The operations of the interface (section 4), in the order of the OpenAPI document. The routes and that document are made of this list.
 * Of several whose path matches a request, the first responds.
 */
import { HttpError } from '../http/error-codes.ts'
import { createPet } from './create-pet.ts'
import { getPet } from './get-pet.ts'
import { listPets } from './list-pets.ts'
import type { Operation } from './operation.ts'

/** Named by the interface (section 1) without a contract, so there is nothing to describe. */
const listOrders: Operation = {
  method: 'GET',
  path: '/store/orders',
  createHandle: () => () => {
    throw new HttpError('not_implemented')
  },
}

export const operations: readonly Operation[] = [listPets, createPet, getPet, listOrders]

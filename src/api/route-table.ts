/** The routes: every path, and the operation of each of its methods. The checks before an operation are in request-handler.ts. */
import { openApiDocument } from './openapi.ts'
import * as operations from './operations.ts'
import type { Page } from '../page/build-page.ts'
import { pageHeaders } from '../page/load-page.ts'
import type { Store } from '../store/store.ts'

/** What the operations take their replies from. */
export interface RouteSources {
  readonly store: Store
  readonly page: Page
  /** The JSON Schema of the data file, for whoever has no copy of this repository. */
  readonly petsSchema: string
}

/** The operations of a path by method. */
export type Operations = Readonly<Partial<Record<string, operations.Operation>>>

export function createRoutes(
  { store, page, petsSchema }: RouteSources,
  basePath: string,
): Readonly<Record<string, Operations>> {
  return {
    '/v1/pets': { GET: operations.listPets(store, basePath), POST: operations.createPet(store, basePath) },
    '/v1/pets/{petId}': { GET: operations.getPet(store) },
    '/v1/store/orders': { GET: { handle: operations.listOrders } },
    // For load balancers and monitoring.
    '/healthz': { GET: operations.publish('{"status":"ok"}') },
    '/openapi.json': { GET: operations.publish(JSON.stringify(openApiDocument(basePath))) },
    // As application/json, since browsers would download application/schema+json. Editors accept both.
    '/pets.schema.json': { GET: operations.publish(petsSchema) },
    '/': { GET: operations.publish(page.html, pageHeaders(page), 'text/html; charset=utf-8') },
  }
}

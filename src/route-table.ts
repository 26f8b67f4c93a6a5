/** The routes: every path, and the operation of each of its methods. The checks before an operation are in app.ts. */
import { jsonReply, type Reply } from './http/reply.ts'
import { openApiDocument } from './openapi.ts'
import { createPet, getPet, listOrders, listPets, type Operation } from './operations.ts'
import type { Page } from './page/build-page.ts'
import { pageHeaders } from './page/load-page.ts'
import type { Store } from './store/store.ts'

/** What the operations take their replies from. */
export interface RouteSources {
  readonly store: Store
  readonly page: Page
  /** The JSON Schema of the data file, for whoever has no copy of this repository. */
  readonly petsSchema: string
}

/** The operations of a path by method. HEAD follows GET. */
export type Operations = Readonly<Partial<Record<string, Operation>>>

export function createRoutes(
  { store, page, petsSchema }: RouteSources,
  basePath: string,
): Readonly<Record<string, Operations>> {
  const pageReply = { ...jsonReply(200, page.html, pageHeaders(page)), type: 'text/html; charset=utf-8' }
  return {
    '/v1/pets': { GET: listPets(store, basePath), POST: createPet(store, basePath) },
    '/v1/pets/{petId}': { GET: getPet(store) },
    '/v1/store/orders': { GET: { handle: listOrders } },
    '/healthz': { GET: publicOperation(jsonReply(200, '{"status":"ok"}')) },
    '/openapi.json': { GET: publicOperation(jsonReply(200, JSON.stringify(openApiDocument(basePath)))) },
    // As application/json, since browsers would download application/schema+json. Editors accept both.
    '/pets.schema.json': { GET: publicOperation(jsonReply(200, petsSchema)) },
    '/': { GET: publicOperation(pageReply) },
  }
}

/** Needs no key, and is the same for everybody. */
function publicOperation(reply: Reply): Operation {
  return { needsNoKey: true, handle: () => reply }
}

/** The routes: every path, and what answers each of its methods. The checks before that are in request-handler.ts. */
import { jsonReply, type Reply } from '../http/reply.ts'
import { parseQuery } from '../http/router.ts'
import type { Page } from '../page/build-page.ts'
import { pageHeaders } from '../page/load-page.ts'
import type { Store } from '../store/store.ts'
import { openApiDocument } from './openapi.ts'
import type { Handle } from './operation.ts'
import { operations } from './operations.ts'

/** What the replies are taken from. */
export interface RouteSources {
  readonly store: Store
  readonly page: Page
  /** The JSON Schema of the data file, for whoever has no copy of this repository. */
  readonly petsSchema: string
}

export interface Route {
  readonly needsNoKey?: boolean
  /** Added to each of its responses, its errors included; names and values in turn. */
  readonly headers?: readonly string[] | undefined
  readonly handle: Handle
}

/** The routes of a path by method. */
export type Routes = Readonly<Partial<Record<string, Route>>>

export function createRoutes(
  { store, page, petsSchema }: RouteSources,
  basePath: string,
): Readonly<Record<string, Routes>> {
  const routes: Record<string, Routes> = {}
  for (const { method, path, headers, createHandle } of operations) {
    const route: Route = { headers, handle: createHandle(store, basePath) }
    routes[`/v1${path}`] = { ...routes[`/v1${path}`], [method]: route }
  }
  return {
    ...routes,
    // For load balancers and monitoring: whether the process lives and, with `?ready`, what it can do.
    '/healthz': {
      GET: {
        needsNoKey: true,
        handle: ({ query }) => (parseQuery(query).has('ready') ? describeReadiness(store) : healthy),
      },
    },
    '/openapi.json': { GET: publish(JSON.stringify(openApiDocument(basePath))) },
    // As application/json, since browsers would download application/schema+json. Editors accept both.
    '/pets.schema.json': { GET: publish(petsSchema) },
    '/': { GET: publish(page.html, pageHeaders(page), 'text/html; charset=utf-8') },
  }
}

const healthy = jsonReply(200, '{"status":"ok"}')
const readOnly = jsonReply(
  200,
  '{"status":"read-only","message":"Pets can be read, but not added: the data file is not valid."}',
)

/** Rejects while no pet can be read. Does not say what is wrong in the data file, since it needs no key. */
async function describeReadiness(store: Store): Promise<Reply> {
  await store.list({ limit: 1 })
  return store.dataFileError === undefined ? healthy : readOnly
}

/** A route that needs no key, and always has this text as its reply. */
function publish(text: string, headers: readonly string[] = [], type = 'application/json'): Route {
  const reply = { ...jsonReply(200, text, headers), type }
  return { needsNoKey: true, handle: () => reply }
}

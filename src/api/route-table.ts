/** The routes: every path, and what answers each of its methods. The checks before that are in request-handler.ts. */
import { type Reply, textReply } from '../http/reply.ts'
import type { Page } from '../page/build-page.ts'
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

/** The routes of a path by method. HEAD has that of GET. */
export type Routes = Readonly<Partial<Record<string, Route>>>

export function createRoutes({ store, page, petsSchema }: RouteSources, basePath: string) {
  const routes: Record<string, Routes> = {}
  const add = (method: string, path: string, route: Route): void => {
    routes[path] = { ...routes[path], [method]: route, ...(method === 'GET' && { HEAD: route }) }
  }
  for (const { method, path, headers, createHandle } of operations)
    add(method, `/v1${path}`, { headers, handle: createHandle(store, basePath) })
  const published: Readonly<Record<string, Handle>> = {
    // For load balancers and monitoring: whether the process lives and, with `?ready`, what it can do.
    '/healthz': ({ search }) =>
      new URLSearchParams(search).has('ready') ? describeReadiness(store) : healthy,
    '/openapi.json': always(textReply(200, JSON.stringify(openApiDocument(basePath)))),
    // As application/json, since browsers would download application/schema+json. Editors accept both.
    '/pets.schema.json': always(textReply(200, petsSchema)),
    '/': always(textReply(200, page.html, page.headers, 'text/html; charset=utf-8')),
  }
  for (const [path, handle] of Object.entries(published)) add('GET', path, { needsNoKey: true, handle })
  return routes
}

const healthy = textReply(200, '{"status":"ok"}')
const readOnly = textReply(
  200,
  '{"status":"read-only","message":"Pets can be read, but not added: the data file is not valid."}',
)

/** Rejects while no pet can be read. Does not say what is wrong in the data file, since it needs no key. */
async function describeReadiness(store: Store): Promise<Reply> {
  await store.list({ limit: 1 })
  return store.dataFileError === undefined ? healthy : readOnly
}

function always(reply: Reply): Handle {
  return () => reply
}

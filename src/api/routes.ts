/**
 * The routes of the service: the operations, and what needs no key: health, the documents and the page. And
 * how an app that mounts the listener changes the target of a request, and which mounts are wrong.
 */
import type { Arrival } from '../http/request.ts'
import { InvalidValues, textReply, type Reply } from '../http/response.ts'
import { findPath } from '../http/router.ts'
import { builtPage } from '../page/build-page.ts'
import { PetStoreError, type Store } from '../store/store.ts'
import { openApiText, petsSchemaText } from '../system/bundled-texts.ts'
import { type Handler, operations } from './operations.ts'
import { codeReply } from './refusals.ts'

export interface Route {
  readonly needsNoKey?: boolean
  /** See Operation. */
  readonly headers?: readonly string[] | undefined
  readonly handle: Handler
}

/** The routes of a path by method. HEAD has that of GET. */
export type Routes = ReadonlyMap<string, Route>

export function createRoutes(store: Store, basePath: string): Readonly<Record<string, Routes>> {
  const routes: Record<string, Map<string, Route>> = {}
  const add = (method: string, path: string, route: Route): void => {
    const methods = (routes[path] ??= new Map())
    methods.set(method, route)
    if (method === 'GET') methods.set('HEAD', route)
  }
  // `/store` leads to the page at `/store/`.
  const redirect: Reply = { status: 308, headers: ['Location', `${basePath}/`, 'Content-Length', '0'] }
  if (basePath !== '') add('GET', '', { needsNoKey: true, handle: () => redirect })
  for (const { method, path, headers, createHandler } of operations)
    add(method, `/v1${path}`, { headers, handle: createHandler(store, basePath) })
  const published: Readonly<Record<string, Handler>> = {
    // Load balancers and monitoring ask here whether the process lives and, with `?ready`, what it can do.
    '/healthz': ({ search }) => describeHealth(store, new URLSearchParams(search).getAll('ready')),
    '/openapi.json': always(openApiText.replaceAll('/v1', () => `${basePath}/v1`)),
    // This is sent as application/json, since browsers would download application/schema+json.
    '/pets.schema.json': always(petsSchemaText),
    '/': always(builtPage.html, builtPage.headers, 'text/html; charset=utf-8'),
  }
  for (const [path, handle] of Object.entries(published)) add('GET', path, { needsNoKey: true, handle })
  return routes
}

const healthy = textReply(200, '{"status":"ok"}')

/**
 * `ready` has the values of that parameter. The reply says nothing of what is in the data file, since it
 * needs no key.
 */
async function describeHealth(store: Store, ready: readonly string[]): Promise<Reply> {
  const [value, ...others] = ready
  if (value === undefined) return healthy
  if (others.length > 0 || !['', 'write'].includes(value))
    throw new InvalidValues('invalid_parameter', [
      { field: 'ready', message: 'expected no value or write, once' },
    ])
  try {
    await store.list({ limit: 1 })
  } catch (error) {
    throw error instanceof PetStoreError ? new PetStoreError('storage_failed', error.message) : error
  }
  const fault = value === 'write' ? store.whyNoCreation() : undefined
  return fault === undefined ? healthy : codeReply(fault)
}

function always(...content: readonly [text: string, headers?: readonly string[], type?: string]): Handler {
  const reply = textReply(200, ...content)
  return () => reply
}

/**
 * Returns whether an app has made `/` of the path that it mounts the service under: connect and Vite do so of
 * `/store` and of `/store/`.
 */
export function isMountPath({ originalTarget, target }: Arrival, basePath: string): boolean {
  if (basePath === '' || typeof originalTarget !== 'string' || findPath(target) !== '/') return false
  const path = findPath(originalTarget)
  return !path.endsWith('/') && basePath.toLowerCase().endsWith(path.toLowerCase())
}

/**
 * Returns how the listener is mounted if that is wrong: by a wildcard, such as `/store/*`, which leaves it no
 * path, or where `basePath` does not end with the path of the mount. If Express has made `/v1/pets` of
 * `/api/v1/pets`, the mount is `/api`, and `basePath` has to be `/api`, or `/shop/api` behind a proxy that
 * removes `/shop`.
 */
export function findMountFault({ originalTarget, target }: Arrival, basePath: string): string | undefined {
  if (typeof originalTarget !== 'string') return undefined
  if (findPath(target) === '/' && findPath(originalTarget).includes('/v1/'))
    return 'by a wildcard, which takes the whole path off; mount it without one'
  const mount = originalTarget.endsWith(target) ? originalTarget.slice(0, -target.length) : ''
  if (basePath.toLowerCase().endsWith(mount.toLowerCase())) return undefined
  return `under ${mount}; pass this as basePath, or Link, Location and openapi.json name paths that do not exist`
}

/**
 * The routes of the service: the operations, and what needs no key: health, the documents and the page. Finds
 * that of a request, also where an app that mounts the listener has changed the target, and which mounts are
 * wrong.
 */
import { unescape } from 'node:querystring'
import { type createCors, isPreflight } from '../http/cors.ts'
import type { Arrival } from '../http/request.ts'
import { type HeaderList, HttpError, InvalidValues, textReply, type Reply } from '../http/response.ts'
import { createRouter, findPath, type Match } from '../http/router.ts'
import { builtPage } from '../page/build-page.ts'
import { PetStoreError, type Store } from '../store/store.ts'
import { attempt } from '../system/errors.ts'
import { openApiText, petsSchemaText } from '../text/bundled-texts.ts'
import { type Handler, operations } from './operations.ts'
import { codeReply, errorCodes, formatAllow, methodNotAllowed } from './refusals.ts'

export interface Route {
  /** It needs no key. */
  readonly isPublic?: boolean
  /** See Operation. */
  readonly headers?: HeaderList | undefined
  readonly handle: Handler
}

/** The routes of one path, by method. HEAD has that of GET. */
type PathRoutes = ReadonlyMap<string, Route>

interface RouteFinder {
  /** Throws an HttpError for a path that is not known, a bad escape, and a method that the path does not take. */
  match(arrival: Arrival): { readonly route: Route; readonly parameter: string; readonly search: string }
  /**
   * Finds the route of a request that fails on purpose before the checks, since a route may add headers to
   * each of its responses.
   */
  findUnchecked(arrival: Arrival): Route | undefined
  /** All that any path takes. */
  readonly methods: readonly string[]
}

export function createRouteFinder(
  store: Store,
  basePath: string,
  cors: ReturnType<typeof createCors>,
): RouteFinder {
  const routes = createRoutes(store, basePath)
  const findMatch = createRouter(routes, basePath)
  /**
   * `OPTIONS *` (RFC 9110 section 9.3.7), a CONNECT, and a preflight for an unknown path name no path that is
   * here. They get what has the methods of all paths.
   */
  const allMethods: PathRoutes = new Map(Object.values(routes).flatMap((methods) => Array.from(methods)))
  const everyPath = { resource: allMethods, parameter: '', search: '' }

  function matchPath(arrival: Arrival): Match<PathRoutes> {
    const { method, target } = arrival
    // There are no tunnels here (RFC 9110 section 9.3.6).
    if (method === 'CONNECT' || (method === 'OPTIONS' && target === '*')) return everyPath
    const path = isMountPath(arrival, basePath) ? basePath : target
    // If a preflight is refused, even for a bad escape, the page sees a CORS error, and not what is wrong.
    if (isPreflight(arrival)) return attempt(() => findMatch(path)) ?? everyPath
    const match = findMatch(path)
    if (match !== undefined) return match
    // Clients that come close get a hint: `/pets`, `/v1/pet`, `/api/v1/Pets/1`, `/v1`.
    const isNear = /^(?:\/[^/]+)*\/(?:v1\/?$|pets?(?:\/|$))/i.test(findPath(target))
    const hint = `${errorCodes.not_found.message} The pets are at ${basePath}/v1/pets.`
    throw new HttpError('not_found', isNear ? hint : undefined)
  }

  function routeOf(methods: PathRoutes, { method, target, headers }: Arrival): Route {
    if (method === 'OPTIONS')
      return { isPublic: true, handle: () => cors.optionsReply(formatAllow([...methods.keys()]), headers) }
    const route = methods.get(method)
    if (route === undefined) throw methodNotAllowed(method, [...methods.keys()], findPath(target))
    return route
  }

  return {
    match(arrival) {
      const { resource, parameter, search } = matchPath(arrival)
      return { route: routeOf(resource, arrival), parameter, search }
    },
    // The path may have a bad escape.
    findUnchecked: ({ method, target }) => attempt(() => findMatch(target))?.resource.get(method),
    methods: [...allMethods.keys()],
  }
}

export function isBelowV1(target: string, basePath: string): boolean {
  const path = `${unescape(findPath(target))}/`
  return path.startsWith('/v1/') || path.startsWith(`${unescape(basePath)}/v1/`)
}

function createRoutes(store: Store, basePath: string): Readonly<Record<string, PathRoutes>> {
  const routes: Record<string, Map<string, Route>> = {}
  const add = (method: string, path: string, route: Route): void => {
    const methods = (routes[path] ??= new Map())
    methods.set(method, route)
    if (method === 'GET') methods.set('HEAD', route)
  }
  // `/store` leads to the page at `/store/`.
  const redirect: Reply = { status: 308, headers: ['Location', `${basePath}/`, 'Content-Length', '0'] }
  if (basePath !== '') add('GET', '', { isPublic: true, handle: () => redirect })
  for (const { method, path, headers, createHandler } of operations)
    add(method, `/v1${path}`, { headers, handle: createHandler(store, basePath) })
  const published: Readonly<Record<string, Handler>> = {
    // Load balancers and monitoring ask here whether the process lives and, with `?ready`, what it can do.
    '/healthz': ({ search }) => healthReply(store, new URLSearchParams(search).getAll('ready')),
    '/openapi.json': always(openApiText.replaceAll('/v1', () => `${basePath}/v1`)),
    // This is sent as application/json, since browsers would download application/schema+json.
    '/pets.schema.json': always(petsSchemaText),
    '/': always(builtPage.html, builtPage.headers, 'text/html; charset=utf-8'),
  }
  for (const [path, handle] of Object.entries(published)) add('GET', path, { isPublic: true, handle })
  return routes
}

const healthy = textReply(200, '{"status":"ok"}')

/**
 * `ready` has the values of that parameter. The reply says nothing of what is in the data file, since it
 * needs no key.
 */
async function healthReply(store: Store, ready: readonly string[]): Promise<Reply> {
  const [value, ...others] = ready
  if (value === undefined) return healthy
  if (others.length > 0 || !['', 'write'].includes(value))
    throw new InvalidValues('invalid_parameter', [
      { field: 'ready', message: 'expected no value or write, once' },
    ])
  try {
    await store.list({ limit: 1 })
  } catch (error) {
    // A load balancer waits for a 503, and a storage that has no room left may refuse even a list by a 507.
    throw error instanceof PetStoreError ? new PetStoreError('storage_failed', error.message) : error
  }
  const fault = value === 'write' ? store.whyNoCreation() : undefined
  return fault === undefined ? healthy : codeReply(fault)
}

function always(...content: readonly [text: string, headers?: HeaderList, type?: string]): Handler {
  const reply = textReply(200, ...content)
  return () => reply
}

/**
 * Returns whether an app was asked for the path that it mounts the service under, without a slash at its end:
 * connect and Vite make `/` of `/store`, as they do of `/store/`, where the page is.
 */
function isMountPath({ originalTarget, target }: Arrival, basePath: string): boolean {
  if (basePath === '' || typeof originalTarget !== 'string' || findPath(target) !== '/') return false
  return basePath.toLowerCase().endsWith(findPath(originalTarget).toLowerCase())
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

/** The service as a handler of requests: the routes, the order of the checks, and the response to each error. */
import type { IncomingMessage } from 'node:http'
import { createBearerAuth } from '../http/bearer-auth.ts'
import { createDelay } from '../http/delay.ts'
import type { Arrival, Handler } from '../http/handler-types.ts'
import { createRequestLog } from '../http/request-log.ts'
import { checkFraming, checkBodyHead, readJsonBody } from '../http/request.ts'
import {
  createCors,
  isPreflight,
  errorCodes,
  HttpError,
  errorReply,
  formatReply,
  sendReply,
  textReply,
  type Reply,
} from '../http/response.ts'
import { createRouter, findPath, type Match } from '../http/router.ts'
import type { PetStoreOptions } from '../options/types.ts'
import type { Page } from '../page/build-page.ts'
import { perhapsStored, PetStoreError, storageFailure, type Store } from '../store/store.ts'
import { clock } from '../system/clock.ts'
import { EmbeddingError, isError } from '../system/errors.ts'
import { type Handle, operations } from './operations.ts'

/** `onResponse` and `onError` must not throw. */
type RequestHandlerOptions = RouteSources &
  Pick<PetStoreOptions, 'apiKeys' | 'corsOrigins' | 'basePath' | 'delayMs' | 'onResponse' | 'onError'>

export interface RequestHandler extends Handler {
  /** Requests that are held back by the delay are handled at once; new ones are refused. */
  beginClosing(): void
}

export function createRequestHandler(options: RequestHandlerOptions): RequestHandler {
  const { apiKeys, corsOrigins = '*', basePath = '', delayMs = 0, onResponse, onError } = options
  const authenticate = createBearerAuth(apiKeys)
  const cors = createCors(corsOrigins)
  const delay = delayMs === 0 ? undefined : createDelay(delayMs)
  const routes = createRoutes(options, basePath)
  const findMatch = createRouter(routes, basePath)
  /** All methods of all paths: for `OPTIONS *` (RFC 9110 section 9.3.7), a CONNECT, and a preflight for an unknown path. */
  const allMethods: Routes = Object.assign({}, ...Object.values(routes))
  const everyPath = { resource: allMethods, parameter: '', search: '' }
  let isClosing = false
  let isMountReported = false

  function findResource(request: IncomingMessage): Match<Routes> {
    const { method, url = '', headers } = request
    if (method === 'OPTIONS' && url === '*') return everyPath
    const match = findMatch(url)
    if (match !== undefined) return match
    // If a preflight is refused, the browser reports only a CORS error, and the page cannot read the 404.
    if (method === 'OPTIONS' && isPreflight(headers)) return everyPath
    // Clients that come close get a hint: `/pets`, `/v1/pets/`, `/v1/pet`, `/api/v1/Pets/1`, `/v1`.
    const isNear = /^\/v1\/?$|^(?:\/[^/]+)*\/pets?(?:\/|$)/i.test(pathBelowBase(request))
    const hint = `${errorCodes.not_found.message} The pets are at ${basePath}/v1/pets.`
    throw new HttpError('not_found', isNear ? hint : undefined)
  }

  function findRoute(methods: Routes, { method = '', url = '' }: IncomingMessage): Route {
    if (method === 'OPTIONS')
      return { needsNoKey: true, handle: () => cors.optionsReply(formatAllow(methods)) }
    const route = methods[method]
    if (route === undefined) throw methodNotAllowed(method, formatAllow(methods), findPath(url))
    return route
  }

  function pathBelowBase({ url = '' }: IncomingMessage): string {
    const path = findPath(url)
    return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path
  }

  /**
   * Tells onError, once, if `basePath` does not end with the path that the listener is mounted under: links would lead nowhere. Express and
   * connect remove that path from `url`, and leave it in `originalUrl`. If `url` is `/v1/pets` and `originalUrl` is `/api/v1/pets`, the
   * mount is `/api`, and `basePath` has to be `/api`, or `/shop/api` behind a proxy that removes `/shop`.
   */
  function checkMount(request: IncomingMessage): void {
    const { originalUrl, url = '' }: { originalUrl?: unknown; url?: string | undefined } = request
    if (typeof originalUrl !== 'string' || isMountReported || !originalUrl.endsWith(url)) return
    const mount = originalUrl.slice(0, -url.length)
    if (basePath.toLowerCase().endsWith(mount.toLowerCase())) return
    isMountReported = true
    const consequence = 'or Link, Location and openapi.json name paths that do not exist'
    onError?.(`the listener is mounted under ${mount}; pass this as basePath, ${consequence}`)
  }

  /** What the client is told. An error that is not meant for it goes to onError. */
  function toReply(error: unknown, request: IncomingMessage): Reply {
    if (error instanceof HttpError || error instanceof PetStoreError) return errorReply(error)
    reportError(error, request)
    return errorReply({ code: 'internal_error' })
  }

  function reportError(error: unknown, { method, url = '' }: IncomingMessage): void {
    // Only the message of an EmbeddingError is known to hold no secret. Of any other error, only the name is reported.
    const name = isError(error) ? error.name : typeof error
    const reason = error instanceof EmbeddingError ? error.message : name
    onError?.(`internal_error in ${method} ${findPath(url)}: ${reason}`)
  }

  /** `start`: when its handling began (`clock.performanceNow()`). `route`: if path and method are known. */
  function send(arrival: Arrival, reply: Reply, start: number, route?: Route): void {
    const { request, response, endResponse } = arrival
    // The listener has refused it (its body was broken or too slow, or the time to close was over), or the client has gone.
    if (response.headersSent || response.destroyed) return
    if (isClosing) response.shouldKeepAlive = false
    const corsHeaders = cors.responseHeaders(request.headers.origin)
    const headers = route?.headers === undefined ? corsHeaders : [...corsHeaders, ...route.headers]
    sendReply(response, reply, headers, endResponse)
    onResponse?.(createRequestLog(reply, start, request.socket, request))
  }

  return {
    async handle(arrival) {
      const { request, response, expectation = 'none', body } = arrival
      checkMount(request)
      const start = clock.performanceNow()
      let isBodyHeldBack = expectation !== 'none'
      const readBody = (): Promise<unknown> => {
        checkBodyHead(request)
        // The client waits for this before it sends its body (RFC 9110 section 10.1.1).
        if (isBodyHeldBack) response.writeContinue()
        isBodyHeldBack = false
        return readJsonBody(request, body)
      }
      let route: Route | undefined
      let reply: Reply
      try {
        if (isClosing) throw new HttpError('shutting_down')
        if (delay !== undefined && /^\/v1(?:\/|$)/.test(pathBelowBase(request))) await delay.hold(response)
        checkFraming(request, response, expectation)
        const { resource, parameter, search } = findResource(request)
        route = findRoute(resource, request)
        if (route.needsNoKey !== true) authenticate(request)
        // The operation checks the rest.
        reply = await route.handle({ parameter, search, readBody })
      } catch (error) {
        reply = toReply(error, request)
      }
      // A client that expects 100 Continue, and gets a response instead, may send its body or its next request. There is no telling which,
      // so the connection closes.
      if (isBodyHeldBack) response.shouldKeepAlive = false
      try {
        send(arrival, reply, start, route)
      } catch (error) {
        // An app around the service (Express, say) may have wrapped the response, so that sending it throws.
        reportError(error, request)
        response.destroy()
      }
    },
    refuse(response, code) {
      response.shouldKeepAlive = false
      const { req: request } = response
      // A creation whose body has arrived may be stored, now or in a moment. So it is refused with storage_failed, whose message says
      // that the pet may be stored.
      const isCreation = code === 'shutting_down' && request.method === 'POST' && request.complete
      const reply = errorReply(isCreation ? storageFailure(/* isFull: */ false, perhapsStored) : { code })
      send({ request, response }, reply, clock.performanceNow())
    },
    formatRefusal(code, socket) {
      // Only Connection.refuseTunnel passes this code, for a CONNECT.
      const isMethod = code === 'method_not_allowed'
      const reply = errorReply(isMethod ? methodNotAllowed('CONNECT', formatAllow(allMethods)) : { code })
      onResponse?.(createRequestLog(reply, clock.performanceNow(), socket))
      return formatReply(reply, cors.responseHeaders(undefined))
    },
    beginClosing() {
      isClosing = true
      delay?.end()
    },
  }
}

/** The value of an Allow header. */
function formatAllow(methods: Routes): string {
  return [...Object.keys(methods), 'OPTIONS'].join(', ')
}

const changeHint = ' Pets are changed and removed in the data file, or wherever else they are kept.'

/** Names the methods in its message too, since a plain `curl` shows no headers. */
function methodNotAllowed(method: string, allow: string, path = ''): HttpError {
  const isChange = path.includes('/v1/pets') && ['DELETE', 'PATCH', 'PUT'].includes(method)
  const message = `${method} is not allowed here, only ${allow}.${isChange ? changeHint : ''}`
  return new HttpError('method_not_allowed', message, ['Allow', allow])
}

/** What the replies are taken from. */
export interface RouteSources {
  readonly store: Store
  readonly page: Page
  /** The JSON Schema of the data file, for whoever has no copy of this repository. */
  readonly petsSchema: string
  /** The OpenAPI document of a service at the root of a server. */
  readonly openApi: string
}

interface Route {
  readonly needsNoKey?: boolean
  /** Added to each of its responses, its errors included; names and values in turn. */
  readonly headers?: readonly string[] | undefined
  readonly handle: Handle
}

/** The routes of a path by method. HEAD has that of GET. */
type Routes = Readonly<Partial<Record<string, Route>>>

/** Every path, and what answers each of its methods. */
function createRoutes({ store, page, petsSchema, openApi }: RouteSources, basePath: string) {
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
    '/openapi.json': always(
      textReply(
        200,
        openApi.replaceAll('/v1', () => `${basePath}/v1`),
      ),
    ),
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

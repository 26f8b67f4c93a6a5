/** The service as a handler of requests: the order of the checks, and the response to each error. The routes are in route-table.ts. */
import type { IncomingMessage } from 'node:http'
import { clock } from '../system/clock.ts'
import { createBearerAuth } from '../http/bearer-auth.ts'
import { createCors, isPreflight } from '../http/cors.ts'
import { createDelay } from '../http/delay.ts'
import { errorCodes, HttpError } from '../http/error-codes.ts'
import { checkFraming } from '../http/framing.ts'
import type { Arrival, Handler } from '../http/handler-types.ts'
import { checkBodyHead, readJsonBody } from '../http/json-body.ts'
import { errorReply, formatReply, type Reply, sendReply } from '../http/reply.ts'
import { createRouter, findPath, type Match } from '../http/router.ts'
import { perhapsStored, PetStoreError, storageFailure } from '../store/store-refusals.ts'
import { createRequestLog } from '../http/request-log.ts'
import { EmbeddingError, isError } from '../system/errors.ts'
import { createRoutes, type Route, type Routes, type RouteSources } from './route-table.ts'
import type { PetStoreOptions } from '../options/types.ts'

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

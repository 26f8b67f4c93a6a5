/** The service as a handler of requests: the order of the checks, and the response to each error. The routes are in route-table.ts. */
import type { IncomingMessage } from 'node:http'
import { clock } from '../system/clock.ts'
import { createBearerAuth } from '../http/bearer-auth.ts'
import { createCors, isPreflight } from '../http/cors.ts'
import { createDelay } from '../http/delay.ts'
import { HttpError } from '../http/error-codes.ts'
import { checkFraming } from '../http/framing.ts'
import type { Arrival, Expectation, Handler } from '../http/handler-types.ts'
import { checkBodyHead, readJsonBody } from '../http/json-body.ts'
import { errorReply, formatReply, type Reply, sendReply } from '../http/reply.ts'
import { createRouter, findPath, formatAllow, operationMethod } from '../http/router.ts'
import { methodNotAllowed, notFound } from './routing-errors.ts'
import { perhapsStored, PetStoreError, storageFailure } from '../store/store-refusals.ts'
import { createRequestLog } from '../http/request-log.ts'
import { EmbeddingError, isError } from '../system/errors.ts'
import { createRoutes, type Route, type RouteSources } from './route-table.ts'
import type { PetStoreOptions } from '../options/types.ts'

/** `onResponse` and `onError` must not throw. */
type RequestHandlerOptions = RouteSources &
  Pick<PetStoreOptions, 'apiKeys' | 'corsOrigins' | 'basePath' | 'delayMs' | 'onResponse' | 'onError'>

export interface RequestHandler extends Handler {
  /** Requests that are held back by the delay are handled at once; new ones are refused. */
  beginClosing(): void
}

/** A request on its way to its response. */
interface Exchange extends Arrival {
  /** What the client still expects before it sends its body. */
  expectation: Expectation
  /** When its handling began (`clock.performanceNow()`), for the request log. */
  readonly start: number
  /** Undefined until path and method are known. */
  route?: Route | undefined
}

function readBody(exchange: Exchange): Promise<unknown> {
  const { request, response, expectation, body } = exchange
  checkBodyHead(request)
  // The client waits for this before it sends its body (RFC 9110 section 10.1.1).
  if (expectation === 'continue') response.writeContinue()
  exchange.expectation = 'none'
  return readJsonBody(request, body)
}

export function createRequestHandler(options: RequestHandlerOptions): RequestHandler {
  const { apiKeys, corsOrigins = '*', basePath = '', delayMs = 0, onResponse, onError } = options
  const authenticate = createBearerAuth(apiKeys)
  const cors = createCors(corsOrigins)
  const delay = delayMs === 0 ? undefined : createDelay(delayMs)
  const routes = createRoutes(options, basePath)
  const findRoute = createRouter(routes, basePath)
  /** All methods of all paths: the answer to `OPTIONS *` (RFC 9110 section 9.3.7), to a CONNECT, and to a preflight for an unknown path. */
  const allMethods = formatAllow(...Object.values(routes))
  let isClosing = false
  let isMountReported = false

  /** The order of the checks: well-formed request, path, method, key. The operation checks the rest. */
  function respond(exchange: Exchange): Reply | Promise<Reply> {
    const { request, response, expectation } = exchange
    const { method = '', url = '' } = request
    checkFraming(request, response, expectation)
    if (method === 'OPTIONS' && url === '*') return cors.optionsReply(allMethods)
    const match = findRoute(url)
    if (match === undefined) {
      // If a preflight is refused, the browser reports only a CORS error, and the page cannot read the 404.
      if (method === 'OPTIONS' && isPreflight(request.headers)) return cors.optionsReply(allMethods)
      throw notFound(withoutBase(findPath(url)), basePath)
    }
    const { resource: methods, parameter, query } = match
    if (method === 'OPTIONS') return cors.optionsReply(formatAllow(methods))
    const route = methods[operationMethod(method)]
    if (route === undefined) throw methodNotAllowed(method, formatAllow(methods), findPath(url))
    exchange.route = route
    if (route.needsNoKey !== true) authenticate(request)
    return route.handle({ parameter, query, readBody: () => readBody(exchange) })
  }

  function withoutBase(path: string): string {
    return basePath !== '' && path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path
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
  function toHttpError(error: unknown, request: IncomingMessage): HttpError {
    if (error instanceof HttpError) return error
    if (error instanceof PetStoreError) return new HttpError(error.code, error.message || undefined)
    reportError(error, request)
    return new HttpError('internal_error')
  }

  function reportError(error: unknown, { method, url = '' }: IncomingMessage): void {
    // Only the message of an EmbeddingError is known to hold no secret. Of any other error, only the name is reported.
    const name = isError(error) ? error.name : typeof error
    const reason = error instanceof EmbeddingError ? error.message : name
    onError?.(`internal_error in ${method} ${findPath(url)}: ${reason}`)
  }

  function send(exchange: Exchange, reply: Reply): void {
    const { request, response, expectation, endResponse, start, route } = exchange
    // The listener has refused it (its body was broken or too slow, or the time to close was over), or the client has gone.
    if (response.headersSent || response.destroyed) return
    // A client that expects 100 Continue, and gets a response instead, may send its body or its next request. There is no telling which, so
    // the connection closes. (readBody sends 100 Continue, and nothing is expected any more.)
    if (isClosing || expectation !== 'none') response.shouldKeepAlive = false
    const corsHeaders = cors.responseHeaders(request.headers.origin)
    const headers = route?.headers === undefined ? corsHeaders : [...corsHeaders, ...route.headers]
    sendReply(response, reply, headers, endResponse)
    onResponse?.(createRequestLog(reply, start, request.socket, request))
  }

  function isUnderV1({ url = '' }: IncomingMessage): boolean {
    // The added slash makes `/v1` itself match.
    return `${withoutBase(findPath(url))}/`.startsWith('/v1/')
  }

  return {
    async handle(arrival) {
      const { request, response } = arrival
      checkMount(request)
      // 'none' is the default: only an arrival from our own listener brings an expectation, which overrides it.
      const exchange: Exchange = { expectation: 'none', ...arrival, start: clock.performanceNow() }
      let reply: Reply
      try {
        if (isClosing) throw new HttpError('shutting_down')
        if (delay !== undefined && isUnderV1(request)) await delay.hold(response)
        reply = await respond(exchange)
      } catch (error) {
        reply = errorReply(toHttpError(error, request))
      }
      try {
        send(exchange, reply)
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
      const error = isCreation ? storageFailure(/* isFull: */ false, perhapsStored) : new HttpError(code)
      send(
        { request, response, expectation: 'none', start: clock.performanceNow() },
        errorReply(toHttpError(error, request)),
      )
    },
    formatRefusal(code, socket) {
      // Only Connection.refuseTunnel passes this code, for a CONNECT.
      const isMethod = code === 'method_not_allowed'
      const reply = errorReply(isMethod ? methodNotAllowed('CONNECT', allMethods) : new HttpError(code))
      onResponse?.(createRequestLog(reply, clock.performanceNow(), socket))
      return formatReply(reply, cors.responseHeaders(undefined))
    },
    beginClosing() {
      isClosing = true
      delay?.end()
    },
  }
}

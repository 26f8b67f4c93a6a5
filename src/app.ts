/** The service as a request listener: routes to operations, in the order of checks, and turns errors into responses. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createBearerAuth } from './http/bearer-auth.ts'
import { createCors, isPreflight } from './http/cors.ts'
import { createDelay } from './http/delay.ts'
import { checkFraming, findAuthorization } from './http/framing.ts'
import { errorCodes, HttpError } from './http/error-codes.ts'
import type { Expectation, Handler } from './http/handler.ts'
import { readJsonBody, RequestAborted } from './http/json-body.ts'
import { errorReply, formatReply, jsonReply, type Reply, sendReply, textReply } from './http/reply.ts'
import { createRouter, findPath, type Match } from './http/router.ts'
import { openApiDocument } from './openapi.ts'
import { createPet, getPet, listOrders, listPets, type Operation } from './operations.ts'
import type { Page } from './page/build-page.ts'
import { pageHeaders } from './page/load-page.ts'
import { PetStoreError, type Store } from './pets/store.ts'
import type { DelayMs, RequestLog } from './types.ts'

export interface AppOptions {
  readonly store: Store
  readonly apiKeys: readonly string[]
  readonly corsOrigins?: '*' | readonly string[] | undefined
  /** The path of another app that this one is mounted under, such as `/store`; requests come with it or without. */
  readonly basePath?: string | undefined
  /** How long each response under `/v1` is held back. */
  readonly delayMs?: DelayMs | undefined
  readonly page: Page
  /** The JSON Schema of the data file, for whoever has no copy of this repository. */
  readonly petsSchema: string
  /** Called for every response. It must not throw, nor must onError. */
  readonly onResponse?: ((log: RequestLog) => void) | undefined
  /** Takes a line for each internal_error. */
  readonly onError?: ((line: string) => void) | undefined
}

export interface App extends Handler {
  /** From now on every new request is refused, and none is held back any longer. */
  beginClosing(): void
}

/** The methods of the service as a whole, for `OPTIONS *` (RFC 9110 section 9.3.7). */
const allMethods = 'GET, HEAD, POST, OPTIONS'

/** A path's operations by method. HEAD follows GET. */
interface Resource {
  readonly operations: Readonly<Partial<Record<string, Operation>>>
  readonly allow: string
}

export function createApp(options: AppOptions): App {
  const { store, apiKeys, corsOrigins = '*', basePath = '', delayMs = 0, onResponse, onError } = options
  const authenticate = createBearerAuth(apiKeys)
  const cors = createCors(corsOrigins)
  const openApiReply = jsonReply(200, JSON.stringify(openApiDocument(basePath)))
  const pageReply = textReply('text/html; charset=utf-8', options.page.html, pageHeaders(options.page))
  // As application/json, since browsers would download application/schema+json. Editors accept both.
  const petsSchemaReply = jsonReply(200, options.petsSchema)
  const delay = delayMs === 0 ? undefined : createDelay(delayMs)
  let isClosing = false

  const findResource = createRouter({
    '/v1/pets': createResource({ GET: listPets(store), POST: createPet(store) }),
    '/v1/pets/{petId}': createResource({ GET: getPet(store) }),
    '/v1/store/orders': createResource({ GET: listOrders() }),
    '/healthz': createResource({ GET: openOperation(() => jsonReply(200, '{"status":"ok"}')) }),
    '/openapi.json': createResource({ GET: openOperation(() => openApiReply) }),
    '/pets.schema.json': createResource({ GET: openOperation(() => petsSchemaReply) }),
    '/': createResource({ GET: openOperation(() => pageReply) }),
  })

  function respond(
    request: IncomingMessage,
    response: ServerResponse,
    expectation: Expectation,
    sendContinue: () => void,
  ): Reply | Promise<Reply> {
    checkFraming(request, response, expectation)
    const { method = '', url = '' } = request
    if (method === 'OPTIONS' && url === '*') return optionsReply(allMethods)
    const match = findResource(url) ?? findResource(withoutBase(url))
    if (match === undefined) {
      // A browser reports a preflight that is refused as a CORS error, and the page could not read the 404.
      if (method === 'OPTIONS' && isPreflight(request.headers)) return optionsReply(allMethods)
      throw new HttpError('not_found', describeMissing(url))
    }
    const { operations, allow } = match.resource
    if (method === 'OPTIONS') return optionsReply(allow)
    const operation = operations[method === 'HEAD' ? 'GET' : method]
    if (operation === undefined) throw new HttpError('method_not_allowed', undefined, ['Allow', allow])
    return operate(operation, match, request, expectation === 'continue' ? sendContinue : undefined)
  }

  function operate(
    operation: Operation,
    { parameter, query }: Match<Resource>,
    request: IncomingMessage,
    sendContinue: (() => void) | undefined,
  ): Reply | Promise<Reply> {
    const refuse = (error: unknown): never => {
      if (error instanceof RequestAborted) throw error
      const { refusalHeaders = [] } = operation
      const { code, message, headers } = toHttpError(error, request)
      throw new HttpError(code, message, [...refusalHeaders, ...headers])
    }
    try {
      if (operation.isOpen !== true) authenticate(findAuthorization(request))
      const readBody = (): Promise<unknown> => readJsonBody(request, sendContinue)
      const reply = operation.handle({ parameter, query, basePath, readBody })
      return reply instanceof Promise ? reply.catch(refuse) : reply
    } catch (error) {
      return refuse(error)
    }
  }

  function withoutBase(url: string): string {
    return basePath !== '' && url.startsWith(`${basePath}/`) ? url.slice(basePath.length) : url
  }

  /** A hint for clients that leave out the version or add a slash. */
  function describeMissing(url: string): string | undefined {
    const isNear = /^\/(?:pets(?:\/.*)?|v1(?:\/|\/pets\/)?)$/.test(withoutBase(findPath(url)))
    return isNear ? `${errorCodes.not_found.message} The pets are at ${basePath}/v1/pets.` : undefined
  }

  function optionsReply(allow: string): Reply {
    return { status: 204, headers: ['Allow', allow, ...cors.preflightHeaders(allow)] }
  }

  function send(response: ServerResponse, reply: Reply, start: number): void {
    // A request that was cut short has its response already, or nobody to read it.
    if (response.headersSent || response.destroyed) return
    if (isClosing) response.shouldKeepAlive = false
    const { req: request } = response
    sendReply(response, reply, cors.responseHeaders(request.headers.origin))
    report(request, reply.status, start)
  }

  /** `request` is undefined for what could not be parsed. */
  function report(request: IncomingMessage | undefined, status: number, start: number): void {
    if (onResponse === undefined) return
    const { method = '-', url } = request ?? {}
    const path = url === undefined ? '-' : findPath(url)
    onResponse({ method, path, status, milliseconds: performance.now() - start })
  }

  function sendError(response: ServerResponse, error: unknown, start: number): void {
    if (error instanceof RequestAborted) return
    send(response, errorReply(toHttpError(error, response.req)), start)
  }

  function toHttpError(error: unknown, request: IncomingMessage): HttpError {
    if (error instanceof HttpError) return error
    if (error instanceof PetStoreError && error.code !== 'internal_error')
      return new HttpError(error.code, error.message || undefined)
    // The message and stack of any other error may hold secrets.
    const name = error instanceof Error ? error.name : typeof error
    const reason = error instanceof PetStoreError ? error.message : name
    onError?.(`internal_error in ${request.method} ${findPath(request.url ?? '')}: ${reason}`)
    return new HttpError('internal_error')
  }

  function handleNow(
    request: IncomingMessage,
    response: ServerResponse,
    expectation: Expectation,
    start: number,
  ): void {
    // A client that is not told to continue may never send its body: what follows could be the body or a request.
    const { shouldKeepAlive } = response
    if (expectation !== 'none') response.shouldKeepAlive = false
    const sendContinue = (): void => {
      response.shouldKeepAlive = shouldKeepAlive
      response.writeContinue()
    }
    try {
      const reply = respond(request, response, expectation, sendContinue)
      if (reply instanceof Promise) {
        reply.then(
          (later) => send(response, later, start),
          (error: unknown) => sendError(response, error, start),
        )
      } else {
        send(response, reply, start)
      }
    } catch (error) {
      sendError(response, error, start)
    }
  }

  function isUnderV1({ url = '' }: IncomingMessage): boolean {
    return /^\/v1(?:\/|$)/.test(withoutBase(findPath(url)))
  }

  return {
    handle(request, response, expectation = 'none') {
      const start = onResponse === undefined ? 0 : performance.now()
      if (isClosing) {
        sendError(response, new HttpError('shutting_down'), start)
      } else if (delay !== undefined && isUnderV1(request)) {
        delay.hold(() => handleNow(request, response, expectation, start))
      } else {
        handleNow(request, response, expectation, start)
      }
    },
    refuse(response, code) {
      response.shouldKeepAlive = false
      send(response, errorReply(new HttpError(code)), performance.now())
    },
    formatRefusal(code) {
      const headers = code === 'method_not_allowed' ? ['Allow', allMethods] : []
      const error = new HttpError(code, undefined, headers)
      report(undefined, error.status, performance.now())
      return formatReply(errorReply(error), cors.responseHeaders(undefined))
    },
    beginClosing() {
      isClosing = true
      delay?.end()
    },
  }
}

function createResource(operations: Resource['operations']): Resource {
  const allow = Object.keys(operations).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return { operations, allow: [...allow, 'OPTIONS'].join(', ') }
}

function openOperation(handle: () => Reply): Operation {
  return { isOpen: true, handle }
}

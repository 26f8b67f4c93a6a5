/**
 * The core: a function from a request to a reply, with the routes, the order of the checks, and the reply to each error. Knows no
 * `node:http`: how requests come and replies go is for the doors (http/server.ts, http/doors.ts).
 */
import { unescape } from 'node:querystring'
import { createBearerAuth, invalidKey, missingKey } from '../http/bearer-auth.ts'
import { createDisturbances, type Disturbance, type Failure } from '../http/disturbance.ts'
import { createRequestLog } from '../http/request-log.ts'
import { checkBodyHead, checkFraming, clientGone, isPreflight, parseBody } from '../http/request.ts'
import type { Arrival, Client, Core } from '../http/request.ts'
import { createCors, HttpError, InvalidValues, errorReply, textReply, type Reply } from '../http/response.ts'
import { createRouter, findPath, type Match } from '../http/router.ts'
import { failureCodes } from '../options/settings.ts'
import type { PetStoreOptions } from '../options/types.ts'
import { builtPage } from '../page/load-page.ts'
import { notStored, perhapsStored, PetStoreError, storageFailure, type Store } from '../store/store.ts'
import { openApiText, petsSchemaText } from '../system/bundled-texts.ts'
import { clock } from '../system/clock.ts'
import { EmbeddingError, errorCode, isError } from '../system/errors.ts'
import { errorCodes, refuseWith, type ErrorCode } from './error-codes.ts'
import { exposedHeaders, formatValidQuery, type Handle, operations, petNotFound } from './operations.ts'

/** `onResponse` and `onError` must not throw. */
type RequestHandlerOptions = { readonly store: Store } & Pick<
  PetStoreOptions,
  'apiKeys' | 'corsOrigins' | 'basePath' | 'delayMs' | 'fail' | 'onResponse' | 'onError'
>

interface RequestHandler extends Core {
  /** Throws a TypeError if too many changes wait. */
  disturb(change: Disturbance): void
  /** Ends what `disturb` has changed, and drops each request that has not reached the store yet. */
  reset(): void
}

export function createRequestHandler(options: RequestHandlerOptions): RequestHandler {
  const { apiKeys, corsOrigins = '*', basePath = '', onResponse, onError } = options
  const authenticate = createBearerAuth(apiKeys)
  const cors = createCors(corsOrigins, exposedHeaders)
  const disturbances = createDisturbances(options, failureCodes)
  const routes = createRoutes(options.store, basePath)
  const findMatch = createRouter(routes, basePath)
  /** All methods of all paths: for `OPTIONS *` (RFC 9110 section 9.3.7), a CONNECT, and a preflight for an unknown path. */
  const allMethods: Routes = Object.assign({}, ...Object.values(routes))
  const everyPath = { resource: allMethods, parameter: '', search: '' }
  /** For the log alone, since asking the clock takes time. */
  const now = onResponse === undefined ? () => 0 : () => clock.performanceNow()
  let isClosing = false
  let isMountReported = false

  function findResource(arrival: Arrival): Match<Routes> {
    const { method, target } = arrival
    // There are no tunnels here (RFC 9110 section 9.3.6).
    if (method === 'CONNECT' || (method === 'OPTIONS' && target === '*')) return everyPath
    const match = findMatch(isMountPath(arrival) ? basePath : target)
    if (match !== undefined) return match
    // If a preflight is refused, the page sees a CORS error, and no 404.
    if (isPreflight(arrival)) return everyPath
    // For clients that come close: `/pets`, `/v1/pet`, `/api/v1/Pets/1`, `/v1`.
    const isNear = /^(?:\/[^/]+)*\/(?:v1\/?$|pets?(?:\/|$))/i.test(findPath(target))
    const hint = `${errorCodes.not_found.message} The pets are at ${basePath}/v1/pets.`
    throw new HttpError('not_found', isNear ? hint : undefined)
  }

  /** Whether an app has made `/` of the path that it mounts the service under: connect and Vite do so of `/store` and of `/store/`. */
  function isMountPath({ originalTarget, target }: Arrival): boolean {
    if (basePath === '' || typeof originalTarget !== 'string' || findPath(target) !== '/') return false
    const path = findPath(originalTarget)
    return !path.endsWith('/') && basePath.toLowerCase().endsWith(path.toLowerCase())
  }

  function findRoute(methods: Routes, { method, target, headers }: Arrival): Route {
    if (method === 'OPTIONS')
      return { needsNoKey: true, handle: () => cors.optionsReply(formatAllow(methods), headers) }
    // A method may be called `constructor`.
    const route = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (route === undefined) throw methodNotAllowed(method, formatAllow(methods), findPath(target))
    return route
  }

  /** For a request that fails on purpose before the checks, since a route may add headers to each of its responses. */
  function findRouteUnchecked({ method, target }: Arrival): Route | undefined {
    try {
      const methods = findMatch(target)?.resource ?? {}
      return Object.hasOwn(methods, method) ? methods[method] : undefined
    } catch {
      // The path has a bad escape.
      return undefined
    }
  }

  function isBelowV1(target: string): boolean {
    const path = `${unescape(findPath(target))}/`
    return path.startsWith('/v1/') || path.startsWith(`${unescape(basePath)}/v1/`)
  }

  /**
   * Tells onError, once, if the listener is mounted by a wildcard, such as `/store/*`, which leaves it no path; or if `basePath` does not end
   * with the path that it is mounted under. If Express has made `/v1/pets` of `/api/v1/pets`, the mount is `/api`, and `basePath` has to be
   * `/api`, or `/shop/api` behind a proxy that removes `/shop`.
   */
  function checkMount({ originalTarget, target }: Arrival): void {
    if (typeof originalTarget !== 'string' || isMountReported) return
    const isWildcard = findPath(target) === '/' && findPath(originalTarget).includes('/v1/')
    const mount = originalTarget.endsWith(target) ? originalTarget.slice(0, -target.length) : ''
    if (!isWildcard && basePath.toLowerCase().endsWith(mount.toLowerCase())) return
    isMountReported = true
    const fault = isWildcard
      ? 'by a wildcard, which takes the whole path off; mount it without one'
      : `under ${mount}; pass this as basePath, or Link, Location and openapi.json name paths that do not exist`
    onError?.(`the listener is mounted ${fault}`)
  }

  /** What the client is told. An error that is not meant for it goes to onError. */
  function toReply(error: unknown, arrival: Arrival): Reply {
    if (error instanceof HttpError) return errorReply(error)
    if (error instanceof PetStoreError) return refuseWith(error.code, error.message)
    reportError(error, arrival)
    return refuseWith('internal_error')
  }

  function reportError(error: unknown, { method, target }: Arrival): void {
    // Only the message of an EmbeddingError is known to hold no secret.
    const name = isError(error) ? errorCode(error) || error.name : typeof error
    const reason = error instanceof EmbeddingError ? error.message : name
    onError?.(`internal_error in ${method} ${findPath(target)}: ${reason}`)
  }

  function failOnPurpose({ outcome, isAskedFor, isAfter }: Failure, arrival: Arrival): Reply {
    if (outcome === 'drop') return dropped
    if (outcome === 'hang') return hanging
    // Settings take no others than known codes.
    if (!/^\d/.test(outcome))
      return { ...rehearse(outcome as ErrorCode, arrival, isAfter), isOnPurpose: true }
    const headers = ['429', '503'].includes(outcome) ? ['Retry-After', '1'] : []
    if (isAskedFor) headers.push('Preference-Applied', `code=${outcome}`)
    const code = 'failed_on_purpose'
    const { message } = errorCodes[code]
    return { ...errorReply({ code, status: Number(outcome), message, headers }), isOnPurpose: true }
  }

  /** The reply with this code as a client gets it when the failure is real. */
  function rehearse(code: ErrorCode, { method, target, headers }: Arrival, isAfter: boolean): Reply {
    // Only a creation is told what became of it.
    const outcome = method === 'POST' ? `; ${isAfter ? perhapsStored : notStored}.` : '.'
    switch (code) {
      case 'unauthorized':
        return errorReply(headers['authorization'] === undefined ? missingKey() : invalidKey())
      case 'method_not_allowed': {
        const { [method]: _refused, ...others } = allMethods
        return errorReply(methodNotAllowed(method, formatAllow(others)))
      }
      case 'not_found': {
        const petId = /\/v1\/pets\/([^/]+)$/.exec(unescape(findPath(target)))?.[1]
        return petId === undefined ? refuseWith(code) : errorReply(petNotFound(petId))
      }
      case 'data_file_invalid':
        return refuseWith(code, `The data file is not valid (it is refused on purpose)${outcome}`)
      case 'storage_failed':
      case 'insufficient_storage':
        return refuseWith(code, errorCodes[code].message.replace(/\.$/, outcome))
      case 'invalid_body':
        return errorReply(new InvalidValues(code, [{ field: 'name', message: 'is refused on purpose' }]))
      case 'invalid_parameter':
        return errorReply(new InvalidValues(code, [{ field: 'limit', message: 'is refused on purpose' }]))
      default:
        return refuseWith(code)
    }
  }

  /** The reply as it is sent, for the log too. */
  function complete(
    reply: Reply,
    start: number,
    client: Client,
    arrival?: Arrival,
    { route, key }: Found = {},
  ): Reply {
    const corsHeaders = cors.responseHeaders(arrival?.headers['origin'])
    if (onResponse !== undefined) {
      const query = formatValidQuery(/\?.*/s.exec(arrival?.target ?? '')?.[0] ?? '')
      onResponse(createRequestLog(reply, start, client, { query, key }, arrival))
    }
    const headers = [...corsHeaders, ...(route?.headers ?? []), ...reply.headers]
    const body = arrival?.method === 'HEAD' ? undefined : reply.body
    const { status, code } = reply
    const closes = reply.closes === true || isClosing || (arrival !== undefined && isLast(arrival))
    return { status, headers, body, code, closes }
  }

  /**
   * Requests that are being handled, the oldest first. A stop takes out those that it gives up. No Map or Set: V8 links each table that these have
   * outgrown to the next, so that the requests of dead tables would live until the next full collection.
   */
  const handled: Handled[] = []

  function takeOut(each: Handled): boolean {
    const index = handled.indexOf(each)
    if (index !== -1) handled.splice(index, 1)
    return index !== -1
  }

  return {
    async handle(arrival) {
      const start = now()
      checkMount(arrival)
      const readBody = async (): Promise<unknown> => {
        checkBodyHead(arrival)
        arrival.askForBody?.()
        arrival.askForBody = undefined
        current.isBodyAwaited = true
        const bytes = await arrival.readBody()
        current.isBodyAwaited = false
        return parseBody(bytes)
      }
      const found: Found = {}
      const current: Handled = { arrival, start, found, isBodyAwaited: false }
      handled.push(current)
      let reply: Reply
      try {
        if (arrival.fault !== undefined) throw arrival.fault
        if (isClosing) throw new HttpError('shutting_down')
        const isDisturbed = !disturbances.isCalm && isBelowV1(arrival.target)
        const failure = isDisturbed ? await disturbances.disturb(arrival) : undefined
        if (failure?.isAfter === false) {
          found.route = findRouteUnchecked(arrival)
          reply = failOnPurpose(failure, arrival)
        } else {
          checkFraming(arrival)
          const { resource, parameter, search } = findResource(arrival)
          const route = findRoute(resource, arrival)
          found.route = route
          if (route.needsNoKey !== true) found.key = authenticate(arrival)
          // The operation checks the rest.
          reply = await route.handle({ parameter, search, readBody })
          if (failure !== undefined && reply.status < 300) reply = failOnPurpose(failure, arrival)
        }
      } catch (error) {
        if (error === clientGone) {
          takeOut(current)
          return abandoned
        }
        reply = toReply(error, arrival)
      }
      if (!takeOut(current)) return undefined
      const completed = complete(reply, start, arrival.client, arrival, found)
      if (reply !== hanging) return completed
      await disturbances.hang(arrival)
      return abandoned
    },
    refuse(code, client) {
      return complete(refuseWith(code), now(), client)
    },
    giveUp(arrival, isWhole) {
      const given = handled.find((each) => each.arrival === arrival)
      if (given !== undefined) takeOut(given)
      const { start = now(), found = {} } = given ?? {}
      const mayHaveActed = arrival.method === 'POST' && isWhole
      const error = mayHaveActed ? storageFailure(false, perhapsStored) : new HttpError('shutting_down')
      return complete(toReply(error, arrival), start, arrival.client, arrival, found)
    },
    reportError,
    beginClosing() {
      isClosing = true
      disturbances.beginStopping()
    },
    disturb: disturbances.change,
    reset() {
      disturbances.reset()
      for (const { arrival, isBodyAwaited } of handled) {
        if (isBodyAwaited) arrival.stopBody(clientGone)
      }
    },
  }
}

/** What a failure on purpose does in the place of a response. */
const dropped: Reply = { status: 0, headers: [], code: 'failed_on_purpose', isOnPurpose: true, closes: true }
const hanging: Reply = { ...dropped }

/** The end of a request whose client has gone, or that a reset or a stop drops. It is in no log, unless as `hanging` before. */
const abandoned: Reply = { status: 0, headers: [], closes: true }

/**
 * Node takes what follows an Upgrade or a CONNECT for another protocol, and drops it
 * (https://nodejs.org/docs/latest-v20.x/api/http.html#event-upgrade_1). And behind a 100 Continue that was not sent, a body may follow.
 */
function isLast({ method, headers, askForBody }: Arrival): boolean {
  const isUpgrade = headers['upgrade'] !== undefined && /\bupgrade\b/i.test(headers['connection'] ?? '')
  return isUpgrade || method === 'CONNECT' || askForBody !== undefined
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

interface Route {
  readonly needsNoKey?: boolean
  /** Added to each of its responses, its errors included; names and values in turn. */
  readonly headers?: readonly string[] | undefined
  readonly handle: Handle
}

/** What the checks of a request have found, as far as they came. */
interface Found {
  route?: Route | undefined
  /** The fingerprint of the key that was accepted. */
  key?: string
}

interface Handled {
  readonly arrival: Arrival
  /** By `now()`. */
  readonly start: number
  readonly found: Found
  isBodyAwaited: boolean
}

/** The routes of a path by method. HEAD has that of GET. */
type Routes = Readonly<Partial<Record<string, Route>>>

/** Every path, and what answers each of its methods. */
function createRoutes(store: Store, basePath: string) {
  const routes: Record<string, Routes> = {}
  const add = (method: string, path: string, route: Route): void => {
    routes[path] = { ...routes[path], [method]: route, ...(method === 'GET' && { HEAD: route }) }
  }
  // `/store` leads to the page at `/store/`.
  const redirect: Reply = { status: 308, headers: ['Location', `${basePath}/`, 'Content-Length', '0'] }
  if (basePath !== '') add('GET', '', { needsNoKey: true, handle: () => redirect })
  for (const { method, path, headers, createHandle } of operations)
    add(method, `/v1${path}`, { headers, handle: createHandle(store, basePath) })
  const published: Readonly<Record<string, Handle>> = {
    // For load balancers and monitoring: whether the process lives and, with `?ready`, what it can do.
    '/healthz': ({ search }) => describeHealth(store, new URLSearchParams(search).getAll('ready')),
    '/openapi.json': always(openApiText.replaceAll('/v1', () => `${basePath}/v1`)),
    // As application/json, since browsers would download application/schema+json.
    '/pets.schema.json': always(petsSchemaText),
    '/': always(builtPage.html, builtPage.headers, 'text/html; charset=utf-8'),
  }
  for (const [path, handle] of Object.entries(published)) add('GET', path, { needsNoKey: true, handle })
  return routes
}

const healthy = textReply(200, '{"status":"ok"}')

/** `ready`: the values of that parameter. Says nothing of what is in the data file, since it needs no key. */
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
    if (error instanceof PetStoreError) return refuseWith('storage_failed', error.message)
    throw error
  }
  const fault = value === 'write' ? store.whyNoCreation() : undefined
  return fault === undefined ? healthy : refuseWith(fault)
}

function always(...content: readonly [text: string, headers?: readonly string[], type?: string]): Handle {
  const reply = textReply(200, ...content)
  return () => reply
}

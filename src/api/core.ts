/**
 * The core: a function from a request to a reply, with the order of the checks and the reply to each error.
 * It knows no `node:http`: how requests come and replies go is for the doors (http/server.ts, http/doors.ts).
 */
import { createBearerAuth } from '../http/bearer-auth.ts'
import { clientGone, readBody } from '../http/body.ts'
import { createCors } from '../http/cors.ts'
import { createDisturbances, type Disturbance } from '../http/disturbance.ts'
import { createRequestLog } from '../http/request-log.ts'
import { type Arrival, checkFraming, type Client, type Core, isSafe } from '../http/request.ts'
import { refusalReply, HttpError, type Reply } from '../http/response.ts'
import { findPath } from '../http/router.ts'
import type { PetStoreOptions } from '../options/types.ts'
import { perhapsStored, PetStoreError, storageFailure, type Store } from '../store/store.ts'
import { clock } from '../system/clock.ts'
import { describeBug } from '../system/errors.ts'
import { exposedHeaders, formatValidQuery } from './operations.ts'
import { codeReply, toFailureReply } from './refusals.ts'
import { createRouteFinder, findMountFault, isBelowV1, type Route } from './routes.ts'

/** `onResponse` and `onError` must not throw. */
type CoreOptions = { readonly store: Store } & Pick<
  PetStoreOptions,
  'apiKeys' | 'corsOrigins' | 'basePath' | 'delayMs' | 'fail' | 'onResponse' | 'onError'
>

interface DisturbableCore extends Core {
  /** Throws a TypeError if too many changes wait. */
  disturb(change: Disturbance): void
  /** Ends what `disturb` has changed, and drops each request that has not reached the store yet. */
  reset(): void
}

export function createCore(options: CoreOptions): DisturbableCore {
  const { apiKeys, corsOrigins = '*', basePath = '', onResponse, onError } = options
  const authenticate = createBearerAuth(apiKeys)
  const cors = createCors(corsOrigins, exposedHeaders)
  const disturbances = createDisturbances(options)
  const routes = createRouteFinder(options.store, basePath, cors)
  let isClosing = false
  let isMountReported = false

  /** Tells onError, once, how the listener is mounted if that is wrong. */
  function reportMountFault(arrival: Arrival): void {
    const fault = isMountReported ? undefined : findMountFault(arrival, basePath)
    if (fault === undefined) return
    isMountReported = true
    onError?.(`the listener is mounted ${fault}`)
  }

  /**
   * Holds the request back, and lets it fail on purpose if it is to: before the checks or, where the store
   * was to act first, after that.
   */
  async function respondDisturbed(arrival: Arrival, current: InFlight): Promise<Reply> {
    const failure = await disturbances.holdAndDraw(arrival)
    if (failure === undefined) return respond(arrival, current)
    if (failure.isAfterStore) await respond(arrival, current)
    else current.route = routes.findUnchecked(arrival)
    return toFailureReply(failure, arrival, routes.methods)
  }

  /** Checks the framing, the path, the method and the key, in this order. The operation checks the rest. */
  function respond(arrival: Arrival, current: InFlight): Reply | Promise<Reply> {
    checkFraming(arrival)
    const { route, parameter, search } = routes.match(arrival)
    current.route = route
    if (route.isPublic !== true) current.key = authenticate(arrival)
    return route.handle({ parameter, search, readBody: () => readBody(arrival) })
  }

  /** Returns what the client is told. An error that is not meant for it goes to onError. */
  function toReply(error: unknown, arrival: Arrival): Reply {
    if (error instanceof HttpError) return refusalReply(error)
    if (error instanceof PetStoreError) return codeReply(error.code, error.message)
    reportError(error, arrival)
    return codeReply('internal_error')
  }

  function reportError(error: unknown, { method, target }: Arrival): void {
    onError?.(`internal_error in ${method} ${findPath(target)}: ${describeBug(error)}`)
  }

  function complete(reply: Reply, current: InFlight): Reply {
    log(reply, current)
    return toSentReply(reply, current)
  }

  function log(reply: Reply, { client, start, arrival, key }: InFlight): void {
    if (onResponse === undefined) return
    const query = formatValidQuery(/\?.*/s.exec(arrival?.target ?? '')?.[0] ?? '')
    onResponse(createRequestLog(reply, start, client, { query, key }, arrival))
  }

  function toSentReply(reply: Reply, { arrival, route }: InFlight): Reply {
    const corsHeaders = cors.responseHeaders(arrival?.headers['origin'])
    const headers = [...commonHeaders, ...corsHeaders, ...(route?.headers ?? []), ...reply.headers]
    const body = arrival?.method === 'HEAD' ? undefined : reply.body
    const { status } = reply
    const closes = reply.closes === true || isClosing || (arrival !== undefined && isLast(arrival))
    return { status, headers, body, closes }
  }

  /**
   * The requests that are being handled, the oldest first. A stop settles those that it gives up. With a Set,
   * a creation took a third more processor time (test/bench/builds.ts): V8 links each table that a Set or a
   * Map has outgrown to the next (obsolete tables in
   * https://github.com/v8/v8/blob/main/src/objects/ordered-hash-table.h), so that the requests of dead tables
   * live until the next full collection.
   */
  const inFlight: InFlight[] = []

  /** Returns whether the request was still to be answered: a stop may have settled it already. */
  function settle(each: InFlight): boolean {
    const index = inFlight.indexOf(each)
    if (index !== -1) inFlight.splice(index, 1)
    return index !== -1
  }

  return {
    async handle(arrival) {
      const start = clock.performanceNow()
      reportMountFault(arrival)
      const current: InFlight = { client: arrival.client, start, arrival, route: undefined, key: undefined }
      inFlight.push(current)
      let reply: Reply
      try {
        if (arrival.body.stopReason !== undefined) throw arrival.body.stopReason
        if (isClosing) throw new HttpError('shutting_down')
        const isDisturbed = !disturbances.isCalm && isBelowV1(arrival.target, basePath)
        reply = await (isDisturbed ? respondDisturbed(arrival, current) : respond(arrival, current))
      } catch (error) {
        if (error === clientGone) {
          settle(current)
          return abandoned
        }
        reply = toReply(error, arrival)
      }
      // A stop has given up on the request, and responded.
      if (!settle(current)) return abandoned
      // An onResponse may call reset, which ends all requests that hang. So this one has to hang before it is
      // logged.
      const hung = reply.hangs === true ? disturbances.hang(arrival) : undefined
      const sent = complete(reply, current)
      if (hung !== undefined) await hung
      return sent
    },
    handleUnparsed(code, client) {
      return complete(codeReply(code), { client, start: clock.performanceNow() })
    },
    giveUp(arrival, isWhole) {
      const given = inFlight.find((each) => each.arrival === arrival)
      if (given !== undefined) settle(given)
      const mayHaveActed = !isSafe(arrival.method) && isWhole
      const error = mayHaveActed ? storageFailure(false, perhapsStored) : new HttpError('shutting_down')
      return complete(
        toReply(error, arrival),
        given ?? { client: arrival.client, start: clock.performanceNow(), arrival },
      )
    },
    dropHeldBack: disturbances.drop,
    reportError,
    beginClosing() {
      isClosing = true
      disturbances.beginClosing()
    },
    disturb: disturbances.change,
    reset() {
      disturbances.reset()
      for (const { arrival } of inFlight) arrival?.body.stop(clientGone)
    },
  }
}

/** Every response has these. */
const commonHeaders = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']

/**
 * A request ends with this if its client has gone, or a reset or a stop drops it. It is not logged here; one
 * that hangs was logged when it began to.
 */
const abandoned: Reply = { status: 0, headers: [], closes: true }

/**
 * Returns whether no other request can follow. Node takes what follows an Upgrade or a CONNECT for another
 * protocol, and drops it (https://nodejs.org/docs/latest-v20.x/api/http.html#event-upgrade_1). And behind a
 * 100 Continue that was not sent, a body may follow.
 */
function isLast({ method, headers, askForBody }: Arrival): boolean {
  const isUpgrade = headers['upgrade'] !== undefined && /\bupgrade\b/i.test(headers['connection'] ?? '')
  return isUpgrade || method === 'CONNECT' || askForBody !== undefined
}

/** A request, and what its checks have found, as far as they came. */
interface InFlight {
  readonly client: Client
  /** By `clock.performanceNow()`. */
  readonly start: number
  /** Absent if it could not be parsed. */
  readonly arrival?: Arrival
  route?: Route | undefined
  /** The fingerprint of the key that was accepted. */
  key?: string | undefined
}

/** How large a request may be, how many may wait, and for how long. */

export const maxBodyBytes = 65_536

/** The request line and all headers together. */
export const maxHeadBytes = 16_384

/** Requests of a connection without a response; one more ends it. Load generators pipeline up to 16. */
export const maxUnanswered = 32

/**
 * Of the bodies that wait for their turn on a connection: beyond it, nothing more is read there. Each counts with its length, or with
 * `maxBodyBytes` if it does not say it.
 */
export const maxWaitingBodyBytes = 131_072

/** Requests in a turn of the event loop; then nobody is read from until it ends. */
export const maxArrivalsInTurn = 10_000

/** Clients that wait to be let in. */
export const backlog = 1_024

/** In milliseconds. */
export interface Timeouts {
  /** For the head. */
  readonly headersMs: number
  /** For a whole request. */
  readonly requestMs: number
  /** For a connection on which nothing moves. */
  readonly idleMs: number
  /** For the requests in flight when the server closes. */
  readonly closeMs: number
}

/** One that is left out, or undefined, is the default. */
export type SomeTimeouts = { readonly [Name in keyof Timeouts]?: Timeouts[Name] | undefined }

export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  // Longer than nginx (60 s), Traefik (90 s) and Caddy (120 s) keep a connection, so that they close first.
  idleMs: 125_000,
  closeMs: 5_000,
}

/** The limits that Node holds itself, as options of `createServer`. */
export function nodeLimits({ headersMs, requestMs }: Timeouts) {
  return {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    // How often Node looks for slow requests.
    connectionsCheckingInterval: Math.ceil(Math.min(2_000, headersMs / 5, requestMs / 5)),
    maxHeaderSize: maxHeadBytes,
    // `timeout` covers idle connections too.
    keepAliveTimeout: 0,
  }
}

/** How long a client may go on sending while it reads its last responses, in milliseconds. */
export const lingerMs = 30_000

/** With the defaults of those that are not given. */
export function completeTimeouts(given: SomeTimeouts): Timeouts {
  return {
    headersMs: given.headersMs ?? defaultTimeouts.headersMs,
    requestMs: given.requestMs ?? defaultTimeouts.requestMs,
    idleMs: given.idleMs ?? defaultTimeouts.idleMs,
    closeMs: given.closeMs ?? defaultTimeouts.closeMs,
  }
}

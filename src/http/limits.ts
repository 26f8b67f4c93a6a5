/** How large a request may be, how many may wait, and for how long. */

export const maxBodyBytes = 65_536

/** This holds for the request line and all headers together. */
export const maxHeadBytes = 16_384

/**
 * A connection may have this many requests without a response; one more ends it. Load generators pipeline up
 * to 16.
 */
export const maxOpenExchanges = 32

/**
 * At most this many bytes of bodies wait for their turn on a connection: beyond it, nothing more is read
 * there. Each body counts with its length, or with `maxBodyBytes` if it does not say it.
 */
export const maxWaitingBodyBytes = 131_072

/** After this many requests in a turn of the event loop, no connection is read until the turn ends. */
export const maxArrivalsInTurn = 10_000

/** At most this many clients wait to be accepted. */
export const backlog = 1_024

/** In milliseconds. */
export interface Timeouts {
  /** The time for the request line and the headers. */
  readonly headersMs: number
  /** The time for a whole request. */
  readonly requestMs: number
  /** How long a connection is kept on which nothing moves. */
  readonly idleMs: number
  /** How long a stop waits for the requests in flight. */
  readonly closeMs: number
}

/** A timeout that is left out, or undefined, is the default. */
export type SomeTimeouts = { readonly [Name in keyof Timeouts]?: Timeouts[Name] | undefined }

export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  // This is longer than nginx (60 s), Traefik (90 s) and Caddy (120 s) keep a connection, so that they close
  // first.
  idleMs: 125_000,
  closeMs: 5_000,
}

/** Node holds these limits itself, as options of `createServer`. */
export function nodeLimits({ headersMs, requestMs }: Timeouts) {
  return {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    // Node looks for slow requests this often. `headersMs` is at most `requestMs`.
    connectionsCheckingInterval: Math.ceil(Math.min(2_000, headersMs / 5)),
    maxHeaderSize: maxHeadBytes,
    // The server's `timeout` covers idle connections too.
    keepAliveTimeout: 0,
  }
}

/** A client may go on sending for this many milliseconds while it reads its last responses. */
export const lingerMs = 30_000

/** Fills in the defaults of the timeouts that are not given. */
export function completeTimeouts(given: SomeTimeouts): Timeouts {
  return {
    headersMs: given.headersMs ?? defaultTimeouts.headersMs,
    requestMs: given.requestMs ?? defaultTimeouts.requestMs,
    idleMs: given.idleMs ?? defaultTimeouts.idleMs,
    closeMs: given.closeMs ?? defaultTimeouts.closeMs,
  }
}

/** How long requests, idle connections, a close, and what a client still sends after its last response may take. */

/** In milliseconds. */
export interface Timeouts {
  /** For the request line and headers. */
  readonly headersMs: number
  /** For a whole request. */
  readonly requestMs: number
  /** For a connection without any traffic: between two requests, or when a client does not read its response. */
  readonly idleMs: number
  /** For the requests in flight when the server closes. */
  readonly closeMs: number
}

export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  // Proxies commonly close an idle connection after 60 s. This is longer, so that they close first.
  idleMs: 75_000,
  closeMs: 5_000,
}

/** How long a client may go on sending while it reads the last responses of its connection, in milliseconds. */
export const lingerMs = 30_000

/** How large a request may be, how long it may take, and how many may wait. */

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

export const maxBodyBytes = 65_536

/** The request line and all headers together. */
export const maxHeadBytes = 16_384

export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  // Proxies commonly close an idle connection after 60 s. This is longer, so that they close first.
  idleMs: 75_000,
  closeMs: 5_000,
}

/**
 * Requests that wait behind others are counted by the memory that they take: 1 for the smallest, and 1 more for every 50
 * headers. When those of one connection reach this size, it is paused. The requests of one read are all parsed, so the size
 * can go beyond it.
 */
export const maxWaitingSize = 10

/** When the size of all requests that wait is larger than this, the connection with the most is cut off. */
export const maxWaitingTotal = 20_000

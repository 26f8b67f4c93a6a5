/** How large a request may be, and how many may wait. */

export const maxBodyBytes = 65_536

/** The request line and all headers together. */
export const maxHeadBytes = 16_384

/**
 * Requests that wait behind others are counted by the memory that they take: 1 for the smallest, and 1 more for every 50
 * headers. When those of one connection reach this size, it is paused. The requests of one read are all parsed, so the size
 * can go beyond it.
 */
export const maxWaitingSize = 10

/** When the size of all requests that wait is larger than this, the connection with the most is cut off. */
export const maxWaitingTotal = 20_000

/**
 * Already at this total size, every connection, including one that opens then, is switched to being read in slices of 1 KiB. It stays so
 * until it closes.
 */
export const sliceThreshold = maxWaitingTotal / 4

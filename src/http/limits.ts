/** How large a request may be, and how many may wait. */

export const maxBodyBytes = 65_536

/** The request line and all headers together. */
export const maxHeadBytes = 16_384

/** How many requests of a connection may wait. Behind the last one it closes. Load generators pipeline up to 16; browsers do not pipeline. */
export const maxWaitingRequests = 32

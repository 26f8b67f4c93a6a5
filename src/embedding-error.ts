/**
 * A mistake of the code that embeds the service, or of its storage. A client gets internal_error; the message, which holds no secret,
 * is for onError.
 */
export class EmbeddingError extends Error {}

/**
 * A mistake of the code that embeds the service, or of its storage. A client gets internal_error; the message is for onError, and
 * holds no secrets.
 */
export class EmbeddingError extends Error {}

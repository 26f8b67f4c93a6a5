/** The public types. They ship as declarations, so this file imports no library that users may not have. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PetStatus } from './pets/pet-status.ts'

export type { PetStatus }

/** An integer from -2^63 to 2^63-1: a `number` from -(2^53-1) to 2^53-1, and a `bigint` outside of that range. */
export type Int64 = number | bigint

/** A pet to create (interface section 2, NewPet), with its status filled in. */
export interface NewPet {
  readonly name: string
  readonly categoryId: Int64
  readonly status: PetStatus
}

/** A stored pet (interface section 2, Pet). Its id is from 1 to 2^63-1. */
export interface Pet extends NewPet {
  readonly id: Int64
}

/** A pet to start with. A missing id becomes the next one; a missing status means `available`. */
export interface SeedPet {
  readonly id?: Int64
  readonly name: string
  readonly categoryId: Int64
  readonly status?: PetStatus
}

/** Which pets to list. */
export interface PetQuery {
  /** At most this many pets: 1 to 100. */
  readonly limit: number
  /** Only pets with this status; undefined for all. */
  readonly status?: PetStatus | undefined
  /** Only pets with a higher id; undefined for the first page. */
  readonly after?: Int64 | undefined
}

export interface PetPage {
  /** In ascending order of id, at most `limit`. */
  readonly pets: readonly Pet[]
  /** How many pets have the status, on all pages. */
  readonly total: Int64
  /** Whether there are more pets with the status after this page. */
  readonly hasMore: boolean
}

/**
 * Your own database, which several servers can share. If a method throws or rejects, the response is 503 `storage_failed`, or
 * 507 if the error's `code` is `insufficient_storage`. The service sets no time limit, so let a method that hangs reject
 * in time. Results are checked. The service never closes the storage.
 */
export interface PetStorage {
  /** Sees every pet whose creation was acknowledged by any server. Calls overlap, those of `get` too. */
  list(query: PetQuery): Promise<PetPage>
  /** Undefined when there is no pet with this id, which is from 1 to 2^63-1. */
  get(id: Int64): Promise<Pet | undefined>
  /**
   * Stores 1 to 1000 pets durably, all or none, and returns them in the same order, with ascending ids that are higher than
   * any that a list has ever shown. A server does not call it again before the last call has ended.
   */
  create(newPets: readonly NewPet[]): Promise<readonly Pet[]>
}

/**
 * A request that got its response, for a request log. The path has no query, since a client may put a secret there by
 * mistake. Method and path are `-` for a request that could not be parsed.
 */
export interface RequestLog {
  readonly method: string
  readonly path: string
  /** The status code of the response. */
  readonly status: number
  readonly milliseconds: number
}

/** Milliseconds, or a range of them. */
export type DelayMs = number | readonly [minimum: number, maximum: number]

/** A callback that throws or rejects changes no response, and is reported to onError. */
interface CommonOptions {
  /** At least one key for clients to send as `Authorization: Bearer <key>`, each of at most 15,360 characters. */
  readonly apiKeys: readonly string[]
  /** Origins whose pages may read the responses; `*` by default, an empty list for none. */
  readonly corsOrigins?: '*' | readonly string[]
  /** Holds back each response under `/v1` for this long, at most 10,000 ms. With a range, the time is random. */
  readonly delayMs?: DelayMs
  /** Called with each message about the data file or the storage, such as `reloaded 12 pets: …`. */
  readonly onMessage?: (message: string) => void
  /** Called after each response, for a request log or for metrics. */
  readonly onResponse?: (log: RequestLog) => void
  /** Called with a message for each `internal_error`, which is a bug in this service or in the storage, and for a callback that fails. */
  readonly onError?: (message: string) => void
}

/** Pets in memory, gone when the process exits. */
export interface MemoryOptions extends CommonOptions {
  readonly pets: readonly SeedPet[]
  readonly dataFile?: never
  readonly storage?: never
}

/** Pets in a JSON file, which is created if it is missing. A file belongs to one store at a time. */
export interface FileOptions extends CommonOptions {
  readonly dataFile: string
  readonly pets?: never
  readonly storage?: never
}

/** Pets in a database of your own. */
export interface StorageOptions extends CommonOptions {
  readonly storage: PetStorage
  readonly pets?: never
  readonly dataFile?: never
}

export type PetStoreOptions<Source = MemoryOptions | FileOptions> = Source & {
  /** The path that the listener is mounted under, such as `/store`. It becomes part of Location and Link. */
  readonly basePath?: string
}

export type PetStoreServerOptions<Source = MemoryOptions | FileOptions> = Source & {
  /** 0, the default, picks a free port. */
  readonly port?: number
  /** 127.0.0.1 by default. */
  readonly host?: string
  /** Replaces some of the default timeouts, which the README lists. */
  readonly timeouts?: Partial<Timeouts>
}

/** In milliseconds. */
export interface Timeouts {
  /** For the request line and headers. */
  readonly headersMs: number
  /** For a whole request. */
  readonly requestMs: number
  /** For a connection on which nothing moves: between two requests, or when a client does not read its response. */
  readonly idleMs: number
  /** For the requests in flight when the server closes. */
  readonly closeMs: number
}

export interface PetStoreHandle {
  /** For `http.createServer(listener)`, or to be called by an app. */
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void
  /** How many pets there are now. */
  countPets(): number
  /**
   * Brings back the pets that it was created with; ids that were given since are given again. With a data file, reads the file
   * again instead.
   */
  reset(): Promise<void>
  /**
   * Refuses new requests, waits for the creations in flight (with a `storage`, 5 s at most), and releases the file. Can be
   * called again.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface PetStoreServer extends PetStoreHandle {
  /** The address that it listens on, without a path: `http://127.0.0.1:3000`. */
  readonly url: string
  /**
   * Accepts no new connections, gives the requests in flight `closeMs` (5 s) to finish, and releases the port and the file.
   * Can be called again.
   */
  close(): Promise<void>
}

/** Without countPets and reset: the database is the embedder's. */
export type StorageHandle = Omit<PetStoreHandle, 'countPets' | 'reset'>
export type StorageServer = Omit<PetStoreServer, 'countPets' | 'reset'>

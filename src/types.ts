/** The types that embedding code sees, each declared once. They ship as declarations, so this file imports no library. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PetStatus } from './pets/pet-status.ts'

export type { PetStatus }

/** An integer from -2^63 to 2^63-1: a `number` while it is safe (below 2^53 either way), a `bigint` beyond. */
export type Int64 = number | bigint

/** What creates a pet (interface section 2, NewPet), with its status filled in. */
export interface NewPet {
  readonly name: string
  readonly categoryId: Int64
  readonly status: PetStatus
}

/** A stored pet (interface section 2, Pet). Its id is from 1 to 2^63-1. */
export interface Pet extends NewPet {
  readonly id: Int64
}

/** A pet to start with. Without an id it gets the next one; without a status it is available. */
export interface SeedPet {
  readonly id?: Int64
  readonly name: string
  readonly categoryId: Int64
  readonly status?: PetStatus
}

/** What a list asks for. */
export interface PetQuery {
  /** At most this many pets: 1 to 100. */
  readonly limit: number
  /** Only pets with this status; undefined for all. */
  readonly status?: PetStatus | undefined
  /** Only pets with a higher id; undefined for the first page. */
  readonly after?: Int64 | undefined
}

export interface PetPage {
  /** By ascending id, at most `limit`. */
  readonly pets: readonly Pet[]
  /** How many match the status, on this page or not. */
  readonly total: Int64
  readonly hasMore: boolean
}

/**
 * A database of the embedder's that several servers can share. An error that a method throws or rejects with is answered
 * with 503 `storage_failed`, or with 507 if its `code` is `insufficient_storage`. A request waits for as long as the
 * method does, so let it reject in time. What it returns is checked. The service never closes it.
 */
export interface PetStorage {
  /** Sees every pet whose creation was answered, by any server. Calls overlap, here and in `get`. */
  list(query: PetQuery): Promise<PetPage>
  /** Undefined when there is no pet with this id, which is from 1 to 2^63-1. */
  get(id: Int64): Promise<Pet | undefined>
  /**
   * Stores 1 to 1000 pets, all durably or none, and returns them in the same order, with ascending ids that are higher than
   * any that a list has ever shown. A server does not call it again before it has ended.
   */
  create(newPets: readonly NewPet[]): Promise<readonly Pet[]>
}

/**
 * A request that was answered, for a request log. The path has no query, since a client may put a secret there by
 * mistake. Method and path are `-` for a request that could not be parsed.
 */
export interface RequestLog {
  readonly method: string
  readonly path: string
  /** The status code of the response. */
  readonly status: number
  readonly milliseconds: number
}

/** Milliseconds, or the least and the most of a range. */
export type DelayMs = number | readonly [minimum: number, maximum: number]

/** A callback that throws or rejects changes no response; onError is told of it. */
interface CommonOptions {
  /** At least one key that clients send as `Authorization: Bearer <key>`. It has at most 15,360 characters. */
  readonly apiKeys: readonly string[]
  /** Origins whose pages may read the responses; `*` unless given, an empty list for none. */
  readonly corsOrigins?: '*' | readonly string[]
  /** Holds back each response under `/v1` for so many milliseconds, or for a random time of a range; at most 10,000. */
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

/** Pets in a database of the embedder's. */
export interface StorageOptions extends CommonOptions {
  readonly storage: PetStorage
  readonly pets?: never
  readonly dataFile?: never
}

export type PetStoreOptions<Source = MemoryOptions | FileOptions> = Source & {
  /** The path that the listener is mounted under, such as `/store`; it is part of Location and Link. */
  readonly basePath?: string
}

export type PetStoreServerOptions<Source = MemoryOptions | FileOptions> = Source & {
  /** 0, which takes a free port, unless given. */
  readonly port?: number
  /** 127.0.0.1 unless given. */
  readonly host?: string
  /** Other timeouts than those in the README. */
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
  /** For `http.createServer(listener)`, or for an app to call. */
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void
  /** How many pets there are now. */
  countPets(): number
  /** Back to the pets it was created with or, with a data file, to what the file says now. */
  reset(): Promise<void>
  /** Finishes the requests in flight, within 5 s, and releases the file and the port. Can be called again. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface PetStoreServer extends PetStoreHandle {
  /** Where it listens, such as `http://127.0.0.1:3000`, without a path. */
  readonly url: string
}

/** On a storage: to count its pets, and to reset them, is for whoever owns the database. */
export type StorageHandle = Omit<PetStoreHandle, 'countPets' | 'reset'>
export type StorageServer = Omit<PetStoreServer, 'countPets' | 'reset'>

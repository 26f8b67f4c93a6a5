/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The public types: the options and the handle here, the others in the room that they belong to. All ship as
 * declarations, so none of these files imports a library that users may not have.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { DelayMs, Disturbance } from '../http/disturbance.ts'
import type { SomeTimeouts } from '../http/limits.ts'
import type { RequestLog } from '../http/request-log.ts'
import type { SeedPet } from '../pet/pet.ts'
import type { PetStorage } from '../store/store.ts'

export type { DelayMs, Disturbance } from '../http/disturbance.ts'
export type { SomeTimeouts, Timeouts } from '../http/limits.ts'
export type { Int64 } from '../json/int64.ts'
export type { NewPet, Pet, PetStatus, PetWithoutId, SeedPet } from '../pet/pet.ts'
export type { RequestLog } from '../http/request-log.ts'
export type { PetPage, PetQuery, PetStorage } from '../store/store.ts'

/** A callback that throws or rejects changes no response, and is reported to onError. */
interface CommonOptions {
  /**
   * At least one key for clients to send as `Authorization: Bearer <key>`, each of at most 15,360 characters.
   */
  readonly apiKeys: readonly string[]
  /**
   * The path under which an app mounts the service, or a proxy shows it, such as `/store`. It becomes part of
   * Location and Link. Requests are taken with and without it.
   */
  readonly basePath?: string | undefined
  /** Origins whose pages may read the responses; `*` by default, an empty list for none. */
  readonly corsOrigins?: '*' | readonly string[] | undefined
  /**
   * Holds back each response under `/v1` for this long, at most 10,000 ms. With a range, the time is random.
   */
  readonly delayMs?: DelayMs | undefined
  /**
   * Failures on purpose under `/v1`, as `10%`, `503`, `10%:500,POST:drop`, `after:503`, `storage_failed` or
   * `prefer` (see src/embedding.md); `none` by default.
   */
  readonly fail?: string | undefined
  /** Called with each message about the data file or the storage, such as `reloaded 12 pets: …`. */
  readonly onMessage?: ((message: string) => void) | undefined
  /** Called just before each response is sent, or withheld on purpose. */
  readonly onResponse?: ((log: RequestLog) => void) | undefined
  /**
   * Called with a message for each `internal_error`, which is a bug in this service, in the storage or in the
   * code that embeds them; for a callback that fails; and for a mount path that `basePath` does not say.
   */
  readonly onError?: ((message: string) => void) | undefined
}

/** Pets in memory, gone when the process exits. */
export interface MemoryOptions extends CommonOptions {
  readonly pets: readonly SeedPet[]
  readonly dataFile?: undefined
  readonly storage?: undefined
}

/** Pets in a JSON file, which is created if it is missing. A file belongs to one store at a time. */
export interface FileOptions extends CommonOptions {
  readonly dataFile: string
  readonly pets?: undefined
  readonly storage?: undefined
}

/** Pets in a database of your own. */
export interface StorageOptions extends CommonOptions {
  readonly storage: PetStorage
  readonly pets?: undefined
  readonly dataFile?: undefined
}

export type PetStoreOptions = MemoryOptions | FileOptions

export type PetStoreServerOptions<Source = PetStoreOptions> = Source & {
  /** 0, the default, picks a free port. */
  readonly port?: number | undefined
  /** 127.0.0.1 by default. */
  readonly host?: string | undefined
  /** Replaces some of the default timeouts, which interface.md (section 8.1) and src/embedding.md have. */
  readonly timeouts?: SomeTimeouts | undefined
}

export interface PetStoreHandle {
  /**
   * For `http.createServer(listener)`, `http2.createSecureServer(options, listener)`, or to be called by an
   * app.
   */
  readonly listener: (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ) => void
  /**
   * The same for whatever speaks `Request` and `Response`: Next, Hono, MSW, `Bun.serve`, a test without a
   * port. Further arguments are ignored. When the signal of the request is aborted it rejects with the
   * reason, though a pet may be stored then.
   */
  readonly fetch: (request: Request) => Promise<Response>
  /**
   * Changes delay and failures from the next request on. What is not named stays;
   * `{ fail: 'none', delayMs: 0 }` ends both, but not what waits for `requests`. With `requests`, it is for
   * that many of the next requests under `/v1` that it concerns, preflights aside, behind those of earlier
   * changes. Throws a TypeError for what is wrong, and when 1,000 changes wait, and an Error with the code
   * `shutting_down` once `close` was called; it then changes nothing.
   */
  disturb(change: Disturbance): void
  /** How many pets there are now. */
  countPets(): number
  /**
   * Drops each request that has not reached the store, and ends what `disturb` has changed. Brings back the
   * pets that it was created with, or puts these in their place until the next reset; ids that were given
   * since are given again. With a data file, reads the file again instead. Rejects, and changes nothing, with
   * a TypeError for pets that are wrong and for any where there is a data file, and with an Error with the
   * code `shutting_down` once `close` was called. While the data file cannot be used, it rejects with that
   * error, after all else was done.
   */
  reset(pets?: readonly SeedPet[]): Promise<void>
  /**
   * Refuses new requests, waits for the creations in flight (with a `storage`, 5 s at most), and releases the
   * file. Can be called again.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface PetStoreServer extends PetStoreHandle {
  /** The address that it listens on, without a path: `http://127.0.0.1:3000`. */
  readonly url: string
  /**
   * Accepts no new connections, gives the requests in flight `closeMs` (5 s) to finish, and releases the port
   * and the file. Can be called again.
   */
  close(): Promise<void>
}

/** A handle without countPets and reset: the database is the embedder's. */
export type StorageHandle = Omit<PetStoreHandle, 'countPets' | 'reset'>
export type StorageServer = Omit<PetStoreServer, 'countPets' | 'reset'>

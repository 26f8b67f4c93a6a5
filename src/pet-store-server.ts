/**
 * The service for a program to start, or for an app to mount: puts store, app and listener together. No globals.
 *
 * What this file exports is what embedding code sees, and it is declared here in full: its declarations are shipped
 * without those of the other files, and compile with any module setting.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type App, createApp } from './app.ts'
import { createListener } from './http/listener.ts'
import { loadPage } from './page.ts'
import { createMemoryStore, openPetStore, type PetStore } from './pets/pet-store.ts'

/** An integer from -2^63 to 2^63-1: a bigint where a number would not be exact. */
export type Int64 = number | bigint

/** A pet to start with. Without an id it gets the next one, without a status it is available. */
export interface SeedPet {
  readonly id?: Int64
  readonly name: string
  readonly categoryId: Int64
  readonly status?: 'available' | 'pending' | 'sold'
}

/**
 * An answered request, as a log needs it. The path has no query: a client may put a secret there by mistake. Both are
 * `-` for what is no readable request.
 */
export interface Answer {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly milliseconds: number
}

interface CommonOptions {
  /** At least one key that clients send as `Authorization: Bearer <key>`. */
  readonly apiKeys: readonly string[]
  /** Origins whose pages may call; `*` unless given, an empty list for none. */
  readonly corsOrigins?: '*' | readonly string[]
  /** Takes the lines that concern the data file, such as `reloaded 12 pets: …`. Nothing is printed. */
  readonly onLine?: (line: string) => void
  /** Called for every answer, to log or to count. */
  readonly onAnswer?: (answer: Answer) => void
  /** Takes a line for each internal_error, which is a fault of this service. */
  readonly onFault?: (line: string) => void
}

/** Pets in memory, gone with the process. `id` and `status` may be left out. */
export interface MemoryOptions extends CommonOptions {
  readonly pets: readonly SeedPet[]
  readonly dataFile?: never
}

/** Pets in a JSON file, which is made if it is missing. One store a file. */
export interface FileOptions extends CommonOptions {
  readonly dataFile: string
  readonly pets?: never
}

export type PetStoreOptions = (MemoryOptions | FileOptions) & {
  /** The path that the listener is mounted under, such as `/store`; it stands in Location and Link. */
  readonly basePath?: string
}

export type PetStoreServerOptions = (MemoryOptions | FileOptions) & {
  /** 0, a free one, unless given. */
  readonly port?: number
  /** 127.0.0.1 unless given. */
  readonly host?: string
  /** Other time limits than those of the README, in milliseconds. */
  readonly timeLimits?: {
    readonly headersMs?: number
    readonly requestMs?: number
    readonly checkEveryMs?: number
    readonly idleMs?: number
    readonly closeMs?: number
  }
}

export interface PetStoreHandle {
  /** For `http.createServer(listener)`, or for an app to call. */
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void
  /** How many pets there are now. */
  countPets(): number
  /** Back to the pets that it was made with; with a data file, to what the file says now. */
  reset(): Promise<void>
  /** Finishes what is in flight, 5 s at most, and releases the file and the port. Can be called again. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface PetStoreServer extends PetStoreHandle {
  /** Where it listens, such as `http://127.0.0.1:3000`, without a path. */
  readonly url: string
}

/** Makes the service without listening. Rejects when the data file cannot be used or an option is wrong. */
export async function createPetStore(options: PetStoreOptions): Promise<PetStoreHandle> {
  const { handle } = await assemble(options)
  return handle
}

/** Starts the service. Rejects as createPetStore does, and with the system's error when it cannot listen. */
export async function startPetStore(options: PetStoreServerOptions): Promise<PetStoreServer> {
  const { handle, app } = await assemble(options)
  const listener = createListener(app, options.timeLimits)
  try {
    const { address, port } = await listener.listen(options.port ?? 0, options.host ?? '127.0.0.1')
    let closed: Promise<void> | undefined
    const close = (): Promise<void> => {
      // In this order: what has arrived is in flight, and not refused.
      closed ??= listener.close().then(handle.close)
      app.beginClosing()
      return closed
    }
    return { ...handle, url: formatUrl(address, port), close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function assemble(options: PetStoreOptions): Promise<{ handle: PetStoreHandle; app: App }> {
  const { apiKeys, corsOrigins, basePath, onAnswer, onFault } = options
  const page = await loadPage()
  const store = await openStore(options)
  try {
    const app = createApp({ store, apiKeys, corsOrigins, basePath, page, onAnswer, onFault })
    const close = (): Promise<void> => {
      app.beginClosing()
      return store.close()
    }
    const handle = {
      listener: (request: IncomingMessage, response: ServerResponse) => app.handle(request, response),
      countPets: () => store.size,
      reset: () => store.reset(),
      close,
      [Symbol.asyncDispose]: close,
    }
    return { handle, app }
  } catch (error) {
    await store.close()
    throw error
  }
}

function openStore(options: PetStoreOptions): PetStore | Promise<PetStore> {
  // The types say it too, but not to JavaScript.
  if ((options.pets === undefined) === (options.dataFile === undefined)) {
    throw new TypeError('pets, dataFile: expected one of the two')
  }
  if (options.pets !== undefined) return createMemoryStore(options.pets)
  const { dataFile, onLine } = options
  return openPetStore(dataFile, onLine === undefined ? {} : { say: onLine })
}

/** The address as a client on this machine writes it: every address (0.0.0.0, ::) is reached by loopback. */
function formatUrl(address: string, port: number): string {
  const reachable = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

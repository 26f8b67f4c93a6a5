/** The service for a program to start, or for an app to mount: puts store, app and listener together. No globals. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, type App, createApp } from './app.ts'
import { createListener, type TimeLimits } from './http/listener.ts'
import { loadPage } from './page.ts'
import type { SeedPet } from './pets/pet.ts'
import { createMemoryStore, openPetStore, type PetStore } from './pets/pet-store.ts'

interface CommonOptions {
  /** At least one key that clients send as `Authorization: Bearer <key>`. */
  readonly apiKeys: readonly string[]
  /** Origins whose pages may call; `*` unless given, an empty list for none. */
  readonly corsOrigins?: '*' | readonly string[]
  /** Takes the lines that concern the data file, such as `reloaded 12 pets: …`. Nothing is printed. */
  readonly onLine?: (line: string) => void
  /** Called for every answer, to log or to count. */
  readonly onAnswer?: (answer: Answer) => void
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
  readonly timeLimits?: Partial<TimeLimits>
}

export interface PetStoreHandle {
  /** For `http.createServer(listener)`, or for an app to call. */
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void
  /** How many pets there are now. */
  countPets(): number
  /** Back to the pets that it was made with; with a data file, to what the file says now. */
  reset(): Promise<void>
  /** Finishes what is in flight, 5 s at most, and gives the file and the port free. Can be called again. */
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
    const close = async (): Promise<void> => {
      app.beginClosing()
      await listener.close()
      await handle.close()
    }
    return { ...handle, url: formatUrl(address, port), close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function assemble(options: PetStoreOptions): Promise<{ handle: PetStoreHandle; app: App }> {
  const { apiKeys, corsOrigins, basePath, onAnswer } = options
  const page = await loadPage()
  const store = await openStore(options)
  try {
    const app = createApp({ store, apiKeys, corsOrigins, basePath, page, onAnswer })
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
  if (options.pets !== undefined) return createMemoryStore(options.pets)
  const { dataFile, onLine } = options
  return openPetStore(dataFile, onLine === undefined ? {} : { say: onLine })
}

/** The address as a client on this machine writes it: every address (0.0.0.0, ::) is reached by loopback. */
function formatUrl(address: string, port: number): string {
  const reachable = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

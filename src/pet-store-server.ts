/** Assembles the service from store, core and doors, for a program to start or an app to mount. Has no global state. */
import { createRequestHandler } from './api/request-handler.ts'
import { defaultTimeouts } from './http/limits.ts'
import { createFetch, createListener } from './http/doors.ts'
import { createHttpServer } from './http/server.ts'
import {
  guardCallbacks,
  checkDisturbance,
  checkOptions,
  petStoreSchemas,
  petStoreServerSchemas,
} from './options/embedding-options.ts'
import type {
  PetStoreHandle,
  PetStoreOptions,
  PetStoreServer,
  PetStoreServerOptions,
  StorageHandle,
  StorageOptions,
  StorageServer,
} from './options/types.ts'
import { FileStore, openFileStore } from './store/file-store.ts'
import { MemoryStore } from './store/memory-store.ts'
import { createStorageStore } from './store/storage-store.ts'
import type { Store } from './store/store.ts'
import { clock } from './system/clock.ts'
import { errorCode } from './system/errors.ts'

type AnyOptions = PetStoreOptions | PetStoreOptions<StorageOptions>

/** Creates the service without listening. Rejects if the data file cannot be used or an option is wrong. */
export async function createPetStore(options: PetStoreOptions<StorageOptions>): Promise<StorageHandle>
export async function createPetStore(options: PetStoreOptions): Promise<PetStoreHandle>
export async function createPetStore(options: AnyOptions): Promise<StorageHandle> {
  checkOptions(options, petStoreSchemas)
  return createHandle(await openService(options))
}

/** Starts the service. Rejects as createPetStore does, and if it cannot listen, with a sentence and the system's `code`. */
export async function startPetStore(options: PetStoreServerOptions<StorageOptions>): Promise<StorageServer>
export async function startPetStore(options: PetStoreServerOptions): Promise<PetStoreServer>
export async function startPetStore(options: PetStoreServerOptions<AnyOptions>): Promise<StorageServer> {
  if (process.versions['bun'] !== undefined) throw new ListenError(bunSentence, undefined)
  checkOptions(options, petStoreServerSchemas)
  const { port: givenPort = 0, host = '127.0.0.1', timeouts } = options
  const server = createHttpServer(timeouts)
  const { address, port } = await server.listen(givenPort, host).catch((error: unknown) => {
    throw explainListenError(error, givenPort, host)
  })
  const service = await openService(options).catch(async (error: unknown) => {
    await server.close()
    throw error
  })
  server.serve(service.core)
  return { ...createHandle(service, server, timeouts?.closeMs), url: formatUrl(address, port) }
}

const bunSentence =
  'Bun does not run the server of Petstore: pass the fetch of createPetStore to Bun.serve, or start it with Node'

/**
 * A server's address as a URL for a client on this machine: every address (`0.0.0.0`, `::`) is reached by loopback. That of IPv4, since
 * `::` accepts it as well, and a machine may have no other. The `%` before a zone is escaped (RFC 6874), as curl expects it.
 */
export function formatUrl(address: string, port: number | string): string {
  const reachable = ['0.0.0.0', '::'].includes(address) ? '127.0.0.1' : address.replace('%', '%25')
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/** It cannot listen. The sentence names the setting to change. */
export class ListenError extends Error {
  /** The system's, such as EADDRINUSE; empty on Bun. */
  readonly code: string
  constructor(sentence: string, cause: unknown) {
    super(sentence, { cause })
    this.code = errorCode(cause)
  }
}

/** A ListenError if it is known what a person can change; otherwise the error as it is. */
export function explainListenError(error: unknown, port: number, host: string): unknown {
  const unknownHost = `HOST: ${host} could not be looked up; give an address, such as 0.0.0.0 for all addresses of this machine`
  const sentences: Partial<Record<string, string>> = {
    EADDRINUSE: `PORT: ${port} is taken by another program on ${host}; stop that program, or choose another port`,
    EACCES:
      port < 1024
        ? `PORT: ${port} needs a privilege that this user does not have; choose a port from 1024 on`
        : // Windows sets ranges of ports aside (netsh interface ipv4 show excludedportrange protocol=tcp).
          `PORT: ${port} is reserved by the system; choose another port`,
    EAFNOSUPPORT: `HOST: ${host} is an address of IPv6, which this system does not have; 0.0.0.0 listens on all of its addresses`,
    EINVAL: /^fe[89ab]/i.test(host)
      ? `HOST: ${host} is a link-local address, which needs an interface of this machine behind it, such as ${host.replace(/%.*/, '')}%eth0`
      : undefined,
    EADDRNOTAVAIL: `HOST: ${host} is not an address of this machine; 0.0.0.0 listens on all of its addresses`,
    ENOTFOUND: unknownHost,
    EAI_AGAIN: unknownHost,
  }
  const sentence = sentences[errorCode(error)]
  return sentence === undefined ? error : new ListenError(sentence, error)
}

async function openService(options: AnyOptions) {
  const callbacks = guardCallbacks(options)
  const store = await openStore(options, callbacks)
  return { store, core: createRequestHandler({ ...options, ...callbacks, store }) }
}

function openStore(
  options: AnyOptions,
  callbacks: ReturnType<typeof guardCallbacks>,
): Store | Promise<Store> {
  if (options.pets !== undefined) return new MemoryStore(options.pets)
  if (options.storage !== undefined) return createStorageStore(options.storage, callbacks.onMessage)
  return openFileStore(options.dataFile, callbacks)
}

function createHandle(
  { store, core }: Awaited<ReturnType<typeof openService>>,
  server?: ReturnType<typeof createHttpServer>,
  closeMs = defaultTimeouts.closeMs,
): StorageHandle {
  const closeOnce = async (): Promise<void> => {
    const deadline = clock.performanceNow() + closeMs
    if (server === undefined) core.beginClosing()
    else await server.close()
    await store.close(deadline)
  }
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => (closed ??= closeOnce())
  return {
    listener: createListener(core),
    fetch: createFetch(core),
    disturb(change) {
      checkDisturbance(change)
      core.disturb(change)
    },
    ...((store instanceof MemoryStore || store instanceof FileStore) && {
      countPets: () => store.size,
      // A rest parameter: if it had one of its own, `beforeEach(store.reset)` would wait for a callback in Jest.
      async reset(...pets: Parameters<MemoryStore['reset']>) {
        const done = store.reset(...pets)
        core.reset()
        server?.dropWaiting()
        return done
      },
    }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

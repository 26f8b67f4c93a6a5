/** Assembles the service from store, request handler and listener, for a program to start or an app to mount. Has no global state. */
import { createRequestHandler } from './api/request-handler.ts'
import { defaultTimeouts } from './http/limits.ts'
import { checkAddress, explainListenError } from './http/listen-error.ts'
import { createListener, formatUrl, type Listener } from './http/listener.ts'
import {
  guardCallbacks,
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
import { builtPage } from './page/load-page.ts'
import { createMemoryStore, openFileStore, LocalStore } from './store/local-store.ts'
import { createStorageStore } from './store/storage-store.ts'
import type { Store } from './store/store.ts'
import { openApiText, petsSchemaText } from './system/bundled-texts.ts'
import { clock } from './system/clock.ts'

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
  checkOptions(options, petStoreServerSchemas)
  const { port: givenPort = 0, host = '127.0.0.1', timeouts } = options
  // Now, since the store creates a missing data file: a start that a taken port refuses leaves none behind.
  await checkAddress(givenPort, host)
  const service = await openService(options)
  const listener = createListener(service.requestHandler, timeouts)
  try {
    const { address, port } = await listener.listen(givenPort, host)
    return { ...createHandle(service, listener, timeouts?.closeMs), url: formatUrl(address, port) }
  } catch (error) {
    await service.store.close()
    throw explainListenError(error, givenPort, host)
  }
}

type Callbacks = ReturnType<typeof guardCallbacks>
type Service = Awaited<ReturnType<typeof openService>>

async function openService(options: AnyOptions) {
  const callbacks = guardCallbacks(options)
  const store = await openStore(options, callbacks)
  const texts = { page: builtPage, petsSchema: petsSchemaText, openApi: openApiText }
  return { store, requestHandler: createRequestHandler({ ...options, ...callbacks, ...texts, store }) }
}

function openStore(options: AnyOptions, callbacks: Callbacks): Store | Promise<Store> {
  if (options.pets !== undefined) return createMemoryStore(options.pets)
  if (options.storage !== undefined) return createStorageStore(options.storage, callbacks.onMessage)
  return openFileStore(options.dataFile, callbacks)
}

function createHandle(
  { store, requestHandler }: Service,
  listener?: Listener,
  closeMs = defaultTimeouts.closeMs,
): StorageHandle {
  const closeOnce = async (): Promise<void> => {
    const deadline = clock.performanceNow() + closeMs
    // This call passes the requests that only waited for the event loop to the request handler. After it, that may refuse new ones.
    const listenerClosed = listener?.close()
    requestHandler.beginClosing()
    await listenerClosed
    await store.close(deadline)
  }
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => {
    // A callback such as `onResponse` may call this while requests that arrived together are handled: the others come first.
    closed ??= Promise.resolve().then(closeOnce)
    return closed
  }
  return {
    listener: (request, response) => void requestHandler.handle({ request, response }),
    ...(store instanceof LocalStore && { countPets: () => store.size, reset: () => store.reset() }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

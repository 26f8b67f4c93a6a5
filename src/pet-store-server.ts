/**
 * Assembles the service from store, core and doors, for a program to start or an app to mount. Has no global
 * state.
 */
import { createCore } from './api/core.ts'
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
import { openFileStore } from './store/file-store.ts'
import { MemoryStore } from './store/memory-store.ts'
import { createStorageStore } from './store/storage-store.ts'
import { type LocalStore, storeClosed, type Store } from './store/store.ts'
import { clock } from './system/clock.ts'

type AnyOptions = PetStoreOptions | StorageOptions

/**
 * Creates the service without listening; a local store has more methods (see toHandle). Rejects if the data
 * file cannot be used or an option is wrong.
 */
export async function createPetStore(options: StorageOptions): Promise<StorageHandle>
export async function createPetStore(options: PetStoreOptions): Promise<PetStoreHandle>
export async function createPetStore(options: AnyOptions): Promise<StorageHandle> {
  checkOptions(options, petStoreSchemas)
  return toHandle(await openService(options))
}

/**
 * Starts the service. Rejects as createPetStore does, and if it cannot listen, with a sentence and the
 * system's `code`.
 */
export async function startPetStore(options: PetStoreServerOptions<StorageOptions>): Promise<StorageServer>
export async function startPetStore(options: PetStoreServerOptions): Promise<PetStoreServer>
export async function startPetStore(options: PetStoreServerOptions<AnyOptions>): Promise<StorageServer> {
  checkOptions(options, petStoreServerSchemas)
  const { port = 0, host = '127.0.0.1', timeouts } = options
  const server = createHttpServer(timeouts)
  const url = await server.listen(port, host)
  const service = await openService(options).catch(async (error: unknown) => {
    await server.close()
    throw error
  })
  server.serve(service.core)
  return { ...toHandle(service, server, timeouts?.closeMs), url }
}

async function openService(options: AnyOptions) {
  const callbacks = guardCallbacks(options)
  const opened = await openStore(options, callbacks)
  return { ...opened, core: createCore({ ...options, ...callbacks, store: opened.store }) }
}

/** `local` is the same store again if it has its pets in this process; undefined over a PetStorage. */
async function openStore(
  options: AnyOptions,
  callbacks: ReturnType<typeof guardCallbacks>,
): Promise<{ readonly store: Store; readonly local?: LocalStore }> {
  if (options.storage !== undefined)
    return { store: createStorageStore(options.storage, callbacks.onMessage) }
  const local =
    options.pets === undefined
      ? await openFileStore(options.dataFile, callbacks)
      : new MemoryStore(options.pets)
  return { store: local, local }
}

function toHandle(
  { store, local, core }: Awaited<ReturnType<typeof openService>>,
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
      if (closed !== undefined) throw storeClosed()
      core.disturb(change)
    },
    ...(local !== undefined && {
      countPets: () => local.size,
      // In `beforeEach(store.reset)`, Jest would take a named parameter for its callback, and wait until it is
      // called. A rest parameter does not count.
      async reset(...pets: Parameters<LocalStore['reset']>) {
        if (closed !== undefined) throw storeClosed()
        const done = local.reset(...pets)
        core.reset()
        server?.dropWaiting()
        return done
      },
    }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

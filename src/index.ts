/** What embedding code imports as `petstore`. It touches no environment, no console and no signal. */
export { createPetStore, startPetStore } from './pet-store-server.ts'
export type {
  FileOptions,
  Int64,
  MemoryOptions,
  NewPet,
  Pet,
  PetPage,
  PetQuery,
  PetStatus,
  PetStorage,
  PetStoreHandle,
  PetStoreOptions,
  PetStoreServer,
  PetStoreServerOptions,
  RequestLog,
  SeedPet,
  StorageHandle,
  StorageOptions,
  StorageServer,
} from './types.ts'

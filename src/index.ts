/** What embedding code imports as `petstore`. It touches no environment, no console and no signal. */
export { createPetStore, startPetStore } from './pet-store-server.ts'
export type {
  FileOptions,
  MemoryOptions,
  PetStoreHandle,
  PetStoreOptions,
  PetStoreServer,
  PetStoreServerOptions,
} from './pet-store-server.ts'
export type { Answer } from './app.ts'
export type { Int64 } from './int64.ts'
export type { SeedPet } from './pets/pet.ts'

/** What embedding code imports as `petstore`. It touches no environment, no console and no signal. */
export { createPetStore, startPetStore } from './pet-store-server.ts'
export type * from './types.ts'

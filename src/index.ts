/** What embedding code imports as `petstore`. Touches neither environment, console nor signals. */
export { createPetStore, startPetStore } from './pet-store-server.ts'
export type * from './options/types.ts'

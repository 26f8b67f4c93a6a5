/** Fastify 5 with schemas, the pets in memory. */
import { createMemoryStore, serve } from './fastify-app.mjs'
import { readPets } from './listen.mjs'

await serve(createMemoryStore(readPets()))

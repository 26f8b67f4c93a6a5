/** Fastify 5 with schemas, the pets in memory. */
import { serve } from './fastify-app.mjs'
import { readPets } from './listen.mjs'
import { createMemoryStore } from './memory-store.mjs'

await serve(createMemoryStore(readPets()))

/** Fastify 5 with lowdb as it comes: every creation waits for a rewrite of the file, none for the disk. */
import { JSONFilePreset } from 'lowdb/node'
import { createMemoryStore, serve } from './fastify-app.mjs'
import { task } from './listen.mjs'

const db = await JSONFilePreset(task.petsFile, { pets: [] })
await serve(createMemoryStore(db.data.pets, () => db.write()))

/** Fastify 5 with lowdb as it comes: every creation waits for a rewrite of the file, and none for the disk. */
import { JSONFilePreset } from 'lowdb/node'
import { serve } from './fastify-app.mjs'
import { setup } from './listen.mjs'
import { createMemoryStore } from './memory-store.mjs'

const db = await JSONFilePreset(setup.petsFile, { pets: [] })
const store = createMemoryStore(db.data.pets)
await serve({
  ...store,
  async add(newPet) {
    const added = store.add(newPet)
    await db.write()
    return added
  },
})

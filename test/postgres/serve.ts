/** A server on PostgreSQL, as an embedder would write it. Prints its address, and then its messages. */
import { Pool } from 'pg'
import { startPetStore } from '../../src/index.ts'
import { createPostgresStorage } from './postgres-storage.ts'

const pool = new Pool({
  connectionString: process.env['DATABASE_URL'],
  connectionTimeoutMillis: 10_000,
  query_timeout: 10_000,
})
const store = await startPetStore({
  apiKeys: [process.env['API_KEY'] ?? ''],
  storage: createPostgresStorage(pool),
  onMessage: (message) => console.log(message),
  onError: (message) => console.error(message),
})
console.log(store.url)
process.once('SIGTERM', async () => {
  await store.close()
  await pool.end()
})

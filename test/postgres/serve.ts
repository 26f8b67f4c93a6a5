/** A server on PostgreSQL, as an embedder would write it. Prints its address, and then its messages. */
import { Pool } from 'pg'
import { startPetStore } from '../../src/index.ts'
import { createPostgresStorage } from './postgres-storage.ts'

const pool = new Pool({
  connectionString: process.env['DATABASE_URL'],
  connectionTimeoutMillis: 10_000,
  // query_timeout only stops waiting: without the other, a creation that was refused could still wait for a lock, and store its
  // pets later.
  query_timeout: 10_000,
  statement_timeout: 8_000,
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
  // Not `pool.end()`, which would wait for a database that does not respond. The connections close with the process.
  process.exit(0)
})

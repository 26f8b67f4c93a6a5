/** What embedding code imports as `petstore/postgres`, for a pool of its own. Imports no package when it runs. */

export { createPostgresStorage, prepareTables } from './postgres/postgres-storage.ts'
export type { PostgresClient, PostgresPool } from './postgres/postgres-storage.ts'

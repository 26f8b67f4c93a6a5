/** What embedding code imports as `petstore/postgres`, for a pool of its own. Imports no package when it runs. */

export { createPostgresStorage } from './postgres/postgres-storage.ts'
export { prepareTables } from './postgres/tables.ts'
export type { PostgresClient, PostgresPool } from './postgres/tables.ts'

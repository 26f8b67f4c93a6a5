/**
 * What embedding code imports as `petstore/postgres`, for a pool of its own. Imports no package when it runs.
 */

export type { PostgresClient, PostgresPool } from './postgres/connections.ts'
export { createPostgresStorage, prepareTables } from './postgres/postgres-storage.ts'

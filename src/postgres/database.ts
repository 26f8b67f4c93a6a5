/** Opens the database of the program: connects, waits for one that is not there yet, and says what a person should know of it. */
import { formatPetCount } from '../pet/pet.ts'
import { clock, delay } from '../system/clock.ts'
import { errorCode, isError } from '../system/errors.ts'
import { parseDatabaseUrl } from './database-url.ts'
import { createPostgresStorage } from './postgres-storage.ts'
import { DatabaseUnusable, describeError, query, prepareTables, type PostgresPool } from './tables.ts'

export type Database = Awaited<ReturnType<typeof openDatabase>>

/** How long a database that is not there yet is waited for. */
const maxWaitMs = 30_000
const retryMs = 500
/**
 * A query_timeout only stops waiting: behind somebody's open transaction, a creation would be refused, and stored when that has ended. So
 * PostgreSQL itself gives up before, by its statement_timeout.
 */
const limits = { connectionTimeoutMillis: 10_000, query_timeout: 10_000, statement_timeout: 8_000 }
/** More are counted by SQL only. */
const maxCount = 1_000_000

const look = `
  SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly",
    (SELECT format('ALTER ROLE %I SET statement_timeout = ''${limits.statement_timeout / 1_000}s''', current_user)
      FROM pg_settings WHERE name = 'statement_timeout' AND setting::int NOT BETWEEN 1 AND ${limits.query_timeout - 1}) AS remedy,
    (SELECT count(*)::int FROM (SELECT FROM pets LIMIT ${maxCount + 1}) AS counted) AS count`

/**
 * Gives the storage, its pool, and for the start text `shown`, the address without the password, and `pets`, how many there are. Throws a
 * DatabaseUnusable.
 */
export async function openDatabase(url: string, env: NodeJS.ProcessEnv, say: (message: string) => void) {
  const { shown, password, ...address } = parseDatabaseUrl(url, env)
  // Half of the built file: evaluated only now.
  const { Pool } = await import('pg')
  const config = {
    // What is not said here, or is empty, pg takes from the environment.
    ...address,
    password: () => password,
    application_name: 'petstore',
    sslnegotiation: 'postgres' as const,
    ...limits,
    // A start that fails, an import and an export end by themselves.
    allowExitOnIdle: true,
  }
  const deadline = clock.performanceNow() + maxWaitMs
  for (let failures = 0; ; await delay(retryMs)) {
    const pool: PostgresPool = new Pool(config)
    try {
      await prepareTables(pool)
      return { pool, storage: createPostgresStorage(pool), shown, pets: await describePets(pool, say) }
    } catch (error) {
      const reason = `the database ${shown}: ${describeError(error)}`
      // So says PgBouncer, which lends one connection to many clients.
      if (reason.endsWith('unsupported startup parameter: statement_timeout')) config.statement_timeout = 0
      else if (!isPassing(error) || clock.performanceNow() > deadline) throw new DatabaseUnusable(reason)
      else if (failures++ === 0) say(`waiting 30 s at most for ${reason}`)
    }
  }
}

/** Whether it may be over in a moment: nobody listens yet, or the database starts, fails over or has no connection left. */
function isPassing(error: unknown): boolean {
  // tables.ts has wrapped it if there was no connection.
  const cause = (isError(error) && error.cause) || error
  const [code, message] = [errorCode(cause), describeError(cause)]
  // A pooler gives what it will never take the SQLSTATE of what has failed for a moment.
  if (message.startsWith('unsupported startup parameter')) return false
  // A SQLSTATE of PostgreSQL's, a code of the system's, or none for what pg has found.
  return code === '' ? /timeout|terminated/.test(message) : /^(?:08|53|57|E(?:AI_)?[A-Z]+$)/.test(code)
}

/** Returns how many there are, in words. Says what the database does not do as it should. */
async function describePets(pool: PostgresPool, say: (message: string) => void): Promise<string> {
  const [state] = await query<{ isReadOnly: boolean; remedy: string | null; count: number }>(pool, look)
  if (state?.isReadOnly) say('The database is read-only: pets can be listed, but not added')
  if (state?.remedy)
    say(`The pooler sets no statement_timeout, so a refused pet may be stored later; run: ${state.remedy}`)
  const { count = 0 } = state ?? {}
  return count > maxCount ? `more than ${maxCount} pets` : formatPetCount(count)
}

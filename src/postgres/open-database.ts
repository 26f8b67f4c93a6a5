/** Opens the database of the program: connects, waits for one that is not there yet, and says what a person should know of it. */
import { formatPetCount } from '../pet/pet.ts'
import { clock, delay } from '../system/clock.ts'
import { errorCode, isError } from '../system/errors.ts'
import { parseDatabaseUrl } from './database-url.ts'
import { DatabaseUnusable, describeError, type PostgresPool, query } from './pool.ts'
import { createPostgresStorage } from './postgres-storage.ts'
import { prepareTables } from './tables.ts'

export type Database = Awaited<ReturnType<typeof openDatabase>>

/** How long a database that is not there yet is waited for. */
const maxWaitMs = 30_000
const retryMs = 500
const queryTimeoutMs = 10_000
/**
 * A query_timeout only stops waiting: behind somebody's open transaction, a creation would be refused, and stored when that has ended. So
 * PostgreSQL itself gives up before.
 */
const statementTimeoutMs = 8_000
/** More are counted by SQL only. */
const maxCount = 1_000_000

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
    connectionTimeoutMillis: queryTimeoutMs,
    query_timeout: queryTimeoutMs,
    // A start that fails, an import and an export end by themselves.
    allowExitOnIdle: true,
  }
  let pool: PostgresPool = new Pool({ ...config, statement_timeout: statementTimeoutMs })
  const deadline = clock.performanceNow() + maxWaitMs
  for (let isTold = false; ; await delay(retryMs)) {
    try {
      await prepareTables(pool)
      return { pool, storage: createPostgresStorage(pool), shown, pets: await describePets(pool, say) }
    } catch (error) {
      const reason = `the database ${shown}: ${describeError(error)}`
      if (reason.endsWith('unsupported startup parameter: statement_timeout')) {
        // PgBouncer, which lends one connection to many clients.
        pool = new Pool(config)
        continue
      }
      if (!isPassing(error) || clock.performanceNow() > deadline) throw new DatabaseUnusable(reason)
      if (!isTold) say(`waiting 30 s at most for ${reason}`)
      isTold = true
    }
  }
}

/** Whether it may be over in a moment: nobody listens yet, or the database starts, fails over or has no connection left. */
function isPassing(error: unknown): boolean {
  // pool.ts has wrapped it if there was no connection.
  const cause = isError(error) && error.cause !== undefined ? error.cause : error
  const code = errorCode(cause)
  // PostgreSQL's own have a severity, and a SQLSTATE as their code.
  if (isError(cause) && 'severity' in cause)
    // A pooler gives what it will never take the same code as what has failed for a moment.
    return /^(?:08|53|57)/.test(code) && !cause.message.startsWith('unsupported startup parameter')
  return code === '' ? /timeout|terminated/.test(describeError(cause)) : /^E(?:AI_)?[A-Z]+$/.test(code)
}

/** Returns how many there are, in words. Says what the database does not do as it should. */
async function describePets(pool: PostgresPool, say: (message: string) => void): Promise<string> {
  const [state] = await query<{ readOnly: boolean; timeoutMs: number; role: string; count: number }>(
    pool,
    `SELECT current_setting('transaction_read_only') = 'on' AS "readOnly", quote_ident(current_user) AS role,
       (SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout') AS "timeoutMs",
       (SELECT count(*)::int FROM (SELECT FROM pets LIMIT ${maxCount + 1}) AS counted) AS count`,
  )
  const { readOnly = false, timeoutMs = 0, role = '', count = 0 } = state ?? {}
  if (readOnly) say('The database is read-only: pets can be listed, but not added')
  if (timeoutMs === 0 || timeoutMs >= queryTimeoutMs) {
    const remedy = `ALTER ROLE ${role} SET statement_timeout = '${statementTimeoutMs / 1_000}s'`
    say(`The pooler sets no statement_timeout, so a refused pet may be stored later; run: ${remedy}`)
  }
  return count > maxCount ? `more than ${maxCount} pets` : formatPetCount(count)
}

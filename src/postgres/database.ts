/**
 * Opens the database of the program: waits for one that is not there yet, and says what a person should know
 * of it.
 */
import type { ClientBase } from 'pg'
import { clock, delay } from '../system/clock.ts'
import { describeError, errorCode, isError } from '../system/errors.ts'
import { DatabaseUnusable, query, type PostgresPool } from './connections.ts'
import type { DatabaseAddress } from './database-url.ts'
import { createPostgresStorage, prepareTables } from './postgres-storage.ts'

export type Database = Awaited<ReturnType<typeof connectDatabase>>

const maxWaitMs = 30_000
const retryMs = 500
/**
 * A query_timeout only stops waiting: a creation behind somebody's lock would be refused, and stored later.
 * So PostgreSQL itself gives up before, by its statement_timeout.
 */
const statementTimeouts = { query_timeout: 10_000, statement_timeout: 8_000 }
/**
 * When the database has no connection left, a server waits 10 s at most until another server gives one back.
 * So an idle connection is closed before.
 */
const idleTimeoutMillis = 4_000
const noPassword = 'it asks for a password, and none was given; put it into the address, or set PGPASSWORD'

/**
 * Gives a row if the session is as target_session_attrs says. There is one host, so prefer-standby takes any
 * session.
 */
const checkSession = `SELECT WHERE $1 IN ('prefer-standby',
  CASE current_setting('transaction_read_only') WHEN 'on' THEN 'read-only' ELSE 'read-write' END,
  CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END)`

const lookForWarnings = `
  SELECT 'The database is read-only: pets can be listed, but not added' AS warning
  WHERE current_setting('transaction_read_only') = 'on'
  UNION ALL SELECT format('The pooler sets no statement_timeout, so a refused pet may be stored later; run: '
    'ALTER ROLE %I SET statement_timeout = ''${statementTimeouts.statement_timeout / 1_000}s''', current_user)
  FROM pg_settings WHERE name = 'statement_timeout' AND setting::int NOT BETWEEN 1 AND ${statementTimeouts.query_timeout - 1}`

/**
 * Gives the pool and the storage, and `shown`, the address without the password. Throws a DatabaseUnusable.
 */
export async function connectDatabase(
  { address, password, session, shown, notes }: DatabaseAddress,
  say: (message: string) => void,
) {
  for (const note of notes) say(note)
  // pg is half of the built file, so it is evaluated only now.
  const { Pool } = await import('pg')
  const config = {
    // pg takes from the environment what is not said here, or is empty.
    ...address,
    password() {
      if (password === '') throw new DatabaseUnusable(noPassword)
      return password
    },
    sslnegotiation: 'postgres' as const,
    ...statementTimeouts,
    idleTimeoutMillis,
    // Otherwise an import, an export or a start that fails would end only when its idle connections do.
    allowExitOnIdle: true,
    async onConnect(client: ClientBase) {
      if (session === 'any') return
      const { rows } = await client.query(checkSession, [session])
      if (rows.length === 0) throw new Error(`target_session_attrs: it is not ${session}`)
    },
  }
  const deadline = clock.performanceNow() + maxWaitMs
  let isTold = false
  for (; ; await delay(retryMs)) {
    const pool: PostgresPool = new Pool(config)
    try {
      await prepareTables(pool)
      for (const { warning } of await query<{ warning: string }>(pool, lookForWarnings)) say(warning)
      return { pool, storage: createPostgresStorage(pool), shown }
    } catch (error) {
      const reason = `the database ${shown}: ${describeError(error)}`
      // PgBouncer says so: it hands no such parameter on
      // (https://github.com/pgbouncer/pgbouncer/issues/1074).
      if (reason.endsWith('unsupported startup parameter: statement_timeout')) config.statement_timeout = 0
      else if (!isPassing(error) || clock.performanceNow() > deadline) throw new DatabaseUnusable(reason)
      else if (!isTold) {
        say(`waiting ${maxWaitMs / 1_000} s at most for ${reason}`)
        isTold = true
      }
    }
  }
}

/**
 * Returns whether the failure may be over in a moment: the database starts, fails over or has no connection
 * left.
 */
function isPassing(error: unknown): boolean {
  // Where there was no connection, withClient gives the reason as the cause.
  const cause = (isError(error) && error.cause) || error
  // These are SQLSTATEs of PostgreSQL's, but for 08P01, by which PgBouncer refuses a parameter; codes of the
  // system's, such as ECONNREFUSED; and the messages of what pg and we have found.
  const kinds = /^(?:08(?!P01)|53|57|E(?:AI_)?[A-Z]+$)|timeout|terminated|target_session_attrs/
  return kinds.test(errorCode(cause) || describeError(cause))
}

/**
 * Connections of a pool of pg's: how one is taken, used and given back, and how requests wait for one. Knows
 * no tables.
 */
import { clock } from '../system/clock.ts'
import { describeError, errorCode } from '../system/errors.ts'

/**
 * The database cannot be used as it is. The message is for the person who runs the server, and holds no
 * password.
 */
export class DatabaseUnusable extends Error {
  /** The error code of a creation that fails so (PetStorage). */
  readonly code = 'nothing_stored'
}

/** Columns are read as texts, also where the app's connections are binary and give buffers. */
const texts = { getTypeParser: () => String }

type Emitter = Pick<NodeJS.EventEmitter, 'off' | 'on'>

export interface PostgresClient extends Emitter {
  query(statement: { text: string; values: unknown[]; types: typeof texts }): Promise<{ rows: unknown[] }>
  release(isBroken: boolean): void
}

/** A `new Pool()` of pg. */
export interface PostgresPool extends Emitter {
  /** How many connections are open and not in use. */
  readonly idleCount: number
  readonly options: { readonly connectionTimeoutMillis?: number | undefined }
  connect(): Promise<PostgresClient>
}

/** A pool, or the line before it. */
export type Connections = Pick<PostgresPool, 'connect'>

/**
 * Without a listener for connections that break, Node would end the process
 * (https://nodejs.org/docs/latest-v20.x/api/events.html#error-events).
 */
const ignore = (): void => {}

export function ignoreBreaks(emitter: Emitter): void {
  emitter.off('error', ignore).on('error', ignore)
}

/** A connection on which something failed is closed, so that the database rolls back what was begun. */
export async function withClient<T>(connections: Connections, use: (client: PostgresClient) => Promise<T>) {
  const client = await connections.connect().catch((cause: unknown) => {
    throw new DatabaseUnusable(describeError(cause), { cause })
  })
  ignoreBreaks(client)
  const result = use(client)
  client.release(await result.then(() => false).catch(() => true))
  return result
}

export async function send<Columns>(client: PostgresClient, text: string, values: readonly unknown[] = []) {
  const statement = { text, values: [...values], types: texts }
  // The caller has written the statement, and knows its columns.
  return (await client.query(statement)).rows as readonly Columns[]
}

export const query = <Columns>(connections: Connections, text: string, values?: readonly unknown[]) =>
  withClient(connections, (client) => send<Columns>(client, text, values))

/**
 * PostgreSQL refuses a connection with this SQLSTATE if the role or the server has as many as it may have.
 */
const noneLeft = '53300'
/**
 * The first request in the line waits this long for a connection of ours before it asks for a new one, in
 * milliseconds.
 */
const askAgainMs = 200

/** A request in the line. */
interface Waiting {
  /** When it no longer waits (`clock.performanceNow()`). */
  readonly endMs: number
  readonly give: (client: PostgresClient) => void
  readonly refuse: (error: unknown) => void
}

/**
 * Makes a line before the pool. When the database has no connection left, requests wait in it, and the first
 * takes the next of ours that becomes free. There may be none: pg closes idle ones, and other servers take
 * their place. So from time to time the first also asks for a new one. None waits for longer than the pool's
 * own limit.
 */
export function waitInLine(pool: PostgresPool): Connections {
  const limitMs = pool.options.connectionTimeoutMillis || Infinity
  const line: Waiting[] = []

  async function serveLine(): Promise<void> {
    while (line.length > 0) {
      if (pool.idleCount === 0) await untilReleased(pool, askAgainMs)
      try {
        const client = await pool.connect()
        line.shift()?.give(client)
      } catch (error) {
        // Each waits while no connection is left, until its time is over. Any other failure is that of the
        // first, for which this has asked.
        if (errorCode(error) !== noneLeft) line.shift()?.refuse(error)
        while ((line[0]?.endMs ?? Infinity) <= clock.performanceNow()) line.shift()?.refuse(error)
      }
    }
  }

  return {
    async connect() {
      const endMs = clock.performanceNow() + limitMs
      // Whoever comes while others wait goes behind them.
      if (line.length === 0) {
        try {
          return await pool.connect()
        } catch (error) {
          if (errorCode(error) !== noneLeft) throw error
        }
      }
      return new Promise((give, refuse) => {
        const length = line.push({ endMs, give, refuse })
        if (length === 1) void serveLine()
      })
    },
  }
}

/** Resolves when a connection of the pool becomes free, or after `maxMs`. */
function untilReleased(pool: PostgresPool, maxMs: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clock.clearTimeout(timer)
      pool.off('release', end)
      resolve()
    }
    const timer = clock.setTimeout(end, maxMs)
    pool.on('release', end)
  })
}

/** A pool of pg's, as far as it is used here: an app can pass its own, and the types need no package. Knows neither tables nor pets. */
import { errorCode, isError } from '../system/errors.ts'

type Emitter = Pick<NodeJS.EventEmitter, 'off' | 'on'>

/** A connection that was taken from the pool. */
export interface PostgresClient extends Emitter {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>
  release(isBroken: boolean): void
}

/** A `new Pool()` of pg. */
export interface PostgresPool extends Emitter {
  connect(): Promise<PostgresClient>
}

/** The database cannot be used as it is. The message is for the person who runs the server, and holds no password. */
export class DatabaseUnusable extends Error {}

/** An error in words: that of several addresses that were tried has no message of its own. */
export function describeError(error: unknown): string {
  return isError(error) ? error.message || errorCode(error) : String(error)
}

/** For connections that break, as when the database stops: the pool drops them. Without a listener, Node would end the process. */
const ignore = (): void => {}

/** Gives `use` a connection. One on which something failed is closed, so that the database rolls back what was begun. */
export async function withClient<T>(pool: PostgresPool, use: (client: PostgresClient) => Promise<T>) {
  // Each has the listener once, however often it is used.
  pool.off('error', ignore).on('error', ignore)
  const client = await pool.connect().catch((cause: unknown) => {
    throw Object.assign(new Error(describeError(cause), { cause }), { code: 'nothing_stored' })
  })
  client.off('error', ignore).on('error', ignore)
  const result = use(client)
  client.release(await result.then(() => false).catch(() => true))
  return result
}

/** Sends one statement, whose columns are those of `Row`. */
export const query = <Row>(pool: PostgresPool, text: string, values?: readonly unknown[]) =>
  // Whoever wrote the statement knows the columns.
  withClient(pool, async (client) => (await client.query(text, values)).rows as readonly Row[])

/** The pool of pg's, as far as it is used here, since an app can pass its own; and the tables of the storage: makes them, and never alters one. */
import { petStatuses } from '../pet/pet.ts'
import { errorCode, isError } from '../system/errors.ts'

/**
 * A name is a JSON string, since text cannot hold U+0000; to read it as text: name #>> '{}'. pet_counter has one row, the last id that was
 * given. A creation updates it in the transaction that stores its pets, so ids become visible in the order in which they are given. A
 * sequence would not do: a list could show an id before a lower one is committed, and whoever pages by `after` would miss that pet.
 */
const createTables = `CREATE TABLE pets (
  id bigint PRIMARY KEY CHECK (id > 0),
  name json NOT NULL CHECK (json_typeof(name) = 'string'),
  category_id bigint NOT NULL,
  status text NOT NULL CHECK (status IN (${petStatuses.map((status) => `'${status}'`).join(', ')}))
);
CREATE INDEX pets_by_status ON pets (status, id);
CREATE TABLE pet_counter (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), last_id bigint NOT NULL);
INSERT INTO pet_counter (last_id) VALUES (0);
`

/** Fails if a table or a column is missing, or a name is no json. Gives a row that says what is wrong with the counter, if anything is. */
const check = `
  SELECT coalesce('is at ' || last_id || ', but there is a pet ' || highest_id, 'has no row') AS fault
  FROM (SELECT (SELECT last_id FROM pet_counter), (SELECT max(id) FROM pets) AS highest_id,
    (SELECT json_typeof(name) || category_id || status FROM pets LIMIT 0)) AS state
  WHERE last_id IS NULL OR last_id < highest_id`
const mendCounter =
  'DELETE FROM pet_counter; INSERT INTO pet_counter (last_id) SELECT coalesce(max(id), 0) FROM pets'

/** Makes the tables if they are missing; several servers may at once. Throws a DatabaseUnusable that says what to run. */
export async function prepareTables(pool: PostgresPool): Promise<void> {
  const look = () => query<{ fault: string }>(pool, check)
  const [wrong] = await look().catch(async (error: unknown) => {
    if (errorCode(error) !== '42P01') return explain(pool, error)
    // A table is missing. PostgreSQL takes statements that are sent together as one transaction. If another server makes the tables at the
    // same moment, this waits for its end and is then refused, even with IF NOT EXISTS; so a second look tells whether all is well.
    await query(pool, createTables).catch((refusal: unknown) => look().catch(() => explain(pool, refusal)))
    return look()
  })
  if (wrong !== undefined) throw new DatabaseUnusable(`pet_counter ${wrong.fault}; run: ${mendCounter}`)
}

/** Throws the error and, if the tables or the role's privileges are its reason (SQLSTATE class 42), what to run. */
async function explain(pool: PostgresPool, error: unknown): Promise<never> {
  if (!errorCode(error).startsWith('42')) throw error
  const [row] = await query<{ role: string }>(pool, 'SELECT quote_ident(current_user) AS role')
  const remedy =
    "have this run by a role that may or, if such a table is another program's, choose another database"
  const grants = `GRANT SELECT, INSERT ON pets TO ${row?.role};\nGRANT SELECT, UPDATE ON pet_counter TO ${row?.role};\n`
  throw new DatabaseUnusable(`${describeError(error)}; ${remedy}:\n\n${createTables}${grants}`)
}

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

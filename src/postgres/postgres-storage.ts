/**
 * Pets in PostgreSQL, on a pool of pg's: the tables, which are made and never altered, and the statements.
 */
import { normalizeInt64 } from '../json/int64.ts'
import { escapeNonAscii } from '../text/words.ts'
import { petStatuses, type EachMember, type Pet, type PetWithoutId } from '../pet/pet.ts'
import type { PetStorage } from '../store/store.ts'
import { describeError, errorCode } from '../system/errors.ts'
import {
  DatabaseUnusable,
  ignoreBreaks,
  query,
  waitInLine,
  type Connections,
  type PostgresPool,
} from './connections.ts'

interface Column {
  readonly name: string
  /** Its type and constraints. */
  readonly definition: string
  /** The value as a parameter: ASCII, whatever the client_encoding is; null if the pet has none. */
  readonly write: (pet: PetWithoutId) => string | null
  /** What is stored of the parameter, which has the column's name. */
  readonly stored: string
  /**
   * What is read, as ASCII text: an app may have given its pg parsers of its own, and a pooler's connection
   * any client_encoding.
   */
  readonly shown: string
}

/** Each member but the id has a column. A name is a JSON string, since text cannot hold U+0000. */
const columns: Omit<EachMember<Column>, 'id'> = {
  name: {
    name: 'name',
    definition: "json NOT NULL CHECK (json_typeof(name) = 'string')",
    write: ({ name }) => escapeNonAscii(JSON.stringify(name)),
    stored: 'name::json',
    shown: "encode(convert_to(name::text, 'UTF8'), 'hex')",
  },
  categoryId: {
    name: 'category_id',
    definition: 'bigint NOT NULL',
    write: ({ categoryId }) => String(categoryId),
    stored: 'category_id::bigint',
    shown: 'category_id::text',
  },
  status: {
    name: 'status',
    definition: `text NOT NULL CHECK (status IN (${petStatuses.map((status) => `'${status}'`).join(', ')}))`,
    write: ({ status }) => status,
    stored: 'status',
    shown: 'status::text',
  },
}
type Row = Record<'id' | 'name' | 'category_id', string> & Pick<Pet, 'status'>

function toPet({ id, name, category_id, status }: Row): Pet {
  return {
    id: normalizeInt64(BigInt(id)),
    name: JSON.parse(Buffer.from(name, 'hex').toString()),
    categoryId: normalizeInt64(BigInt(category_id)),
    status,
  } satisfies EachMember<unknown>
}

const columnList = Object.values(columns)
const columnNames = columnList.map(({ name }) => name).join(', ')
const storedValues = columnList.map(({ stored }) => stored).join(', ')
const shownValues = columnList.map(({ name, shown }) => `${shown} AS ${name}`).join(', ')
const columnParameters = columnList.map((_, index) => `$${index + 1}::text[]`).join(', ')

/** Returns the first parameters of insertPets. */
export function toColumns(pets: readonly PetWithoutId[]): readonly (readonly (string | null)[])[] {
  return columnList.map(({ write }) => pets.map(write))
}

/**
 * `id` is the expression of an id, in which `place` counts the pets from 1, and `source` is what else it is
 * made from.
 */
export const insertPets = (id: string, source = '') =>
  `INSERT INTO pets (id, ${columnNames}) SELECT ${id}, ${storedValues}
    FROM ${source} unnest(${columnParameters}) WITH ORDINALITY AS pet (${columnNames}, place)
    RETURNING id, ${columnNames}`

/** This parameter comes after those of toColumns. */
export const nextParameter = `$${columnList.length + 1}`

/**
 * pet_counter has one row, the last id that was given. A creation updates it in the transaction that stores
 * its pets. With a sequence, a list could show an id before a lower one is committed, and whoever pages by
 * `after` would miss that pet.
 */
const createTables = `CREATE TABLE pets (
  id bigint PRIMARY KEY CHECK (id > 0),
  ${columnList.map(({ name, definition }) => `${name} ${definition}`).join(',\n  ')}
);
CREATE INDEX pets_by_status ON pets (status, id);
CREATE TABLE pet_counter (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), last_id bigint NOT NULL);
INSERT INTO pet_counter (last_id) VALUES (0);
`

/** Fails if a table or a column is missing, or a name is no json. */
const checkTables = `SELECT last_id, json_typeof(name), ${columnNames} FROM pet_counter, pets WHERE id = 0`

/** Gives a row if the encoding lacks characters. The locale C goes with each encoding. */
const checkEncoding = `
  SELECT format('its encoding is %s, which cannot hold every name; run: CREATE DATABASE %I TEMPLATE template0 '
    'ENCODING ''UTF8'' LC_COLLATE ''C'' LC_CTYPE ''C'', and use that', encoding, current_database() || '_utf8') AS fault
  FROM current_setting('server_encoding') AS encoding WHERE encoding NOT IN ('UTF8', 'SQL_ASCII')`

const selectPage = `SELECT id::text, ${shownValues} FROM pets
  WHERE id > $1::bigint AND ($3::text IS NULL OR status = $3) ORDER BY pets.id LIMIT $2`
const selectPet = `SELECT id::text, ${shownValues} FROM pets WHERE id = $1::bigint`

/**
 * Somebody's trigger may drop rows without an error. A statement of SQL cannot raise one, but a cast of a text
 * that is no integer fails, and PostgreSQL quotes the text in its error message. So the text is what is wrong.
 */
export const checkCreated = `(SELECT CASE WHEN count(*) < cardinality($1::text[])
  THEN concat('a trigger keeps pets from being stored')::int END FROM created)`

/** Pets may have been inserted without the counter. */
export const raiseCounter = `UPDATE pet_counter SET last_id = highest_id
  FROM (SELECT max(id) AS highest_id FROM pets) AS stored WHERE last_id < highest_id`

// Of a table without statistics, PostgreSQL expects hundreds of rows, and so much work for each that it
// compiles the statement anew for each creation, which takes a hundred times as long as the rest
// (https://www.postgresql.org/docs/current/jit-decision.html). The LIMIT tells it that there is one row.
const oneCounter = '(SELECT before FROM counter LIMIT 1) AS counter'
// This is one statement, so that a server that dies in the middle leaves no lock behind. It gives no row if
// the counter has none, or no id left.
const create = `
  WITH counter AS (
    UPDATE pet_counter SET last_id = last_id + cardinality($1::text[])
    WHERE last_id <= 9223372036854775807 - cardinality($1::text[]) RETURNING last_id - cardinality($1::text[]) AS before
  ), created AS (
    ${insertPets('before + place', `${oneCounter},`)}
  ) SELECT id::text, ${shownValues}, ${checkCreated} FROM ${oneCounter} LEFT JOIN created ON true ORDER BY created.id`

const maxAttempts = 20
/**
 * After these SQLSTATEs, all is surely rolled back; after any other failure, the pets may be stored. An
 * owner's trigger may raise anything, so a pet is refused by each but those of connections, transactions,
 * syntax, resources and the system, and the system's own codes, such as EPIPE.
 */
const outcomes: readonly (readonly [code: string, sqlStates: RegExp])[] = [
  ['insufficient_storage', /^53100$/],
  ['nothing_stored', /^(?:40(?:001|P01)|25006|55P03|57014)$/],
  ['pet_refused', /^(?!08|25|28|40|42(?!501)|53|57|58|XX|E[A-Z])[\dA-Z]{5}$/],
]

/**
 * Give the pool a `connectionTimeoutMillis`, a `query_timeout` and a shorter `statement_timeout`
 * (src/postgres/README.md).
 */
export function createPostgresStorage(pool: PostgresPool): PetStorage {
  ignoreBreaks(pool)
  const connections = waitInLine(pool)
  let isChecked = false
  async function ask(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    if (!isChecked) await refuseEncoding(connections)
    isChecked = true
    return query<Row>(connections, text, values)
  }

  return {
    async list({ limit, status, after = 0 }) {
      // One pet too many tells whether there are more.
      const rows = await ask(selectPage, [String(after), limit + 1, status])
      return { pets: rows.slice(0, limit).map(toPet), hasMore: rows.length > limit }
    },
    get: async (id) => (await ask(selectPet, [String(id)])).map(toPet)[0],
    async create(newPets) {
      for (let attempt = 1; ; attempt++) {
        try {
          const rows = await ask(create, toColumns(newPets))
          if (rows.length > 0) return rows.map(toPet)
        } catch (error) {
          const sqlState = errorCode(error)
          const [code] = outcomes.find(([, sqlStates]) => sqlStates.test(sqlState)) ?? []
          if (/^40(?:001|P01)$/.test(sqlState) && attempt < maxAttempts) continue
          throw code === undefined ? error : Object.assign(new Error(describeError(error)), { code })
        }
        const reason = 'no id is left, or pet_counter has no row'
        throw Object.assign(new Error(reason), { code: 'insufficient_storage' })
      }
    },
  }
}

/**
 * Makes the tables if they are missing; several servers may at once. Throws a DatabaseUnusable that says what
 * to run.
 */
export async function prepareTables(pool: PostgresPool): Promise<void> {
  ignoreBreaks(pool)
  await refuseEncoding(pool)
  const check = () => query(pool, checkTables)
  await check().catch(async (error: unknown) => {
    if (errorCode(error) !== '42P01') return refuseWithRemedy(pool, error)
    // A table is missing. If another server makes the tables at the same moment, this waits for its end and
    // is then refused, even with IF NOT EXISTS; so a second check tells whether all is well.
    return query(pool, createTables).catch((refusal: unknown) =>
      check().catch(() => refuseWithRemedy(pool, refusal, createTables)),
    )
  })
  // A read-only database refuses this, and does not need it. And an import may hold the row.
  await query(pool, raiseCounter).catch((error: unknown) =>
    errorCode(error).startsWith('42') ? refuseWithRemedy(pool, error) : [],
  )
}

async function refuseEncoding(connections: Connections): Promise<void> {
  const [wrong] = await query<{ fault: string }>(connections, checkEncoding)
  if (wrong !== undefined) throw new DatabaseUnusable(wrong.fault)
}

/**
 * Says what to run if the tables or the role's privileges are the reason (SQLSTATE class 42). That is one
 * line, to be copied from a log, which has a time before each.
 */
async function refuseWithRemedy(pool: PostgresPool, error: unknown, missing = ''): Promise<never> {
  if (!errorCode(error).startsWith('42')) throw error
  const [row] = await query<{ role: string }>(pool, 'SELECT quote_ident(current_user) AS role')
  const remedy =
    "have this run by a role that may or, if such a table is another program's, choose another database"
  const grants = `GRANT SELECT, INSERT ON pets TO ${row?.role}; GRANT SELECT, UPDATE ON pet_counter TO ${row?.role};`
  throw new DatabaseUnusable(
    `${describeError(error)}; ${remedy}:\n${missing.replaceAll(/\s+/g, ' ')}${grants}`,
  )
}

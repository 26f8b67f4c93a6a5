/** Pets in PostgreSQL, in the tables of tables.ts, for any number of servers. */
import type { Pet, PetWithoutId } from '../pet/pet.ts'
import type { PetStorage } from '../store/store.ts'
import { errorCode } from '../system/errors.ts'
import { describeError, query, type PostgresPool } from './tables.ts'

// One statement is one transaction, and one round trip: a server that dies in the middle leaves no lock behind.
const create = `
  WITH counter AS (UPDATE pet_counter SET last_id = last_id + cardinality($3::text[]) RETURNING last_id),
  created AS (
    INSERT INTO pets (id, name, category_id, status)
    SELECT last_id - cardinality($3::text[]) + place, name::json, category_id, status FROM counter,
      unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY AS new_pet (name, category_id, status, place)
  ) SELECT last_id FROM counter`

const select = 'SELECT id, name, category_id, status FROM pets'
// PostgreSQL plans it anew for each call, and so finds a status by its index.
const selectPage = `${select} WHERE id > $1 AND ($3::text IS NULL OR status = $3) ORDER BY id LIMIT $2`

/** By SQLSTATE: the disk is full; the id after the last is more than a bigint holds. */
const noRoom = ['53100', '22003']
/** A conflict with another creation, which the isolation levels above READ COMMITTED report; a database that is read-only. */
const [conflict, readOnly] = ['40001', '25006']
const maxAttempts = 20

/** A row as pg reads it: an int8 is a string, and JSON is parsed. */
type Row = Record<'id' | 'name' | 'category_id', string> & Pick<Pet, 'status'>

function toPet({ id, name, category_id, status }: Row): Pet {
  return { id: BigInt(id), name, categoryId: BigInt(category_id), status }
}

/** The names, categories and statuses of the pets, as parameters of a statement. */
export function toColumns(pets: readonly PetWithoutId[]) {
  const names = pets.map(({ name }) => JSON.stringify(name))
  return [names, pets.map(({ categoryId }) => categoryId), pets.map(({ status }) => status)]
}

/**
 * Give the pool a `connectionTimeoutMillis`, a `query_timeout` and a shorter `statement_timeout` (README). The statements have no names, so
 * that they work through PgBouncer in transaction mode as well.
 */
export function createPostgresStorage(pool: PostgresPool): PetStorage {
  async function insert(newPets: readonly PetWithoutId[], attempt = 1): Promise<readonly Pet[]> {
    try {
      const [row] = await query<{ last_id: string }>(pool, create, toColumns(newPets))
      // Without the row in pet_counter, the service is given 0 as an id, and refuses it.
      const lastId = BigInt(row?.last_id ?? 0)
      return newPets.map((newPet, i) => ({ ...newPet, id: lastId - BigInt(newPets.length - 1 - i) }))
    } catch (error) {
      const sqlState = errorCode(error)
      if (sqlState === conflict && attempt < maxAttempts) return insert(newPets, attempt + 1)
      // All of these are rolled back. After any other failure, the pets may be stored.
      if (![...noRoom, conflict, readOnly].includes(sqlState)) throw error
      const code = noRoom.includes(sqlState) ? 'insufficient_storage' : 'nothing_stored'
      throw Object.assign(new Error(describeError(error)), { code })
    }
  }

  return {
    async list({ limit, status, after = 0 }) {
      // One pet too many tells whether there are more.
      const rows = await query<Row>(pool, selectPage, [after, limit + 1, status])
      return { pets: rows.slice(0, limit).map(toPet), hasMore: rows.length > limit }
    },
    get: async (id) => (await query<Row>(pool, `${select} WHERE id = $1`, [id])).map(toPet)[0],
    create: (newPets) => insert(newPets),
  }
}

/** Pets in PostgreSQL, in the tables of tables.ts, for any number of servers. */
import { errorCode } from '../system/errors.ts'
import type { Pet } from '../pet/pet.ts'
import type { PetStatus } from '../pet/pet-status.ts'
import type { PetStorage } from '../store/pet-storage.ts'
import { describeError, type PostgresPool, query } from './pool.ts'

// One statement is one transaction, and one round trip: a server that dies in the middle leaves no lock behind.
const create = `
  WITH counter AS (
    UPDATE pet_counter SET last_id = last_id + cardinality($3::text[])
    RETURNING last_id - cardinality($3::text[]) AS id_before
  ), created AS (
    INSERT INTO pets (id, name, category_id, status)
    SELECT id_before + place, name::json, category_id, status FROM counter,
      unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY AS new_pet (name, category_id, status, place)
  ) SELECT id_before FROM counter`

const select = 'SELECT id, name, category_id, status FROM pets'

/** By SQLSTATE: the disk is full; the id after the last is more than a bigint holds. Both are rolled back. */
const noRoom = ['53100', '22003']
/** A conflict with another creation, which the isolation levels above READ COMMITTED report; a database that is read-only. */
const conflict = '40001'
const rolledBack = [conflict, '25006']
const maxAttempts = 20

/** A row as pg reads it: an int8 is a string, and JSON is parsed. */
type Row = Record<'id' | 'name' | 'category_id', string> & { status: PetStatus }

function toPet({ id, name, category_id, status }: Row): Pet {
  return { id: BigInt(id), name, categoryId: BigInt(category_id), status }
}

/**
 * Give the pool a `connectionTimeoutMillis`, a `query_timeout` and a shorter `statement_timeout` (README). The statements have no names, so
 * that they work through PgBouncer in transaction mode as well.
 */
export function createPostgresStorage(pool: PostgresPool): PetStorage {
  async function insert(values: readonly unknown[], attempt = 1): Promise<string | undefined> {
    try {
      return (await query<{ id_before: string }>(pool, create, values))[0]?.id_before
    } catch (error) {
      const sqlState = errorCode(error)
      if (sqlState === conflict && attempt < maxAttempts) return insert(values, attempt + 1)
      const code = noRoom.includes(sqlState) ? 'insufficient_storage' : 'nothing_stored'
      const isKnown = [...noRoom, ...rolledBack].includes(sqlState)
      throw isKnown ? Object.assign(new Error(describeError(error)), { code }) : error
    }
  }

  return {
    async list({ limit, status, after = 0 }) {
      const [condition, values] = status === undefined ? ['', []] : ['AND status = $3', [status]]
      const text = `${select} WHERE id > $1 ${condition} ORDER BY id LIMIT $2`
      // One pet too many tells whether there are more.
      const rows = await query<Row>(pool, text, [after, limit + 1, ...values])
      return { pets: rows.slice(0, limit).map(toPet), hasMore: rows.length > limit }
    },
    async get(id) {
      return (await query<Row>(pool, `${select} WHERE id = $1`, [id])).map(toPet)[0]
    },
    async create(newPets) {
      const names = newPets.map(({ name }) => JSON.stringify(name))
      const categoryIds = newPets.map(({ categoryId }) => categoryId)
      const statuses = newPets.map(({ status }) => status)
      // Without the row in pet_counter, the service is given 0 as an id, and refuses it.
      const idBefore = BigInt((await insert([names, categoryIds, statuses])) ?? -1)
      return newPets.map((newPet, index) => ({ ...newPet, id: idBefore + BigInt(index + 1) }))
    },
  }
}

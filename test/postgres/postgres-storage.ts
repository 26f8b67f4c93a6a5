/**
 * Pets in PostgreSQL, in the tables of schema.sql, for any number of servers. Made to be copied: in a project of yours the
 * types come from 'petstore'.
 */
import type { Pool } from 'pg'
import type { Pet, PetStatus, PetStorage } from '../../src/index.ts'

// One statement is one transaction, and one round trip: a server that dies in the middle leaves no lock behind.
const create = `
  WITH counter AS (
    UPDATE pet_counter SET last_id = last_id + cardinality($3::text[]) RETURNING last_id - cardinality($3::text[]) AS id_before
  ), created AS (
    INSERT INTO pets (id, name, category_id, status)
    SELECT id_before + place, name, category_id, status FROM counter,
      unnest($1::json[], $2::bigint[], $3::text[]) WITH ORDINALITY AS new_pet (name, category_id, status, place)
  )
  SELECT id_before FROM counter`

const select = 'SELECT id, name, category_id, status FROM pets'
const listAll = `${select} WHERE id > $1 ORDER BY id LIMIT $2`
const listWithStatus = `${select} WHERE id > $1 AND status = $3 ORDER BY id LIMIT $2`
const get = `${select} WHERE id = $1`

/** A pet as pg reads it: an int8 is a string, and JSON is parsed. */
type Row = Record<'id' | 'name' | 'category_id', string> & { status: PetStatus }

function toPet({ id, name, category_id, status }: Row): Pet {
  return { id: BigInt(id), name, categoryId: BigInt(category_id), status }
}

/**
 * Give the pool a `connectionTimeoutMillis`, a `query_timeout` and a shorter `statement_timeout` (README.md). The statements have no
 * names, so that they work through PgBouncer in transaction mode as well.
 */
export function createPostgresStorage(pool: Pool): PetStorage {
  // Idle connections break when the database stops. The pool drops them, and opens others when they are needed.
  pool.on('error', () => {})
  return {
    async list({ limit, status, after = 0 }) {
      const text = status === undefined ? listAll : listWithStatus
      // One pet too many tells whether there are more.
      const values = [after, limit + 1, ...(status === undefined ? [] : [status])]
      const { rows } = await pool.query<Row>(text, values)
      return { pets: rows.slice(0, limit).map(toPet), hasMore: rows.length > limit }
    },
    async get(id) {
      const { rows } = await pool.query<Row>(get, [id])
      return rows.map(toPet)[0]
    },
    async create(newPets) {
      const names = newPets.map(({ name }) => JSON.stringify(name))
      const categoryIds = newPets.map(({ categoryId }) => categoryId)
      const statuses = newPets.map(({ status }) => status)
      const values = [names, categoryIds, statuses]
      const { rows } = await pool
        .query<{ id_before: string }>(create, values)
        .catch((error: { code?: string }) => {
          // The disk is full (53100), or the id after the last is more than a bigint holds (22003).
          if (error.code === '53100' || error.code === '22003') error.code = 'insufficient_storage'
          throw error
        })
      // Without the row in pet_counter, the service is given 0 as an id, and refuses it.
      const idBefore = BigInt(rows[0]?.id_before ?? -1)
      return newPets.map((newPet, index) => ({ ...newPet, id: idBefore + BigInt(index + 1) }))
    },
  }
}

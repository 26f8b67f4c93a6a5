/**
 * Pets in PostgreSQL, in the tables of schema.sql, for any number of servers. Made to be copied: in a project of yours the
 * types come from 'petstore'.
 */
import type { Pool } from 'pg'
import type { Pet, PetStatus, PetStorage } from '../../src/index.ts'

// One statement is one transaction, and one round trip: a server that dies in the middle leaves no lock behind.
const create = `
  WITH counter AS (
    UPDATE pet_counter SET last_id = last_id + cardinality($3::text[]),
      available = available + cardinality(array_positions($3::text[], 'available')),
      pending = pending + cardinality(array_positions($3::text[], 'pending')),
      sold = sold + cardinality(array_positions($3::text[], 'sold'))
    RETURNING last_id - cardinality($3::text[]) AS id_before
  ), created AS (
    INSERT INTO pets (id, name, category_id, status)
    SELECT id_before + place, name, category_id, status FROM counter,
      unnest($1::json[], $2::bigint[], $3::text[]) WITH ORDINALITY AS new_pet (name, category_id, status, place)
  )
  SELECT id_before FROM counter`

// One statement sees one state: the total belongs to the page. When the page is empty, one row has the total alone.
const list = (filter: string): string => `
  SELECT page.*, CASE $3::text WHEN 'available' THEN available WHEN 'pending' THEN pending WHEN 'sold' THEN sold
    ELSE available + pending + sold END AS total
  FROM pet_counter LEFT JOIN (
    SELECT id, name, category_id, status FROM pets WHERE id > $1 ${filter} ORDER BY id LIMIT $2
  ) AS page ON true ORDER BY id`
const listAll = { name: 'list', text: list('') }
const listWithStatus = { name: 'list-status', text: list('AND status = $3') }
const get = { name: 'get', text: 'SELECT id, name, category_id, status FROM pets WHERE id = $1' }

/** A pet as pg reads it: an int8 is a string, and JSON is parsed. */
type Row = Record<'id' | 'name' | 'category_id', string> & { status: PetStatus }

function toPet({ id, name, category_id, status }: Row): Pet {
  return { id: BigInt(id), name, categoryId: BigInt(category_id), status }
}

/**
 * Give the pool a `connectionTimeoutMillis` and a `query_timeout`, so that requests do not wait for a database that does
 * not answer. Close the pool after the service.
 */
export function createPostgresStorage(pool: Pool): PetStorage {
  // Idle connections break when the database stops. The pool drops them, and opens others when they are needed.
  pool.on('error', () => {})
  return {
    async list({ limit, status, after = 0 }) {
      // One pet too many tells whether there are more.
      const query = {
        ...(status === undefined ? listAll : listWithStatus),
        values: [after, limit + 1, status],
      }
      const { rows } = await pool.query<Row & { total: string }>(query)
      const pets = rows.filter(({ id }) => id !== null).map(toPet)
      // Without the row in pet_counter, the service is given -1, here and below, and refuses it.
      const total = BigInt(rows[0]?.total ?? -1)
      return { pets: pets.slice(0, limit), total, hasMore: pets.length > limit }
    },
    async get(id) {
      const { rows } = await pool.query<Row>({ ...get, values: [id] })
      return rows.map(toPet)[0]
    },
    async create(newPets) {
      const names = newPets.map(({ name }) => JSON.stringify(name))
      const categoryIds = newPets.map(({ categoryId }) => categoryId)
      const statuses = newPets.map(({ status }) => status)
      const query = { name: 'create', text: create, values: [names, categoryIds, statuses] }
      const { rows } = await pool.query<{ id_before: string }>(query).catch((error: { code?: string }) => {
        // The disk is full (53100), or the id after the last is more than a bigint holds (22003).
        if (error.code === '53100' || error.code === '22003') error.code = 'insufficient_storage'
        throw error
      })
      const idBefore = BigInt(rows[0]?.id_before ?? -1)
      return newPets.map((newPet, index) => ({ ...newPet, id: idBefore + BigInt(index + 1) }))
    },
  }
}

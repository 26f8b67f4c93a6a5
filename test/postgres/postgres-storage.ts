/**
 * Pets in PostgreSQL, in the tables of schema.sql, for any number of servers. Made to be copied: in a project of yours the
 * types come from 'petstore'.
 */
import { DatabaseError, type Pool } from 'pg'
import type { Pet, PetStatus, PetStorage } from '../../src/index.ts'

/** A pet, as pg reads it: an int8 is a string, and JSON is parsed. */
interface Row {
  readonly id: string
  readonly name: string
  readonly category_id: string
  readonly status: PetStatus
}

/** How many pets have each status. */
type Counts = Readonly<Record<PetStatus, string>>

const statuses: readonly PetStatus[] = ['available', 'pending', 'sold']

// One statement is one transaction, and one round trip: a server that dies in the middle leaves no lock behind.
const createPets = `
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

// One statement sees one state: the counts belong to the page. Without any pet, one row has the counts alone.
const listPets = (condition: string): string => `
  SELECT page.*, available, pending, sold FROM pet_counter LEFT JOIN (
    SELECT id, name, category_id, status FROM pets WHERE id > $1 ${condition} ORDER BY id LIMIT $2
  ) AS page ON true ORDER BY id`

/**
 * Give the pool a `connectionTimeoutMillis` and a `query_timeout`, so that requests do not wait for a database that does
 * not answer. Close the pool after the service.
 */
export function createPostgresStorage(pool: Pool): PetStorage {
  // Idle connections break when the database stops. The pool drops them, and opens others when they are needed.
  pool.on('error', () => {})
  return {
    async list({ limit, status, after = 0 }) {
      const query =
        status === undefined
          ? { name: 'list', text: listPets(''), values: [after, limit + 1] }
          : { name: 'list-status', text: listPets('AND status = $3'), values: [after, limit + 1, status] }
      const { rows } = await pool.query<Counts & (Row | { id: null })>(query)
      const [counts] = rows
      if (counts === undefined) throw new Error('pet_counter has no row')
      const total = statuses.reduce((sum, each) => sum + BigInt(counts[each]), 0n)
      const pets = rows.flatMap((row) => (row.id === null ? [] : [toPet(row)]))
      return {
        pets: pets.slice(0, limit),
        total: status === undefined ? total : BigInt(counts[status]),
        hasMore: pets.length > limit,
      }
    },
    async get(id) {
      const text = 'SELECT id, name, category_id, status FROM pets WHERE id = $1'
      const { rows } = await pool.query<Row>({ name: 'get', text, values: [id] })
      return rows.map(toPet)[0]
    },
    async create(newPets) {
      const values = [
        newPets.map(({ name }) => JSON.stringify(name)),
        newPets.map(({ categoryId }) => String(categoryId)),
        newPets.map(({ status }) => status),
      ]
      const query = { name: 'create', text: createPets, values }
      const { rows } = await pool.query<{ id_before: string }>(query).catch(throwFull)
      const idBefore = BigInt(rows[0]?.id_before ?? -1)
      return newPets.map((newPet, index) => ({ ...newPet, id: idBefore + BigInt(index) + 1n }))
    },
  }
}

function toPet({ id, name, category_id, status }: Row): Pet {
  return { id: BigInt(id), name, categoryId: BigInt(category_id), status }
}

/** The disk is full (53100), or the id after the last is more than a bigint holds (22003). */
function throwFull(error: unknown): never {
  const isFull = error instanceof DatabaseError && (error.code === '53100' || error.code === '22003')
  throw isFull ? Object.assign(new Error(error.message), { code: 'insufficient_storage' }) : error
}

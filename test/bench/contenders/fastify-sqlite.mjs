/** Fastify 5 with better-sqlite3: every creation is a transaction that is in the log and synced before the response. */
import { rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import { serve } from './fastify-app.mjs'
import { readPets, setup } from './listen.mjs'

const file = `${setup.petsFile}.sqlite`
for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
const db = new Database(file)
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')
db.exec(`
  CREATE TABLE pets (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, categoryId INTEGER NOT NULL, status TEXT NOT NULL
  ) STRICT;
  CREATE INDEX pets_by_status ON pets (status, id);
`)
const insert = db.prepare('INSERT INTO pets (name, categoryId, status) VALUES (?, ?, ?)')
const list = db.prepare('SELECT * FROM pets WHERE id > ? ORDER BY id LIMIT ?')
const listByStatus = db.prepare('SELECT * FROM pets WHERE status = ? AND id > ? ORDER BY id LIMIT ?')
const get = db.prepare('SELECT * FROM pets WHERE id = ?')

// Counted here: SQLite counts by walking the index, which would slow down its lists.
const counts = new Map()
function add(name, categoryId, status) {
  const id = Number(insert.run(name, categoryId, status).lastInsertRowid)
  for (const counted of [undefined, status]) counts.set(counted, (counts.get(counted) ?? 0) + 1)
  return { id, name, categoryId, status }
}

db.transaction(() => {
  for (const { name, categoryId, status } of readPets()) add(name, categoryId, status)
})()

await serve({
  list: (limit, status, after) =>
    status === undefined ? list.all(after, limit + 1) : listByStatus.all(status, after, limit + 1),
  count: (status) => counts.get(status) ?? 0,
  get: (id) => get.get(id),
  add: ({ name, categoryId, status = 'available' }) => add(name, categoryId, status),
})

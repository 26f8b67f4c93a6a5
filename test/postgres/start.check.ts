/** The start on a real PostgreSQL: one that comes later or never, over TLS, read-only, with tables that are missing or wrong. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { Pool } from 'pg'
import { prepareTables } from '../../src/postgres.ts'
import { assertRefusal, send } from '../support.ts'
import { type Database, runSql, startDatabase } from './database.ts'
import { killAll } from './processes.ts'
import { runToEnd, type Server, spawnProgram, startServer, stopServer } from './service.ts'

let database: Database
before(async () => {
  database = await startDatabase({ hasTls: true })
})
after(() => killAll(database.folder))

const start = (databaseUrl: string, env = {}): Promise<Server> =>
  startServer(database.folder, databaseUrl, env)
const startRefused = (databaseUrl: string, env = {}) =>
  runToEnd(database.folder, [], { PETSTORE_DATABASE_URL: databaseUrl, ...env })

async function assertCreates({ url }: Server, id: string): Promise<void> {
  const created = await send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
  assert.equal(created.headers.get('location'), `/v1/pets/${id}`, created.text)
}

test('makes the tables, and says where the pets are, without the password', async () => {
  const databaseUrl = await database.createDatabase('fresh')
  const { host, pathname } = new URL(databaseUrl)
  const withPassword = databaseUrl.replace('petstore@', 'petstore:hush@')
  for (const id of ['1', '2']) {
    const server = await start(withPassword)
    assert.ok(server.startText.includes(`\nDatabase: postgres://petstore@${host}${pathname}\n`))
    assert.doesNotMatch(server.startText, /hush/)
    await assertCreates(server, id)
    await stopServer(server)
  }
})

test('makes the tables once when many servers start at the same moment', async () => {
  const databaseUrl = await database.createDatabase('together')
  for (let round = 0; round < 20; round++) {
    const pools = Array.from({ length: 12 }, () => new Pool({ connectionString: databaseUrl, max: 1 }))
    await Promise.all(pools.map((pool) => prepareTables(pool)))
    await Promise.all(pools.map((pool) => pool.end()))
    assert.deepEqual(await runSql(databaseUrl, 'SELECT last_id FROM pet_counter'), [{ last_id: '0' }])
    await runSql(databaseUrl, 'DROP TABLE pets, pet_counter')
  }
  const servers = await Promise.all([1, 2, 3, 4].map(() => start(databaseUrl)))
  await Promise.all(servers.map(stopServer))
})

test('gives a role that may not make the tables what somebody else has to run, and then serves', async () => {
  const databaseUrl = await database.createDatabase('limited')
  await runSql(databaseUrl, 'CREATE ROLE "the shop" LOGIN')
  const limitedUrl = databaseUrl.replace('petstore@', 'the%20shop@')
  const { code, output } = await startRefused(limitedUrl)
  assert.equal(code, 1)
  assert.match(
    output,
    /^the database [^\n]*: permission denied for schema public; have this run by a role that may/,
  )
  // One line, which can be copied from a log.
  const [, sql = '', ...others] = output.split('\n')
  assert.deepEqual(others, [''])
  await runSql(databaseUrl, `${sql} REVOKE UPDATE ON pet_counter FROM "the shop"`)
  const { output: withoutUpdate } = await startRefused(limitedUrl)
  assert.match(withoutUpdate, /permission denied for table pet_counter; have this run by a role that may/)
  // The tables are there, so it is run as it stands.
  const [, grants = ''] = withoutUpdate.split('\n')
  assert.match(grants, /^GRANT [^\n]*$/)
  await runSql(databaseUrl, grants)
  const server = await start(limitedUrl)
  await assertCreates(server, '1')
  await stopServer(server)
  // What is granted is enough to move pets, too.
  await runSql(databaseUrl, 'DELETE FROM pets')
  const env = { PETSTORE_DATABASE_URL: limitedUrl }
  const { output: exported } = await runToEnd(database.folder, ['--export', 'limited.json'], env)
  assert.equal(exported, 'exported 0 pets\n')
  const { output: imported } = await runToEnd(database.folder, ['--import', 'limited.json'], env)
  assert.equal(imported, 'imported 0 pets\n')
})

for (const [what, sql, expected] of [
  [
    'a table of another program',
    'CREATE TABLE pets (id bigint, owner text)',
    /: relation "pets" already exists; .*another program's, choose another database/,
  ],
  [
    'tables of another program',
    'CREATE TABLE pets (id bigint, owner text); CREATE TABLE pet_counter (last_id bigint)',
    /: column "\w+" does not exist; .*another program's, choose another database/,
  ],
  [
    'a table whose names are no JSON',
    'CREATE TABLE pets (id bigint, name text, category_id bigint, status text); CREATE TABLE pet_counter (last_id bigint)',
    /: function json_typeof\(text\) does not exist; .*another program's, choose another database/,
  ],
  [
    'a table of the counter alone',
    'CREATE TABLE pet_counter (last_id bigint)',
    /"pet_counter" already exists; /,
  ],
] as const) {
  test(`refuses ${what}, and alters nothing`, async () => {
    const name = what.replaceAll(' ', '_').toLowerCase()
    const databaseUrl = await database.createDatabase(name)
    await runSql(databaseUrl, sql)
    const columns = `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'`
    const earlier = await runSql(databaseUrl, columns)
    const { code, output } = await startRefused(databaseUrl)
    assert.equal(code, 1)
    assert.match(output, expected)
    assert.deepEqual(await runSql(databaseUrl, columns), earlier)
  })
}

test('goes on above ids that somebody has inserted without the counter', async () => {
  const databaseUrl = await database.createDatabase('inserted')
  const first = await start(databaseUrl)
  await assertCreates(first, '1')
  await stopServer(first)
  await runSql(databaseUrl, `INSERT INTO pets SELECT 5, name, category_id, status FROM pets`)
  const server = await start(databaseUrl)
  await assertCreates(server, '6')
  await stopServer(server)
})

test('serves a read-only database, and says so', async () => {
  const databaseUrl = await database.createDatabase('replica')
  const first = await start(databaseUrl)
  await assertCreates(first, '1')
  await stopServer(first)
  await runSql(databaseUrl, 'ALTER DATABASE replica SET default_transaction_read_only = on')
  const server = await start(databaseUrl)
  assert.match(server.startText, /^The database is read-only: pets can be listed, but not added\n/)
  assert.match((await send(server.url, '/v1/pets')).text, /"Rex"/)
  const refused = await send(server.url, '/v1/pets', { body: { name: 'Mia', categoryId: 1 } })
  assert.match(assertRefusal(refused, 503, 'storage_failed'), /nothing was stored/)
  await stopServer(server)
})

test('retries a creation that another server got in the way of, whatever the isolation level', async () => {
  const databaseUrl = await database.createDatabase('isolated')
  await runSql(databaseUrl, "ALTER DATABASE isolated SET default_transaction_isolation = 'serializable'")
  const servers = await Promise.all([1, 2].map(() => start(databaseUrl)))
  const creations = servers.flatMap(({ url }) =>
    Array.from({ length: 40 }, () => send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })),
  )
  const statuses = (await Promise.all(creations)).map(({ status }) => status)
  assert.deepEqual([...new Set(statuses)], [201])
  await Promise.all(servers.map(stopServer))
})

test('encrypts and checks the certificate with sslmode=require, and prints no warning', async () => {
  const databaseUrl = (await database.createDatabase('encrypted')).replace('127.0.0.1', 'localhost')
  const { code, output } = await startRefused(`${databaseUrl}?sslmode=require`)
  assert.equal(code, 1)
  assert.match(output, /^the database postgres:[^\n]*\?sslmode=verify-full: self-signed certificate\n$/)
  const root = `&sslrootcert=${database.folder}/ca.pem`
  const other = await startRefused(
    `${databaseUrl.replace('localhost', '127.0.0.1')}?sslmode=verify-ca${root}`,
  )
  assert.match(
    other.output,
    /^the database [^\n]*: Hostname\/IP does not match certificate's altnames[^\n]*\n$/,
  )
  for (const mode of ['require', 'verify-full']) {
    const server = await start(`${databaseUrl}?sslmode=${mode}${root}`)
    const connections = `SELECT bool_and(ssl) AS ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
      WHERE application_name = 'petstore' AND datname = 'encrypted'`
    assert.deepEqual(await runSql(databaseUrl, connections), [{ ssl: true }])
    await stopServer(server)
    assert.equal(server.errors(), '')
  }
})

test('applies PGOPTIONS, and shows them', async () => {
  const databaseUrl = await database.createDatabase('options')
  await runSql(databaseUrl, 'CREATE SCHEMA shop')
  const server = await start(databaseUrl, { PGOPTIONS: '-c search_path=shop' })
  assert.match(server.startText, /\?options=-c%20search_path%3Dshop$/m)
  await stopServer(server)
  assert.deepEqual(await runSql(databaseUrl, 'SELECT count(*)::int FROM shop.pets'), [{ count: 0 }])
})

test('waits for a database that comes later, and says so once', async () => {
  const databaseUrl = await database.createDatabase('late')
  await database.stop()
  const { child, line } = spawnProgram(database.folder, databaseUrl)
  assert.match(
    await line(/^waiting/),
    /^waiting 30 s at most for the database postgres:.*: connect ECONNREFUSED/,
  )
  await database.start()
  await line(/^Petstore listens on/)
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
})

test('ends with exit code 1 and a sentence when the database does not come', async () => {
  const databaseUrl = await database.createDatabase('never')
  await database.stop()
  const begun = performance.now()
  const { code, output } = await startRefused(databaseUrl)
  assert.ok(performance.now() - begun > 29_000)
  assert.equal(code, 1)
  assert.match(output, /^waiting 30 s [^\n]*\nthe database postgres:[^\n]*: connect ECONNREFUSED [^\n]*\n$/)
  await database.start()
})

test('says that nothing was stored when the database refuses the connection', async () => {
  const databaseUrl = await database.createDatabase('refusing')
  const server = await start(databaseUrl)
  await database.kill()
  const create = () => send(server.url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
  // The first may find a connection of before.
  await create()
  assert.match(assertRefusal(await create(), 503, 'storage_failed'), /nothing was stored/)
  await database.start()
  await assertCreates(server, '1')
  const kinds = server.messages.map((message) => message.replace(/failed: .*;/, 'failed: …;'))
  assert.deepEqual(kinds, ['the storage failed: …; each request tries it again', 'the storage works again'])
  await stopServer(server)
})

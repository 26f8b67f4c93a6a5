/** What an owner does to the tables, and an app to its pg: which pets are refused, and that none is changed or lost in silence. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { Client, Pool, type PoolConfig, types } from 'pg'
import { startPetStore } from '../../src/index.ts'
import { createPostgresStorage, prepareTables } from '../../src/postgres.ts'
import { assertRefusal, key, type ReceivedAnswer, send } from '../support.ts'
import { type Database, runSql, startDatabase } from './database.ts'
import { killAll, waitUntil } from './processes.ts'
import { runToEnd, spawnProgram, startServer, stopServer } from './service.ts'

let database: Database
before(async () => {
  database = await startDatabase({ hasTls: true })
})
after(() => killAll(database.folder))

const runProgram = (databaseUrl: string, env = {}, ...args: string[]) =>
  runToEnd(database.folder, args, { PETSTORE_DATABASE_URL: databaseUrl, ...env })

/** A service in this process, on a pool of its own. */
async function startApp(t: TestContext, databaseUrl: string, config: PoolConfig = {}) {
  const pool = new Pool({ connectionString: databaseUrl, ...config })
  const messages: string[] = []
  const onMessage = (message: string) => messages.push(message)
  const store = await startPetStore({
    apiKeys: [key],
    storage: createPostgresStorage(pool),
    onMessage,
    onError: onMessage,
  })
  t.after(async () => {
    await store.close()
    await pool.end()
  })
  return { url: store.url, pool, messages }
}

const create = (url: string, pet: object): Promise<ReceivedAnswer> =>
  send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1, ...pet } })

/** While somebody has the counter's lock, all creations but the first gather in one group. */
async function createTogether(url: string, databaseUrl: string, pets: readonly object[]) {
  const owner = new Client({ connectionString: databaseUrl })
  await owner.connect()
  await owner.query('BEGIN; SELECT FROM pet_counter FOR UPDATE')
  const first = create(url, {})
  await waitUntil('the first creation waits for the lock', async () => {
    const [row] = await runSql(
      databaseUrl,
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    )
    return row
  })
  const answers = pets.map((pet) => create(url, pet))
  // Answered after those have been read, on the connections that they took before.
  await Promise.all(pets.map(() => send(url, '/healthz')))
  await owner.query('COMMIT')
  await owner.end()
  assert.equal((await first).status, 201)
  return Promise.all(answers)
}

const trigger = (body: string, when = 'BEFORE INSERT'): string =>
  `CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NEW; END $$;
   CREATE TRIGGER judge ${when} ON pets FOR EACH ROW EXECUTE FUNCTION judge()`
const isBad = String.raw`NEW.name #>> '{}' = 'bad'`

for (const [what, sql] of [
  ['a CHECK', String.raw`ALTER TABLE pets ADD CHECK (name #>> '{}' <> 'bad')`],
  ['a unique index', `CREATE UNIQUE INDEX ON pets (category_id) WHERE category_id >= 100`],
  [
    'a foreign key',
    'CREATE TABLE categories (id bigint PRIMARY KEY); INSERT INTO categories SELECT generate_series(1, 20); ALTER TABLE pets ADD FOREIGN KEY (category_id) REFERENCES categories',
  ],
  [
    'a domain',
    'CREATE DOMAIN small AS bigint CHECK (VALUE < 100); ALTER TABLE pets ALTER category_id TYPE small',
  ],
  ['a smaller type of a column', 'ALTER TABLE pets ALTER category_id TYPE integer'],
  ['a trigger that raises no SQLSTATE of its own', trigger(`IF ${isBad} THEN RAISE 'no'; END IF;`)],
  [
    'a trigger that raises a SQLSTATE of its own',
    trigger(`IF ${isBad} THEN RAISE SQLSTATE 'PET01'; END IF;`),
  ],
  ['a trigger that drops the row', trigger(`IF ${isBad} THEN RETURN NULL; END IF;`)],
  [
    'a trigger that is deferred to the commit',
    trigger(`IF ${isBad} THEN RAISE SQLSTATE '45000'; END IF;`, 'AFTER INSERT').replace(
      'CREATE TRIGGER judge AFTER INSERT ON pets',
      'CREATE CONSTRAINT TRIGGER judge AFTER INSERT ON pets DEFERRABLE INITIALLY DEFERRED',
    ),
  ],
  [
    'a policy',
    String.raw`CREATE ROLE clerk LOGIN; GRANT ALL ON pets, pet_counter TO clerk; ALTER TABLE pets ENABLE ROW LEVEL SECURITY; CREATE POLICY seen ON pets FOR SELECT USING (true); CREATE POLICY good ON pets FOR INSERT WITH CHECK (name #>> '{}' <> 'bad')`,
  ],
] as const) {
  test(`refuses only the pet that ${what} refuses, and no other of its group`, async (t) => {
    const databaseUrl = await database.createDatabase(`refusing_${what.replaceAll(/\W/g, '_')}`.toLowerCase())
    const owner = new Pool({ connectionString: databaseUrl })
    await prepareTables(owner)
    await owner.query(sql)
    await owner.end()
    const { url, messages } = await startApp(
      t,
      what === 'a policy' ? databaseUrl.replace('petstore@', 'clerk@') : databaseUrl,
    )
    const bad = { name: 'bad', categoryId: 9_000_000_000 }
    // A unique index refuses the second of two.
    if (what === 'a unique index')
      assert.equal((await create(url, { categoryId: 9_000_000_000 })).status, 201)
    const pets = Array.from({ length: 20 }, (_, i) => (i === 7 ? bad : { categoryId: i + 1 }))
    const answers = await createTogether(url, databaseUrl, pets)
    const [refused] = answers.splice(7, 1)
    assert.ok(refused !== undefined)
    assert.equal(
      assertRefusal(refused, 503, 'storage_failed'),
      'The pet was refused by the database; nothing was stored.',
    )
    const texts = answers.map(({ status, text }) => {
      assert.equal(status, 201, text)
      return text
    })
    const stored = await send(url, '/v1/pets?limit=100')
    for (const text of texts) assert.ok(stored.text.includes(text), text)
    assert.doesNotMatch(stored.text, /"bad"/)
    const [message = '', ...others] = messages
    assert.match(message, /^the storage refused a pet: ./)
    assert.deepEqual(others, [])
  })
}

test('confirms a pet as a trigger has changed it', async (t) => {
  const databaseUrl = await database.createDatabase('changing')
  const { url, pool } = await startApp(t, databaseUrl)
  await prepareTables(pool)
  await pool.query(trigger(`NEW.name := '"Mia"'; NEW.category_id := 5;`))
  const created = await create(url, {})
  assert.equal(created.text, '{"id":1,"name":"Mia","categoryId":5,"status":"available"}')
  assert.equal((await send(url, '/v1/pets/1')).text, created.text)
})

test('looks for ids beyond those of a smaller type of the column', async (t) => {
  const databaseUrl = await database.createDatabase('small_ids')
  const { url, pool } = await startApp(t, databaseUrl)
  await prepareTables(pool)
  await pool.query('ALTER TABLE pets ALTER id TYPE integer')
  assert.equal((await create(url, {})).status, 201)
  assert.equal((await send(url, '/v1/pets?after=9007199254740993')).text, '[]')
  assertRefusal(await send(url, '/v1/pets/9007199254740993'), 404, 'not_found')
  await pool.query('UPDATE pet_counter SET last_id = 2147483647')
  assertRefusal(await create(url, {}), 503, 'storage_failed')
})

test('says that nothing was stored, and why, when the row of the counter has gone', async (t) => {
  const databaseUrl = await database.createDatabase('counter')
  const { url, pool, messages } = await startApp(t, databaseUrl)
  await prepareTables(pool)
  await pool.query('DELETE FROM pet_counter')
  assert.match(assertRefusal(await create(url, {}), 507, 'insufficient_storage'), /nothing was stored/)
  assert.match(messages.join(), /: no id is left, or pet_counter has no row; each request tries it again$/)
  await pool.query('INSERT INTO pet_counter (last_id) VALUES (0)')
  assert.equal((await create(url, {})).status, 201)
})

test('tries a deadlock again, as it does other conflicts', async (t) => {
  const databaseUrl = await database.createDatabase('deadlock')
  const { url, pool, messages } = await startApp(t, databaseUrl)
  await prepareTables(pool)
  await pool.query('CREATE SEQUENCE tries')
  for (const sqlState of ['40001', '40P01']) {
    await pool.query(
      `DROP FUNCTION IF EXISTS judge CASCADE; ${trigger(`IF nextval('tries') % 3 <> 0 THEN RAISE SQLSTATE '${sqlState}'; END IF;`)}`,
    )
    assert.equal((await create(url, {})).status, 201)
  }
  assert.deepEqual(await runSql(databaseUrl, 'SELECT last_value FROM tries'), [{ last_value: '6' }])
  assert.deepEqual(messages, [])
})

for (const [sqlState, words] of [
  ['55P03', /nothing was stored/],
  ['57014', /nothing was stored/],
  ['XX000', /not known whether/],
  ['53100', /no room left; nothing was stored/],
] as const)
  test(`does not try a group pet by pet after ${sqlState}`, async (t) => {
    const databaseUrl = await database.createDatabase(`state_${sqlState.toLowerCase()}`)
    const { url, pool } = await startApp(t, databaseUrl)
    await prepareTables(pool)
    await pool.query('CREATE SEQUENCE tries')
    await pool.query(
      trigger(`IF ${isBad} THEN PERFORM nextval('tries'); RAISE SQLSTATE '${sqlState}'; END IF;`),
    )
    const pets = Array.from({ length: 5 }, () => ({ name: 'bad' }))
    for (const answer of await createTogether(url, databaseUrl, pets)) assert.match(answer.text, words)
    assert.deepEqual(await runSql(databaseUrl, 'SELECT last_value FROM tries'), [{ last_value: '1' }])
  })

for (const encoding of ['LATIN1', 'EUC_JP', 'KOI8R', 'WIN1252']) {
  test(`refuses a database in ${encoding}, and says what to run`, async (t) => {
    const name = encoding.toLowerCase()
    const databaseUrl = await database.createDatabase(name, encoding)
    const refusal = new RegExp(
      `^(?:the database \\S+: )?its encoding is ${encoding}, which cannot hold every name; run: (CREATE DATABASE .*), and use that$`,
    )
    const { code, output } = await runProgram(databaseUrl)
    assert.equal(code, 1)
    const [, remedy = ''] = refusal.exec(output.trimEnd()) ?? assert.fail(output)
    const { url, pool, messages } = await startApp(t, databaseUrl)
    await assert.rejects(prepareTables(pool), { message: refusal })
    assert.match(assertRefusal(await create(url, {}), 503, 'storage_failed'), /nothing was stored/)
    assertRefusal(await send(url, '/v1/pets'), 503, 'storage_failed')
    assert.match(messages.join(), /^the storage failed: its encoding is /)
    assert.deepEqual(await runSql(databaseUrl, "SELECT FROM pg_tables WHERE tablename = 'pets'"), [])
    await runSql(databaseUrl, remedy)
    const server = await startServer(database.folder, `${databaseUrl}_utf8`)
    assert.equal((await create(server.url, { name: 'Zoë 犬' })).status, 201)
    await stopServer(server)
  })
}

const names = ['Zoë', 'Жучка', '犬', '🐕', 'a\0"\\', '', '"']
const exact = names.map((name, i) => {
  const numbers = ['9007199254740993', '-9223372036854775808', '9223372036854775807', '1']
  return `{"id":${9_007_199_254_740_993n + BigInt(i)},"name":${JSON.stringify(name)},"categoryId":${numbers[i % 4]},"status":"sold"}`
})

/** The types of pg leave it out. */
const binary: object = { binary: true }

for (const [what, encoding, config] of [
  ['parsers of its own', 'UTF8', {}],
  ['binary connections', 'UTF8', binary],
  ['a client_encoding of its own', 'UTF8', { options: '-c client_encoding=LATIN1 -c bytea_output=escape' }],
  ['a multi-byte client_encoding', 'UTF8', { options: '-c client_encoding=SJIS' }],
  ['a database in SQL_ASCII', 'SQL_ASCII', {}],
] as const) {
  test(`gives names and integers back exactly to an app that has ${what}`, async (t) => {
    const databaseUrl = await database.createDatabase(what.replaceAll(/\W/g, '_').toLowerCase(), encoding)
    const oids = [16, 17, 18, 20, 21, 23, 25, 114, 700, 701, 1043, 1700]
    const earlier = oids.map((oid) => types.getTypeParser(oid))
    t.after(() => oids.forEach((oid, i) => types.setTypeParser(oid, earlier[i] ?? String)))
    if (what === 'parsers of its own')
      for (const oid of oids) types.setTypeParser(oid, (text) => ({ parsed: Number(text) }))
    const { url, pool } = await startApp(t, databaseUrl, config)
    await prepareTables(pool)
    await runSql(databaseUrl, `UPDATE pet_counter SET last_id = 9007199254740992`)
    for (const text of exact) {
      const body = text.replace(/"id":\d+,/, '')
      assert.equal((await send(url, '/v1/pets', { body })).text, text)
    }
    assert.equal((await send(url, '/v1/pets')).text, `[${exact.join()}]`)
    assert.equal((await send(url, '/v1/pets/9007199254740994')).text, exact[1])
    // What somebody's SQL has stored as it is, and not as escapes.
    await runSql(databaseUrl, `INSERT INTO pets VALUES (1, '"Zoë 犬"', 1, 'sold')`)
    assert.match((await send(url, '/v1/pets/1')).text, /"Zoë 犬"/)
    // And back through a start of the program.
    const server = await startServer(database.folder, databaseUrl)
    assert.equal((await send(server.url, '/v1/pets?after=1')).text, `[${exact.join()}]`)
    await stopServer(server)
  })
}

test('says at once that no password was given, and names it nowhere', async () => {
  const databaseUrl = (await database.createDatabase('password')).replace('petstore@', 'locked@')
  await runSql(
    databaseUrl.replace('locked@', 'petstore@'),
    "CREATE ROLE locked LOGIN PASSWORD 'hush'; GRANT ALL ON SCHEMA public TO locked",
  )
  const begun = performance.now()
  const { code, output } = await runProgram(databaseUrl)
  assert.equal(code, 1)
  assert.match(
    output,
    /^the database postgres:\S+: it asks for a password, and none was given; put it into the address, or set PGPASSWORD\n$/,
  )
  // PostgreSQL would give up after 60.
  assert.ok(performance.now() - begun < 30_000)
  const server = await startServer(database.folder, databaseUrl, { PGPASSWORD: 'hush' })
  await stopServer(server)
  const wrong = await runProgram(databaseUrl.replace('locked@', 'locked:hushhush@'))
  assert.match(wrong.output, /password authentication failed/)
  assert.doesNotMatch(wrong.output, /hush/)
})

test('takes what hosts print into an address, with the meaning that libpq gives it', async () => {
  const plainUrl = await database.createDatabase('hosted')
  const root = `sslmode=require&sslrootcert=${database.folder}/ca.pem`
  const databaseUrl = plainUrl.replace('127.0.0.1', 'localhost')
  const lockedUrl = databaseUrl.replace('petstore@', 'locked:hush@')
  // The role may be there already.
  await runSql(
    plainUrl,
    "DROP OWNED BY locked; ALTER ROLE locked PASSWORD 'hush'; GRANT ALL ON SCHEMA public TO locked",
  ).catch(() =>
    runSql(plainUrl, "CREATE ROLE locked LOGIN PASSWORD 'hush'; GRANT ALL ON SCHEMA public TO locked"),
  )
  const server = await startServer(
    database.folder,
    `${lockedUrl}?${root}&channel_binding=require&application_name=shop&connect_timeout=5&target_session_attrs=read-write`,
  )
  const sessions = "SELECT DISTINCT application_name AS name FROM pg_stat_activity WHERE usename = 'locked'"
  assert.deepEqual(await runSql(plainUrl, sessions), [{ name: 'shop' }])
  await stopServer(server)
  // Neither without encryption nor without a password is there a channel to bind.
  for (const [url, env] of [
    [`${lockedUrl}?channel_binding=require`, {}],
    [`${databaseUrl}?${root}`, { PGCHANNELBINDING: 'require', PGSERVICE: 'shop' }],
  ] as const) {
    const unbound = await startServer(database.folder, url, env)
    assert.match(
      unbound.startText,
      /^channel_binding=require: used where the database offers it, as with prefer$/m,
    )
    const unread = /^Set, but not read by this program: (.*)$/m.exec(unbound.startText)?.[1]
    assert.equal(unread, 'PGSERVICE' in env ? 'PGSERVICE' : undefined)
    await stopServer(unbound)
  }
  for (const [url, env, fault] of [
    [
      `${plainUrl}?options=-c%20search_path%3Dpublic&pgbouncer=true`,
      {},
      /^PETSTORE_DATABASE_URL: "pgbouncer": expected no parameters but sslmode, .*, each once$/m,
    ],
    [
      plainUrl,
      { PGTARGETSESSIONATTRS: 'first' },
      /^PGTARGETSESSIONATTRS: expected any, read-write, .*, prefer-standby$/m,
    ],
  ] as const) {
    const { code, output } = await runProgram(url, env)
    assert.equal(code, 1)
    assert.match(output, fault)
    assert.doesNotMatch(output, /hush/)
  }
})

test('waits for a session as target_session_attrs says, as for a database that fails over', async () => {
  const databaseUrl = await database.createDatabase('standby')
  await runSql(databaseUrl, 'ALTER DATABASE standby SET default_transaction_read_only = on')
  const { child, line } = spawnProgram(database.folder, databaseUrl, { PGTARGETSESSIONATTRS: 'read-write' })
  assert.match(await line(/^waiting/), /: target_session_attrs: it is not read-write$/)
  await runSql(
    databaseUrl.replace('/standby', '/postgres'),
    'ALTER DATABASE standby RESET default_transaction_read_only',
  )
  await line(/^Petstore listens on/)
  child.kill('SIGTERM')
})

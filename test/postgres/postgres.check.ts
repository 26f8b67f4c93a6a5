/** The service on a real PostgreSQL: two servers on one database, while all goes well and while things are killed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { Client, Pool } from 'pg'
import { createPostgresStorage, prepareTables } from '../../src/postgres.ts'
import { assertRefusal, connectRaw, formatRequest, holdClock, send } from '../support.ts'
import { type Database, runSql, startDatabase } from './database.ts'
import { Load } from './load.ts'
import { killAll, waitUntil } from './processes.ts'
import {
  assertContract,
  collect,
  type Pets,
  runToEnd,
  type Server,
  startServer,
  stopServer,
  walk,
} from './service.ts'

let database: Database
before(async () => {
  database = await startDatabase()
})
after(() => killAll(database.folder))

const start = (databaseUrl: string, env = {}): Promise<Server> =>
  startServer(database.folder, databaseUrl, env)

for (const [role, sql] of [
  ['petstore', ''],
  [
    'clerk',
    `CREATE ROLE clerk LOGIN; GRANT SELECT, INSERT ON pets TO clerk;
     GRANT SELECT, UPDATE ON pet_counter TO clerk`,
  ],
] as const)
  test(`is spared the compiler on tables without statistics, as the role ${role}`, async (t) => {
    const databaseUrl = await database.createDatabase(`compiled_${role}`)
    const pool = new Pool({ connectionString: databaseUrl.replace('petstore@', `${role}@`), max: 1 })
    t.after(() => pool.end())
    const owner = new Pool({ connectionString: databaseUrl })
    await prepareTables(owner).finally(() => owner.end())
    await runSql(databaseUrl, sql)
    const explain = async (text: string, values: unknown[] = []): Promise<string> =>
      JSON.stringify((await pool.query(`EXPLAIN (FORMAT JSON) ${text}`, values)).rows)
    const plans: string[] = []
    // The pool of an app, which looks at the plan of each statement before it is run.
    const storage = createPostgresStorage({
      idleCount: 0,
      options: {},
      on: () => pool,
      off: () => pool,
      async connect() {
        const client = await pool.connect()
        return {
          on: () => client,
          off: () => client,
          release: () => {},
          async query(statement) {
            client.release()
            plans.push(await explain(statement.text, statement.values))
            return pool.query(statement)
          },
        }
      },
    })
    for (const count of [1, 5, 64, 1000])
      await storage.create(
        Array.from({ length: count }, () => ({ name: 'Rex', categoryId: 1, status: 'sold' })),
      )
    await storage.list({ limit: 100 })
    await storage.get(1)
    // The first is about the encoding.
    assert.equal(plans.length, 7)
    for (const plan of plans) assert.doesNotMatch(plan, /"JIT"/)
    // There is one here, which would be seen.
    await pool.query('SET jit_above_cost = 0')
    assert.match(await explain('SELECT FROM pets'), /"JIT"/)
  })

test('holds the interface on two servers over one database at once', async () => {
  const databaseUrl = await database.createDatabase('contract')
  const servers = [await start(databaseUrl), await start(databaseUrl)]
  await assertContract(servers)
  for (const server of servers) {
    assert.deepEqual(server.messages, [])
    await stopServer(server)
  }
})

for (const [how, settings] of [
  ['refuses', ''],
  ['ignores', 'ignore_startup_parameters = statement_timeout'],
] as const)
  test(`answers many clients at once through PgBouncer in transaction mode, which ${how} a statement_timeout`, async () => {
    const databaseUrl = await database.createDatabase(`pooled_${how}`)
    const pooledUrl = await database.startPooler(`pooled_${how}`, settings)
    const first = await start(pooledUrl)
    const [, remedy = ''] =
      /^The pooler sets no statement_timeout, .*; run: (.*)$/m.exec(first.startText) ?? []
    assert.notEqual(remedy, '', first.startText)
    await stopServer(first)
    await runSql(databaseUrl, remedy.replace('SET', `IN DATABASE pooled_${how} SET`))
    // Connections of before do not have it.
    await runSql(
      databaseUrl,
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
    )
    const server = await start(pooledUrl)
    assert.doesNotMatch(server.startText, /statement_timeout/)
    const client = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        const { text, headers } = await send(server.url, '/v1/pets', { body: { name: 'Rex', categoryId: i } })
        assert.equal((await send(server.url, headers.get('location') ?? '')).text, text)
        assert.equal((await send(server.url, '/v1/pets?status=available&limit=1')).status, 200)
      }
    }
    await Promise.all(Array.from({ length: 16 }, client))
    assert.deepEqual(await runSql(pooledUrl, 'SHOW statement_timeout'), [{ statement_timeout: '8s' }])
    assert.deepEqual(server.messages, [])
    await stopServer(server)
  })

test('ends with a sentence when a pooler refuses settings of the session', async () => {
  const pooledUrl = await database.startPooler('postgres', '')
  const env = { PETSTORE_DATABASE_URL: `${pooledUrl}?options=-c%20search_path%3Dshop` }
  const { code, output } = await runToEnd(database.folder, [], env)
  assert.equal(code, 1)
  assert.match(output, /^the database [^\n]*: unsupported startup parameter[^\n]*options[^\n]*\n$/)
})

test('shows a walk by `after` on one server every pet that the other created meanwhile', async () => {
  const databaseUrl = await database.createDatabase('walk')
  const servers = [await start(databaseUrl), await start(databaseUrl)]
  const acknowledged: Pets = new Map()
  let isCreating = true
  const create = async ({ url }: Server): Promise<void> => {
    for (let i = 0; i < 50; i++) {
      const answer = await send(url, '/v1/pets', { body: { name: `pet ${i}`, categoryId: i } })
      assert.equal(answer.status, 201, answer.text)
      collect(acknowledged, answer.text)
    }
  }
  const follow = async ({ url }: Server): Promise<Pets> => {
    const seen: Pets = new Map()
    let last = '0'
    let isLast = false
    while (!isLast) {
      // What was acknowledged before a walk begins is seen by it, so one walk after the last creation is the last.
      isLast = !isCreating
      last = await walk(url, seen, last)
    }
    return seen
  }
  const follows = servers.map(follow)
  const creations = servers.flatMap((server) => Array.from({ length: 8 }, () => create(server)))
  // Also when one fails: the walks would go on for ever.
  await Promise.all(creations).finally(() => (isCreating = false))
  for (const seen of await Promise.all(follows)) {
    const missed = [...acknowledged.keys()].filter((id) => !seen.has(id))
    assert.deepEqual(missed, [])
    assert.deepEqual(new Map(seen), new Map([...acknowledged].toSorted(([a], [b]) => Number(a) - Number(b))))
  }
  assert.equal(acknowledged.size, 800)
})

test('loses nothing acknowledged and gives no id twice, when either of two servers and the database are killed in turns', async (t) => {
  const databaseUrl = await database.createDatabase('kills')
  const servers = [await start(databaseUrl), await start(databaseUrl)]
  /** How often the database ended while a server ran. */
  const outages = new Map(servers.map((server) => [server, 0]))
  const assertMessages = (server: Server): void => {
    const kinds = server.messages.map((message) => message.replace(/failed: .*/, 'failed'))
    const outage = ['the storage failed', 'the storage works again']
    const expected = Array.from({ length: outages.get(server) ?? 0 }, () => outage).flat()
    assert.deepEqual(kinds, expected, server.messages.join('\n'))
  }
  const load = new Load(servers)
  // If the test fails, too.
  t.after(() => void load.stop().catch(() => {}))

  const endDatabase = async (end: () => Promise<void>): Promise<void> => {
    await end()
    for (const server of servers) outages.set(server, (outages.get(server) ?? 0) + 1)
    await load.untilRefused()
    for (const { url } of servers) {
      const list = await send(url, '/v1/pets')
      assert.equal(assertRefusal(list, 503, 'storage_failed'), 'The storage failed; no pet can be read now.')
    }
    await database.start()
    await waitUntil('both servers have said so', async () => {
      for (const server of servers) assertMessages(server)
      return true
    })
  }
  const killServer = async (place: 0 | 1): Promise<void> => {
    const [killed, other] = [servers[place], servers[1 - place]]
    assert.ok(killed !== undefined && other !== undefined)
    const ended = once(killed.child, 'close')
    killed.child.kill('SIGKILL')
    // The other one does not wait for anything that this one has left.
    await load.untilCreated([other])
    await ended
    assertMessages(killed)
    const next = await start(databaseUrl)
    outages.set(next, 0)
    servers[place] = next
    load.replace(killed, next)
  }
  const turns = [
    () => endDatabase(database.stop),
    () => killServer(0),
    () => endDatabase(database.kill),
    () => killServer(1),
    () => killServer(0),
    () => endDatabase(database.kill),
    () => killServer(1),
  ]
  await load.untilCreated()
  for (const turn of [...turns, ...turns]) {
    await turn()
    await load.untilCreated()
  }

  // That no id came twice is asserted wherever pets are collected.
  const seen = [...(await load.stop())]
  for (const { url } of servers) {
    const stored: Pets = new Map()
    await walk(url, stored)
    seen.push(stored)
  }
  const { acknowledged, refused, cutOff } = load
  const isLost = ([id, text]: readonly [string, string]): boolean =>
    seen.some((pets) => pets.get(id) !== text)
  const counts = {
    confirmed: acknowledged.size,
    lost: [...acknowledged].filter(isLost).length,
    refused,
    cutOff,
  }
  t.diagnostic(`${2 * turns.length} kills: ${JSON.stringify(counts)}`)
  assert.equal(counts.lost, 0)
  for (const server of servers) {
    assertMessages(server)
    await stopServer(server)
  }
})

test('stores nothing of a creation that was refused behind a lock', async () => {
  const databaseUrl = await database.createDatabase('lock')
  const { url } = await start(databaseUrl)
  const somebody = new Client({ connectionString: databaseUrl })
  await somebody.connect()
  await somebody.query('BEGIN; SELECT * FROM pet_counter FOR UPDATE')
  const refused = await send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
  // PostgreSQL ended the statement, since its statement_timeout is shorter than our time limit.
  assert.match(assertRefusal(refused, 503, 'storage_failed'), /nothing was stored/)
  await somebody.query('COMMIT')
  await somebody.end()
  // If that one still waited, it would go first.
  const created = await send(url, '/v1/pets', { body: { name: 'Mia', categoryId: 1 } })
  assert.equal(created.headers.get('location'), '/v1/pets/1')
  assert.equal((await send(url, '/v1/pets')).text, `[${created.text}]`)
})

test('stops in time when the database does not respond, and refuses what waits for it', async (t) => {
  const databaseUrl = await database.createDatabase('frozen')
  const server = await start(databaseUrl, holdClock(database.folder))
  // The server has connections of its own before the database freezes.
  await Promise.all([send(server.url, '/v1/pets'), send(server.url, '/v1/pets')])
  database.signal('SIGSTOP')
  t.after(() => database.signal('SIGCONT'))
  const reader = await connectRaw(t, server.url)
  reader.write(formatRequest('GET /v1/pets'))
  const creator = await connectRaw(t, server.url)
  creator.write(formatRequest('POST /v1/pets', [], '{"name":"Rex","categoryId":1}'))
  // In order: when this is answered, those wait for the database. It comes on a new connection, which is accepted after theirs; one that is
  // open already would be served before.
  const last = await connectRaw(t, server.url)
  last.write(formatRequest('GET /healthz'))
  assert.equal((await last.read()).status, 200)
  const ended = once(server.child, 'exit')
  server.child.kill('SIGTERM')
  await waitUntil('it accepts no connections', () =>
    fetch(server.url).then(
      () => undefined,
      () => true,
    ),
  )
  // The 5 s for what is in flight end, and then those for the creations. No wait of the pool's does.
  server.child.kill('SIGUSR2')
  assertRefusal(await reader.read(), 503, 'shutting_down')
  assert.match(assertRefusal(await creator.read(), 503, 'storage_failed'), /not known whether/)
  await Promise.all([reader.closed, creator.closed])
  server.child.kill('SIGUSR2')
  assert.deepEqual(await ended, [0, null])
})

test('gives names and integers back exactly as they came', async () => {
  const databaseUrl = await database.createDatabase('exact')
  const { url } = await start(databaseUrl)
  const names = [
    '',
    ' ',
    '\0',
    'a\0b\0',
    String.raw`\u0000`,
    '"\\\'',
    '{}',
    'null',
    '\u0001\u001F\u007F',
    '\uFFFF\uFEFF',
    '\u2028',
    '🐕',
    'ẞ\u0301',
    'x'.repeat(60_000),
  ]
  const numbers = [
    '-9223372036854775808',
    '-9007199254740993',
    '-1',
    '0',
    '9007199254740991',
    '9007199254740993',
    '9223372036854775807',
  ]
  // The ids go beyond 2^53 on the way.
  await runSql(databaseUrl, `UPDATE pet_counter SET last_id = ${2n ** 53n - 5n}`)
  let id = 2n ** 53n - 5n
  const all: string[] = []
  for (const [index, name] of names.entries()) {
    const categoryId = numbers[index % numbers.length]
    const created = await send(url, '/v1/pets', {
      body: `{"name":${JSON.stringify(name)},"categoryId":${categoryId}}`,
    })
    const text = `{"id":${++id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"available"}`
    assert.equal(created.text, text)
    assert.equal((await send(url, `/v1/pets/${id}`)).text, text)
    all.push(text)
  }
  assert.equal((await send(url, '/v1/pets')).text, `[${all.join()}]`)
})

test('gives the last id of all, and then answers 507', async () => {
  const databaseUrl = await database.createDatabase('ids')
  const { url, messages } = await start(databaseUrl)
  await runSql(databaseUrl, `UPDATE pet_counter SET last_id = ${2n ** 63n - 2n}`)
  const last = await send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
  assert.equal(last.headers.get('location'), '/v1/pets/9223372036854775807')
  for (let i = 0; i < 2; i++) {
    const refused = await send(url, '/v1/pets', { body: { name: 'Mia', categoryId: 1 } })
    assert.match(assertRefusal(refused, 507, 'insufficient_storage'), /nothing was stored/)
  }
  const list = await send(url, '/v1/pets')
  assert.equal(list.text, `[${last.text}]`)
  assert.equal((await send(url, '/v1/pets?after=9223372036854775807')).text, '[]')
  assert.equal(messages.length, 1)
})

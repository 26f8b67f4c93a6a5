/** The service on a real PostgreSQL: two servers on one database, while all goes well and while things are killed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { Client } from 'pg'
import { assertRefusal, connectRaw, formatRequest, holdClock, send } from '../support.ts'
import { type Database, runSql, startDatabase } from './database.ts'
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

test('loses nothing acknowledged, and recovers by itself, when the database or a server is killed', async (t) => {
  const databaseUrl = await database.createDatabase('kills')
  const servers = [await start(databaseUrl), await start(databaseUrl)] as const
  const [killed, survivor] = servers
  const acknowledged: Pets = new Map()
  const counts = { created: 0, refused: 0, cutOff: 0 }
  const watchers = new Set<(server: Server, status: number) => void>()
  const state = { isOver: false }
  const load = async (server: Server, client: number): Promise<void> => {
    for (let i = 0; !state.isOver; i++) {
      const body = { name: `${client}-${i}`, categoryId: i }
      const answer = await send(server.url, '/v1/pets', { body }).catch((error: unknown) => {
        assert.ok(server.child.killed, String(error))
      })
      if (answer === undefined) {
        counts.cutOff++
        return
      }
      if (answer.status === 201) {
        collect(acknowledged, answer.text)
        counts.created++
      } else {
        assert.match(
          assertRefusal(answer, 503, 'storage_failed'),
          /(?:not known whether the pet|nothing) was stored/,
        )
        counts.refused++
      }
      for (const watch of watchers) watch(server, answer.status)
    }
  }
  /** Resolves when a server has answered so from now on. */
  const seen = (server: Server, status: number): Promise<void> =>
    new Promise((resolve) => {
      const watch = (other: Server, otherStatus: number): void => {
        if (other !== server || otherStatus !== status) return
        watchers.delete(watch)
        resolve()
      }
      watchers.add(watch)
    })
  const seenOnBoth = (status: number): Promise<unknown> =>
    Promise.all(servers.map((server) => seen(server, status)))

  const loadsOf = (server: Server): Promise<unknown> =>
    Promise.all(Array.from({ length: 8 }, (_, client) => load(server, client)))
  const loadsOfKilled = loadsOf(killed)
  const loads = Promise.all([loadsOfKilled, loadsOf(survivor)])
  const run = async (): Promise<void> => {
    await seenOnBoth(201)
    for (const end of [database.stop, database.kill, database.kill]) {
      await end()
      await seenOnBoth(503)
      const list = await send(survivor.url, '/v1/pets')
      assert.equal(assertRefusal(list, 503, 'storage_failed'), 'The storage failed; no pet can be read now.')
      await database.start()
      await seenOnBoth(201)
      assert.equal((await send(survivor.url, '/v1/pets')).status, 200)
    }
    killed.child.kill('SIGKILL')
    await loadsOfKilled
    assert.equal(counts.cutOff, 8)
    await seen(survivor, 201)
    state.isOver = true
  }
  // A load that fails ends the test at once.
  await Promise.race([run(), loads.then(() => assert.ok(state.isOver))])
  await loads

  const restarted = await start(databaseUrl)
  for (const { url } of [survivor, restarted]) {
    const stored: Pets = new Map()
    await walk(url, stored)
    for (const [id, text] of acknowledged) assert.equal(stored.get(id), text)
  }
  const again = await send(restarted.url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
  assert.equal(again.status, 201)
  const outage = ['the storage failed', 'the storage works again']
  for (const { messages } of servers) {
    const kinds = messages.map((message) => message.replace(/failed: .*/, 'failed'))
    assert.deepEqual(kinds, [...outage, ...outage, ...outage], messages.join('\n'))
  }
  t.diagnostic(JSON.stringify(counts))
  await stopServer(survivor)
})

test('stores nothing of a creation that was refused behind a lock', async () => {
  const databaseUrl = await database.createDatabase('lock')
  const { url } = await start(databaseUrl)
  const somebody = new Client({ connectionString: databaseUrl })
  await somebody.connect()
  await somebody.query('BEGIN; SELECT * FROM pet_counter FOR UPDATE')
  const refused = await send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
  assertRefusal(refused, 503, 'storage_failed')
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

/** A database that has no connection left: requests wait for one of ours, or for one that somebody else gives back. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { Client } from 'pg'
import { assertRefusal, type ReceivedAnswer, send } from '../support.ts'
import { type Database, runSql, startDatabase } from './database.ts'
import { killAll, waitUntil } from './processes.ts'
import { type Server, startServer, stopServer } from './service.ts'

let database: Database
before(async () => {
  database = await startDatabase()
})
after(() => killAll(database.folder))

/** A database of a role that may have so many connections. */
async function createLimited(role: string, connections: number): Promise<string> {
  const url = await database.createDatabase(role)
  await runSql(
    url,
    `CREATE ROLE ${role} LOGIN CONNECTION LIMIT ${connections}; GRANT ALL ON SCHEMA public TO ${role}`,
  )
  return url.replace('petstore@', `${role}@`)
}

/** Takes all connections that the role may have, until the function that it returns is called. */
async function takeAll(t: TestContext, databaseUrl: string): Promise<() => Promise<unknown>> {
  const clients: Client[] = []
  t.after(() => Promise.all(clients.map((client) => client.end())))
  await waitUntil('no connection is left', async () => {
    for (;;) {
      const client = new Client({ connectionString: databaseUrl })
      const refusal = await client.connect().then(
        () => undefined,
        (error: unknown) => String(error),
      )
      if (refusal !== undefined) return /too many connections/.test(refusal) || undefined
      clients.push(client)
    }
  })
  return () => Promise.all(clients.splice(0).map((client) => client.end()))
}

/** The servers' own connections are closed when they were idle for some seconds. */
async function untilClosed(databaseUrl: string): Promise<void> {
  const owners = databaseUrl.replace(/\/\/\w+@/, '//petstore@')
  const sessions =
    "SELECT FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()"
  await waitUntil(
    'the idle connections are closed',
    async () => (await runSql(owners, sessions)).length === 0 || undefined,
  )
}

const create = ({ url }: Server): Promise<ReceivedAnswer> =>
  send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
const list = ({ url }: Server): Promise<ReceivedAnswer> => send(url, '/v1/pets')
const askReadiness = ({ url }: Server): Promise<ReceivedAnswer> => send(url, '/healthz?ready')
const countStatuses = (answers: readonly ReceivedAnswer[]) => [
  ...new Set(answers.map(({ status }) => status)),
]

test('answers all requests at once, and stays ready, on three connections of the role', async () => {
  const databaseUrl = await createLimited('three', 3)
  const server = await startServer(database.folder, databaseUrl)
  for (let round = 0; round < 5; round++) {
    const requests = Array.from({ length: 20 }, () => [create(server), list(server), askReadiness(server)])
    assert.deepEqual(countStatuses(await Promise.all(requests.flat())).toSorted(), [200, 201])
  }
  assert.deepEqual(server.messages, [])
  await stopServer(server)
})

test('answers the requests of two servers at once that have ten connections together', async () => {
  const databaseUrl = await createLimited('ten', 10)
  const servers = [
    await startServer(database.folder, databaseUrl),
    await startServer(database.folder, databaseUrl),
  ]
  const [first, second] = servers
  assert.ok(first !== undefined && second !== undefined)
  // The first takes all ten, and the second waits until they were idle for too long.
  await untilClosed(databaseUrl)
  const alone = Array.from({ length: 40 }, () => list(first))
  assert.deepEqual(countStatuses(await Promise.all(alone)), [200])
  for (let round = 0; round < 5; round++) {
    const requests = servers.flatMap((server) =>
      Array.from({ length: 20 }, () => [create(server), list(server), askReadiness(server)]),
    )
    assert.deepEqual(countStatuses(await Promise.all(requests.flat())).toSorted(), [200, 201])
  }
  for (const server of servers) {
    assert.deepEqual(server.messages, [])
    await stopServer(server)
  }
})

test('answers as soon as somebody else gives a connection back', async (t) => {
  const databaseUrl = await createLimited('later', 2)
  const server = await startServer(database.folder, `${databaseUrl}?connect_timeout=300`)
  await untilClosed(databaseUrl)
  const giveBack = await takeAll(t, databaseUrl)
  const refused = database.untilLogged(/too many connections for role "later"/)
  const waiting = Promise.all([create(server), list(server), askReadiness(server)])
  await refused
  await giveBack()
  assert.deepEqual(countStatuses(await waiting).toSorted(), [200, 201])
  assert.deepEqual(server.messages, [])
  await stopServer(server)
})

test('refuses after connect_timeout, and says that nothing was stored', async (t) => {
  const databaseUrl = await createLimited('never_left', 1)
  const server = await startServer(database.folder, `${databaseUrl}?connect_timeout=1`)
  await untilClosed(databaseUrl)
  const giveBack = await takeAll(t, databaseUrl)
  const begun = performance.now()
  const answers = await Promise.all(Array.from({ length: 30 }, () => create(server)))
  assert.ok(performance.now() - begun > 900)
  for (const answer of answers)
    assert.match(assertRefusal(answer, 503, 'storage_failed'), /nothing was stored/)
  await giveBack()
  assert.equal((await create(server)).headers.get('location'), '/v1/pets/1')
  await stopServer(server)
})

test('takes no more connections than connection_limit says', async () => {
  const databaseUrl = await createLimited('bounded', 10)
  const server = await startServer(database.folder, `${databaseUrl}?connection_limit=2`)
  // Each takes its connection for itself while it waits for the lock.
  const somebody = new Client({ connectionString: databaseUrl })
  await somebody.connect()
  await somebody.query('BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE')
  const answers = Promise.all(Array.from({ length: 20 }, () => list(server)))
  const sessions =
    "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = 'bounded'"
  const count = async () => (await runSql(databaseUrl, sessions))[0]?.['count']
  await waitUntil('both wait', async () => (await count()) === 2 || undefined)
  await send(server.url, '/healthz')
  assert.equal(await count(), 2)
  await somebody.query('COMMIT')
  await somebody.end()
  assert.deepEqual(countStatuses(await answers), [200])
  await stopServer(server)
})

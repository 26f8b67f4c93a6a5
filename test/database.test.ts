/** The program with a database that refuses it, and a long export. What it does with one that works: test/postgres. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Pet } from '../src/pet/pet.ts'
import type { PetQuery } from '../src/store/store.ts'
import { type PostgresPool, waitInLine } from '../src/postgres/connections.ts'
import { exportPets } from '../src/postgres/transfer-pets.ts'
import { clock } from '../src/system/clock.ts'
import { makeFolder, runProgram, withoutTimes } from './support.ts'

/** The text of an ErrorResponse (PostgreSQL, message formats): severity, SQLSTATE and message. */
function formatError(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}

/** Something that listens as a database does, and responds to the first bytes of each connection. Gives its address. */
async function startDatabase(t: TestContext, respond: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).once('data', () => respond(socket))
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return `127.0.0.1:${address.port}`
}

/** A database that answers each connection with the next of these errors, and then always with the last. */
function startRefusing(t: TestContext, ...errors: readonly (readonly [string, string])[]): Promise<string> {
  const rest = [...errors]
  return startDatabase(t, (socket) => {
    const [code, message] = (rest.length > 1 ? rest.shift() : rest[0]) ?? assert.fail()
    socket.end(formatError(code, message))
  })
}

/** Runs the program until it ends by itself. */
async function runToEnd(
  t: TestContext,
  url: string,
  args: readonly string[] = [],
  folder = makeFolder(),
): Promise<{ output: string; code: number | null }> {
  const env = { PETSTORE_API_KEYS: 'a', PETSTORE_DATABASE_URL: url, PGPASSWORD: 'hush' }
  const program = runProgram(t, folder, env, [], args)
  const { code } = await program.ended
  assert.doesNotMatch(program.output(), /hush/)
  assert.equal(existsSync(join(folder, 'data')), false)
  return { output: withoutTimes(program.output()), code }
}

for (const [code, message] of [
  ['28P01', 'password authentication failed for user "ann"'],
  ['3D000', 'database "pets" does not exist'],
] as const) {
  test(`ends at once in one line that shows no password: ${message}`, async (t) => {
    const place = await startRefusing(t, [code, message])
    assert.deepEqual(await runToEnd(t, `postgres://ann:hush@${place}/pets`), {
      output: `the database postgres://ann@${place}/pets: ${message}\n`,
      code: 1,
    })
  })
}

test('waits for a database that starts, and says so once', async (t) => {
  const starting = ['57P03', 'the database system is starting up'] as const
  const full = ['53300', 'sorry, too many clients already'] as const
  const place = await startRefusing(t, starting, full, ['28P01', 'no'])
  const { output, code } = await runToEnd(t, `postgres://ann:hush@${place}/pets`)
  const shown = `postgres://ann@${place}/pets`
  assert.equal(
    output,
    `waiting 30 s at most for the database ${shown}: ${starting[1]}\nthe database ${shown}: no\n`,
  )
  assert.equal(code, 1)
})

test('ends at once, and says why, when a database asks for a password and none was given', async (t) => {
  // AuthenticationSASL. After it, the database waits for a response.
  const request = Buffer.from('R\0\0\0\0\0\0\0\nSCRAM-SHA-256\0\0')
  request.writeInt32BE(request.length - 1, 1)
  const shown = `postgres://ann@${await startDatabase(t, (socket) => socket.write(request))}/pets`
  const program = runProgram(t, makeFolder(), { PETSTORE_API_KEYS: 'a', PETSTORE_DATABASE_URL: shown })
  assert.equal((await program.ended).code, 1)
  const fault = 'it asks for a password, and none was given; put it into the address, or set PGPASSWORD'
  assert.equal(withoutTimes(program.output()), `the database ${shown}: ${fault}\n`)
})

test('refuses a certificate that cannot be read in a line that names it', async (t) => {
  const url = 'postgres://ann:hush@127.0.0.1:1/pets?sslmode=require&sslrootcert=none.pem'
  const { output, code } = await runToEnd(t, url)
  const fault = 'sslrootcert: "none.pem": cannot be read: no such file or directory (ENOENT)'
  assert.equal(output, `PETSTORE_DATABASE_URL: ${fault}\n`)
  assert.equal(code, 1)
})

test('imports and exports only with a database', async (t) => {
  const folder = makeFolder()
  writeFileSync(join(folder, 'pets.json'), '{"pets":[]}')
  for (const name of ['import', 'export']) {
    assert.deepEqual(await runToEnd(t, '', [`--${name}`, 'pets.json'], folder), {
      output: '--import, --export: expected one of them, and a database\n',
      code: 1,
    })
  }
})

test('exports each pet once, however many queries it takes to read them', async () => {
  const path = join(makeFolder(), 'pets.json')
  const all = Array.from({ length: 5_000 }, (_, i): Pet => {
    return { id: 2 * i + 1, name: `${i}`, categoryId: 1, status: 'sold' }
  })
  const list = async ({ limit, after = 0 }: PetQuery) => {
    const rest = all.filter(({ id }) => id > after)
    return { pets: rest.slice(0, limit), hasMore: rest.length > limit }
  }
  assert.equal(await exportPets({ list }, path), all.length)
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), { pets: all })
})

test('a request that finds no connection waits for one as long as the pool would, and is then refused', async (t) => {
  let now = 0
  t.mock.method(clock, 'performanceNow', () => now)
  t.mock.method(clock, 'setTimeout', (call: () => void, ms: number) => {
    setImmediate(() => {
      now += ms
      call()
    })
  })
  const full = Object.assign(new Error('sorry, too many clients already'), { code: '53300' })
  const refusedAt: number[] = []
  const waiting: Promise<unknown>[] = []
  const wait = (): void => {
    const refused = assert.rejects(connections.connect(), full).then(() => refusedAt.push(now))
    waiting.push(refused)
  }
  const pool: PostgresPool = Object.assign(new EventEmitter(), {
    idleCount: 0,
    options: { connectionTimeoutMillis: 1_000 },
    connect() {
      if (now === 400 && waiting.length === 2) wait()
      return Promise.reject(full)
    },
  })
  const connections = waitInLine(pool)
  wait()
  wait()
  while (waiting.length < 3) await new Promise(setImmediate)
  await Promise.all(waiting)
  assert.deepEqual(refusedAt, [1_000, 1_000, 1_400])
})

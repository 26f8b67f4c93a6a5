/** The delay of responses, for demos of slow ones: what it holds back, how long, and when it ends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { PetStorage, RequestLog } from '../src/options/types.ts'
import { createPetStore, startPetStore } from '../src/pet-store-server.ts'
import { clock } from '../src/system/clock.ts'
import { createGate } from './file-system.ts'
import {
  assertRefusal,
  authorization,
  connectRaw,
  formatRequest,
  holdTimeouts,
  key,
  makeDataFile,
  pause,
  readPetLines,
  send,
  startApp,
} from './support.ts'

test('holds back every response under /v1, refusals too, and no other', async (t) => {
  const delayMs = 100
  const app = await startApp(t, { delayMs })
  const measure = async (path: string, header = authorization): Promise<[status: number, ms: number]> => {
    const start = performance.now()
    const { status } = await app.send(path, { headers: { authorization: header } })
    return [status, performance.now() - start]
  }
  for (const [path, expected, header] of [
    ['/v1/pets', 200],
    ['/v1/pets/1', 404],
    ['/v1/nowhere', 404],
    ['/v1', 404],
    ['/v1/pets', 401, 'Bearer wrong'],
  ] as const) {
    const [status, ms] = await measure(path, header)
    assert.equal(status, expected)
    // A timer may be early by the rest of a millisecond.
    assert.ok(ms >= delayMs - 1, `${path}: ${ms} ms`)
  }
  // From here on no time passes.
  holdTimeouts(t)
  assert.equal((await app.send('/healthz')).status, 200)
})

test('holds back each response for as long as is drawn from the range', async (t) => {
  const app = await startApp(t, { delayMs: [200, 600] })
  let drawn = 0
  const waits: unknown[] = []
  t.mock.method(Math, 'random', () => drawn)
  const { mock } = t.mock.method(clock, 'setTimeout', (call: () => void, ms: number) => {
    waits.push(ms)
    return setTimeout(call, 0)
  })
  for (drawn of [0, 0.5, 1 - 2 ** -10]) assert.equal((await app.send('/v1/pets')).status, 200)
  mock.restore()
  assert.deepEqual(waits, [200, 400, 600 - 400 * 2 ** -10])
})

test('tells onResponse how long each response took, the delay included', async (t) => {
  const delayMs = 50
  const told: RequestLog[] = []
  const app = await startApp(t, { delayMs, onResponse: (entry) => told.push(entry) })
  const start = performance.now()
  await app.send('/v1/pets')
  await app.send('/v1/nowhere')
  const delayed = told.splice(0)
  const raw = await connectRaw(t, app.url)
  raw.write('no request\r\n\r\n')
  await raw.read()
  await app.send('/healthz')
  const elapsed = performance.now() - start
  assert.deepEqual([delayed.length, told.length], [2, 2])
  // A timer may be early by the rest of a millisecond.
  for (const { path, milliseconds } of delayed)
    assert.ok(milliseconds >= delayMs - 1, `${path} ${milliseconds}`)
  for (const { path, milliseconds } of [...delayed, ...told])
    assert.ok(milliseconds >= 0 && milliseconds <= elapsed, `${path} ${milliseconds}`)
})

test('ends at once when the service closes, and what was held back is answered', async (t) => {
  const app = await startApp(t, { delayMs: [10_000, 10_000], timeouts: { closeMs: 60_000 } })
  // No time passes.
  holdTimeouts(t)
  const [reader, creator] = await Promise.all([connectRaw(t, app.url), connectRaw(t, app.url)])
  reader.write(formatRequest('GET /v1/pets'))
  creator.write(formatRequest('POST /v1/pets', [], '{"name":"Rex","categoryId":1}'))
  // It is answered without a delay, and so the two requests before it have arrived.
  assert.equal((await app.send('/healthz')).status, 200)
  const closed = app.server.close()
  assert.deepEqual([(await reader.read()).status, (await creator.read()).status], [200, 201])
  await closed
})

test('a client that goes on sending while the service closes is read to its end, and not reset', async (t) => {
  const app = await startApp(t, { delayMs: 10_000 })
  // No time passes: neither that of the delay nor how long a client may go on.
  holdTimeouts(t)
  const { hostname, port } = new URL(app.url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  t.after(() => socket.destroy())
  let hadError = false
  socket.on('error', () => {
    hadError = true
  })
  socket.write(formatRequest('GET /v1/pets'))
  assert.equal((await app.send('/healthz')).status, 200)
  const closed = app.server.close()
  await once(socket.resume(), 'end')
  for (let i = 0; i < 3; i++) await new Promise((done) => socket.write(' '.repeat(100_000), done))
  socket.end()
  await once(socket, 'close')
  assert.equal(hadError, false)
  await closed
})

test('a body that turns out to be broken in the meantime is refused, and not asked for', async (t) => {
  const app = await startApp(t, { delayMs: 10_000 })
  // No time passes.
  holdTimeouts(t)
  const client = await connectRaw(t, app.url)
  client.write(formatRequest('POST /v1/pets', ['Expect: 100-continue', 'Transfer-Encoding: chunked']))
  assert.equal((await app.send('/healthz')).status, 200)
  client.write('no chunk\r\n')
  assert.equal((await app.send('/healthz')).status, 200)
  const closed = app.server.close()
  assertRefusal(await client.read(), 400, 'malformed_request')
  await closed
})

const creation = formatRequest('POST /v1/pets', [], '{"name":"Rex","categoryId":1}')

test('a request whose client goes in the meantime is dropped', { timeout: 120_000 }, async (t) => {
  const dataFile = makeDataFile()
  const app = await startApp(t, { dataFile, delayMs: 10_000, timeouts: { idleMs: 600_000 } })
  // No time passes.
  holdTimeouts(t)
  const clients = await Promise.all([1, 2, 3].map(() => connectRaw(t, app.url)))
  for (const { write } of clients) write(creation)
  assert.equal((await app.send('/healthz')).status, 200)
  const [first, second, third] = clients
  first?.socket.destroy()
  second?.socket.resetAndDestroy()
  third?.socket.end()
  // The service closes its half too: it cannot tell this client from one that has gone.
  await third?.closed
  // Whatever were still held back would be answered now.
  await app.server.close()
  assert.deepEqual(readPetLines(dataFile), [])
})

test('a request whose client has gone before it could be held back is dropped', async (t) => {
  const calls: string[] = []
  const gate = createGate()
  const storage: PetStorage = {
    async list() {
      calls.push('list')
      await gate.pass()
      return { pets: [], hasMore: false }
    },
    get: async () => undefined,
    create: async () => {
      calls.push('create')
      return []
    },
  }
  const server = await startPetStore({ apiKeys: [key], storage, delayMs: 10_000 })
  t.after(() => server.close())
  server.disturb({ delayMs: 0, requests: 1 })
  // No time passes.
  holdTimeouts(t)
  const client = await connectRaw(t, server.url)
  client.socket.end(formatRequest('GET /v1/pets') + creation)
  await gate.reached
  // The end of the client is seen by then, while its list takes long.
  for (let i = 0; i < 10; i++) await send(server.url, '/healthz')
  gate.open()
  assert.equal((await client.read()).status, 200)
  await client.closed
  await server.close()
  assert.deepEqual(calls, ['list'])
})

test('keeps nothing of a request whose client went while it was held back', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  assert.ok(typeof collect === 'function')
  const store = await createPetStore({ apiKeys: [key], pets: [], delayMs: 10_000 })
  t.after(() => store.close())
  const sendAndGo = async (): Promise<WeakRef<Request>> => {
    const controller = new AbortController()
    const { signal } = controller
    const request = new Request('http://pets.test/v1/pets', { headers: { authorization }, signal })
    const response = store.fetch(request)
    controller.abort()
    await assert.rejects(response, { name: 'AbortError' })
    return new WeakRef(request)
  }
  const kept = await sendAndGo()
  for (let turn = 0; turn < 100 && kept.deref() !== undefined; turn++) {
    await pause()
    collect()
  }
  assert.equal(kept.deref(), undefined)
})

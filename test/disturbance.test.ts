/** Failures on purpose: which requests fail, how, and when that ends. (How requests are held back: delay.test.ts.) */
import assert from 'node:assert/strict'
import { createServer, connect as connectHttp2 } from 'node:http2'
import { once } from 'node:events'
import { test } from 'node:test'
import { createPetStore } from '../src/index.ts'
import type { RequestLog } from '../src/options/types.ts'
import { assertRefusal, authorization, connectRaw, formatRequest, key, send, startApp } from './support.ts'

const pet = { name: 'Rex', categoryId: 1 }

test('fails every request under /v1 with a status, before anything is checked, and no other', async (t) => {
  const log: RequestLog[] = []
  const app = await startApp(t, { fail: '503', pets: [pet], onResponse: (entry) => log.push(entry) })
  for (const [path, options] of [
    ['/v1/pets', {}],
    ['/v1/nowhere', {}],
    ['/v1/pets', { headers: { authorization: null } }],
    ['/v1/pets', { body: pet }],
  ] as const) {
    const answer = await send(app.url, path, options)
    assertRefusal(answer, 503, 'failed_on_purpose')
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
  }
  for (const path of ['/healthz', '/openapi.json', '/']) assert.equal((await app.send(path)).status, 200)
  const headers = { origin: 'http://a.example', 'access-control-request-method': 'POST' }
  assert.equal((await app.send('/v1/pets', { method: 'OPTIONS', headers })).status, 204)
  assert.deepEqual(
    log.map(({ status, code, isOnPurpose }) => [status, code, isOnPurpose]),
    [
      ...Array.from({ length: 4 }, () => [503, 'failed_on_purpose', true]),
      ...[200, 200, 200, 204].map((status) => [status, undefined, false]),
    ],
  )
  app.server.disturb({})
  const { text } = await app.send('/v1/pets')
  assert.equal(JSON.parse(text).length, 1, 'nothing was stored')
})

test('fails under /v1 however its prefix is spelled, with a status that has no phrase too', async (t) => {
  const app = await startApp(t, { fail: '499', basePath: '/store', pets: [pet] })
  for (const path of ['/v1/pets', '/store/v1/pets', '/%73tore/%761/pets', '/store/v1']) {
    const client = await connectRaw(t, app.url)
    client.write(formatRequest(`GET ${path}`, ['Connection: close']))
    const answer = await client.read()
    assert.deepEqual([answer.status, answer.reason], [499, 'unknown'], path)
  }
  assert.equal((await app.send('/api/v1/pets')).status, 404)
})

test('takes about the share that is set, with 500 or 503 unless others are named', async (t) => {
  const { random } = Math
  let draws = 0
  // Evenly from 0 to 1, whatever it is asked for.
  t.mock.method(Math, 'random', () => (draws++ % 100) / 100)
  t.after(() => (Math.random = random))
  const app = await startApp(t, { fail: '25%' })
  const statuses: number[] = []
  for (let i = 0; i < 40; i++) statuses.push((await send(app.url, '/v1/pets')).status)
  const failed = statuses.filter((status) => status !== 200)
  assert.ok(failed.length >= 5 && failed.length <= 20, statuses.join())
  assert.ok(failed.every((status) => status === 500 || status === 503))
})

test('takes no more than the share that is set', async (t) => {
  let drawn = 0.25
  t.mock.method(Math, 'random', () => drawn)
  const app = await startApp(t, { fail: '25%' })
  assert.equal((await send(app.url, '/v1/pets')).status, 200)
  drawn = 0.249
  assert.equal((await send(app.url, '/v1/pets')).status, 500)
})

test('closes the connection without a byte for drop, and logs it with the status 0', async (t) => {
  const log: RequestLog[] = []
  const app = await startApp(t, { fail: 'drop', onResponse: (entry) => log.push(entry) })
  await assert.rejects(send(app.url, '/v1/pets'))
  assert.deepEqual(
    log.map(({ path, status, code, isOnPurpose }) => [path, status, code, isOnPurpose]),
    [['/v1/pets', 0, 'failed_on_purpose', true]],
  )
  const headers = { authorization }
  await assert.rejects(app.server.fetch(new Request('http://a.example/v1/pets', { headers })), TypeError)
})

test('resets the stream for drop on HTTP/2', async (t) => {
  const store = await createPetStore({ apiKeys: [key], pets: [], fail: 'drop' })
  const server = createServer(store.listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const client = connectHttp2(`http://127.0.0.1:${address.port}`)
  t.after(() => {
    client.destroy()
    server.close()
  })
  const stream = client.request({ ':path': '/v1/pets', authorization })
  stream.end()
  const [error] = await once(stream, 'error')
  assert.match(String(error), /ERR_HTTP2_STREAM_ERROR|INTERNAL_ERROR/)
})

test('fails after the store has acted: the pet is stored, and the client is not told', async (t) => {
  const app = await startApp(t)
  app.server.disturb({ fail: '100%:after:503', requests: 1 })
  assertRefusal(await send(app.url, '/v1/pets', { body: pet }), 503, 'failed_on_purpose')
  app.server.disturb({ fail: 'after:drop', requests: 1 })
  await assert.rejects(send(app.url, '/v1/pets', { body: pet }))
  assert.equal(app.server.countPets(), 2)
  // What was refused by itself stays as it is.
  app.server.disturb({ fail: 'after:503', requests: 1 })
  assertRefusal(await app.send('/v1/pets', { body: {} }), 400, 'invalid_body')
})

test('fails whoever asks by Prefer if that is allowed, says so in a header that pages may read, and else does not', async (t) => {
  const app = await startApp(t, { fail: '0%:503,prefer' })
  const ask = (prefer: string) => send(app.url, '/v1/pets', { headers: { authorization, prefer } })
  for (const prefer of ['code=418', 'respond-async, CODE = "418"; x=1']) {
    const answer = await ask(prefer)
    assertRefusal(answer, 418, 'failed_on_purpose')
    assert.equal(answer.headers.get('preference-applied'), 'code=418')
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /\bPreference-Applied\b/)
  }
  for (const prefer of ['code=200', 'code=4180', 'decode=418', 'wait=5']) {
    const answer = await ask(prefer)
    assert.deepEqual([answer.status, answer.headers.get('preference-applied')], [200, undefined], prefer)
  }
  app.server.disturb({})
  assert.equal((await ask('code=418')).status, 200)
})

test('changes at once, what is not named stays, and after so many requests what was before comes back', async (t) => {
  const app = await startApp(t, { fail: '500' })
  const statusOf = async (): Promise<number> => (await send(app.url, '/v1/pets')).status
  app.server.disturb({ fail: '503', requests: 2 })
  const headers = { origin: 'http://a.example', 'access-control-request-method': 'GET' }
  await app.send('/v1/pets', { method: 'OPTIONS', headers })
  await app.send('/healthz')
  assert.deepEqual([await statusOf(), await statusOf(), await statusOf()], [503, 503, 500])
  app.server.disturb({ delayMs: 1 })
  assert.equal(await statusOf(), 500)
  app.server.disturb({ fail: '' })
  assert.equal(await statusOf(), 200)
  await app.server.reset()
  assert.equal(await statusOf(), 500, 'as it was created')
  app.server.disturb({})
  assert.equal(await statusOf(), 200)
})

test('changes what comes back after some requests, too', async (t) => {
  const { server, url } = await startApp(t)
  const statusOf = async (path = '/v1/pets'): Promise<number> => (await send(url, path)).status
  server.disturb({ fail: '503', requests: 1 })
  server.disturb({ delayMs: 1 })
  assert.deepEqual([await statusOf(), await statusOf()], [503, 200])
  server.disturb({ fail: '503', requests: 1 })
  server.disturb({ fail: '500' })
  assert.deepEqual([await statusOf('/%76%31/pets'), await statusOf()], [500, 500])
})

test('refuses a wrong change with a TypeError that names it, and changes nothing', async (t) => {
  const { server, url } = await startApp(t, { fail: '503' })
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [5, /^disturb: expected an object, got 5$/],
    [{ fail: '999' }, /^fail: expected a share such as 10%, .*, got "999"$/],
    [{ fail: '101%' }, /^fail: expected a share/],
    [{ fail: '10%:' }, /^fail: expected a share/],
    [{ fail: '10%:prefer' }, /^fail: expected a share/],
    [{ fail: 'after:' }, /^fail: expected a share/],
    [{ fail: 503 }, /^fail: expected failures such as .*, got 503$/],
    [{ delayMs: -1, requests: 0 }, /^delayMs: expected .*; requests: expected an integer from 1 to /],
    [{ status: 503 }, /^status: is unknown, expected one of fail, delayMs, requests$/],
  ]
  for (const [change, message] of wrong) {
    // The compiler refuses these, too.
    assert.throws(() => server.disturb(change as object), { name: 'TypeError', message })
  }
  assert.equal((await send(url, '/v1/pets')).status, 503)
})

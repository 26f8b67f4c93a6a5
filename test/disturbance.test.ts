/** Failures on purpose: which requests fail, how, and when that ends. (How requests are held back: delay.test.ts.) */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import nodeFs from 'node:fs'
import { createServer, connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { errorCodes } from '../src/api/refusals.ts'
import { createPetStore } from '../src/index.ts'
import type { RequestLog } from '../src/options/types.ts'
import { createGate } from './file-system.ts'
import {
  assertRefusal,
  authorization,
  connectRaw,
  formatRequest,
  holdTimeouts,
  key,
  listen,
  makeDataFile,
  type RawClient,
  readPetLines,
  send,
  type StartedApp,
  startApp,
} from './support.ts'

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
  app.server.disturb({ fail: 'none' })
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

/** What comes on a connection until it ends. */
async function readToEnd(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(bytes)
  return (await buffer(socket)).toString()
}

test('sends a head for drop that no client can take, closes, and logs it with the status 0', async (t) => {
  const log: RequestLog[] = []
  const app = await startApp(t, { fail: 'drop', onResponse: (entry) => log.push(entry) })
  await assert.rejects(send(app.url, '/v1/pets'))
  assert.deepEqual(
    log.map(({ path, status, code, isOnPurpose }) => [path, status, code, isOnPurpose]),
    [['/v1/pets', 0, 'failed_on_purpose', true]],
  )
  const { listener } = app.server
  const mounted = await listen(t, (request, response) => void listener(request, response))
  const head = 'HTTP/1.1 dropped\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'
  // What browsers make of it is tried in test/browser.
  for (const url of [app.url, mounted]) {
    assert.equal(await readToEnd(url, formatRequest('GET /v1/pets')), head)
  }
  const headers = { authorization }
  await assert.rejects(app.server.fetch(new Request('http://a.example/v1/pets', { headers })), TypeError)
})

test('sends the responses to earlier requests of a connection before it drops one', async (t) => {
  const app = await startApp(t, { fail: 'GET:drop' })
  const { listener } = app.server
  const mounted = await listen(t, (request, response) => void listener(request, response))
  const creation = formatRequest('POST /v1/pets', [], JSON.stringify(pet))
  for (const url of [app.url, mounted]) {
    const received = await readToEnd(url, creation + formatRequest('GET /v1/pets'))
    assert.match(received, /^HTTP\/1.1 201 Created\r\n/)
    assert.match(
      received,
      /\r\n\r\n\{.*\}HTTP\/1.1 [^{]*dropped\r\nContent-Length: 1\r\nContent-Length: 2\r\n/,
    )
  }
})

test('gives an error code the words that a client gets when the failure is real', async (t) => {
  const app = await startApp(t)
  const messageOf = async (fail: string, options = {}, target = '/v1/pets'): Promise<string> => {
    app.server.disturb({ fail })
    return JSON.parse((await send(app.url, target, options)).text).message
  }
  const creation = { body: pet }
  assert.equal(await messageOf('storage_failed', creation), 'The storage failed; nothing was stored.')
  assert.equal(
    await messageOf('after:storage_failed', creation),
    'The storage failed; it is not known whether the pet was stored.',
  )
  assert.equal(
    await messageOf('insufficient_storage', creation),
    'There is no room left; nothing was stored.',
  )
  // A later version may change and remove pets: such a request does more than read, too.
  assert.equal(
    await messageOf('storage_failed', { method: 'DELETE' }, '/v1/pets/5'),
    'The storage failed; nothing was stored.',
  )
  assert.equal(await messageOf('storage_failed'), 'The storage failed; no pet can be read now.')
  const trace = await readToEnd(app.url, formatRequest('TRACE /v1/pets', ['Connection: close']))
  assert.match(trace, /"The storage failed; no pet can be read now\."/)
  assert.equal(
    await messageOf('data_file_invalid', creation),
    'The data file is not valid (it is refused on purpose); nothing was stored.',
  )
  assert.equal(await messageOf('invalid_body', creation), 'name: is refused on purpose')
  assert.equal(await messageOf('invalid_parameter'), 'limit: is refused on purpose')
  assert.equal(
    await messageOf('unauthorized', { headers: { authorization: 'Bearer zz' } }),
    'The API key is not valid.',
  )
  for (const target of ['/v1/pets/5', '/v1/%70ets/5', '/v1/pets/5?x=/y'])
    assert.equal(await messageOf('not_found', {}, target), 'There is no pet with the id "5".')
  assert.equal(await messageOf('after:not_found', {}, '/v1/pets/1'), 'There is no pet with the id "1".')
  assert.equal(await messageOf('not_found', {}, '/v1/nowhere'), 'There is no such path.')
  assert.match(await messageOf('unauthorized', { headers: { authorization: null } }), /^Send your API key/)
  app.server.disturb({ fail: 'method_not_allowed' })
  const { headers } = await send(app.url, '/v1/pets', creation)
  assert.equal(headers.get('allow'), 'GET, HEAD, OPTIONS')
})

test('fails a request before its path is looked at, be that no path at all', async (t) => {
  const app = await startApp(t, { fail: '503' })
  for (const target of ['/v1/pets/%zz', '/v1/nowhere'])
    assertRefusal(await send(app.url, target), 503, 'failed_on_purpose')
})

test('rejects the promise of fetch for drop, and says why', async (t) => {
  const store = await createPetStore({ apiKeys: [key], pets: [], fail: 'drop' })
  t.after(() => store.close())
  await assert.rejects(store.fetch(new Request('http://pets.test/v1/pets')), {
    name: 'TypeError',
    message: 'the connection was closed without a response',
  })
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
  const app = await startApp(t, { fail: 'prefer' })
  const ask = (prefer: string) => send(app.url, '/v1/pets', { headers: { authorization, prefer } })
  for (const prefer of ['code=418', 'respond-async, CODE = "418"; x=1', 'x="a,b",code=418']) {
    const answer = await ask(prefer)
    assertRefusal(answer, 418, 'failed_on_purpose')
    assert.equal(answer.headers.get('preference-applied'), 'code=418')
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /\bPreference-Applied\b/)
  }
  for (const prefer of [
    'code=200',
    'code=4180',
    'decode=418',
    'wait=5',
    'x="a,code=418"',
    'x="a\\",code=418',
    '"',
  ]) {
    const answer = await ask(prefer)
    assert.deepEqual([answer.status, answer.headers.get('preference-applied')], [200, undefined], prefer)
  }
  app.server.disturb({ fail: 'none' })
  assert.equal((await ask('code=418')).status, 200)
})

const statusOf = async (app: StartedApp, method = 'GET'): Promise<number> =>
  (await send(app.url, '/v1/pets', method === 'POST' ? { body: pet } : { method })).status

test('changes from the next request on, what is not named stays, and ends by words', async (t) => {
  const app = await startApp(t, { fail: '500' })
  assert.equal(await statusOf(app), 500)
  app.server.disturb({ fail: '502' })
  assert.equal(await statusOf(app), 502)
  app.server.disturb({ delayMs: 1, fail: undefined })
  assert.equal(await statusOf(app), 502)
  app.server.disturb({ fail: 'none' })
  assert.equal(await statusOf(app), 200)
  await app.server.reset()
  assert.equal(await statusOf(app), 500, 'as it was created')
})

test('takes changes for some requests in the order in which they were said, beside what holds for all', async (t) => {
  const app = await startApp(t, { fail: '500' })
  app.server.disturb({ fail: '503', requests: 2 })
  app.server.disturb({ fail: 'none', requests: 1 })
  app.server.disturb({ delayMs: 1, requests: 1 })
  app.server.disturb({ fail: '502' })
  const headers = { origin: 'http://a.example', 'access-control-request-method': 'GET' }
  await app.send('/v1/pets', { method: 'OPTIONS', headers })
  await app.send('/healthz')
  const statuses: number[] = []
  for (let i = 0; i < 5; i++) statuses.push(await statusOf(app))
  assert.deepEqual(statuses, [503, 503, 200, 502, 502])
})

test('forgets at a reset what waits for requests', async (t) => {
  const app = await startApp(t)
  app.server.disturb({ fail: '503', requests: 1 })
  await app.server.reset()
  assert.equal(await statusOf(app), 200)
})

test('refuses more than 1,000 changes that wait, and 11,000 for all overflow nothing', async (t) => {
  const app = await startApp(t)
  for (let i = 0; i < 1_000; i++) app.server.disturb({ fail: '503', requests: 1 })
  const message = 'requests: 1000 changes wait for requests already; reset() clears them'
  assert.throws(() => app.server.disturb({ fail: '503', requests: 1 }), { name: 'TypeError', message })
  for (let i = 0; i < 11_000; i++) app.server.disturb({ delayMs: 0 })
  assert.equal(await statusOf(app), 503)
})

test('concerns the method alone that an item begins with: GET is HEAD, too', async (t) => {
  const app = await startApp(t, { fail: 'POST:503,GET:502' })
  for (const [method, status] of [
    ['POST', 503],
    ['GET', 502],
    ['HEAD', 502],
    ['DELETE', 405],
  ] as const)
    assert.equal(await statusOf(app, method), status, method)
  app.server.disturb({ fail: 'POST:after:503' })
  assert.deepEqual([await statusOf(app, 'POST'), await statusOf(app)], [503, 200])
  assert.equal(app.server.countPets(), 1)
})

test('counts in share and requests only what an item concerns', async (t) => {
  const app = await startApp(t)
  app.server.disturb({ fail: 'POST:503', requests: 1 })
  app.server.disturb({ fail: 'GET:502,DELETE:501', requests: 2 })
  const methods = ['GET', 'HEAD', 'GET', 'POST', 'POST']
  const statuses: number[] = []
  for (const method of methods) statuses.push(await statusOf(app, method))
  assert.deepEqual(statuses, [502, 502, 200, 503, 201])
  let draws = 0
  t.mock.method(Math, 'random', () => (draws++ === 0 ? 0.49 : 0.51))
  app.server.disturb({ fail: '50%:POST:503' })
  assert.deepEqual([await statusOf(app), await statusOf(app, 'POST')], [200, 503])
})

test('takes the change that a request asks for by Prefer, and leaves it to that one', async (t) => {
  const app = await startApp(t)
  app.server.disturb({ fail: 'prefer', requests: 1 })
  assert.equal(await statusOf(app), 200)
  const headers = { prefer: 'code=418' }
  assert.equal((await send(app.url, '/v1/pets', { headers })).status, 418)
  assert.equal((await send(app.url, '/v1/pets', { headers })).status, 200)
})

test('responds with an error code as when the failure is real, and logs that it was on purpose', async (t) => {
  const log: RequestLog[] = []
  const app = await startApp(t, { onResponse: (entry) => log.push(entry) })
  for (const [code, { status }] of Object.entries(errorCodes).filter(([name]) => name !== 'read_only')) {
    app.server.disturb({ fail: code, requests: 1 })
    // To an operation that may respond so, as its description says.
    const isOfList = code === 'invalid_parameter'
    const path = code === 'not_found' ? '/v1/pets/1' : '/v1/pets'
    const answer = await send(app.url, path, { method: isOfList || code === 'not_found' ? 'GET' : 'POST' })
    assertRefusal(answer, status, code)
    const { code: logged, isOnPurpose } = log.at(-1) ?? assert.fail()
    assert.deepEqual([logged, isOnPurpose], [code, true])
    assert.equal(answer.headers.has('retry-after'), false)
    assert.equal(answer.headers.has('sunset'), path === '/v1/pets/1')
    assert.equal(answer.headers.has('www-authenticate'), code === 'unauthorized')
    assert.equal(answer.headers.has('allow'), code === 'method_not_allowed')
    const hasErrors = 'errors' in JSON.parse(answer.text)
    assert.equal(hasErrors, code === 'invalid_body' || code === 'invalid_parameter')
  }
  await send(app.url, '/v1/nowhere')
  assert.equal(log.at(-1)?.isOnPurpose, false)
})

test('says when to try again with 429 and 503 by status, to pages of other origins, too', async (t) => {
  const app = await startApp(t, { fail: 'prefer' })
  for (const [status, expected] of [
    ['429', '1'],
    ['503', '1'],
    ['500', undefined],
  ] as const) {
    const { headers } = await send(app.url, '/v1/pets', { headers: { prefer: `code=${status}` } })
    assert.equal(headers.get('retry-after'), expected)
    assert.match(headers.get('access-control-expose-headers') ?? '', /\bRetry-After\b/)
  }
})

/** With nothing at all, a browser would send its request again by itself. */
const unusable = /not an answer: "HTTP\/1\.1 dropped"/

test('a reset that is called for a request that hangs ends it, too', async (t) => {
  const app = await startApp(t, {
    fail: 'hang',
    onResponse: ({ status }) => status === 0 && void app.server.reset(),
  })
  const client = await connectRaw(t, app.url)
  client.write(formatRequest('GET /v1/pets'))
  await assert.rejects(client.read(), unusable)
})

test('a request that hangs gets no response: until its client leaves, a stop, a reset, or as idle a time as any may', async (t) => {
  const log: RequestLog[] = []
  const onResponse = (entry: RequestLog): unknown => log.push(entry)
  const app = await startApp(t, { onResponse, fail: 'POST:after:hang', timeouts: { closeMs: 600_000 } })
  const hang = async (url = app.url) => {
    const before = log.length
    const client = await connectRaw(t, url)
    client.write(formatRequest('POST /v1/pets', [], JSON.stringify(pet)))
    while (log.length === before) await send(url, '/healthz')
    assert.deepEqual(
      log
        .filter(({ path }) => path !== '/healthz')
        .map(({ status, isOnPurpose }) => [status, isOnPurpose])
        .at(-1),
      [0, true],
    )
    return client
  }
  const assertHangs = async ({ socket }: RawClient) => {
    // Whatever were sent would have come before this response.
    await send(app.url, '/healthz')
    assert.deepEqual([socket.bytesRead, socket.readyState], [0, 'open'])
  }
  // No time passes.
  const timeouts = holdTimeouts(t)
  const first = await hang()
  await assertHangs(first)
  assert.equal(app.server.countPets(), 1)
  first.socket.end()
  await first.closed
  const second = await hang()
  await assertHangs(second)
  await app.server.reset()
  await assert.rejects(second.read(), unusable)
  assert.equal(app.server.countPets(), 0)
  const third = await hang()
  await assertHangs(third)
  await app.server.close()
  await assert.rejects(third.read(), unusable)
  timeouts.restore()
  const idle = await startApp(t, { onResponse, fail: 'hang', timeouts: { idleMs: 300 } })
  await assert.rejects((await hang(idle.url)).read(), unusable)
})

test(
  'a reset drops at once what has not reached the store, and nothing of it comes later',
  { timeout: 120_000 },
  async (t) => {
    const app = await startApp(t, { delayMs: 10_000 })
    // No time passes.
    holdTimeouts(t)
    const creation = formatRequest('POST /v1/pets', [], JSON.stringify(pet))
    const held = await connectRaw(t, app.url)
    held.write(creation + creation)
    const headers = { authorization, 'content-type': 'application/json' }
    const byFetch = app.server.fetch(
      new Request('http://a/v1/pets', { method: 'POST', headers, body: JSON.stringify(pet) }),
    )
    await send(app.url, '/healthz')
    await app.server.reset()
    await assert.rejects(byFetch, TypeError)
    await assert.rejects(held.read(), unusable)
    app.server.disturb({ delayMs: 0 })
    const arriving = await connectRaw(t, app.url)
    arriving.write(creation.slice(0, -1))
    await send(app.url, '/healthz')
    await app.server.reset()
    await assert.rejects(arriving.read(), unusable)
    app.server.disturb({ delayMs: 0 })
    assert.equal(await statusOf(app, 'POST'), 201)
    assert.equal(app.server.countPets(), 1)
  },
)

test('a reset drops a creation whose body has not come to its end, mounted and through fetch', async (t) => {
  const store = await createPetStore({ apiKeys: [key], pets: [] })
  const [begin, rest] = ['{"name":"Rex",', '"categoryId":1}']
  const { readable: body, writable } = new TransformStream<string, Uint8Array>({
    transform: (text, stream) => stream.enqueue(Buffer.from(text)),
  })
  const writer = writable.getWriter()
  const headers = { authorization, 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body, duplex: 'half' } as const
  const isDropped = assert.rejects(store.fetch(new Request('http://a.example/v1/pets', init)), TypeError)
  await writer.write(begin)
  const { reached, pass } = createGate()
  const mounted = await listen(t, (request, response) => {
    void store.listener(request, response)
    void pass()
  })
  const client = await connectRaw(t, mounted)
  client.write(formatRequest('POST /v1/pets', [`Content-Length: ${begin.length + rest.length}`]) + begin)
  await reached
  await store.reset()
  client.write(rest)
  await Promise.allSettled([writer.write(rest), writer.close()])
  await isDropped
  await assert.rejects(client.read(), unusable)
  assert.equal(store.countPets(), 0)
})

test('a reset drops a creation that waits behind one in the store, which is answered', async (t) => {
  const dataFile = makeDataFile()
  const app = await startApp(t, { dataFile })
  const { reached, open, pass } = createGate()
  const { fdatasync } = nodeFs
  const syncAtGate = (descriptor: number, done: nodeFs.NoParamCallback): void =>
    void pass().then(() => fdatasync(descriptor, done))
  t.mock.method(nodeFs, 'fdatasync', syncAtGate, { times: 1 })
  const client = await connectRaw(t, app.url)
  client.write(formatRequest('POST /v1/pets', [], JSON.stringify(pet)).repeat(2))
  await reached
  const isReset = app.server.reset()
  open()
  assert.equal((await client.read()).status, 201)
  await assert.rejects(client.read(), unusable)
  await isReset
  assert.equal(readPetLines(dataFile).length, 1)
})

const share = (got: string) =>
  new RegExp(`^fail: expected a share above 0% and up to 100%, or none, which ends failures, got ${got}$`)
const item = (got: string) =>
  new RegExp(
    `^fail: expected items such as 503 \\(from 400 to 599\\), unauthorized, .*, or none alone, which ends failures, got ${got}$`,
  )

test('refuses a wrong change with a TypeError that names the wrong part, and changes nothing', async (t) => {
  const { server, url } = await startApp(t, { fail: '503' })
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [5, /^disturb: expected an object, got 5$/],
    [{ fail: '' }, item('""')],
    [{ fail: '0%' }, share('"0%"')],
    [{ fail: '0%:503' }, share('"0%"')],
    [{ fail: '101%' }, share('"101%"')],
    [{ fail: '-5%' }, share('"-5%"')],
    [{ fail: '1.2.3%:drop' }, share('"1.2.3%"')],
    [{ fail: '10%:' }, item('"10%:"')],
    [
      { fail: '10%:prefer' },
      /^fail: expected failures for the share, as in 10%:503,prefer, got "10%:prefer"$/,
    ],
    [{}, /^disturb: expected fail or delayMs; { fail: "none", delayMs: 0 } ends both$/],
    [{ delayMs: undefined, requests: 1 }, /^disturb: expected fail or delayMs; /],
    [{ fail: '999' }, item('"999"')],
    [{ fail: '500,post:503,drop' }, item('"post:503"')],
    [
      { fail: '200%:PSOT:503, drop,sop' },
      /^fail: expected a share .*, got "200%"; expected .*, got "PSOT:503"; expected .*, got "sop"$/,
    ],
    [{ fail: 'after:POST:503' }, item('"after:POST:503"')],
    [{ fail: 'GET:prefer' }, item('"GET:prefer"')],
    [{ fail: '503,none' }, item('"none"')],
    [{ fail: 'read_only' }, item('"read_only"')],
    [{ fail: 'no_such_code' }, item('"no_such_code"')],
    [{ fail: 'after:' }, item('"after:"')],
    [{ fail: 503 }, /^fail: expected failures such as .*, got 503$/],
    [{ delayMs: -1, requests: 0 }, /^delayMs: expected .*\nrequests: expected an integer from 1 to /],
    [{ status: 503 }, /^status: is unknown, expected one of fail, delayMs, requests$/],
  ]
  for (const [change, message] of wrong) {
    // The compiler refuses these, too.
    assert.throws(() => server.disturb(change as object), { name: 'TypeError', message })
  }
  assert.equal((await send(url, '/v1/pets')).status, 503)
})

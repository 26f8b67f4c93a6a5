/** The ways into the service besides its own server: `fetch`, HTTP/2, and what apps put around a listener. */
import assert from 'node:assert/strict'
import { EventEmitter, getEventListeners, once } from 'node:events'
import {
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
  type ClientHttp2Stream,
} from 'node:http2'
import { appendFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { Readable } from 'node:stream'
import { createPetStore, startPetStore } from '../src/index.ts'
import type { PetStorage, PetStoreHandle, RequestLog } from '../src/options/types.ts'
import { createSuite } from './contract-cases.ts'
import { createClient } from './contract-client.ts'
import {
  authorization,
  connectRaw,
  formatRequest,
  key,
  listen,
  makeFolder,
  startProgram,
  send,
} from './support.ts'

const rex = { id: 1, name: 'Rex', categoryId: 1, status: 'available' } as const
const memory = { apiKeys: [key], pets: [rex] }
const json = { authorization, 'content-type': 'application/json' }
const pet = '{"name":"Mia","categoryId":2}'

/** A request of every kind, with its status. */
const requests: readonly [method: string, path: string, status: number, init?: RequestInit][] = [
  ['GET', '/v1/pets', 200],
  ['HEAD', '/v1/pets', 200],
  ['GET', '/v1/pets?limit=0', 400],
  ['GET', '/v1/pets/1', 200],
  ['GET', '/v1/pets/%zz', 400],
  ['GET', '//evil/v1/pets', 404],
  ['GET', '/', 200],
  ['GET', '/openapi.json', 200],
  ['GET', '/v1/pets', 401, { headers: { authorization: 'Bearer wrong' } }],
  ['OPTIONS', '/v1/pets', 204],
  ['PUT', '/v1/pets', 405],
  ['POST', '/v1/pets', 201, { body: pet }],
  ['POST', '/v1/pets', 400, { body: '{"name":1}' }],
  ['POST', '/v1/pets', 400, { body: '' }],
  ['POST', '/v1/pets', 400],
  ['POST', '/v1/pets', 413, { body: 'x'.repeat(65_537) }],
  ['POST', '/v1/pets', 415, { body: pet, headers: { ...json, 'content-type': 'text/plain' } }],
]

async function create(t: TestContext, options: object = {}): Promise<PetStoreHandle> {
  const store = await createPetStore({ ...memory, ...options })
  t.after(() => store.close())
  return store
}

const call = (store: PetStoreHandle, path: string, init: RequestInit = {}): Promise<Response> =>
  store.fetch(new Request(`http://pets.test${path}`, { headers: json, ...init }))

async function openSession(t: TestContext, store: Pick<PetStoreHandle, 'listener'>) {
  const server = createHttp2Server(store.listener).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const session = connectHttp2(`http://127.0.0.1:${address.port}`)
  t.after(() => session.destroy())
  return session
}

async function connectTo(t: TestContext, store: PetStoreHandle) {
  const session = await openSession(t, store)
  return (headers: Record<string, string>, endStream = true): ClientHttp2Stream =>
    session.request({ authorization, ...headers }, { endStream })
}
const read = async (stream: ClientHttp2Stream) => {
  const [headers] = await once(stream, 'response')
  return { status: Number(headers[constants.HTTP2_HEADER_STATUS]), headers, text: await readText(stream) }
}

/** A start that has taken its port, and waits for the end of a save, and a client of it. `endSave` leaves the file as it is. */
async function startEarly(t: TestContext) {
  const dataFile = join(makeFolder(), 'pets.json')
  writeFileSync(dataFile, '{"pets":[')
  // More often than a start looks, so that it waits however long this takes.
  const save = setInterval(() => appendFileSync(dataFile, ' '), 10)
  const endSave = (): void => clearInterval(save)
  t.after(endSave)
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = Object(free.address())
  await new Promise((resolve) => free.close(resolve))
  const starting = startPetStore({ apiKeys: [key], dataFile, port })
  await new Promise(setImmediate)
  const client = await connectRaw(t, `http://127.0.0.1:${port}`)
  client.write(formatRequest('GET /v1/pets'))
  return { starting, client, dataFile, endSave }
}

describe('fetch', () => {
  test('gives the replies of the own server, but for Date and Connection', async (t) => {
    const store = await create(t)
    const server = await startPetStore(memory)
    t.after(() => server.close())
    for (const [method, path, status, init = {}] of requests) {
      const response = await call(store, path, { method, ...init })
      const { headers = json, body } = init
      const options = { method, body: body ?? undefined, headers: headers as Record<string, string> }
      const own = await send(server.url, path, options)
      assert.equal(response.status, status, `${method} ${path}`)
      assert.equal(own.status, status, `${method} ${path}`)
      assert.equal(await response.text(), own.text)
      const expected = new Map(own.headers)
      for (const name of ['date', 'connection']) expected.delete(name)
      assert.deepEqual(new Map(response.headers), expected, `${method} ${path}`)
    }
  })

  test('is bound, and ignores further arguments', async (t) => {
    const { fetch } = await create(t)
    const withContext: (request: Request, context: object) => Promise<Response> = fetch
    const response = await withContext(new Request('http://a/healthz'), { params: {} })
    assert.equal(await response.text(), '{"status":"ok"}')
  })

  test('needs no server: the address may have any host, and its fragment does not count', async (t) => {
    const store = await create(t)
    for (const address of [
      'http://localhost/healthz#a',
      'https://a.test:1/healthz?b',
      'http://[::1]/healthz',
    ])
      assert.equal((await store.fetch(new Request(address))).status, 200)
  })

  test('with an aborted signal does nothing, and rejects with its reason', async (t) => {
    const store = await create(t)
    const reason = new Error('nobody waits')
    const signal = AbortSignal.abort(reason)
    await assert.rejects(call(store, '/v1/pets', { method: 'POST', body: pet, signal }), reason)
    assert.equal(store.countPets(), 1)
  })

  test('says what to do where a test runner has taken the global Response away', async (t) => {
    const store = await create(t)
    const { Response } = globalThis
    t.after(() => Object.assign(globalThis, { Response }))
    Object.assign(globalThis, { Response: undefined })
    await assert.rejects(
      call(store, '/v1/pets'),
      /no global Response here; in Jest, use the test environment "node"/,
    )
  })

  test('is told of without an address, since a Request has none', async (t) => {
    const told: RequestLog[] = []
    const store = await create(t, { onResponse: (entry: RequestLog) => told.push(entry) })
    await call(store, '/v1/pets')
    assert.deepEqual(
      told.map(({ client, path, status }) => [client, path, status]),
      [['-', '/v1/pets', 200]],
    )
  })

  test('with a signal that is aborted while the body comes stores nothing', async (t) => {
    const told: RequestLog[] = []
    const store = await create(t, { onResponse: (entry: RequestLog) => told.push(entry) })
    const controller = new AbortController()
    let isRead: (() => void) | undefined
    const reading = new Promise<void>((resolve) => (isRead = resolve))
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => stream.enqueue(Buffer.from(pet)),
      pull: () => isRead?.(),
    })
    const init = { method: 'POST', body, duplex: 'half', signal: controller.signal } as RequestInit
    const response = call(store, '/v1/pets', init)
    await reading
    const reason = new Error('the page was closed')
    controller.abort(reason)
    await assert.rejects(response, reason)
    await new Promise(setImmediate)
    assert.equal(store.countPets(), 1)
    assert.deepEqual(told, [])
  })

  test('with a body that breaks off stores nothing, and rejects', async (t) => {
    const store = await create(t)
    const body = new ReadableStream({
      start: (stream) => {
        stream.enqueue(Buffer.from(pet))
        stream.error(new Error('reset'))
      },
    })
    await assert.rejects(call(store, '/v1/pets', { method: 'POST', body, duplex: 'half' } as RequestInit))
    assert.equal(store.countPets(), 1)
  })

  test('reads no more than the limit of a body without an end', async (t) => {
    const store = await create(t)
    const body = new ReadableStream({ pull: (stream) => stream.enqueue(Buffer.alloc(1_000)) })
    const response = await call(store, '/v1/pets', { method: 'POST', body, duplex: 'half' } as RequestInit)
    assert.equal(response.status, 413)
  })

  test('with a delay is dropped at once when the signal is aborted', async (t) => {
    const store = await create(t, { delayMs: 10_000 })
    const controller = new AbortController()
    const response = call(store, '/v1/pets', { method: 'POST', body: pet, signal: controller.signal })
    controller.abort()
    await assert.rejects(response, { name: 'AbortError' })
    assert.equal(store.countPets(), 1)
  })

  test('leaves no listener at a signal that outlives the request', async (t) => {
    const store = await create(t)
    const { signal } = new AbortController()
    // Node's own Request has a listener at the signal, too.
    const request = { url: 'http://pets.test/v1/pets', method: 'GET', headers: new Headers(json), signal }
    assert.equal((await store.fetch(request as Request)).status, 200)
    assert.deepEqual(getEventListeners(signal, 'abort'), [])
  })

  test('tells onError that the body was read before, and what to do about it', async (t) => {
    const errors: string[] = []
    const store = await create(t, { onError: (message: string) => errors.push(message) })
    const request = new Request('http://a/v1/pets', { method: 'POST', body: pet, headers: json })
    await request.text()
    assert.equal((await store.fetch(request)).status, 500)
    const fault = 'the body was read before; pass a clone of the request'
    assert.deepEqual(errors, [`internal_error in POST /v1/pets: ${fault}`])
  })

  test('with a signal that is aborted as the body ends rejects with its reason, and throws nothing else', async (t) => {
    const store = await create(t)
    const thrown: unknown[] = []
    const note = (error: unknown): unknown => thrown.push(error)
    process.on('uncaughtExceptionMonitor', note)
    t.after(() => process.off('uncaughtExceptionMonitor', note))
    for (let round = 0; round < 5; round++) {
      const controller = new AbortController()
      const body = Readable.from([Buffer.from(pet.slice(0, 9)), Buffer.from(pet.slice(9))])
      body.once('close', () => controller.abort())
      const init = { method: 'POST', body, duplex: 'half', signal: controller.signal } as unknown
      await assert.rejects(call(store, '/v1/pets', init as RequestInit), { name: 'AbortError' })
      await new Promise(setImmediate)
    }
    assert.deepEqual(thrown, [])
  })

  test('takes a Request of another maker: with a stream that is not that of Node, and without a signal', async (t) => {
    const store = await create(t)
    const chunks = [Buffer.from(pet)]
    const body = {
      locked: false,
      getReader: () => ({
        read: () => Promise.resolve({ done: chunks.length === 0, value: chunks.shift() }),
        cancel: () => Promise.resolve(),
      }),
    }
    const request = { method: 'POST', url: 'http://a/v1/pets', headers: new Headers(json), body }
    assert.equal((await store.fetch(request as unknown as Request)).status, 201)
  })

  test('takes a body of a Request without a stream up to the limit, and no byte more', async (t) => {
    const store = await create(t)
    for (const [length, status] of [
      [65_536, 201],
      [65_537, 413],
    ]) {
      const body = Buffer.from(pet.padEnd(length ?? 0))
      const request = { method: 'POST', url: 'http://a/v1/pets', headers: new Headers(json), body: null }
      const arrayBuffer = () => Promise.resolve(new Uint8Array(body).buffer)
      const response = await store.fetch({ ...request, arrayBuffer } as unknown as Request)
      assert.equal(response.status, status)
    }
  })

  test('rejects what is no Request in words', async (t) => {
    const { fetch } = await create(t)
    for (const wrong of ['http://a/healthz', new URL('http://a/healthz'), undefined])
      await assert.rejects(fetch(wrong as unknown as Request), {
        name: 'TypeError',
        message: 'fetch: expected a Request; pass new Request(url, init)',
      })
  })

  test('of a closed store is 503', async () => {
    const store = await createPetStore(memory)
    await store.close()
    const response = await store.fetch(new Request('http://a/healthz'))
    assert.deepEqual([response.status, /shutting_down/.test(await response.text())], [503, true])
  })
})

describe('on HTTP/2', () => {
  test('the listener responds as on HTTP/1, and sends no header of a connection', async (t) => {
    const errors: string[] = []
    const store = await create(t, { onError: (message: string) => errors.push(message) })
    const ask = await connectTo(t, store)
    for (const [method, path, status, { headers = json, body = '' } = {}] of requests) {
      const stream = ask({ ...(headers as Record<string, string>), ':method': method, ':path': path }, !body)
      if (body) stream.end(body)
      const answer = await read(stream)
      assert.equal(answer.status, status, `${method} ${path}`)
      for (const name of ['connection', 'transfer-encoding', 'keep-alive'])
        assert.equal(answer.headers[name], undefined)
    }
    assert.deepEqual(errors, [])
  })

  test('a body that is cut off stores nothing', async (t) => {
    const store = await create(t)
    const ask = await connectTo(t, store)
    for (let i = 0; i < 20; i++) {
      const stream = ask({ ...json, ':method': 'POST', ':path': '/v1/pets' }, false)
      stream.on('error', () => {})
      stream.write(pet)
      for (let turn = 0; turn < i; turn++) await new Promise(setImmediate)
      // Without an error, Node's server tells the end of the body, too.
      stream.destroy(i % 2 === 0 ? new Error('cancelled') : undefined)
    }
    assert.equal((await read(ask({ ':path': '/v1/pets' }))).text, JSON.stringify([rex]))
  })

  test('of a closed store is 503', async (t) => {
    const store = await createPetStore(memory)
    const ask = await connectTo(t, store)
    await store.close()
    assert.equal((await read(ask({ ':path': '/healthz' }))).status, 503)
  })
})

test('is served under a wrapper of writeHead that knows headers as an object only, as on-headers 1.0 is', async (t) => {
  const store = await create(t)
  const url = await listen(t, (request, response) => {
    const writeHead = response.writeHead.bind(response)
    response.writeHead = (status: number, headers?: unknown) => {
      assert.ok(!Array.isArray(headers))
      response.setHeader('X-Length', String(response.getHeader('Content-Length')))
      return writeHead(status)
    }
    store.listener(request, response)
  })
  const { headers, text } = await send(url, '/v1/pets')
  assert.deepEqual([headers.get('x-length'), text], [String(text.length), JSON.stringify([rex])])
})

test('closes behind an Upgrade where Node drops what follows, and not where Node handles it', async (t) => {
  const store = await create(t)
  const url = await listen(t, store.listener)
  for (const [lines, connection] of [
    [['Upgrade: h2c', 'Connection: HTTP2-Settings, Upgrade'], 'close'],
    [['Upgrade: h2c'], 'keep-alive'],
  ] as const) {
    const client = await connectRaw(t, url)
    client.write(formatRequest('GET /v1/pets', lines) + formatRequest('GET /v1/pets'))
    assert.equal((await client.read()).headers.get('connection'), connection)
    if (connection === 'close') await client.closed
    else assert.equal((await client.read()).status, 200)
  }
})

/** Passes each request on as an adapter makes it: a stream of these chunks with some members of a request, and no raw headers. */
async function listenBehindAdapter(t: TestContext, store: PetStoreHandle, chunks: readonly unknown[]) {
  return listen(t, ({ method, url, headers, httpVersion }, response) => {
    const request: unknown = Object.assign(Readable.from(chunks), { method, url, headers, httpVersion })
    store.listener(request as IncomingMessage, response)
  })
}

test('takes a request of an adapter, without raw headers, and its body as text or plain bytes', async (t) => {
  const bytes = new TextEncoder().encode(`{"name":"Zoë","categoryId":2}`)
  for (const chunks of [
    [new TextDecoder().decode(bytes)],
    ['{"name":"Zo', 'ë","categoryId":2}'],
    [bytes],
    [bytes.subarray(0, 12), bytes.subarray(12)],
  ]) {
    const url = await listenBehindAdapter(t, await create(t), chunks)
    const { status, text } = await send(url, '/v1/pets', { body: 'ignored' })
    assert.deepEqual([status, text], [201, '{"id":2,"name":"Zoë","categoryId":2,"status":"available"}'])
  }
})

test('tells onError of a dropped response that an app has wrapped so that it throws, and rejects nothing', async (t) => {
  const errors: string[] = []
  const store = await create(t, { fail: 'drop', onError: (message: string) => errors.push(message) })
  const arrivals = new EventEmitter()
  // The first request of the connection is the app's, and is not answered yet.
  const url = await listen(t, (request, response) => {
    if (request.method === 'GET') return
    response.setHeader = () => {
      throw new Error('wrapped')
    }
    arrivals.emit('dropped', store.listener(request, response))
  })
  const dropped = once(arrivals, 'dropped')
  const client = await connectRaw(t, url)
  client.write(formatRequest('GET /other') + formatRequest('POST /v1/pets', [], pet))
  const [response]: unknown[] = await dropped
  await response
  assert.deepEqual(errors, ['internal_error in POST /v1/pets: Error'])
})

test('drops a request that an adapter hands on without its connection, and goes on', async (t) => {
  const store = await create(t, { fail: 'drop' })
  const url = await listenBehindAdapter(t, store, [])
  await assert.rejects(send(url, '/v1/pets'))
  store.disturb({ fail: 'none' })
  assert.equal((await send(url, '/v1/pets')).status, 200)
})

test('gives a promise of its response, for apps that wait for a listener before they respond themselves', async (t) => {
  const store = await create(t)
  let tell: ((hasResponded: boolean) => void) | undefined
  const told = new Promise<boolean>((resolve) => (tell = resolve))
  const url = await listen(t, async (request, response) => {
    await (store.listener(request, response) as unknown)
    tell?.(response.writableEnded)
  })
  assert.equal((await send(url, '/v1/pets', { body: pet })).status, 201)
  assert.equal(await told, true)
})

test('tells onError that an app makes text of the body, and what to do about it', async (t) => {
  const errors: string[] = []
  const store = await create(t, { onError: (message: string) => errors.push(message) })
  const url = await listen(t, (request, response) => store.listener(request.setEncoding('utf8'), response))
  assert.equal((await send(url, '/v1/pets', { body: pet })).status, 500)
  const fault =
    'the body was given an encoding before; mount the listener ahead of body parsers such as express.json()'
  assert.deepEqual(errors, [`internal_error in POST /v1/pets: ${fault}`])
})

/** `late` calls the listener when the client has gone. `ended` resolves when that call has ended. */
function callLate(listener: PetStoreHandle['listener']) {
  const calls = new EventEmitter()
  const late = (...[request, response]: Parameters<typeof listener>): void => {
    calls.emit('arrived')
    response.once('close', () => calls.emit('called', listener(request, response)))
  }
  const ended = once(calls, 'called').then(([result]: Promise<void>[]) => result)
  return { late, arrived: once(calls, 'arrived'), ended }
}

describe('a request whose client has gone before an app calls the listener is dropped, and the call ends', () => {
  for (const [what, text] of [
    ['half of a body', formatRequest('POST /v1/pets', [], pet).slice(0, -5)],
    ['a whole body', formatRequest('POST /v1/pets', [], pet)],
    ['no body, and hangs', formatRequest('GET /v1/pets')],
  ] as const)
    test(`on HTTP/1, with ${what}`, async (t) => {
      const told: string[] = []
      const options = {
        fail: 'GET:hang',
        onResponse: () => told.push('response'),
        onError: (message: string) => told.push(message),
      }
      const store = await create(t, options)
      const { late, arrived, ended } = callLate(store.listener)
      const client = await connectRaw(t, await listen(t, late))
      client.write(text)
      await arrived
      client.socket.resetAndDestroy()
      await ended
      assert.equal(store.countPets(), 1)
      assert.deepEqual(told, [])
    })

  test('on HTTP/2', async (t) => {
    const told: string[] = []
    const options = {
      onResponse: () => told.push('response'),
      onError: (message: string) => told.push(message),
    }
    const store = await create(t, options)
    const { late, arrived, ended } = callLate(store.listener)
    const session = await openSession(t, { listener: late })
    const stream = session.request({ ':method': 'POST', ':path': '/v1/pets', ...json }, { endStream: false })
    stream.on('error', () => {}).write(pet)
    await arrived
    stream.close(constants.NGHTTP2_CANCEL)
    await ended
    assert.equal(store.countPets(), 1)
    assert.deepEqual(told, [])
  })
})

test('tells onResponse of a creation whose client has gone', async (t) => {
  const told: RequestLog[] = []
  const creations = new EventEmitter()
  const asked = once(creations, 'asked')
  const storage: PetStorage = {
    list: () => Promise.resolve({ pets: [], hasMore: false }),
    get: () => Promise.resolve(undefined),
    create: async (newPets) => {
      creations.emit('asked')
      await once(creations, 'store')
      return newPets.map((newPet) => ({ ...newPet, id: 1 }))
    },
  }
  const server = await startPetStore({
    apiKeys: [key],
    storage,
    onResponse: (entry) => told.push(entry),
  })
  t.after(() => server.close())
  const client = await connectRaw(t, server.url)
  client.write(formatRequest('POST /v1/pets', [], pet))
  await asked
  client.socket.resetAndDestroy()
  for (let i = 0; i < 5; i++) await send(server.url, '/healthz')
  creations.emit('store')
  while (!told.some(({ method }) => method === 'POST')) await send(server.url, '/healthz')
  const { path, status, isGone } = told.find(({ method }) => method === 'POST') ?? assert.fail()
  assert.deepEqual([path, status, isGone], ['/v1/pets', 201, true])
  assert.ok(told.every((entry) => entry.method === 'POST' || !entry.isGone))
})

describe('the port is taken once, before the pets are read:', () => {
  test('who connects meanwhile waits for them', async (t) => {
    const { starting, client, dataFile, endSave } = await startEarly(t)
    endSave()
    writeFileSync(dataFile, JSON.stringify({ pets: [rex] }))
    const server = await starting
    t.after(() => server.close())
    assert.equal((await client.read()).body, JSON.stringify([rex]))
  })

  test('or is closed if they cannot be used', async (t) => {
    const { starting, client, endSave } = await startEarly(t)
    endSave()
    await assert.rejects(starting, /pets\.json/)
    await assert.rejects(client.read(), /ended behind ""/)
  })
})

test('a stop resets nobody: what had arrived before it gets a response, which closes', async (t) => {
  for (let round = 0; round < 10; round++) {
    const server = await startPetStore(memory)
    const clients = await Promise.all(Array.from({ length: 20 }, () => connectRaw(t, server.url)))
    const errors: unknown[] = []
    for (const client of clients) {
      client.socket.on('error', (error) => errors.push(error))
      client.write(formatRequest('GET /v1/pets'))
      await client.read()
    }
    // Both are done before the event loop gets to read.
    for (const client of clients) client.write(formatRequest('GET /v1/pets'))
    const closed = server.close()
    const answers = await Promise.all(clients.map((client) => client.read()))
    for (const { status, headers } of answers)
      assert.deepEqual([status, headers.get('connection')], [200, 'close'])
    await closed
    assert.deepEqual(errors, [])
  }
})

test('a stop makes no second response for a client that has one and leaves its connection open', async (t) => {
  const statuses: number[] = []
  const log = ({ status }: RequestLog): unknown => statuses.push(status)
  const server = await startPetStore({ ...memory, onResponse: log, timeouts: { closeMs: 50 } })
  const socket = connect({ port: Number(new URL(server.url).port), allowHalfOpen: true })
  t.after(() => socket.destroy())
  socket.write(formatRequest('GET /v1/pets', ['Connection: close']))
  await once(socket.resume(), 'end')
  await server.close()
  assert.deepEqual(statuses, [200])
})

test('a stop lets in who had connected before it, and responds to what they sent', async (t) => {
  const folder = makeFolder()
  const { child, url, ended } = await startProgram(t, folder, { PETSTORE_API_KEYS: key })
  // Held up, so that those who connect wait to be let in.
  child.kill('SIGSTOP')
  const clients = await Promise.all(Array.from({ length: 50 }, () => connectRaw(t, url)))
  const errors: unknown[] = []
  for (const client of clients) {
    client.socket.on('error', (error) => errors.push(error))
    client.write(formatRequest('GET /v1/pets'))
  }
  child.kill('SIGTERM')
  child.kill('SIGCONT')
  const answers = await Promise.all(clients.map((client) => client.read()))
  assert.deepEqual(
    answers.map(({ status }) => status),
    clients.map(() => 200),
  )
  await ended
  assert.deepEqual(errors, [])
})

type Door = (request: IncomingMessage, response: ServerResponse) => void

/** Each behind a server of `node:http`, through which the contract suite reaches it. */
const doors: Readonly<Record<string, (store: PetStoreHandle, t: TestContext) => Door | Promise<Door>>> = {
  'the listener': (store) => store.listener,

  'the listener on HTTP/2': async (store, t) => {
    const session = await openSession(t, store)
    return (request, response) => {
      const { host, connection: _, 'transfer-encoding': __, ...headers } = request.headers
      const pseudo = { ':method': request.method, ':path': request.url, ':authority': host }
      const stream = request.pipe(session.request({ ...headers, ...pseudo }))
      stream.on('response', ({ ':status': status = 0, ...answer }) => {
        stream.pipe(response.writeHead(status, answer))
      })
    }
  },

  fetch: (store) => async (request, response) => {
    const { method = '', url = '', headers } = request
    const body = ['GET', 'HEAD'].includes(method) ? null : Readable.toWeb(request)
    const init = { method, headers, body, duplex: 'half' } as RequestInit
    const answer = await store.fetch(new Request(`http://pets.test${url}`, init))
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(Buffer.from(await answer.arrayBuffer()))
  },
}

for (const [door, open] of Object.entries(doors))
  test(`the interface holds through ${door}`, async (t) => {
    const store = await create(t, { pets: [] })
    const url = await listen(t, await open(store, t))
    const { cases, conclude } = createSuite(createClient(`${url}/v1`, key), {
      isPatient: true,
      isBasic: false,
    })
    // Failures are in the conclusion.
    for (const { run } of cases) await run().catch(() => {})
    const { exitCode, text } = conclude()
    assert.equal(exitCode, 0, text)
  })

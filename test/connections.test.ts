/** How requests follow each other on a connection, and how it ends: raw bytes over real sockets. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect as connectTo } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { createPetStore } from '../src/pet-store-server.ts'
import type { RequestLog } from '../src/options/types.ts'
import { clock } from '../src/system/clock.ts'
import {
  assertAnswersNext,
  assertWholeRefusal,
  chunked,
  creation,
  list,
  pet,
  start,
  startOnce,
  stored,
} from './raw-service.ts'
import {
  assertAnswersAtLast,
  assertRefusal,
  connectRaw,
  formatRequest,
  holdTimeouts,
  isThorough,
  key,
  listen,
  type RawAnswer,
  type RawClient,
  readPetLines,
  send,
  startApp,
} from './support.ts'

/** Returns what tells how many requests of a client Node has begun since. */
function watchRequests(t: TestContext, client: RawClient): () => number {
  let begun = 0
  const count = (message: unknown): void => {
    const { socket } = (message as { request: IncomingMessage }).request
    if (socket.remotePort === client.socket.localPort) begun++
  }
  subscribe('http.server.request.start', count)
  t.after(() => unsubscribe('http.server.request.start', count))
  return () => begun
}

describe('requests in one write (RFC 9112 9.3.2)', () => {
  const shared = startOnce()
  test('nothing follows an answer that closes, not even a refusal (RFC 9112 9.6)', async (t) => {
    const { connect } = await shared(t)
    const request = 'GET /healthz HTTP/1.1\r\nHost: a\r\n'
    for (const [requests, status] of [
      [`${request}Connection: close\r\n\r\n`, 200],
      ['GET /healthz HTTP/1.0\r\n\r\n', 200],
      [`${request}Expect: tea\r\n\r\n${request}\r\n`, 417],
    ] as const) {
      const client = await connect()
      client.write(`${requests}garbage\r\n\r\n`)
      assert.equal((await client.read()).status, status)
      await assert.rejects(client.read(), /the connection ended behind ""/)
    }
  })

  test('a 33rd while 32 have no response ends the connection, and the next client is answered', async (t) => {
    const app = await shared(t)
    const client = await app.connect()
    client.write(list.repeat(33))
    await client.closed
    await assert.rejects(client.read(), /ended behind ""/)
    await assertAnswersNext(app)
  })

  test('bodies beyond 128 KiB that wait for their turn are not read before it, and each is answered', async (t) => {
    // The timeouts of the service end when the test says so.
    const held: (() => void)[] = []
    let isHeld = true
    t.mock.method(clock, 'setTimeout', (call: () => void) => {
      if (isHeld) held.push(call)
      else setImmediate(call)
    })
    const { server, url, send: ask } = await startApp(t, { delayMs: 10_000 })
    const client = await connectRaw(t, url)
    const countBegun = watchRequests(t, client)
    const body = `{"name":"${'x'.repeat(65_000)}","categoryId":1}`
    for (const lines of [[chunked], []]) {
      const sent = lines.length === 0 ? body : `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
      client.write(formatRequest('POST /v1/pets', lines, sent).repeat(16))
    }
    // What would be read is read by then.
    for (let i = 0; i < 100; i++) await ask('/healthz')
    const begun = countBegun()
    assert.ok(begun >= 2 && begun <= 4, `${begun} requests were begun`)
    isHeld = false
    for (const call of held) call()
    for (let i = 0; i < 32; i++) assert.equal((await client.read()).status, 201)
    assert.equal(server.countPets(), 32)
  })

  test('bodies behind a response that closes are dropped, and the client can send them to the end', async (t) => {
    const { connect } = await shared(t)
    const client = await connect()
    // No time passes.
    holdTimeouts(t)
    const errors: Error[] = []
    client.socket.on('error', (error) => errors.push(error))
    const write = promisify<string, void>(client.socket.write.bind(client.socket))
    const large = formatRequest('POST /v1/pets', [], `{"name":"${'x'.repeat(65_000)}","categoryId":1}`)
    const isWritten = write(formatRequest('GET /v1/pets', ['Connection: close']) + large.repeat(30))
    assert.equal((await client.read()).status, 200)
    await isWritten
    assert.deepEqual(errors, [])
  })

  test('bodies that waited in numbers when a response closes are dropped, and the client can send them to the end', async (t) => {
    // The delay ends when the test says so. No other time passes.
    const held: (() => void)[] = []
    t.mock.method(clock, 'setTimeout', (call: () => void) => {
      held.push(call)
      return setTimeout(() => {}, 0)
    })
    const { url, send: ask } = await startApp(t, { delayMs: 10_000 })
    const client = await connectRaw(t, url)
    const errors: Error[] = []
    client.socket.on('error', (error) => errors.push(error))
    const write = promisify<string, void>(client.socket.write.bind(client.socket))
    const large = formatRequest('POST /v1/pets', [], `{"name":"${'x'.repeat(1_000_000)}","categoryId":1}`)
    const isWritten = write(formatRequest('GET /v1/pets', ['Expect: tea']) + large.repeat(20))
    // What would be read is read by then.
    for (let i = 0; i < 100; i++) await ask('/healthz')
    for (const call of held.splice(0)) call()
    assert.equal((await client.read()).status, 417)
    await isWritten
    assert.deepEqual(errors, [])
  })

  test('as many as may wait, with a fault in the body of the last: it is refused in its turn, whatever it asks for', async (t) => {
    const { connect } = await shared(t)
    for (const line of ['POST /v1/pets', 'GET /v1/pets', 'POST /nowhere']) {
      const client = await connect()
      client.write(creation.repeat(31) + formatRequest(line, [chunked], 'zz\r\n'))
      for (let i = 0; i < 31; i++) assert.equal((await client.read()).status, 201)
      assertRefusal(await client.read(), 400, 'malformed_request')
      await assert.rejects(client.read(), /ended behind ""/)
    }
  })

  test('what is no request, and goes on, is refused and logged once, behind the response before it', async (t) => {
    const logged: string[] = []
    const log = ({ path, status, code }: RequestLog): void => {
      if (path !== '/healthz') logged.push(`${path} ${status} ${code ?? ''}`)
    }
    const app = await startApp(t, { delayMs: 10_000, onResponse: log })
    const held: (() => void)[] = []
    const { mock } = t.mock.method(clock, 'setTimeout', (call: () => void) => {
      held.push(call)
      return setTimeout(() => {}, 2 ** 31 - 1).unref()
    })
    const client = await connectRaw(t, app.url)
    for (const bytes of [list, ...Array<string>(3).fill('no request\r\n\r\n')]) {
      client.write(bytes)
      // It is answered without a delay, and so the bytes before it have been read.
      for (let i = 0; i < 3; i++) assert.equal((await app.send('/healthz')).status, 200)
    }
    mock.restore()
    for (const call of held) call()
    assert.equal((await client.read()).status, 200)
    assertRefusal(await client.read(), 400, 'malformed_request')
    await assert.rejects(client.read(), /ended behind ""/)
    assert.deepEqual(logged, ['/v1/pets 200 ', '- 400 malformed_request'])
  })

  test('a version that is none of this service is refused by name', async (t) => {
    const client = await (await shared(t)).connect()
    client.write('GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n')
    const message = assertRefusal(await client.read(), 400, 'malformed_request')
    assert.equal(message, 'HTTP: expected version 1.0 or 1.1')
  })

  test('a tunnel is refused with the methods of all paths, in the header and in the message, and logged', async (t) => {
    const logged: string[] = []
    const log = ({ method, path, status }: RequestLog): unknown => logged.push(`${method} ${path} ${status}`)
    const { url } = await startApp(t, { onResponse: log })
    const client = await connectRaw(t, url)
    client.write('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n')
    const answer = await client.read()
    const methods = 'GET, HEAD, POST, OPTIONS'
    assert.equal(
      assertRefusal(answer, 405, 'method_not_allowed'),
      `CONNECT is not allowed here, only ${methods}.`,
    )
    assert.equal(answer.headers.get('allow'), methods)
    assert.deepEqual(logged, ['CONNECT - 405'])
  })

  test('a fault behind a creation is refused also when the client ends its half behind it', async (t) => {
    const { connect } = await shared(t)
    const faults: readonly [bytes: string, status: number][] = [
      ['BREW /\r\n\r\n', 400],
      [`GET / HTTP/1.1\r\nHost: a\r\nX-A: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      ['CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', 405],
    ]
    for (const [fault, status] of faults) {
      const client = await connect()
      client.socket.end(creation + fault)
      assert.equal((await client.read()).status, 201)
      assert.equal((await client.read()).status, status)
    }
  })

  test('a tunnel whose client goes in the middle of a body harms nobody', async (t) => {
    const app = await shared(t)
    for (const end of ['destroy', 'resetAndDestroy', 'end'] as const) {
      const client = await app.connect()
      client.write('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 9\r\n\r\nxxx')
      if (end === 'resetAndDestroy') await new Promise(setImmediate)
      client.socket[end]()
      await client.closed
    }
    await assertAnswersNext(app)
  })

  test('a creation that is held back before a tunnel is dropped when its client goes', async (t) => {
    const logged: string[] = []
    const app = await startApp(t, { delayMs: 10_000, onResponse: ({ path }) => logged.push(path) })
    const client = await connectRaw(t, app.url)
    client.write(`${creation}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`)
    assert.equal((await app.send('/healthz')).status, 200)
    client.write('bytes of the tunnel')
    assert.equal((await app.send('/healthz')).status, 200)
    client.socket.destroy()
    await client.closed
    assert.equal((await app.send('/healthz')).status, 200)
    await app.server.close()
    assert.deepEqual(new Set(logged), new Set(['/healthz']))
  })

  const inOrder: readonly [title: string, bytes: readonly string[], statuses: readonly number[]][] = [
    ['a creation and a list', [creation, list], [201, 200]],
    [
      'creations, lists and refusals',
      [
        creation,
        formatRequest('GET /nowhere'),
        creation,
        list,
        formatRequest('GET /v1/pets/2'),
        creation,
        list,
      ],
      [201, 404, 201, 200, 200, 201, 200],
    ],
    ['a creation and garbage', [creation, 'garbage\r\n\r\n'], [201, 400]],
    ['a creation, a list and garbage', [creation, list, 'garbage\r\n\r\n'], [201, 200, 400]],
    [
      'a creation and a bad chunk',
      [creation, formatRequest('POST /v1/pets', [chunked], 'zz\r\n')],
      [201, 400],
    ],
    ['a creation and a tunnel', [creation, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n'], [201, 405]],
    [
      'a creation, a list and a tunnel',
      [creation, list, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n'],
      [201, 200, 405],
    ],
    [
      'a creation and 20 KB of headers',
      [creation, formatRequest('GET /', [`X-A: ${'x'.repeat(20_000)}`])],
      [201, 431],
    ],
    [
      'a creation and a body that is too large',
      [creation, formatRequest('POST /v1/pets', [], 'x'.repeat(70_000)), list],
      [201, 413, 200],
    ],
    [
      'a refused creation with its body',
      [formatRequest('POST /v1/pets', ['Authorization: Bearer x'], pet), list],
      [401, 200],
    ],
    [
      'an expectation and a list',
      [formatRequest('POST /v1/pets', ['Expect: 100-continue'], pet), list],
      [100, 201, 200],
    ],
    [
      'a creation, an expectation and a list',
      [creation, formatRequest('POST /v1/pets', ['Expect: 100-continue'], pet), list],
      [201, 100, 201, 200],
    ],
  ]
  for (const [title, bytes, statuses] of inOrder)
    test(`are answered in order: ${title}`, async (t) => {
      const app = await shared(t)
      const client = await app.connect()
      client.write(bytes.join(''))
      const answers: RawAnswer[] = []
      for (const _ of statuses) answers.push(await client.read())
      assert.deepEqual(
        answers.map(({ status }) => status),
        statuses,
      )
      await assertAnswersNext(app)
    })

  test('a refusal of half a request is the last on its connection, and that of a whole one is not', async (t) => {
    const app = await shared(t)
    const lines = ['Authorization: Bearer x', `Content-Length: ${pet.length}`]
    for (const [body, connection] of [
      [pet, 'keep-alive'],
      ['', 'close'],
    ] as const) {
      const client = await app.connect()
      client.write(creation + formatRequest('POST /v1/pets', lines) + body)
      assert.equal((await client.read()).status, 201)
      const { status, headers } = await client.read()
      assert.deepEqual([status, headers.get('connection')], [401, connection])
      if (connection === 'close') await client.closed
    }
  })

  test('a refusal of a whole request keeps the connection, in whatever pieces it comes', async (t) => {
    const app = await shared(t)
    const client = await app.connect()
    client.write(formatRequest('POST /v1/pets', [`Content-Length: ${pet.length}`]))
    await assertAnswersNext(app)
    client.write(
      'x'.repeat(pet.length) + formatRequest('POST /v1/pets', ['Content-Type: text/plain'], pet) + list,
    )
    for (const status of [400, 415, 200]) assert.equal((await client.read()).status, status)
  })

  test('take effect in order: a list shows the creation before it, and not the one behind it', async (t) => {
    const app = await start(t)
    const client = await app.connect()
    client.write(list + creation + list + formatRequest('GET /v1/pets/1') + creation + creation + list)
    const bodies: string[] = []
    for (let i = 0; i < 7; i++) bodies.push((await client.read()).body)
    const [first, created, second, got, , , third = ''] = bodies
    assert.deepEqual([first, created, second, got], ['[]', stored, `[${stored}]`, stored])
    assert.equal(third.match(/"id"/g)?.length, 3)
  })

  test('with large bodies are stored in order', async (t) => {
    const app = await start(t)
    const client = await app.connect()
    const names = ['a', 'b', 'c'].map((letter) => letter.repeat(60_000))
    client.write(
      names.map((name) => formatRequest('POST /v1/pets', [], `{"name":"${name}","categoryId":1}`)).join(''),
    )
    for (const name of names) assert.ok((await client.read()).body.includes(name))
    assert.equal(readPetLines(app.dataFile).length, 3)
  })

  test('are answered in order when there are many, and never too many at once', async (t) => {
    const app = await start(t)
    const client = await app.connect()
    const count = isThorough ? 3_000 : 300
    for (let first = 0; first < count; first += 30) {
      for (let i = first; i < first + 30; i++) {
        const isCreation = i % 10 === 0
        client.write(isCreation ? creation : formatRequest(`GET /v1/pets?limit=1&after=${i}`))
      }
      for (let i = first; i < first + 30; i++) {
        const { status, headers } = await client.read()
        if (i % 10 === 0) assert.equal(headers.get('location'), `/v1/pets/${i / 10 + 1}`)
        else assert.deepEqual([status, headers.get('x-total-count')], [200, String(Math.floor(i / 10) + 1)])
      }
    }
  })

  test('behind "Connection: close" are not looked at (RFC 9112 9.6)', async (t) => {
    const app = await start(t)
    const client = await app.connect()
    client.write(formatRequest('POST /v1/pets', ['Connection: close'], pet) + creation)
    assert.equal((await client.read()).headers.get('connection'), 'close')
    await client.closed
    await assert.rejects(client.read(), /ended behind ""/)
    assert.equal(readPetLines(app.dataFile).length, 1)
  })

  test('behind an answer that closes are not looked at (RFC 9112 9.6)', async (t) => {
    const app = await start(t)
    const client = await app.connect()
    client.socket.end(formatRequest('GET /healthz', ['Expect: tea']) + creation)
    assert.equal((await client.read()).status, 417)
    await client.closed
    await app.server.close()
    assert.deepEqual(readPetLines(app.dataFile), [])
  })
})

test('a client that does not read its response is not read, even after a flood from others', async (t) => {
  const pets = Array.from({ length: 100 }, () => ({ name: 'x'.repeat(60_000), categoryId: 1 }))
  const app = await startApp(t, { pets })
  const deaf = await connectRaw(t, app.url)
  const countBegun = watchRequests(t, deaf)
  deaf.socket.pause()
  deaf.write(formatRequest('GET /v1/pets?limit=100'))
  await assertAnswersNext(app)
  const flood = await Promise.all(Array.from({ length: 3 }, () => connectRaw(t, app.url)))
  // Once each was let in, what they write arrives in one turn.
  for (const { write, read } of flood) {
    write(list)
    await read()
  }
  for (const { write } of flood) write('GET / HTTP/1.1\r\n\r\n'.repeat(3_600))
  await Promise.all(flood.map(({ closed }) => closed))
  deaf.write(list)
  // What would be read is read by then.
  for (let i = 0; i < 20; i++) assert.equal((await app.send('/healthz')).status, 200)
  assert.equal(countBegun(), 1)
  deaf.socket.destroy()
})

test('a request that offers to upgrade is answered, and says that nothing behind it will be (RFC 9110 7.8)', async (t) => {
  const app = await start(t)
  const client = await app.connect()
  client.write(formatRequest('GET /v1/pets', ['Connection: Upgrade', 'Upgrade: h2c']) + creation)
  const answer = await client.read()
  assert.deepEqual([answer.status, answer.headers.get('connection')], [200, 'close'])
  await assert.rejects(client.read(), /ended behind ""/)
  assert.deepEqual(readPetLines(app.dataFile), [])
  const patient = await app.connect()
  const lines = ['Connection: Upgrade', 'Upgrade: h2c', 'Expect: 100-continue']
  patient.write(formatRequest('POST /v1/pets', lines, pet) + list)
  assert.equal((await patient.read()).status, 100)
  const created = await patient.read()
  assert.deepEqual([created.status, created.headers.get('connection')], [201, 'close'])
})

describe('a client that goes', () => {
  const shared = startOnce()
  test('in the middle of its body stores nothing', async (t) => {
    const app = await shared(t)
    for (const end of ['destroy', 'resetAndDestroy', 'end'] as const) {
      const client = await app.connect()
      client.write(formatRequest('POST /v1/pets', [`Content-Length: ${pet.length + 1}`], pet))
      client.write('')
      client.socket[end]()
      await client.closed
    }
    assert.equal((await app.send('/v1/pets')).text, '[]')
  })
  test('in the middle of a chunked body stores nothing', async (t) => {
    const app = await shared(t)
    const client = await app.connect()
    client.write(formatRequest('POST /v1/pets', [chunked], `1d\r\n${pet}\r\n`))
    client.socket.end()
    assertRefusal(await client.read(), 400, 'malformed_request')
    assert.equal((await app.send('/v1/pets')).text, '[]')
  })
  test('without a request has no line in the log', async (t) => {
    const paths: string[] = []
    const app = await startApp(t, { onResponse: ({ path }) => paths.push(path) })
    const client = await connectRaw(t, app.url)
    client.write(list)
    await client.read()
    client.socket.resetAndDestroy()
    await client.closed
    await assertAnswersAtLast(app.url)
    assert.equal(paths.includes('-'), false)
  })
  test('half gets the answer to the half that it sent (RFC 9112 9.6)', async (t) => {
    const app = await start(t)
    const client = await app.connect()
    client.socket.end(creation + list)
    assert.equal((await client.read()).status, 201)
    assert.equal((await client.read()).body, `[${stored}]`)
    await client.closed
  })
  test('half in the middle of the head gets 400', async (t) => {
    const app = await shared(t)
    const client = await app.connect()
    client.socket.end('GET /v1/pets HTTP/1.1\r\nHost: a\r\n')
    assertRefusal(await client.read(), 400, 'malformed_request')
    await client.closed
    await assertAnswersNext(app)
  })
})

describe('100-continue (RFC 9110 10.1.1)', () => {
  const shared = startOnce()
  const expect = 'Expect: 100-continue'
  const refusals: readonly [title: string, lines: readonly string[], status: number, code: string][] = [
    ['without a key', ['Authorization: Bearer wrong', 'Content-Length: 29'], 401, 'unauthorized'],
    [
      'of another media type',
      ['Content-Type: text/plain', 'Content-Length: 29'],
      415,
      'unsupported_media_type',
    ],
    ['in a content coding', ['Content-Encoding: gzip', 'Content-Length: 29'], 415, 'unsupported_media_type'],
    ['that is too large', ['Content-Length: 65537'], 413, 'content_too_large'],
  ]
  for (const [title, lines, status, code] of refusals)
    test(`a creation ${title} gets ${status} at once, and the connection closes`, async (t) => {
      const app = await shared(t)
      const client = await app.connect()
      client.write(formatRequest('POST /v1/pets', [expect, ...lines]))
      const answer = await client.read()
      assertWholeRefusal(answer, status, code)
      assert.equal(answer.headers.get('connection'), 'close')
      await client.closed
      await assertAnswersNext(app)
    })
  test('an unknown path and a wrong method are told at once, too', async (t) => {
    const app = await shared(t)
    for (const [request, status] of [
      ['POST /nowhere', 404],
      ['PUT /v1/pets', 405],
    ] as const) {
      const client = await app.connect()
      client.write(formatRequest(request, [expect, 'Content-Length: 29']))
      assert.equal((await client.read()).status, status)
    }
  })
  test('is sent when the head decides nothing; then comes the answer, and the connection stays', async (t) => {
    const app = await shared(t)
    const client = await app.connect()
    for (const status of [201, 400]) {
      client.write(formatRequest('POST /v1/pets', [expect, 'Content-Length: 29']))
      assert.equal((await client.read()).status, 100)
      client.write(status === 201 ? pet : '.'.repeat(29))
      const answer = await client.read()
      assert.deepEqual([answer.status, answer.headers.get('connection')], [status, 'keep-alive'])
    }
  })
  test('a response in its place is not lost to a client that goes on sending', async (t) => {
    const app = await shared(t)
    for (const [line, lines, status] of [
      ['POST /v1/pets', ['Authorization: Bearer wrong', 'Content-Length: 2'], 401],
      ['GET /v1/pets', [], 200],
    ] as const) {
      const client = await app.connect()
      client.socket.pause()
      client.write(formatRequest(line, [expect, ...lines]) + '{}'.repeat(status === 401 ? 1 : 0))
      for (let i = 0; i < 2; i++) {
        await assertAnswersNext(app)
        client.write(list)
      }
      await assertAnswersNext(app)
      client.socket.resume()
      const answer = await client.read()
      assert.deepEqual([answer.status, answer.headers.get('connection')], [status, 'close'])
    }
  })
  test('leaves "Connection: close" its meaning (RFC 9112 9.6)', async (t) => {
    const app = await shared(t)
    const client = await app.connect()
    client.write(formatRequest('POST /v1/pets', [expect, 'Connection: close'], pet))
    assert.equal((await client.read()).status, 100)
    const answer = await client.read()
    assert.deepEqual([answer.status, answer.headers.get('connection')], [201, 'close'])
    await client.closed
  })
})

describe('a body beyond the limit gets a 413 that arrives (RFC 9110 15.5.14)', () => {
  const shared = startOnce()
  const large = 'x'.repeat(8_000_000)
  const cases: readonly [title: string, lines: readonly string[], body: string, afterAnswer?: string][] = [
    ['declared, and sent whole', [], large],
    ['declared, with an expectation that is not waited for', ['Expect: 100-continue'], large],
    ['declared, on a connection that closes', ['Connection: close'], large],
    ['chunked', [chunked], `7a1200\r\n${large}\r\n0\r\n\r\n`],
    ['chunked, with a bad chunk behind', [chunked], `7a1200\r\n${large}\r\n`, `zz\r\n${large}`],
    ['chunked, without an end', [chunked], `7a1200\r\n${large}\r\n`],
  ]
  for (const [title, lines, body, afterAnswer = ''] of cases)
    test(title, async (t) => {
      const app = await shared(t)
      const client = await app.connect()
      // No time passes: however slow this machine is, the client has the time that it needs to send all.
      const timeouts = holdTimeouts(t)
      const errors: Error[] = []
      client.socket.on('error', (error) => errors.push(error))
      const write = promisify<string, void>(client.socket.write.bind(client.socket))
      const isWritten = write(formatRequest('POST /v1/pets', lines, body))
      let answer = await client.read()
      if (answer.status === 100) answer = await client.read()
      assertWholeRefusal(answer, 413, 'content_too_large')
      // If the bad chunk came at once, a busy machine might read it before the request is handled, and refuse it instead of the size.
      await Promise.all([isWritten, write(afterAnswer)])
      assert.deepEqual(errors, [], 'the client could send all, and was not cut off in it')
      timeouts.restore()
      await assertAnswersNext(app)
    })
  test('and one of any length that is only declared is answered at once', async (t) => {
    const app = await shared(t)
    const client = await app.connect()
    client.write(formatRequest('POST /v1/pets', ['Content-Length: 9007199254740991']))
    assertRefusal(await client.read(), 413, 'content_too_large')
    await assertAnswersNext(app)
  })
})

describe('time limits (RFC 9110 15.5.9)', { concurrency: true }, () => {
  const shared = startOnce([], { headersMs: 250, requestMs: 500 })
  const slow: readonly [title: string, bytes: string][] = [
    ['that sends nothing', ''],
    ['that does not end its head', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\n'],
    ['that does not end its body', formatRequest('POST /v1/pets', ['Content-Length: 30'], pet)],
    ['that does not end its chunked body', formatRequest('POST /v1/pets', [chunked], `1d\r\n${pet}\r\n`)],
    [
      'that does not send the body it was told to',
      formatRequest('POST /v1/pets', ['Expect: 100-continue', 'Content-Length: 30']),
    ],
    ['that does not end its second head', `${list}GET /v1/pets HTTP/1.1\r\nHost: x\r\n`],
  ]
  for (const [title, bytes] of slow)
    test(`a client ${title} gets 408, and the connection closes`, async (t) => {
      const app = await shared(t)
      const client = await app.connect()
      client.write(bytes)
      let answer = await client.read()
      if (answer.status < 300) answer = await client.read()
      assertWholeRefusal(answer, 408, 'request_timeout')
      assert.equal(answer.headers.get('connection'), 'close')
      await client.closed
      assert.deepEqual(readPetLines(app.dataFile), [])
      await assertAnswersAtLast(app.url)
    })
  test('a client that sends without an end behind its 413 is cut off', async (t) => {
    const app = await shared(t)
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    // A busy machine may be too late for the 413, and send a 408 instead; then it is tried again.
    for (let tries = 1; ; tries++) {
      const client = await app.connect()
      client.write(formatRequest('POST /v1/pets', [chunked]) + chunk.repeat(5))
      const pour = setInterval(() => client.socket.write(chunk), 5)
      t.after(() => clearInterval(pour))
      const answer = await client.read()
      await client.closed
      if (answer.status === 408 && tries < 100) continue
      assertRefusal(answer, 413, 'content_too_large')
      break
    }
    await assertAnswersAtLast(app.url)
  })
})

describe('while the service closes', () => {
  // What is in flight is to be waited for, however long this machine takes for it.
  const patient = { closeMs: 600_000 }
  const large = Array.from({ length: 100 }, () => ({ name: 'x'.repeat(60_000), categoryId: 1 }))

  test('what is in flight is answered, what follows on its connection is not begun, the rest is closed', async (t) => {
    const app = await start(t, patient)
    const idle = await app.connect()
    const garbled = await app.connect()
    const client = await app.connect()
    client.write(formatRequest('POST /v1/pets', ['Content-Length: 29']))
    garbled.write(formatRequest('POST /v1/pets', ['Content-Length: 29']))
    await assertAnswersNext(app)
    const closing = app.server.close()
    await idle.closed
    garbled.write(`${pet}garbage\r\n\r\n`)
    client.write(pet + creation)
    for (const { read, closed } of [garbled, client]) {
      const answer = await read()
      assert.deepEqual([answer.status, answer.headers.get('connection')], [201, 'close'])
      await closed
    }
    await closing
    assert.equal(readPetLines(app.dataFile).length, 2)
    await assert.rejects(app.connect(), { code: 'ECONNREFUSED' })
  })

  test('a request to a mounted one is refused', async (t) => {
    const store = await createPetStore({ apiKeys: [key], pets: [] })
    const url = await listen(t, store.listener)
    await store.close()
    const answer = await send(url, '/v1/pets')
    assertRefusal(answer, 503, 'shutting_down')
    assert.equal(answer.headers.get('connection'), 'close')
  })

  test('what has arrived is answered, also when a callback begins to close in between', async (t) => {
    let closing: Promise<void> | undefined
    let arrived = 0
    const countRequest = (): void => {
      arrived++
    }
    subscribe('http.server.request.start', countRequest)
    t.after(() => unsubscribe('http.server.request.start', countRequest))
    const onResponse = (): void => {
      if (arrived === 120) closing ??= app.server.close()
    }
    const app = await startApp(t, { timeouts: patient, onResponse })
    const clients = await Promise.all(Array.from({ length: 60 }, () => connectRaw(t, app.url)))
    for (const client of clients) {
      client.write(list)
      await client.read()
    }
    // Sent before the event loop gets to read any, so that they arrive together.
    for (const client of clients) client.write(list)
    const answers = await Promise.all(clients.map((client) => client.read()))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    await closing
  })

  test('a long answer is sent to its end', async (t) => {
    const app = await startApp(t, { pets: large, timeouts: patient })
    const client = await connectRaw(t, app.url)
    client.socket.pause()
    client.write(formatRequest('GET /v1/pets?limit=100'))
    await assertAnswersNext(app)
    const closing = app.server.close()
    await new Promise(setImmediate)
    client.socket.resume()
    const answer = await client.read()
    assert.deepEqual([answer.status, answer.body.length > 6_000_000], [200, true])
    await closing
  })

  test('a fault that follows a long answer is refused after it', async (t) => {
    const app = await startApp(t, { pets: large, timeouts: patient })
    const client = await connectRaw(t, app.url)
    client.socket.pause()
    client.write(`${formatRequest('GET /v1/pets?limit=100')}garbage\r\n\r\n`)
    await assertAnswersNext(app)
    const closing = app.server.close()
    await new Promise(setImmediate)
    client.socket.resume()
    assert.equal((await client.read()).status, 200)
    assertRefusal(await client.read(), 400, 'malformed_request')
    await closing
  })

  test('a client that is still sending the body of a refused request is not reset', async (t) => {
    const app = await startApp(t, { timeouts: patient })
    const { hostname, port } = new URL(app.url)
    const socket = connectTo({ host: hostname, port: Number(port), allowHalfOpen: true })
    t.after(() => socket.destroy())
    const errors: unknown[] = []
    socket.on('error', (error) => errors.push(error))
    socket.write(formatRequest('POST /v1/pets', ['Authorization: Bearer wrong', 'Content-Length: 60000']))
    const [answer]: Buffer[] = await once(socket, 'data')
    assert.match(String(answer), /^HTTP\/1\.1 401 /)
    const closing = app.server.close()
    await once(socket, 'end')
    // A write to a connection that was cut off is answered with a reset, which the next one finds.
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => socket.write('x', resolve))
      await new Promise(setImmediate)
    }
    socket.end()
    await closing
    assert.deepEqual(errors, [])
  })

  test('a request that never ends and an answer that is never read hold it up no longer than the limit', async (t) => {
    const app = await startApp(t, { pets: large, timeouts: { closeMs: 100 } })
    const endless = await connectRaw(t, app.url)
    endless.write(formatRequest('POST /v1/pets', ['Content-Length: 29']))
    const deaf = await connectRaw(t, app.url)
    deaf.socket.pause()
    deaf.write(formatRequest('GET /v1/pets?limit=100'))
    await assertAnswersNext(app)
    await app.server.close()
    await endless.closed
  })
})

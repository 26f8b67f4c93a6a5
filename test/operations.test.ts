/** The operations and what src/api/interface.md decides where something is left open, over real sockets. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { deprecation, sunset } from '../src/api/operations.ts'
import type { PetStatus } from '../src/options/types.ts'
import { petStatusChoice } from '../src/pet/pet.ts'
import { petLine } from './file-system.ts'
import {
  assertRefusal,
  connectRaw,
  formatDataFile,
  formatRequest,
  makeDataFile,
  root,
  startApp,
  type ReceivedAnswer,
  type StartedApp,
} from './support.ts'

const statuses = ['available', 'pending', 'sold'] as const

/** Pets with ids from 1, the three statuses in turn. */
function makePets(count: number): { name: string; categoryId: number; status: PetStatus }[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `pet ${i + 1}`,
    categoryId: i,
    status: statuses[i % 3] ?? 'available',
  }))
}

/** The ids in a list's body, as they are written. */
function idsOf({ text }: ReceivedAnswer): string[] {
  return Array.from(text.matchAll(/"id":(\d+)/g), ([, id = '']) => id)
}

function nextOf({ headers }: ReceivedAnswer): string | undefined {
  const link = headers.get('link')
  if (link === undefined) return undefined
  const [, target] = /^<([^>]+)>; rel="next"$/.exec(link) ?? []
  return target ?? assert.fail(link)
}

async function assertListed(app: StartedApp, text: string): Promise<void> {
  assert.equal((await app.send('/v1/pets')).text, text)
}

describe('limit (interface 4.1)', () => {
  for (const [query, count] of Object.entries({
    '': 20,
    '?limit=1': 1,
    '?limit=20': 20,
    '?limit=99': 99,
    '?limit=100': 100,
    '?%6Cimi%74=%37': 7,
    '?page=2&Limit=0&offset=x&__proto__=1&&=&sort=-id': 20,
    '?': 20,
  }))
    test(`"${query}" is ${count} pets`, async (t) => {
      const app = await startApp(t, { pets: makePets(120) })
      const answer = await app.send(`/v1/pets${query}`)
      assert.equal(answer.status, 200)
      assert.deepEqual(
        idsOf(answer),
        Array.from({ length: count }, (_, i) => String(i + 1)),
      )
    })

  const wrong = [
    '0',
    '101',
    '-1',
    '%2B5',
    '+5',
    '05',
    '5.0',
    '1e1',
    '',
    '%20',
    '5%20',
    '0x5',
    '5,6',
    'abc',
    'NaN',
    '１',
    '9'.repeat(400),
  ]
  for (const text of wrong)
    test(`"${text.slice(0, 20)}" is 400, and the message says what is expected`, async (t) => {
      const app = await startApp(t)
      const message = assertRefusal(await app.send(`/v1/pets?limit=${text}`), 400, 'invalid_parameter')
      assert.match(message, /^limit: expected an integer from 1 to 100, got "/)
      assert.ok(message.length < 120)
    })
})

describe('status (interface 4.1)', () => {
  for (const status of statuses)
    test(`"${status}" lists those pets only, and counts them`, async (t) => {
      const app = await startApp(t, { pets: makePets(100) })
      const answer = await app.send(`/v1/pets?status=${status}&limit=100`)
      const expected = makePets(100).flatMap((pet, i) => (pet.status === status ? [String(i + 1)] : []))
      assert.deepEqual(idsOf(answer), expected)
      assert.equal(answer.headers.get('x-total-count'), String(expected.length))
      assert.equal(nextOf(answer), undefined)
    })
  for (const text of [
    '',
    'Available',
    'dead',
    'sold%20',
    'available,sold',
    'null',
    'toString',
    'x'.repeat(1000),
  ])
    test(`"${text.slice(0, 20)}" is 400`, async (t) => {
      const app = await startApp(t)
      const message = assertRefusal(await app.send(`/v1/pets?status=${text}`), 400, 'invalid_parameter')
      assert.ok(message.startsWith(`status: expected ${petStatusChoice}, got "`))
      assert.ok(message.length < 130)
    })
})

describe('after', () => {
  const ids = ['3', '7', '9007199254740993', '9223372036854775806', '9223372036854775807']
  const lines = ids.map((id) => `{"id":${id},"name":"a","categoryId":1,"status":"sold"}`)
  for (const [after, count] of Object.entries({
    '0': 5,
    '1': 5,
    '3': 4,
    '5': 4,
    '9007199254740992': 3,
    '9007199254740993': 2,
    '9223372036854775806': 1,
    '9223372036854775807': 0,
  }))
    test(`${after} lists the ${count} pets with higher ids`, async (t) => {
      const app = await startApp(t, { dataFile: makeDataFile(lines) })
      const answer = await app.send(`/v1/pets?after=${after}`)
      assert.deepEqual(idsOf(answer), count === 0 ? [] : ids.slice(-count))
      assert.equal(answer.headers.get('x-total-count'), '5')
    })
  for (const text of [
    '-1',
    '01',
    '',
    '1.0',
    'abc',
    '%2B1',
    '9223372036854775808',
    '9999999999999999999',
    '1'.repeat(30),
  ])
    test(`"${text}" is 400`, async (t) => {
      const app = await startApp(t)
      const message = assertRefusal(await app.send(`/v1/pets?after=${text}`), 400, 'invalid_parameter')
      assert.match(message, /^after: expected the id of a pet or 0, got "/)
    })
})

describe('a query with a fault', () => {
  for (const [query, expected] of Object.entries({
    limit: 'limit: expected an integer from 1 to 100, got ""',
    'limit=5&limit=5': 'limit: is given 2 times',
    'status=sold&status=sold&status=x': 'status: is given 3 times',
    'after=1&after=2': 'after: is given 2 times',
    'after=x&status=y&limit=z': `limit: expected an integer from 1 to 100, got "z"; status: expected ${petStatusChoice}, got "y"; after: expected the id of a pet or 0, got "x"`,
  }))
    test(`${query} gets all of them told`, async (t) => {
      const app = await startApp(t)
      assert.equal(assertRefusal(await app.send(`/v1/pets?${query}`), 400, 'invalid_parameter'), expected)
    })
})

describe('paging by Link (RFC 8288)', () => {
  for (const [query, pages, first] of [
    ['', 6, '/v1/pets?limit=20&after=20'],
    ['?limit=7', 15, '/v1/pets?limit=7&after=7'],
    ['?limit=100', 1, undefined],
    ['?limit=10&status=sold', 4, '/v1/pets?limit=10&status=sold&after=30'],
    ['?status=pending&limit=33&x=y', 1, undefined],
    ['?limit=50&after=90', 1, undefined],
  ] as const)
    test(`"${query}" is ${pages} pages, each pet on one of them, in order`, async (t) => {
      const total = query === '' ? 105 : 100
      const app = await startApp(t, { pets: makePets(total) })
      const seen: string[] = []
      let target: string | undefined = `/v1/pets${query}`
      for (let page = 1; target !== undefined; page++) {
        const answer: ReceivedAnswer = await app.send(target)
        seen.push(...idsOf(answer))
        target = nextOf(answer)
        if (page === 1) assert.equal(target, first)
        assert.equal(target === undefined, page === pages)
      }
      const status = /status=(\w+)/.exec(query)?.[1]
      const after = Number(/after=(\d+)/.exec(query)?.[1] ?? 0)
      const expected = makePets(total).flatMap((pet, i) =>
        (status === undefined || pet.status === status) && i >= after ? [String(i + 1)] : [],
      )
      assert.deepEqual(seen, expected)
    })

  test('goes on where it was when pets are added in between', async (t) => {
    const app = await startApp(t, { pets: makePets(4) })
    const first = await app.send('/v1/pets?limit=2')
    await app.send('/v1/pets', { body: { name: 'new', categoryId: 1 } })
    const second = await app.send(nextOf(first) ?? '')
    const third = await app.send(nextOf(second) ?? '')
    assert.deepEqual([first, second, third].map(idsOf), [['1', '2'], ['3', '4'], ['5']])
    assert.equal(nextOf(third), undefined)
  })

  test('an empty store is an empty array, with a count of 0 and no link', async (t) => {
    const answer = await (await startApp(t)).send('/v1/pets')
    assert.deepEqual(
      [answer.text, answer.headers.get('x-total-count'), nextOf(answer)],
      ['[]', '0', undefined],
    )
  })

  test('lists by id, however the data file is ordered', async (t) => {
    const lines = [9, 2, 7].map((id) => `{"id":${id},"name":"a","categoryId":1,"status":"sold"}`)
    const app = await startApp(t, { dataFile: makeDataFile(lines) })
    assert.deepEqual(idsOf(await app.send('/v1/pets')), ['2', '7', '9'])
    assert.deepEqual(idsOf(await app.send('/v1/pets?status=sold')), ['2', '7', '9'])
  })

  test('shows a client that asks again what was edited in the data file', async (t) => {
    const dataFile = makeDataFile([petLine(1, 'Rex')])
    const messages = new EventEmitter()
    const app = await startApp(t, { dataFile, onMessage: (line) => messages.emit('line', line) })
    const before = await app.send('/v1/pets')
    const edited = once(messages, 'line')
    writeFileSync(dataFile, formatDataFile(petLine(1, 'Max')))
    assert.deepEqual(await edited, ['reloaded 1 pet: 0 added, 0 removed, 1 changed'])
    const again = await app.send('/v1/pets')
    assert.deepEqual([before.text, again.text], [`[${petLine(1, 'Rex')}]`, `[${petLine(1, 'Max')}]`])
  })
})

describe('createPet (interface 4.2)', () => {
  test('gives ids in order, a default status and a Location that is the pet', async (t) => {
    const app = await startApp(t)
    const first = await app.send('/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
    assert.deepEqual([first.status, first.headers.get('location')], [201, '/v1/pets/1'])
    assert.equal(first.text, '{"id":1,"name":"Rex","categoryId":1,"status":"available"}')
    for (const [index, status] of statuses.entries()) {
      const { text, headers } = await app.send('/v1/pets', { body: { name: 'Mia', categoryId: 1, status } })
      assert.equal(text, `{"id":${index + 2},"name":"Mia","categoryId":1,"status":"${status}"}`)
      assert.equal((await app.send(headers.get('location') ?? '')).text, text)
    }
  })

  test('ignores unknown members, an id among them, and never stores them', async (t) => {
    const app = await startApp(t)
    const body = { id: 77, name: 'Rex', categoryId: 1, tags: ['a'], Status: 'sold', constructor: null }
    const { status, text } = await app.send('/v1/pets', { body })
    assert.deepEqual([status, text], [201, '{"id":1,"name":"Rex","categoryId":1,"status":"available"}'])
    await assertListed(app, `[${text}]`)
  })

  for (const name of ['', ' ', 'Zoë 🐾', '"\\/\b\n\u0000\u2028', '__proto__', '<script>', 'x'.repeat(60_000)])
    test(`keeps the name ${JSON.stringify(name.slice(0, 20))}`, async (t) => {
      const app = await startApp(t, { dataFile: makeDataFile() })
      const { status, text } = await app.send('/v1/pets', { body: { name, categoryId: 1 } })
      assert.equal(status, 201)
      assert.ok(text.includes(`"name":${JSON.stringify(name)}`))
      await assertListed(app, `[${text}]`)
    })

  const int64s: Record<string, string> = {
    '0': '0',
    '-0': '0',
    '5.0': '5',
    '1e2': '100',
    '-1.50e1': '-15',
    '9007199254740991': '9007199254740991',
    '9007199254740993': '9007199254740993',
    '-9007199254740993': '-9007199254740993',
    '9223372036854775807': '9223372036854775807',
    '-9223372036854775808': '-9223372036854775808',
    '9223372036854775807.000': '9223372036854775807',
    '922337203685477580.7e1': '9223372036854775807',
  }
  for (const [digits, expected] of Object.entries(int64s))
    test(`keeps categoryId ${digits} exactly: created, fetched, listed, and after a restart`, async (t) => {
      const dataFile = makeDataFile()
      const app = await startApp(t, { dataFile })
      const created = await app.send('/v1/pets', { body: `{"name":"a","categoryId":${digits}}` })
      const text = `{"id":1,"name":"a","categoryId":${expected},"status":"available"}`
      assert.deepEqual([created.status, created.text], [201, text])
      await assertListed(app, `[${text}]`)
      await app.server.close()
      const again = await startApp(t, { dataFile })
      await assertListed(again, `[${text}]`)
      assert.equal((await again.send('/v1/pets/1')).text, text)
    })

  const refused = [
    '1.5',
    '"5"',
    'null',
    'true',
    '[]',
    '{}',
    '1e400',
    '1e-400',
    '1E-400',
    '9223372036854775808',
    '-9223372036854775809',
    '1e19',
    '1.0000000000000000001',
    '9007199254740993.5',
    '123456789012345678901234567890',
  ]
  for (const value of refused)
    test(`refuses categoryId ${value} and stores nothing`, async (t) => {
      const app = await startApp(t)
      const message = assertRefusal(
        await app.send('/v1/pets', { body: `{"name":"a","categoryId":${value}}` }),
        400,
        'invalid_body',
      )
      assert.match(message, /^categoryId: expected an int64 integer, got [^;]+$/)
      await assertListed(app, '[]')
    })

  const faults: Record<string, [body: string, message: string]> = {
    nothing: ['{}', 'name: is required; categoryId: is required'],
    'no name': ['{"categoryId":1}', 'name: is required'],
    'no category': ['{"name":"a"}', 'categoryId: is required'],
    'all wrong': [
      '{"name":1,"categoryId":"x","status":"dead"}',
      `name: expected a string, got 1; categoryId: expected an int64 integer, got "x"; status: expected ${petStatusChoice}, got "dead"`,
    ],
    'null for all': [
      '{"name":null,"categoryId":null,"status":null}',
      `name: expected a string, got null; categoryId: expected an int64 integer, got null; status: expected ${petStatusChoice}, got null`,
    ],
    'a status of another case': [
      '{"name":"a","categoryId":1,"status":"Sold"}',
      `status: expected ${petStatusChoice}, got "Sold"`,
    ],
    'an empty status': [
      '{"name":"a","categoryId":1,"status":""}',
      `status: expected ${petStatusChoice}, got ""`,
    ],
    'a status that every object has': [
      '{"name":"a","categoryId":1,"status":"constructor"}',
      `status: expected ${petStatusChoice}, got "constructor"`,
    ],
    'a name beyond any number': ['{"name":1e999,"categoryId":1}', 'name: expected a string, got 1e999'],
  }
  test('tells each fault apart for programs, also where a value looks like another fault', async (t) => {
    const app = await startApp(t)
    const { text } = await app.send('/v1/pets', { body: '{"name":1,"categoryId":"x; name: y"}' })
    assert.deepEqual(JSON.parse(text).errors, [
      { field: 'name', message: 'expected a string, got 1' },
      { field: 'categoryId', message: 'expected an int64 integer, got "x; name: y"' },
    ])
    const { text: list } = await app.send('/v1/pets', { body: '[]' })
    assert.deepEqual(JSON.parse(list).errors, [
      { field: 'body', message: 'expected a JSON object, got an array' },
    ])
  })

  for (const [title, [body, expected]] of Object.entries(faults))
    test(`refuses ${title}, and tells all faults at once`, async (t) => {
      const app = await startApp(t)
      assert.equal(assertRefusal(await app.send('/v1/pets', { body }), 400, 'invalid_body'), expected)
      await assertListed(app, '[]')
    })

  test('has no id left past 2^63-1: 507, and what is stored is served', async (t) => {
    const line = '{"id":9223372036854775806,"name":"a","categoryId":1,"status":"sold"}'
    const app = await startApp(t, { dataFile: makeDataFile([line]) })
    const last = await app.send('/v1/pets', { body: { name: 'b', categoryId: 1 } })
    assert.equal(last.headers.get('location'), '/v1/pets/9223372036854775807')
    assertRefusal(
      await app.send('/v1/pets', { body: { name: 'c', categoryId: 1 } }),
      507,
      'insufficient_storage',
    )
    await assertListed(app, `[${line},${last.text}]`)
    assert.equal((await app.send('/v1/pets/9223372036854775807')).text, last.text)
  })
})

describe('getPet (interface 4.3, deprecated)', () => {
  const never = [
    '0',
    '2',
    '01',
    '+1',
    '%2B1',
    '-1',
    '1.0',
    '1e0',
    ' 1',
    '%201',
    'abc',
    'null',
    '1%2F1',
    '9223372036854775807',
    '9223372036854775808',
    '18446744073709551617',
    '1'.repeat(400),
    '__proto__',
    '%00',
    '１',
  ]
  for (const petId of never)
    test(`"${petId.slice(0, 24)}" is 404, deprecated as every answer`, async (t) => {
      const app = await startApp(t, { pets: makePets(1) })
      const client = await connectRaw(t, app.url)
      client.write(formatRequest(`GET /v1/pets/${encodeURI(petId).replaceAll('%25', '%')}`))
      const answer = await client.read()
      assert.ok(assertRefusal(answer, 404, 'not_found').length < 120)
      assert.equal(answer.headers.get('deprecation'), deprecation)
    })

  test('finds each pet where ids are missing before it, and none between them', async (t) => {
    const ids = [3, 4, 9, 2n ** 60n]
    const app = await startApp(t, { pets: ids.map((id) => ({ id, name: 'Rex', categoryId: 1 })) })
    for (const id of ids) assert.equal((await app.send(`/v1/pets/${id}`)).status, 200)
    for (const id of [1, 2, 5, 10, 2n ** 60n + 1n])
      assert.equal((await app.send(`/v1/pets/${id}`)).status, 404)
  })

  test('announces its end on every answer (RFC 9745, RFC 8594), and no other operation does', async (t) => {
    const app = await startApp(t, { pets: makePets(1) })
    for (const [path, status, options] of [
      ['/v1/pets/1', 200, {}],
      ['/v1/pets/%31', 200, {}],
      ['/v1/pets/1', 200, { method: 'HEAD' }],
      ['/v1/pets/2', 404, {}],
      ['/v1/pets/abc', 404, {}],
      ['/v1/pets/1', 401, { headers: { authorization: null } }],
      ['/v1/pets/1', 401, { headers: { authorization: 'Bearer wrong' } }],
    ] as const) {
      const answer = await app.send(path, options)
      assert.equal(answer.status, status)
      assert.match(deprecation, /^@\d{10}$/)
      assert.deepEqual(
        [answer.headers.get('deprecation'), answer.headers.get('sunset')],
        [deprecation, sunset],
      )
      assert.equal(answer.headers.has('www-authenticate'), status === 401)
    }
    for (const path of ['/v1/pets', '/v1/store/orders', '/v1/pets?limit=0', '/healthz'])
      assert.equal((await app.send(path)).headers.has('deprecation'), false)
    assert.equal(new Date(sunset).toISOString(), '2030-12-05T00:00:00.000Z')
  })
})

describe('GET /store/orders, named without a contract,', () => {
  test('is 401 without a key, else 501', async (t) => {
    const app = await startApp(t)
    assertRefusal(
      await app.send('/v1/store/orders', { headers: { authorization: null } }),
      401,
      'unauthorized',
    )
    assertRefusal(await app.send('/v1/store/orders'), 501, 'not_implemented')
    assert.equal((await app.send('/v1/store/orders', { method: 'HEAD' })).status, 501)
    assertRefusal(await app.send('/v1/store/orders', { body: {} }), 405, 'method_not_allowed')
  })
})

describe('what is checked first answers first', () => {
  // Each request has the fault of its row and of all rows below it.
  const large = 'x'.repeat(70_000)
  const key = 'Authorization: Bearer wrong'
  const type = 'Content-Type: text/plain'
  const cases: readonly [title: string, request: string, status: number, code: string][] = [
    ['framing', formatRequest('POST /nowhere', ['Host: a b', key, type], large), 400, 'malformed_request'],
    ['route', formatRequest('POST /nowhere', [key, type], large), 404, 'not_found'],
    ['method', formatRequest('PUT /v1/pets', [key, type], large), 405, 'method_not_allowed'],
    ['key', formatRequest('POST /v1/pets', [key, type], large), 401, 'unauthorized'],
    ['media type', formatRequest('POST /v1/pets', [type], large), 415, 'unsupported_media_type'],
    ['size', formatRequest('POST /v1/pets', [], large), 413, 'content_too_large'],
    ['syntax', formatRequest('POST /v1/pets', [], '{"name":1,}'), 400, 'malformed_json'],
    ['values', formatRequest('POST /v1/pets', [], '{"name":1}'), 400, 'invalid_body'],
  ]
  for (const [title, request, status, code] of cases)
    test(`${title}: ${status}`, async (t) => {
      const client = await connectRaw(t, (await startApp(t)).url)
      client.write(request + formatRequest('GET /v1/pets'))
      assertRefusal(await client.read(), status, code)
      assert.equal((await client.read()).body, '[]')
    })
})

describe('methods (RFC 9110 15.5.6)', () => {
  for (const [path, allow] of Object.entries({
    '/v1/pets': 'GET, HEAD, POST, OPTIONS',
    '/v1/pets/1': 'GET, HEAD, OPTIONS',
    '/v1/store/orders': 'GET, HEAD, OPTIONS',
    '/healthz': 'GET, HEAD, OPTIONS',
    '/openapi.json': 'GET, HEAD, OPTIONS',
    '/pets.schema.json': 'GET, HEAD, OPTIONS',
    '/': 'GET, HEAD, OPTIONS',
  }))
    test(`${path} takes ${allow}, and names them to any other`, async (t) => {
      const app = await startApp(t, { pets: makePets(1) })
      for (const method of ['PUT', 'PATCH', 'DELETE', ...(path === '/v1/pets' ? [] : ['POST'])]) {
        // A query is no path.
        const target = `${path}?after=/v1/pets`
        const answer = await app.send(target, { method, headers: { authorization: null } })
        const changed =
          path.startsWith('/v1/pets') && method !== 'POST'
            ? ' Pets are changed and removed in the data file, or wherever else they are kept.'
            : ''
        assert.equal(
          assertRefusal(answer, 405, 'method_not_allowed'),
          `${method} is not allowed here, only ${allow}.${changed}`,
        )
        assert.equal(answer.headers.get('allow'), allow)
      }
      const options = await app.send(path, { method: 'OPTIONS', headers: { authorization: null } })
      assert.deepEqual([options.status, options.headers.get('allow')], [204, allow])
    })

  for (const path of [
    '/v1',
    '/v1/',
    '/v1/pets/',
    '/v1/Pets',
    '/pets',
    '/v2/pets',
    '/v1/pets/1/2',
    '/v1/store',
    '/favicon.ico',
    '/healthz/',
  ])
    test(`${path} is 404, with and without a key`, async (t) => {
      const app = await startApp(t)
      for (const authorization of [null, 'Bearer test-key'])
        assertRefusal(await app.send(path, { headers: { authorization } }), 404, 'not_found')
    })
})

test('every answer has a length, a type, no-store and nosniff', async (t) => {
  const app = await startApp(t, { pets: makePets(1) })
  for (const path of [
    '/',
    '/healthz',
    '/openapi.json',
    '/pets.schema.json',
    '/v1/pets',
    '/v1/pets/1',
    '/v1/pets/2',
    '/nowhere',
  ]) {
    const { headers, text } = await app.send(path)
    assert.equal(headers.get('content-length'), String(Buffer.byteLength(text)))
    assert.equal(headers.get('content-type'), path === '/' ? 'text/html; charset=utf-8' : 'application/json')
    assert.deepEqual(
      [headers.get('cache-control'), headers.get('x-content-type-options')],
      ['no-store', 'nosniff'],
    )
  }
})

test('a body or a value that is shortened in a message is still named for what it is', async (t) => {
  const { send } = await startApp(t)
  const number = await send('/v1/pets', { body: '12345678901234567890' })
  const expected = 'body: expected a JSON object, got 12345678901234567890'
  assert.equal(assertRefusal(number, 400, 'invalid_body'), expected)
  for (const status of ['🐾'.repeat(100), `x${'🐾'.repeat(100)}`]) {
    const answer = await send('/v1/pets', { body: { name: 'Rex', categoryId: 1, status } })
    assert.ok(assertRefusal(answer, 400, 'invalid_body').isWellFormed())
  }
})

/** A request as the document shows it, as it goes over the wire. */
function toWireForm(block: string): string {
  const [head = '', body = ''] = block.split('\n\n')
  return `${head.replaceAll('\n', '\r\n')}\r\n\r\n${body}`
}

test('answers the requests that src/api/interface.md begins with as it says there, from an empty store on', async (t) => {
  const text = readFileSync(join(root, 'src/api/interface.md'), 'utf8')
  const blocks = Array.from(text.matchAll(/^```http\n(.*?)\n```$/gms), ([, block = '']) => block)
  const [request = '', added, listed, refused] = blocks
  assert.equal(blocks.length, 4, 'a request, a pet, a list and an Error')
  const { url } = await startApp(t, { apiKeys: ['my-key'] })
  const client = await connectRaw(t, url)
  /** As much of the response as the document has: it leaves out the headers that are not demanded. */
  const ask = async (block: string): Promise<string> => {
    client.write(toWireForm(block))
    const { status, reason, headerLines, body } = await client.read()
    const demanded = headerLines.filter((line) => /^content-(?:type|length):/i.test(line))
    return `HTTP/1.1 ${status} ${reason}\n${demanded.join('\n')}\n\n${body}`
  }
  // The document says that the others have the same lines.
  const [, host = '', authorization = ''] = request.split('\n')
  const get = (path: string): Promise<string> => ask(`GET ${path} HTTP/1.1\n${host}\n${authorization}`)

  assert.match(await get('/v1/pets'), /\n\n\[\]$/)
  assert.equal(await ask(request), added)
  assert.equal(await get('/v1/pets'), listed)
  assert.equal(await get('/v1/pets/1'), added?.replace('201 Created', '200 OK'))
  assert.equal(await get('/v1/pets/2'), refused)

  const [, path = ''] = request.split(' ')
  const [, body = ''] = request.split('\n\n')
  const curl = `curl -i -H '${authorization}' -H 'Content-Type: application/json' -d '${body}' ${host.replace('Host: ', 'http://')}${path}`
  assert.ok(text.includes(`\n${curl}\n`), curl)
})

test('src/api/interface.md has no link that leads out of it, for it is handed out alone', () => {
  const text = readFileSync(join(root, 'src/api/interface.md'), 'utf8')
  const targets = Array.from(text.matchAll(/\]\(([^)]*)\)/g), ([, target = '']) => target)
  assert.deepEqual(
    targets.filter((target) => !/^(?:#|https:)/.test(target)),
    [],
  )
})

/** Pages of other origins (Fetch standard, CORS protocol): which of them may read the answers. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findOriginFault } from '../src/http/cors.ts'
import { connectRaw, formatRequest, startApp, type RawAnswer } from './support.ts'

const ours = 'https://demo.example'
const second = 'http://localhost:5173'
const other = 'https://evil.example'
const exposed =
  'Location, Link, X-Total-Count, X-Data-File-Error, Deprecation, Sunset, WWW-Authenticate, Allow, Preference-Applied, Retry-After'

/** Requests for answers of every kind, and bytes that are no request. */
const everyKind: readonly [start: string, status: number, lines?: readonly string[]][] = [
  ['GET /v1/pets', 200],
  ['HEAD /v1/pets', 200],
  ['OPTIONS /v1/pets', 204],
  ['GET /', 200],
  ['GET /healthz', 200],
  ['GET /openapi.json', 200],
  ['GET /v1/pets?limit=0', 400],
  ['GET /v1/pets', 401, ['Authorization: none']],
  ['GET /nowhere', 404],
  ['GET /v1/pets/1', 404],
  ['PUT /v1/pets', 405],
  ['POST /v1/pets', 415, ['Content-Type: text/plain']],
  ['POST /v1/pets', 413, ['Content-Length: 70000', 'Expect: 100-continue']],
  ['GET /v1/pets', 417, ['Expect: tea']],
  ['GET /v1/store/orders', 501],
]

function corsOf({ headers }: RawAnswer): Record<string, string | undefined> {
  return Object.fromEntries(
    ['access-control-allow-origin', 'access-control-expose-headers', 'vary'].map((name) => [
      name,
      headers.get(name),
    ]),
  )
}
const open = { 'access-control-allow-origin': '*', 'access-control-expose-headers': exposed, vary: undefined }
const closed = { 'access-control-allow-origin': undefined, 'access-control-expose-headers': undefined }
const allow = (origin: string): object => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': exposed,
  vary: 'Origin',
})

const policies: [
  title: string,
  corsOrigins: '*' | string[] | undefined,
  answers: [origin: string | undefined, expected: object][],
][] = [
  [
    'unless configured, any origin',
    undefined,
    [
      [ours, open],
      [undefined, open],
      ['null', open],
    ],
  ],
  ['with "*", any origin', '*', [[ours, open]]],
  [
    'with two origins, those, and the answer varies with the origin (RFC 9110 12.5.5)',
    [ours, second],
    [
      [ours, allow(ours)],
      [second, allow(second)],
      [other, { ...closed, vary: 'Origin' }],
      ['null', { ...closed, vary: 'Origin' }],
      [`${ours}.evil.example`, { ...closed, vary: 'Origin' }],
      [ours.toUpperCase(), { ...closed, vary: 'Origin' }],
      [undefined, { ...closed, vary: 'Origin' }],
    ],
  ],
  [
    'with null and an app, pages without an origin and that app',
    ['null', 'capacitor://localhost'],
    [
      ['null', allow('null')],
      ['capacitor://localhost', allow('capacitor://localhost')],
      [ours, { ...closed, vary: 'Origin' }],
    ],
  ],
  [
    'with none, none',
    [],
    [
      [ours, { ...closed, vary: undefined }],
      [undefined, { ...closed, vary: undefined }],
    ],
  ],
]

describe('may read every answer, errors too:', () => {
  for (const [title, corsOrigins, answers] of policies)
    test(title, async (t) => {
      const { url } = await startApp(t, corsOrigins === undefined ? {} : { corsOrigins })
      for (const [origin, expected] of answers)
        for (const [start, status, lines = []] of everyKind) {
          const client = await connectRaw(t, url)
          const from = origin === undefined ? [] : [`Origin: ${origin}`]
          client.write(formatRequest(start, [...from, ...lines]))
          const answer = await client.read(start.startsWith('HEAD') ? 'HEAD' : undefined)
          assert.equal(answer.status, status, start)
          assert.deepEqual(corsOf(answer), expected, `${start} from ${origin}`)
          assert.equal(answer.headers.has('access-control-allow-credentials'), false)
        }
    })

  test('an answer to what is no request names no origin but "*", and varies', async (t) => {
    for (const [corsOrigins, expected] of [
      ['*', open],
      [[ours], { ...closed, vary: 'Origin' }],
    ] as const) {
      const client = await connectRaw(t, (await startApp(t, { corsOrigins })).url)
      client.write('garbage\r\n\r\n')
      assert.deepEqual(corsOf(await client.read()), expected)
    }
  })
})

const preflight = (path: string, method: string, origin = ours): string =>
  formatRequest(`OPTIONS ${path}`, [
    'Authorization: none',
    `Origin: ${origin}`,
    `Access-Control-Request-Method: ${method}`,
    'Access-Control-Request-Headers: authorization,content-type',
  ])

const askToPatch = (origin: string): string =>
  formatRequest('OPTIONS /v1/pets/1', [
    `Origin: ${origin}`,
    'Access-Control-Request-Method: PATCH',
    'Access-Control-Request-Headers: traceparent, x-requested-with',
  ])

describe('a preflight', () => {
  for (const [path, methods] of Object.entries({
    '/v1/pets': 'GET, HEAD, POST, OPTIONS',
    '/v1/pets/1': 'GET, HEAD, OPTIONS',
    '/v1/store/orders': 'GET, HEAD, OPTIONS',
    '/healthz': 'GET, HEAD, OPTIONS',
    '*': 'GET, HEAD, POST, OPTIONS',
  }))
    test(`of ${path} is answered without a key, and lets the page ask`, async (t) => {
      const client = await connectRaw(t, (await startApp(t)).url)
      client.write(preflight(path, 'GET'))
      const { status, headers, body } = await client.read()
      assert.deepEqual([status, body, headers.has('content-length')], [204, '', false])
      assert.equal(headers.get('access-control-allow-origin'), '*')
      assert.equal(headers.get('access-control-allow-methods'), 'GET')
      assert.equal(headers.get('allow'), methods)
      assert.equal(headers.get('access-control-allow-headers'), 'authorization,content-type')
      assert.match(headers.get('access-control-max-age') ?? '', /^\d+$/)
    })

  test('lets through whatever it asks for, so that the page reads the real response; Allow stays true', async (t) => {
    const client = await connectRaw(t, (await startApp(t, { corsOrigins: [ours] })).url)
    client.write(
      askToPatch(ours) + formatRequest('PATCH /v1/pets/1', [`Origin: ${ours}`]) + askToPatch(other),
    )
    const { headers } = await client.read()
    assert.equal(headers.get('access-control-allow-methods'), 'PATCH')
    assert.equal(headers.get('access-control-allow-headers'), 'traceparent, x-requested-with')
    assert.equal(headers.get('allow'), 'GET, HEAD, OPTIONS')
    const refused = await client.read()
    assert.deepEqual([refused.status, refused.headers.get('access-control-allow-origin')], [405, ours])
    const foreign = await client.read()
    const names = [...foreign.headers.keys()].filter((name) => name.startsWith('access-control'))
    assert.deepEqual([foreign.status, names], [204, []])
  })

  test('of an unknown path is answered, so that the page can read the 404 behind it', async (t) => {
    const client = await connectRaw(t, (await startApp(t)).url)
    client.write(preflight('/nowhere', 'GET'))
    const { status, headers } = await client.read()
    assert.deepEqual([status, headers.get('access-control-allow-origin')], [204, '*'])
    assert.equal(headers.get('access-control-allow-methods'), 'GET')
    client.write(formatRequest('GET /nowhere', [`Origin: ${ours}`]))
    const answer = await client.read()
    assert.deepEqual([answer.status, answer.headers.get('access-control-allow-origin')], [404, '*'])
  })

  test('of a target with a bad escape is answered, so that the page can read the 400 behind it', async (t) => {
    const client = await connectRaw(t, (await startApp(t)).url)
    for (const target of ['/v1/%zz', '/v1/pets?limit=%C3']) {
      client.write(preflight(target, 'GET') + formatRequest(`GET ${target}`, [`Origin: ${ours}`]))
      const { status, headers } = await client.read()
      assert.deepEqual([status, headers.get('access-control-allow-methods')], [204, 'GET'])
      assert.equal((await client.read()).status, 400)
    }
  })

  test('is what has an origin and a method: any other OPTIONS of an unknown path is 404', async (t) => {
    const client = await connectRaw(t, (await startApp(t)).url)
    for (const lines of [[], [`Origin: ${ours}`], ['Access-Control-Request-Method: GET']]) {
      client.write(formatRequest('OPTIONS /nowhere', lines))
      assert.equal((await client.read()).status, 404)
    }
  })

  test('from an origin that is not named is not allowed', async (t) => {
    const client = await connectRaw(t, (await startApp(t, { corsOrigins: [ours] })).url)
    client.write(preflight('/v1/pets', 'POST', other) + preflight('/v1/pets', 'POST'))
    assert.equal((await client.read()).headers.has('access-control-allow-origin'), false)
    assert.equal((await client.read()).headers.get('access-control-allow-origin'), ours)
  })

  test('is not answered for any page when no origin is named', async (t) => {
    const client = await connectRaw(t, (await startApp(t, { corsOrigins: [] })).url)
    client.write(preflight('/v1/pets', 'POST'))
    const { status, headers } = await client.read()
    assert.equal(status, 204)
    assert.deepEqual(
      [...headers.keys()].filter((name) => name.startsWith('access-control')),
      [],
    )
  })
})

describe('an origin', () => {
  for (const text of [
    ours,
    second,
    'http://[::1]:8080',
    'https://xn--bcher-kva.example',
    'capacitor://localhost',
    'tauri://localhost',
    'chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai',
    'app://.',
    'null',
  ])
    test(`can be ${text}`, () => assert.equal(findOriginFault(text), undefined))
  const wrong = [
    '',
    '*',
    'none',
    'demo.example',
    'https://demo.example/',
    'https://Demo.example',
    'https://demo.example:443',
    'https://demo.example/a',
    'https://bücher.example',
    'file:///a',
    'localhost:3000',
    `${ours} ${second}`,
    `${ours};${second}`,
    'capacitor://localhost/',
    'Tauri://localhost',
    'mailto:a@demo.example',
    'https://u:p@demo.example',
    'https://demo.example\r\nX-A: 1',
  ]
  for (const text of wrong)
    test(`cannot be ${JSON.stringify(text)}, which no browser sends`, () => {
      assert.match(findOriginFault(text) ?? '', /^expected an origin such as https:\/\/example\.org, got "/)
    })
})

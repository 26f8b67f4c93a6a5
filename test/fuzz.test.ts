/** Requests that nobody would write by hand, from fixed seeds: mutated bytes, and bodies and queries of the schemas. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { errorCodes } from '../src/api/refusals.ts'
import {
  assertRefusal,
  connectRaw,
  createRandom,
  formatRequest,
  isThorough,
  pause,
  startApp,
  takeAnswer,
} from './support.ts'

const seed = 20_301_205
const mutatedRequests = isThorough ? 12_000 : 500
const requestsOfSchema = isThorough ? 5000 : 150
const pet = '{"name":"Rex","categoryId":9007199254740993,"status":"sold"}'

const samples = [
  formatRequest('GET /v1/pets?limit=5&status=sold&after=1'),
  formatRequest('GET /v1/pets/1'),
  formatRequest('POST /v1/pets', ['Content-Type: application/json'], pet),
  formatRequest('POST /v1/pets', ['Expect: 100-continue'], pet),
  formatRequest(
    'POST /v1/pets',
    ['Transfer-Encoding: chunked'],
    `a\r\n${pet.slice(0, 10)}\r\n32\r\n${pet.slice(10)}\r\n0\r\n\r\n`,
  ),
  formatRequest('OPTIONS /v1/pets', ['Origin: https://demo.example', 'Access-Control-Request-Method: POST']),
  formatRequest('GET http://pets.test/v1/store/orders', ['Connection: close']),
  formatRequest('PUT /v1/pets', ['Cookie: a=b; c=d', 'Accept: */*'], pet),
  `GET /v1/pets HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`,
]
const tokens = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  ':',
  ',',
  '%',
  '%ff',
  '%2F',
  '/',
  '//',
  '?',
  '#',
  '"',
  '\\',
  '{',
  '[',
  '\u00ff',
  '🐾',
  '-',
  '0',
  '1e999',
  '9'.repeat(30),
  'a'.repeat(20_000),
  'Content-Length: 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Expect: 100-continue\r\n',
  'Connection: close\r\n',
  'Connection: upgrade\r\nUpgrade: h2c\r\n',
  'Host: b\r\n',
  'Authorization: Bearer x\r\n',
  'CONNECT ',
  'HTTP/1.0',
  '0\r\n\r\n',
  '\r\n\r\n',
  '__proto__',
  '\\ud800',
  'null',
]

type Random = (bound: number) => number

/** One to four changes to one, two or three of the samples in a row. */
function mutate(random: Random): Buffer {
  const some = (): string => samples[random(samples.length)] ?? ''
  let bytes = Buffer.from(Array.from({ length: 1 + random(3) }, some).join(''))
  for (let changes = 1 + random(4); changes > 0; changes--) {
    const at = random(bytes.length + 1)
    const end = at + random(20)
    const token = Buffer.from(tokens[random(tokens.length)] ?? '')
    const changed = [
      () => [bytes.subarray(0, at), token, bytes.subarray(at)],
      () => [bytes.subarray(0, at), token, bytes.subarray(end)],
      () => [bytes.subarray(0, at), bytes.subarray(end)],
      () => [bytes.subarray(0, end), bytes.subarray(at)],
      () => [bytes.subarray(0, at), Buffer.from([random(256)]), bytes.subarray(at + 1)],
      () => [bytes.subarray(0, at)],
    ][random(6)]
    bytes = Buffer.concat(changed?.() ?? [])
  }
  return bytes
}

/** Sends the bytes and ends; all that comes back until the server closes. */
async function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.end(bytes)
  await once(socket, 'close')
  return Buffer.concat(chunks)
}

/** Asserts that what came back is whole answers, each of them one that the interface knows. */
function assertAnswers(received: Buffer): number[] {
  const statuses: number[] = []
  let rest = received
  while (rest.length > 0) {
    const answer = takeAnswer(rest, false) ?? assert.fail(`not whole: ${rest}`)
    rest = rest.subarray(answer.length)
    statuses.push(answer.status)
    if (answer.status < 400) continue
    const error: unknown = JSON.parse(answer.body)
    assert.ok(typeof error === 'object' && error !== null && 'code' in error)
    const code = Object.keys(errorCodes).find((known) => known === error.code)
    assertRefusal(answer, answer.status, code ?? assert.fail(answer.body))
  }
  return statuses
}

const countSockets = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length

test(
  'answers mutated requests without a 500, hangs on none, keeps no socket, and serves the next client',
  { timeout: 600_000 },
  async (t) => {
    const app = await startApp(t)
    const port = Number(new URL(app.url).port)
    const before = countSockets()
    const random = createRandom(seed)
    const counts = new Map<number, number>()
    let left = mutatedRequests
    const work = async (): Promise<void> => {
      while (left-- > 0) {
        const bytes = mutate(random)
        try {
          for (const status of assertAnswers(await exchange(port, bytes)))
            counts.set(status, (counts.get(status) ?? 0) + 1)
        } catch (error) {
          throw new Error(`after ${JSON.stringify(bytes.toString('latin1'))}`, { cause: error })
        }
      }
    }
    await Promise.all(Array.from({ length: 32 }, work))
    const created = counts.get(201) ?? 0
    for (const status of [100, 200, 201, 204, 400, 401, 404, 405, 417, 431, 501])
      assert.ok((counts.get(status) ?? 0) > 0, `${status} never came`)
    assert.equal(counts.has(500), false)
    const answer = await app.send('/v1/pets?limit=100', { headers: { connection: 'close' } })
    assert.equal(answer.status, 200)
    assert.ok(Number(answer.headers.get('x-total-count')) >= created)
    while (countSockets() > before) await pause()
  },
)

interface Part {
  /** Its JSON or query text; undefined leaves it out. */
  readonly text: string | undefined
  /** As it is answered; undefined when it is wrong. */
  readonly value: string | undefined
}
const good = (text: string | undefined, value = text ?? ''): Part => ({ text, value })
const bad = (text: string | undefined): Part => ({ text, value: undefined })
const pick = (random: Random, parts: readonly (() => Part)[]): Part =>
  parts[random(parts.length)]?.() ?? bad('')

describe('what the schemas say of a request is what it gets', () => {
  test('bodies: 201 with the very values, or 400 that names each wrong member and no other', async (t) => {
    const app = await startApp(t)
    const random = createRandom(seed + 1)
    const int64 = (): string =>
      String(BigInt.asIntN(64, (BigInt(random(2 ** 32)) << 32n) | BigInt(random(2 ** 32))))
    const name = (): string =>
      String.fromCodePoint(
        ...Array.from(
          { length: random(8) },
          () => [0x20 + random(95), random(0xd800), 0xe000 + random(0x102000)][random(3)] ?? 0,
        ),
      )
    const members: Record<string, readonly (() => Part)[]> = {
      name: [
        ...Array.from({ length: 12 }, () => () => good(JSON.stringify(name()))),
        () => bad(undefined),
        () =>
          bad(
            ['null', '1', 'true', '[]', '{}', '12345678901234567890', '"\\ud800"', '"\\udc00x"'][random(8)],
          ),
      ],
      categoryId: [
        ...Array.from({ length: 10 }, () => () => good(int64())),
        () => good(String(random(1000))),
        () => good(`${1 + random(99)}.0`),
        () => bad(undefined),
        () =>
          bad(
            [
              'null',
              '"1"',
              'false',
              '[1]',
              '{"a":1}',
              '0.5',
              '1e19',
              '-1e-9',
              '9223372036854775808',
              '1e999',
            ][random(10)],
          ),
      ],
      status: [
        ...Array.from({ length: 4 }, () => () => good('"sold"')),
        ...Array.from({ length: 4 }, () => () => good('"pending"')),
        ...Array.from({ length: 4 }, () => () => good(undefined, '"available"')),
        () => bad(['null', '1', '""', '"Sold"', '"toString"', '[]', '["sold"]', '{}'][random(8)]),
      ],
    }
    const client = await connectRaw(t, app.url)
    let created = 0
    for (let i = 0; i < requestsOfSchema; i++) {
      const parts = Object.entries(members).map(([member, kinds]) => [member, pick(random, kinds)] as const)
      const texts = parts.flatMap(([member, { text }]) => (text === undefined ? [] : [`"${member}":${text}`]))
      if (random(4) === 0) texts.push(`"id":${int64()},"x":{"name":[${int64()}]}`)
      if (random(2) === 0) texts.reverse()
      const body = `{${texts.join()}}`
      client.write(formatRequest('POST /v1/pets', [], body))
      const answer = await client.read()
      const wrong = parts.flatMap(([member, { value }]) => (value === undefined ? [member] : []))
      if (wrong.length > 0) {
        const message = assertRefusal(answer, 400, 'invalid_body')
        assert.deepEqual(
          Array.from(message.matchAll(/(?:^|; )(\w+): /g), ([, member]) => member),
          wrong,
          `${body} ${message}`,
        )
      } else {
        created++
        const values = parts.map(
          ([member, { value = '' }]) =>
            `"${member}":${member === 'categoryId' ? value.replace('.0', '') : value}`,
        )
        assert.equal(answer.body, `{"id":${created},${values.join()}}`, body)
        assert.equal(answer.status, 201)
      }
    }
    assert.ok(created > 0.3 * requestsOfSchema && created < 0.9 * requestsOfSchema, `${created} were created`)
    assert.equal(app.server.countPets(), created)
  })

  test('queries: 200 with the very page, or 400 that names each wrong parameter and no other', async (t) => {
    const statuses = ['available', 'pending', 'sold'] as const
    const pets = Array.from({ length: 150 }, (_, i) => ({
      name: '',
      categoryId: 0,
      status: statuses[(i * 7) % 3] ?? 'sold',
    }))
    const app = await startApp(t, { pets })
    const random = createRandom(seed + 2)
    const parameters: Record<string, readonly (() => Part)[]> = {
      limit: [
        ...Array.from({ length: 5 }, () => () => good(String(1 + random(100)))),
        () => good(undefined, '20'),
        () =>
          bad(['0', '101', '-1', '', '05', '5.0', '1e1', 'x', '+5', '5&limit=5', '%35%30%30'][random(11)]),
      ],
      status: [
        ...Array.from({ length: 3 }, () => () => good(statuses[random(3)])),
        ...Array.from({ length: 3 }, () => () => good(undefined)),
        () => bad(['', 'Sold', 'sold,sold', 'sold&status=sold', 'null', '%00', 'sold%20'][random(7)]),
      ],
      after: [
        ...Array.from({ length: 3 }, () => () => good(String(1 + random(160)))),
        ...Array.from({ length: 3 }, () => () => good(undefined, '0')),
        () => good('0'),
        () => good('9223372036854775807'),
        () => bad(['-0', '-1', '01', '', 'x', '9223372036854775808', '1.0', '1&after=2'][random(8)]),
      ],
    }
    const client = await connectRaw(t, app.url)
    let refused = 0
    for (let i = 0; i < requestsOfSchema; i++) {
      const parts = Object.entries(parameters).map(([name, kinds]) => [name, pick(random, kinds)] as const)
      const texts = parts.flatMap(([name, { text }]) => (text === undefined ? [] : [`${name}=${text}`]))
      const query = [...texts, ...(random(3) === 0 ? ['page=0', 'Limit=x'] : [])].join('&')
      client.write(formatRequest(`GET /v1/pets?${query}`))
      const answer = await client.read()
      const wrong = parts.flatMap(([name, { value }]) => (value === undefined ? [name] : []))
      if (wrong.length > 0) {
        refused++
        const message = assertRefusal(answer, 400, 'invalid_parameter')
        assert.deepEqual(
          Array.from(message.matchAll(/(?:^|; )(\w+): /g), ([, name]) => name),
          wrong,
          `${query} ${message}`,
        )
        continue
      }
      const [limit = '', status = '', after = ''] = parts.map(([, { value }]) => value)
      const matches = pets.flatMap((one, index) =>
        status === '' || one.status === status ? [index + 1] : [],
      )
      const expected = matches.filter((id) => id > Number(after))
      const ids = Array.from(answer.body.matchAll(/"id":(\d+)/g), ([, id]) => Number(id))
      assert.equal(answer.status, 200)
      assert.deepEqual(ids, expected.slice(0, Number(limit)), query)
      assert.equal(answer.headers.get('x-total-count'), String(matches.length))
      assert.equal(answer.headers.has('link'), expected.length > Number(limit))
    }
    assert.ok(
      refused > 0.15 * requestsOfSchema && refused < 0.75 * requestsOfSchema,
      `${refused} were refused`,
    )
  })
})

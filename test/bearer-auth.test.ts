/** Bearer keys (interface section 5, RFC 6750). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createBearerAuth, findKeyFault } from '../src/http/bearer-auth.ts'
import { HttpError } from '../src/http/response.ts'
import { assertRefusal, connectRaw, formatRequest, startApp } from './support.ts'

const keys = ['first-key', 'aA0-._~+/==', 'x']
const plain = 'Bearer realm="petstore"'
const invalid = `${plain}, error="invalid_token"`

function authenticate(authorization: string | undefined): void {
  const headers = authorization === undefined ? {} : { authorization }
  createBearerAuth(keys)({ headers, isRepeated: () => false })
}

/** The message and the challenge of the refusal. */
function refusalOf(authorization: string | undefined): { message: string; challenge: string | undefined } {
  try {
    authenticate(authorization)
  } catch (error) {
    assert.ok(error instanceof HttpError && error.code === 'unauthorized')
    assert.equal(error.headers[0], 'WWW-Authenticate')
    return { message: error.message, challenge: error.headers[1] }
  }
  return assert.fail(`${authorization} was let in`)
}

describe('lets in', () => {
  const values = [
    ...keys.map((key) => `Bearer ${key}`),
    // RFC 9110 sections 11.1 and 11.4: the scheme is case-insensitive, one or more spaces follow it.
    'bearer first-key',
    'BEARER first-key',
    'Bearer    first-key',
  ]
  for (const value of values) test(value, () => authenticate(value))
})

test('lets in a key in any of a hundred spellings, twice, and no wrong one after them', () => {
  const check = createBearerAuth(keys)
  const ask = (authorization: string): unknown =>
    check({ headers: { authorization }, isRepeated: () => false })
  const spellings = Array.from({ length: 100 }, (_, i) => `Bearer ${' '.repeat(i)}first-key`)
  for (const spelling of [...spellings, ...spellings]) ask(spelling)
  assert.throws(() => ask('Bearer first-kex'), HttpError)
})

describe('refuses, with the challenge of RFC 6750 section 3.1,', () => {
  const cases: [authorization: string | undefined, challenge: string][] = [
    [undefined, plain],
    ['', plain],
    ['Bearer', plain],
    ['Bearer ', plain],
    ['Bearerfirst-key', plain],
    ['Bearer\tfirst-key', plain],
    ['first-key', plain],
    ['Basic Zmlyc3Q6a2V5', plain],
    ['Basic Bearer first-key', plain],
    ['Bearer First-key', invalid],
    ['Bearer first-key,', invalid],
    ['Bearer first-key x', invalid],
    ['Bearer first-key, Bearer x', invalid],
    ['Bearer "first-key"', invalid],
    ['Bearer first-kex', invalid],
    ['Bearer girst-key', invalid],
    ['Bearer first-ke', invalid],
    ['Bearer first-keyy', invalid],
    ['Bearer aA0-._~+/=', invalid],
    ['Bearer toString', invalid],
    [`Bearer ${'x'.repeat(16_000)}`, invalid],
  ]
  for (const [authorization, challenge] of cases)
    test(`${authorization?.slice(0, 40)}`, () => assert.equal(refusalOf(authorization).challenge, challenge))
})

test('says the same wherever a key differs, and never what was sent', () => {
  const [key = ''] = keys
  const wrong = Array.from(key, (_, at) => `${key.slice(0, at)}!${key.slice(at + 1)}`)
  const refusals = [...wrong, '', `${key}${key}`].map((token) => refusalOf(`Bearer ${token}!`))
  assert.deepEqual(new Set(refusals.map((refusal) => JSON.stringify(refusal))).size, 1)
  assert.doesNotMatch(JSON.stringify(refusals), /first|key!/)
})

describe('refuses as a key, without showing it,', () => {
  const cases: Record<string, string> = {
    'an empty text': '',
    'a text with a space': 'secret key',
    'a text with a space behind it': 'secret ',
    'a text with a comma': 'secret,key',
    'a text beyond ASCII': 'clé',
    'a text with "=" in its middle': 'secret=key',
    'what is too long to be sent': 'secret'.repeat(3_000),
  }
  for (const [title, text] of Object.entries(cases))
    test(title, () => {
      const fault = findKeyFault(text) ?? ''
      assert.match(fault, /expected /)
      assert.doesNotMatch(fault, /secret|clé/)
    })
})

describe('over a socket', () => {
  const right = 'Authorization: Bearer first-key'
  const cases: [title: string, lines: readonly string[], challenge: string][] = [
    ['no key', ['Authorization: '], plain],
    ['two keys that are the same (RFC 9110 5.3)', [right, right], plain],
    ['two keys, one of them wrong', [right, 'authorization: Bearer x'], plain],
    ['a wrong key', ['Authorization: Bearer x'], invalid],
  ]
  for (const [title, lines, challenge] of cases)
    test(`${title} gets 401 from every operation, also after the right key`, async (t) => {
      const { url } = await startApp(t, { apiKeys: ['first-key'] })
      const client = await connectRaw(t, url)
      client.write(formatRequest('GET /v1/pets', [right]))
      assert.equal((await client.read()).status, 200)
      for (const request of ['GET /v1/pets', 'POST /v1/pets', 'GET /v1/pets/1', 'GET /v1/store/orders']) {
        client.write(formatRequest(request, lines))
        const answer = await client.read()
        assertRefusal(answer, 401, 'unauthorized')
        assert.equal(answer.headers.get('www-authenticate'), challenge)
      }
      client.write(formatRequest('GET /v1/pets', [right]))
      assert.equal((await client.read()).status, 200)
    })

  test('each of the keys is let in, and none is in an answer or a log', async (t) => {
    const seen: unknown[] = []
    const app = await startApp(t, { apiKeys: keys, onResponse: (answer) => seen.push(answer) })
    for (const key of ['first-key', 'aA0-._~+/==', 'wrong-key']) {
      for (const path of ['/v1/pets', '/v1/pets/1', `/v1/pets?limit=0`, '/nowhere', '/']) {
        const { status, headers, text } = await app.send(path, {
          headers: { authorization: `Bearer ${key}` },
        })
        if (path === '/v1/pets') assert.equal(status, key === 'wrong-key' ? 401 : 200)
        assert.equal(JSON.stringify([...headers]).includes(key) || text.includes(key), false)
      }
    }
    assert.doesNotMatch(JSON.stringify([seen, app.lines]), /first-key|aA0|wrong-key/)
    assert.equal(seen.length, 15)
  })
})

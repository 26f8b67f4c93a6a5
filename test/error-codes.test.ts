/** The error codes: their form, and what no refusal and no line of the program may show. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCore } from '../src/api/core.ts'
import { errorCodes } from '../src/api/refusals.ts'
import { createHttpServer } from '../src/http/server.ts'
import { MemoryStore } from '../src/store/memory-store.ts'
import {
  assertRefusal,
  connectRaw,
  formatRequest,
  key,
  makeFolder,
  root,
  send,
  startProgram,
} from './support.ts'

test('codes are snake_case, statuses are those of errors, messages are sentences', () => {
  for (const [code, { status, message }] of Object.entries(errorCodes)) {
    assert.match(code, /^[a-z]+(?:_[a-z]+)*$/)
    assert.ok(status >= 400 && status < 600)
    assert.match(message, /^[A-Z].*\.$/)
  }
})

test('a 404 beside the pets says where they are', async (t) => {
  for (const [basePath, missing, others] of [
    ['', ['/pets', '/pets/', '/pets/1', '/v1', '/v1/', '/v1/pets/', '/pets?a=b'], ['/v2', '/petsy']],
    ['', ['/v1/pet', '/v1/Pets', '/api/v1/pets', '/v2/pets', '/v1/pet/1'], ['/v1/store', '/v1/carpets']],
    ['/store', ['/pets', '/store/pets/1', '/store/v1', '/store/v2/pets'], ['/store/v2', '/elsewhere']],
  ] as const) {
    const store = new MemoryStore([])
    const core = createCore({
      store,
      apiKeys: [key],
      basePath,
    })
    const server = createHttpServer()
    t.after(() => server.close())
    const url = await server.listen(0, '127.0.0.1')
    server.serve(core)
    for (const path of missing) {
      const answer = await send(url, path)
      assert.ok(
        assertRefusal(answer, 404, 'not_found').endsWith(` The pets are at ${basePath}/v1/pets.`),
        path,
      )
    }
    for (const path of others) {
      const { text } = await send(url, path)
      assert.doesNotMatch(text, /v1\/pets/, path)
    }
  }
})

test('a fault of the service is 500 without a word of the fault, and the next request is answered', async (t) => {
  const store = new MemoryStore([])
  const secret = new TypeError(`secret at ${root}`)
  store.get = () => {
    throw secret
  }
  store.create = () => Promise.reject(secret)
  const faults: string[] = []
  const core = createCore({
    store,
    apiKeys: [key],
    onError: (line) => faults.push(line),
  })
  const server = createHttpServer()
  t.after(() => server.close())
  const url = await server.listen(0, '127.0.0.1')
  server.serve(core)
  for (const answer of [
    await send(url, '/v1/pets/1'),
    await send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } }),
  ]) {
    assert.equal(assertRefusal(answer, 500, 'internal_error'), errorCodes.internal_error.message)
    assert.doesNotMatch(JSON.stringify([...answer.headers]), /secret|TypeError/)
  }
  assert.equal((await send(url, '/v1/pets')).status, 200)
  const lines = ['internal_error in GET /v1/pets/1: TypeError', 'internal_error in POST /v1/pets: TypeError']
  assert.deepEqual(faults, lines)
})

test('no answer and no line of the program shows a key, a stack, a path or a library', async (t) => {
  const program = await startProgram(t, makeFolder(), {
    PETSTORE_LOG: 'requests',
    PETSTORE_API_KEYS: `other-secret,${key}`,
  })
  const requests = [
    formatRequest('GET /v1/pets'),
    formatRequest(`GET /v1/pets?key=${key}&status=x`),
    formatRequest('GET /v1/pets', ['Authorization: Bearer wrong-secret']),
    formatRequest('GET /v1/pets', ['Authorization: Basic wrong-secret']),
    formatRequest('POST /v1/pets', [], '{"name":1}'),
    formatRequest('POST /v1/pets', [], '{'),
    formatRequest('POST /v1/pets', ['Content-Type: text/plain'], 'x'),
    formatRequest('POST /v1/pets', [], 'x'.repeat(70_000)),
    formatRequest('GET /v1/pets/%'),
    formatRequest('GET http://me:wrong-secret@pets.test/v1/pets/x'),
    formatRequest('PUT /v1/pets'),
    formatRequest('GET /v1/pets', ['Expect: tea']),
    formatRequest('POST /v1/pets', ['Transfer-Encoding: chunked'], 'zz\r\n'),
    `garbage ${key}\r\n\r\n`,
  ]
  const shown =
    /test-key|other-secret|wrong-secret|\bat .*:\d+|node_modules|node:|HPE_|ERR_|valibot|lowdb|\.ts\b/
  for (const [index, request] of requests.entries()) {
    const client = await connectRaw(t, program.url)
    client.write(request)
    const { status, body, headerLines } = await client.read()
    assert.equal(status === 200, index === 0)
    assert.doesNotMatch(body + headerLines.join('\n'), shown)
    assert.equal(body.includes(root), false)
  }
  await program.waitFor(/GET \/v1\/pets 417 /)
  assert.match(program.output(), / GET \/v1\/pets 400 \d+\.\d ms invalid_parameter /m)
  assert.doesNotMatch(program.output(), shown)
  assert.equal(program.output().includes(root), false)
})

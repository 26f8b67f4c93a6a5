/** Every answer of the operations is one that the document describes, in the tests of the service and for each description. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { build } from '../built.ts'
import {
  authorization,
  cleanEnvironment,
  connectRaw,
  makeDataFile,
  type RequestOptions,
  root,
  startApp,
} from '../support.ts'
import { describedLabels, judge, type ReceivedAnswer, type Verdict } from './answers.ts'
import { folder, makeFolder } from './tools.ts'
import type { Findings } from './watch-answers.ts'

/** Most of their time goes into bundles, servers of others, floods and disks, and what they are answered others are, too. */
const mostlyOther = new Set([
  'bundle.test.ts',
  'contract-catches.test.ts',
  'contract-screen.test.ts',
  'disk-faults.test.ts',
  'linear.test.ts',
  'load.test.ts',
])

const rex = { id: 1, name: 'Rex', categoryId: 1, status: 'available' } as const

test('each answer that the document describes is given, as it is described', async (t) => {
  const { send, url } = await startApp(t, { pets: [rex, { ...rex, id: 2 }] })
  const full = await startApp(t, { pets: [{ ...rex, id: 2n ** 63n - 1n }] })
  const dataFile = makeDataFile()
  const invalid = await startApp(t, { dataFile })
  writeFileSync(dataFile, '{"pets": [}')

  const seen: Verdict[] = []
  const ask = async (target: string, options: RequestOptions = {}, sendTo = send): Promise<void> => {
    const { method = options.body === undefined ? 'GET' : 'POST' } = options
    const { status, headers, text } = await sendTo(target, options)
    seen.push(judge({ request: { method, target }, status, headers: [...headers].flat(), body: text }))
  }
  const askUnmet = async (method: string, target: string): Promise<void> => {
    const raw = await connectRaw(t, url)
    raw.write(
      `${method} ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nExpect: more\r\n\r\n`,
    )
    const { status, headers, body } = await raw.read()
    seen.push(judge({ request: { method, target }, status, headers: [...headers].flat(), body }))
  }
  const keyless = { headers: { authorization: null } }
  const wrongKey = { headers: { authorization: 'Bearer wrong' } }

  await ask('/v1/pets')
  await ask('/v1/pets?limit=1&status=available')
  await ask('/v1/pets?limit=0&after=x')
  await ask('/v1/pets?status=%zz')
  await ask('/v1/pets', keyless)
  await ask('/v1/pets', wrongKey)
  await askUnmet('GET', '/v1/pets')
  await ask('/v1/pets', { body: { name: 'Mia', categoryId: 2 } })
  await ask('/v1/pets', { body: '{"name":"Mia","categoryId":9223372036854775807}' })
  await ask('/v1/pets', { body: {} })
  await ask('/v1/pets', { body: '{' })
  await ask('/v1/pets', { body: {}, ...keyless })
  await ask('/v1/pets', { body: ' '.repeat(70_000) })
  await ask('/v1/pets', { body: '{}', headers: { 'content-type': 'text/plain' } })
  await ask('/v1/pets', { body: '{}', headers: { 'content-encoding': 'gzip' } })
  await ask('/v1/pets', { body: { name: 'Mia', categoryId: 2 } }, invalid.send)
  await ask('/v1/pets', {}, invalid.send)
  await ask('/v1/pets', { body: { name: 'Mia', categoryId: 2 } }, full.send)
  await askUnmet('POST', '/v1/pets')
  await ask('/v1/pets/1')
  await ask('/v1/pets/9223372036854775807', {}, full.send)
  await ask('/v1/pets/1?a=%zz')
  await ask('/v1/pets/1', keyless)
  await ask('/v1/pets/99')
  await ask('/v1/pets/abc')
  await askUnmet('GET', '/v1/pets/1')

  assert.deepEqual(
    seen.filter(({ faults }) => faults.length > 0),
    [],
  )
  assert.deepEqual(new Set(seen.map(({ label }) => label)), new Set(describedLabels()))
})

test('finds an answer that the document does not describe', () => {
  const common = ['Content-Type', 'application/json', 'X-Content-Type-Options', 'nosniff']
  const good: ReceivedAnswer = {
    request: { method: 'GET', target: '/v1/pets?limit=1' },
    status: 200,
    headers: [...common, 'X-Total-Count', '1'],
    body: JSON.stringify([rex]),
  }
  const refusal = JSON.stringify({ code: 'not_found', message: 'x', status: 404 })
  const pet = { request: { method: 'GET', target: '/v1/pets/1' } }
  const cases: readonly [changes: Partial<ReceivedAnswer>, faults: readonly string[]][] = [
    [{}, []],
    [{ headers: common }, []],
    [{ headers: [...common, 'X-Total-Count', 'many'] }, ['x-total-count: must be integer']],
    [{ headers: [...common, 'X-Total-Count', '1', 'X-Other', '1'] }, ['x-other: is not described']],
    [
      { headers: ['Content-Type', 'text/plain', 'X-Total-Count', '1'] },
      ['content-type: text/plain is not described'],
    ],
    [{ body: '[{"id":"1"}]' }, ["body/0: must have required property 'name'"]],
    [{ status: 204 }, ['status 204 is not described']],
    [{ status: 404, headers: common, body: refusal }, ['body: the code not_found is not described']],
    [
      { ...pet, status: 404, headers: common, body: refusal },
      ['deprecation: is missing', 'sunset: is missing'],
    ],
    [
      { request: { method: 'PUT', target: '/v1/pets' }, status: 405, headers: common, body: refusal },
      ['allow: is missing', 'body: its status is 404'],
    ],
    [
      { request: undefined, status: 400, headers: common, body: '' },
      ["body: must have required property 'value'"],
    ],
  ]
  for (const [changes, faults] of cases) {
    const found = judge({ ...good, ...changes }).faults
    assert.deepEqual(
      faults.filter((fault) => !found.includes(fault)),
      [],
      `${JSON.stringify(changes)}: ${found.join('; ')}`,
    )
    assert.equal(found.length === 0, faults.length === 0, found.join('; '))
  }
})

test('every answer in the tests of the service is as the document describes it', async (t) => {
  const answersFolder = makeFolder(t)
  // Those that start the service in their own process, which is watched.
  const files = readdirSync(join(root, 'test')).filter((name) => {
    if (!name.endsWith('.test.ts') || mostlyOther.has(name)) return false
    return /startApp|startPetStore|createCore|openTarget/.test(readFileSync(join(root, 'test', name), 'utf8'))
  })
  const hooks = ['--import', './test/translated.mjs', '--import', join(folder, 'watch-answers.ts')]
  const run = spawn(
    process.execPath,
    [...hooks, '--test', '--test-concurrency=4', ...files.map((name) => join('test', name))],
    {
      cwd: root,
      env: { ...cleanEnvironment(), ANSWERS_FOLDER: answersFolder, PETSTORE_TEST_DIST: build(makeFolder(t)) },
      stdio: 'ignore',
    },
  )
  // Whether the tests themselves are content is for `npm test` to say.
  await once(run, 'close')

  const findings = readdirSync(answersFolder).map((name): Findings =>
    JSON.parse(readFileSync(join(answersFolder, name), 'utf8')),
  )
  const counts: Record<string, number> = {}
  for (const [label, count] of findings.flatMap((finding) => Object.entries(finding.counts))) {
    counts[label] = (counts[label] ?? 0) + count
  }
  for (const label of Object.keys(counts).toSorted()) t.diagnostic(`${label}: ${counts[label]} answers`)
  assert.deepEqual(
    findings.flatMap(({ faults }) => faults),
    [],
  )
  for (const label of ['listPets 200', 'createPet 201', 'getPet 200'])
    assert.ok(counts[label], `${label}: none`)
})

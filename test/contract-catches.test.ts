/**
 * That the contract suite catches: against each server that breaks the interface in one place it fails in the sections that this
 * place belongs to and in no other; against each that fills the interface's gaps in another way it passes.
 *
 * The suite is built and run as users run it: one file, `node --test`, `PETSTORE_URL` and `PETSTORE_API_KEY`.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { build } from 'esbuild'
import { isInt64 } from './contract-json.ts'
import {
  type Behaviour,
  isStatus,
  type Pet,
  reference,
  refuse,
  reply,
  type Reply,
  startServer,
} from './wrong-server.ts'

const key = 'Workshop-key-1'
const isError = (answer: Reply) => answer.status >= 400
/** For a fault that shows in the Error bodies. */
const errors = (change: (text: string, status: number) => string): Partial<Behaviour> => ({
  rewrite: (answer) => (isError(answer) ? { ...answer, text: change(answer.text, answer.status) } : answer),
})
/** For a fault that shows in the bodies of success. */
const successes = (change: (text: string) => string): Partial<Behaviour> => ({
  rewrite: (answer) => (isError(answer) ? answer : { ...answer, text: change(answer.text) }),
})
/** For a fault that lets a creation through: `body` as it was sent, with what is put in its place. */
const lenient = (put: (body: Record<string, unknown>) => Record<string, unknown>): Partial<Behaviour> => ({
  readNewPet: (body, pets) => reference.readNewPet({ ...body, ...put(body) }, pets),
})
const authorized = (isKey: (token: string) => boolean): Partial<Behaviour> => ({
  isAuthorized: ({ authorization }) => authorization.startsWith('Bearer ') && isKey(authorization.slice(7)),
})

/** Each with the numbers of the sections that have to fail. */
const faults: Record<string, [sections: string, change: Partial<Behaviour>]> = {
  'has a default limit of 50': [
    '4.1 8',
    { readLimit: (limit) => (limit === null ? 50 : reference.readLimit(limit)) },
  ],
  'has a default limit of 10': [
    '8',
    { readLimit: (limit) => (limit === null ? 10 : reference.readLimit(limit)) },
  ],
  'ignores limit': ['4.1 8', { readLimit: () => 20 }],
  'takes limit for one more than it is': [
    '4.1 8',
    {
      readLimit(limit) {
        const size = reference.readLimit(limit)
        return limit === null || size === undefined ? size : size + 1
      },
    },
  ],
  'has no maximum limit': [
    '8',
    { readLimit: (limit) => (limit === null ? 20 : Number.parseInt(limit, 10) || 20) },
  ],
  'has a maximum limit of 50': [
    '8',
    {
      readLimit(limit) {
        const size = reference.readLimit(limit)
        return size === undefined ? undefined : Math.min(size, 50)
      },
    },
  ],
  'ignores the filter': ['4.1', { filter: (pets) => pets }],
  'lists nothing for a filter': ['4.1', { filter: (pets, status) => (status === null ? pets : []) }],
  'wraps the list': ['2', successes((text) => (text.startsWith('[') ? `{"pets":${text}}` : text))],
  'answers 200 for 201': [
    '4.2',
    { rewrite: (answer) => (answer.status === 201 ? { ...answer, status: 200 } : answer) },
  ],
  'takes any token for a key': ['5', authorized((token) => token !== '')],
  'takes a key in any letter case': ['5', authorized((token) => token.toLowerCase() === key.toLowerCase())],
  'takes the beginning of a key': ['5', authorized((token) => token !== '' && key.startsWith(token))],
  'takes what begins with a key': ['5', authorized((token) => token.startsWith(key))],
  'takes a key under any scheme': [
    '5',
    { isAuthorized: ({ authorization }) => authorization.split(' ')[1] === key },
  ],
  'takes an empty token': [
    '5',
    { isAuthorized: ({ authorization }) => ['Bearer', `Bearer ${key}`].includes(authorization) },
  ],
  'asks no key for creations': [
    '5',
    { isAuthorized: (asked) => asked.method === 'POST' || reference.isAuthorized(asked, key) },
  ],
  'answers 403 to a wrong key': [
    '5',
    {
      rewrite: (answer, { authorization }) =>
        answer.status === 401 && authorization !== '' ? refuse(403) : answer,
    },
  ],
  'looks at the body before the key': [
    '5',
    {
      rewrite: (answer, { method, body }) =>
        answer.status === 401 && method === 'POST' && body === '{}' ? refuse(400) : answer,
    },
  ],
  'rounds an int64 like a double': [
    '2',
    {
      readNewPet(body, pets) {
        const pet = reference.readNewPet(body, pets)
        return pet && { ...pet, categoryId: BigInt.asIntN(64, BigInt(Number(pet.categoryId))) }
      },
    },
  ],
  'rounds an int64 in lists only': [
    '2',
    successes((text) =>
      text.startsWith('[') ? text.replaceAll('9007199254740993', '9007199254740992') : text,
    ),
  ],
  'refuses a categoryId beyond 2^53': [
    '2',
    {
      readNewPet(body, pets) {
        const pet = reference.readNewPet(body, pets)
        return pet && Number.isSafeInteger(Number(pet.categoryId)) ? pet : undefined
      },
    },
  ],
  'keeps the id from the body': [
    '2 4.2',
    {
      newId: (pets, { id }) => (isInt64(id) ? id : newFreeId(pets)),
      save(pets, pet) {
        const index = pets.findIndex(({ id }) => id === pet.id)
        pets[index === -1 ? pets.length : index] = pet
      },
    },
  ],
  'gives each id twice': ['2 3', { newId: (pets) => 1000n + BigInt(pets.length >> 1) }],
  'has string ids': ['2', successes((text) => text.replaceAll(/"id":(\d+)/g, '"id":"$1"'))],
  'has string categoryIds': [
    '2',
    successes((text) => text.replaceAll(/"categoryId":(-?\d+)/g, '"categoryId":"$1"')),
  ],
  'leaves code out of Error': ['2 7', errors((text) => text.replace(/"code":"\w+",/, ''))],
  'leaves message out of Error': ['2 7', errors((text) => text.replace(/"message":"[^"]+",/, ''))],
  'leaves status out of Error': ['2 7', errors((text) => text.replace(/,"status":\d+/, ''))],
  'has a string for the status of Error': [
    '2 7',
    errors((text) => text.replace(/"status":(\d+)/, '"status":"$1"')),
  ],
  'wraps Error': ['2 7', errors((text) => `{"error":${text}}`)],
  'has one status for all Errors': ['7', errors((text) => text.replace(/"status":\d+/, '"status":500'))],
  'sends errors as text': [
    '7',
    { rewrite: (answer) => (isError(answer) ? { ...answer, type: 'text/plain' } : answer) },
  ],
  'sends a web page for 404': [
    '7',
    {
      rewrite: (answer) =>
        answer.status === 404 ? { status: 404, type: 'text/html', text: '<h1>Not Found</h1>' } : answer,
    },
  ],
  'sends lists as text': [
    '1',
    { rewrite: (answer) => (answer.text.startsWith('[') ? { ...answer, type: 'text/plain' } : answer) },
  ],
  'answers 200 and null for an unknown id': [
    '4.3',
    { rewrite: (answer) => (answer.status === 404 ? reply(200, 'null') : answer) },
  ],
  'reads a petId up to its first letter': [
    '4.3',
    { find: (pets, petId) => reference.find(pets, String(Number.parseInt(petId, 10))) },
  ],
  'wraps a petId around at 64 bits': [
    '4.3',
    {
      find: (pets, petId) =>
        /^\d+$/.test(petId) ? reference.find(pets, String(BigInt.asIntN(64, BigInt(petId)))) : 404,
    },
  ],
  'answers 410 to the deprecated getPet': [
    '4.3 9',
    { rewrite: (answer, { path }) => (answer.status === 200 && path !== '/v1/pets' ? refuse(410) : answer) },
  ],
  'keeps no animal': [
    '4.1 4.2 4.3',
    { save: () => {}, newId: () => BigInt(`0x1${randomBytes(7).toString('hex')}`) },
  ],
  'keeps what it refuses': [
    '4.2',
    {
      readNewPet(body, pets) {
        const pet = reference.readNewPet(body, pets)
        if (pet === undefined && typeof body['name'] === 'string')
          pets.push({ id: newFreeId(pets), name: body['name'], categoryId: 1n, status: 'sold' })
        return pet
      },
    },
  ],
  'takes an animal without name': ['4.2', lenient(({ name }) => (name === undefined ? { name: '' } : {}))],
  'takes an animal without categoryId': [
    '4.2',
    lenient(({ categoryId }) => (categoryId === undefined ? { categoryId: 0n } : {})),
  ],
  'takes a categoryId in quotes': [
    '4.2',
    lenient(({ categoryId }) =>
      typeof categoryId === 'string' && categoryId !== '' ? { categoryId: BigInt(categoryId) } : {},
    ),
  ],
  'cuts a categoryId down to an integer': [
    '4.2',
    lenient(({ categoryId }) =>
      typeof categoryId === 'number' ? { categoryId: BigInt(Math.trunc(categoryId)) } : {},
    ),
  ],
  'wraps a categoryId around at 64 bits': [
    '4.2',
    lenient(({ categoryId }) =>
      typeof categoryId === 'bigint' ? { categoryId: BigInt.asIntN(64, categoryId) } : {},
    ),
  ],
  'takes any status': ['4.2', lenient(({ status }) => (isStatus(status) ? {} : { status: 'available' }))],
  'answers 422 to invalid values': [
    '4.2',
    { rewrite: (answer) => (answer.status === 400 ? refuse(422) : answer) },
  ],
  'answers 500 to malformed JSON': ['4.2', { malformed: () => refuse(500) }],
  'ignores the status that is sent': [
    '3',
    lenient(({ status }) => (isStatus(status) ? { status: 'available' } : {})),
  ],
  'gives no status by default': [
    '3',
    {
      readNewPet(body, pets) {
        const pet = reference.readNewPet(body, pets)
        if (pet !== undefined && body['status'] === undefined) delete pet.status
        return pet
      },
    },
  ],
  'drops the connection at malformed JSON': ['4.2 7', { malformed: () => reply(0, '') }],
}

/**
 * Each fills a gap of the interface in its own way, and keeps every sentence of it. Those of a group change different places, so
 * that one server has them all.
 */
const variants: Record<string, Partial<Behaviour>>[] = [
  {
    'clamps limit': {
      readLimit: (limit) =>
        limit === null ? 20 : Math.min(Math.max(Number.parseInt(limit, 10) || 20, 1), 100),
    },
    'lists the newest first': { filter: (pets, status) => reference.filter(pets, status)?.toReversed() },
    'has the default status pending': lenient(({ status }) =>
      status === undefined ? { status: 'pending' } : {},
    ),
    'answers 400 to a petId that is no integer': {
      find: (pets, petId) => (/^\d+$/.test(petId) ? reference.find(pets, petId) : 400),
    },
    'answers 405 to other operations': { other: () => refuse(405) },
    'names the charset': { rewrite: (answer) => ({ ...answer, type: 'Application/JSON; charset=utf-8' }) },
  },
  {
    'returns no animal for limit=0': {
      readLimit: (limit) => (limit === '0' ? 0 : reference.readLimit(limit)),
    },
    'ignores an unknown status filter': { filter: (pets, status) => reference.filter(pets, status) ?? pets },
    'refuses unknown members': {
      readNewPet: (body, pets) =>
        Object.keys(body).every(isMember) ? reference.readNewPet(body, pets) : undefined,
    },
    'has ids beyond 2^53': { newId: (pets) => 9_007_199_254_740_993n + BigInt(pets.length) },
    'answers 501 without an Error body to other operations': {
      other: () => ({ status: 501, type: 'text/plain', text: 'No.' }),
    },
    'adds members of its own': {
      rewrite: (answer) => ({
        ...answer,
        text: answer.text.replaceAll('{"', '{"more":{"a":[1.5e3,"\\"7"]},"'),
      }),
    },
  },
  {
    'finds no animal of an unknown status': {
      filter: (pets, status) => reference.filter(pets, status) ?? [],
    },
    'refuses unusual names, and a name twice': {
      readNewPet(body, pets) {
        const name = String(body['name'])
        const isGood = /^[A-Za-z]{1,20}$/.test(name) && pets.every((pet) => pet.name !== name)
        return isGood ? reference.readNewPet(body, pets) : undefined
      },
    },
    'has ids in no order': { newId: () => BigInt(`0x1${randomBytes(7).toString('hex')}`) },
    'sends JSON with spaces and line breaks': {
      rewrite: (answer) => ({ ...answer, text: answer.text.replaceAll(/(?<=[{,[])(?=["{])/g, '\r\n\t ') }),
    },
  },
]
const allSections = '1 2 3 4.1 4.2 4.3 4.4 5 7 8 9'

function createPets(count: number): Pet[] {
  const states = ['available', 'pending', 'sold']
  return Array.from({ length: count }, (_, index) => ({
    id: BigInt(index + 1),
    name: `Old ${index}`,
    categoryId: 1n,
    status: states[index % 3] ?? 'sold',
  }))
}

function isMember(name: string): boolean {
  return ['name', 'categoryId', 'status'].includes(name)
}

function newFreeId(pets: Pet[]): bigint {
  return pets.reduce((highest, { id }) => (id > highest ? id : highest), 0n) + 1n
}

interface Verdict {
  exitCode: number | string | null | undefined
  /** The numbers of the sections, separated by spaces. */
  failed: string
  passed: string
  output: string
}

describe('the contract suite', { concurrency: availableParallelism() }, () => {
  let folder: string
  let suite: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'petstore-contract-'))
    suite = join(folder, 'contract.test.js')
    await build({
      entryPoints: [join(import.meta.dirname, 'contract.test.ts')],
      outfile: suite,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      target: 'node20',
      // With an address, the suite has no use for this project's own server.
      external: ['../src/index.ts'],
    })
  })
  after(() => rm(folder, { recursive: true }))

  function verify(env: Record<string, string>, flags: string[] = []): Promise<Verdict> {
    const { NODE_TEST_CONTEXT: _, PETSTORE_URL: __, PETSTORE_API_KEY: ___, ...inherited } = process.env
    return new Promise((resolve) => {
      execFile(
        process.execPath,
        [...flags, '--test-reporter=tap', suite],
        { env: { ...inherited, ...env } },
        (error, stdout, stderr) => resolve(readVerdict(error === null ? 0 : error.code, stdout + stderr)),
      )
    })
  }

  async function verifyServer(change: Partial<Behaviour>): Promise<Verdict> {
    const server = await startServer(key, change, createPets(102))
    try {
      return await verify({ PETSTORE_URL: server.url, PETSTORE_API_KEY: key })
    } finally {
      await server.close()
    }
  }

  for (const [fault, [sections, change]] of Object.entries(faults))
    test(`fails in section ${sections.replaceAll(' ', ', ')} when the server ${fault}`, async () => {
      const { exitCode, failed, passed, output } = await verifyServer(change)
      assert.equal(failed, sections, output)
      assert.equal(
        passed,
        allSections
          .split(' ')
          .filter((number) => !sections.split(' ').includes(number))
          .join(' '),
      )
      assert.equal(exitCode, 1)
      assert.match(output, /sent: .*\n *expected: .*\n *received: /)
      assert.ok(!output.includes(key), 'the key is printed')
    })

  for (const group of variants)
    test(`passes when the server ${Object.keys(group).join(', ')}`, async () => {
      const changes = Object.values(group)
      const change: Partial<Behaviour> = Object.assign({}, ...changes)
      const places = changes.flatMap((each) => Object.keys(each))
      assert.deepEqual(Object.keys(change), places, 'two of the group change the same place')
      expectPass(await verifyServer(change))
    })

  test('passes twice in a row on an empty store, with at least 60 cases', async (t) => {
    const server = await startServer(key)
    t.after(() => server.close())
    const env = { PETSTORE_URL: `${server.url}/`, PETSTORE_API_KEY: key }
    const first = await verify(env, ['--test'])
    expectPass(first)
    expectPass(await verify(env, ['--test']))
    assert.ok(Number(/^# pass (\d+)/m.exec(first.output)?.[1]) >= 60, first.output)
  })

  test('passes on a store of 1,000 animals', async (t) => {
    const server = await startServer(key, {}, createPets(1000))
    t.after(() => server.close())
    expectPass(await verify({ PETSTORE_URL: server.url, PETSTORE_API_KEY: key }))
  })

  test('appends /v1 to an address without it', async (t) => {
    const server = await startServer(key)
    t.after(() => server.close())
    expectPass(await verify({ PETSTORE_URL: new URL(server.url).origin, PETSTORE_API_KEY: key }))
  })

  test('has the server delete what it added, when the server can', async (t) => {
    const pets = createPets(1)
    const other: Behaviour['other'] = (_pets, { method, path }) => {
      const index = pets.findIndex(({ id }) => path === `/v1/pets/${id}`)
      if (method !== 'DELETE' || index === -1) return refuse(404)
      pets.splice(index, 1)
      return reply(204, '')
    }
    const server = await startServer(key, { other }, pets)
    t.after(() => server.close())
    expectPass(await verify({ PETSTORE_URL: server.url, PETSTORE_API_KEY: key }))
    assert.deepEqual(pets, createPets(1))
  })

  test('says once that the server is gone when it dies under a request', async (t) => {
    const server = await startServer(key, {
      malformed() {
        void server.close()
        return reply(0, '')
      },
    })
    t.after(() => server.close())
    const { exitCode, output } = await verify({ PETSTORE_URL: server.url, PETSTORE_API_KEY: key })
    assert.equal(exitCode, 1)
    assert.equal(output.match(/it may have crashed on this request/g)?.length, 1, output)
    assert.equal(output.match(/connection refused/g)?.length, 1, output)
  })

  const setups: Record<string, [env: Record<string, string>, words: RegExp]> = {
    'the address without the key': [{ PETSTORE_URL: 'http://127.0.0.1:1/v1' }, /PETSTORE_API_KEY is not/],
    'the key without the address': [{ PETSTORE_API_KEY: key }, /PETSTORE_URL is not/],
    'an address that is none': [
      { PETSTORE_URL: '127.0.0.1:1', PETSTORE_API_KEY: key },
      /is no address like http/,
    ],
    'a key with a space in it': [
      { PETSTORE_URL: 'http://127.0.0.1:1', PETSTORE_API_KEY: 'a b' },
      /no bearer key has/,
    ],
    'an address where nothing listens': [
      { PETSTORE_URL: 'http://127.0.0.1:1/v1', PETSTORE_API_KEY: key },
      /http:\/\/127\.0\.0\.1:1\/v1 gives no answer.*connection refused/,
    ],
  }
  for (const [setup, [env, words]] of Object.entries(setups))
    test(`says in one sentence what is wrong, given ${setup}`, async () => {
      expectOneFailure(await verify(env), words)
    })

  test('says in one sentence that the server does not know the key', async (t) => {
    const server = await startServer('another-key')
    t.after(() => server.close())
    expectOneFailure(await verify({ PETSTORE_URL: server.url, PETSTORE_API_KEY: key }), /refuses the key/)
  })
})

/** Only the titles of sections begin with a number. */
function readVerdict(exitCode: Verdict['exitCode'], output: string): Verdict {
  const results = [...output.matchAll(/^ *(not ok|ok) \d+ - (\d[\d.]*) /gm)]
  const select = (wanted: string) =>
    results
      .flatMap(([, result, number]) => (result === wanted && number !== undefined ? [number] : []))
      .toSorted()
      .join(' ')
  return { exitCode, failed: select('not ok'), passed: select('ok'), output }
}

function expectPass({ exitCode, failed, passed, output }: Verdict): void {
  assert.equal(failed, '', output)
  assert.equal(passed, allSections, output)
  assert.equal(exitCode, 0)
}

function expectOneFailure({ exitCode, output }: Verdict, words: RegExp): void {
  assert.match(output, words)
  assert.match(output, /^# tests 1$/m)
  assert.match(output, /^# fail 1$/m)
  assert.doesNotMatch(output, /^ *at /m, 'a stack is printed')
  assert.equal(exitCode, 1)
}

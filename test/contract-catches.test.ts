/**
 * Proves that the contract suite catches what is wrong: against each server that breaks the interface in one place, the sections
 * that this place belongs to fail and no others; against each server that fills the interface's gaps in another way, all pass.
 *
 * Its cases run in this process, against servers in this process. Then the built file runs as users run it: alone, by
 * `node --test`, with `PETSTORE_URL` and `PETSTORE_API_KEY`.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { defineCases } from './contract-cases.ts'
import { type Client, createClient, createHttpTransport, LateError } from './contract-client.ts'
import { isStatus, statuses } from './contract-expect.ts'
import { isInt64 } from './contract-json.ts'
import { openTarget } from './contract-target.ts'
import type { Runner } from './contract-verdict.ts'
import { buildOnce } from './built.ts'
import { cleanEnvironment } from './support.ts'
import {
  type Behaviour,
  createStore,
  type Operate,
  parseRequest,
  type Pet,
  reference,
  refuse,
  reply,
  type Reply,
  startServer,
} from './wrong-server.ts'

const suite = join(buildOnce(), 'contract.test.js')
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
    'answers 422 to a petId that is no integer': {
      find: (pets, petId) => (/^\d+$/.test(petId) ? reference.find(pets, petId) : 422),
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
const allSections = '1 2 3 4.1 4.2 4.3 4.4 5 7 8 9 All sections'

function createPets(count: number): Pet[] {
  return Array.from({ length: count }, (_, index) => ({
    id: BigInt(index + 1),
    name: `Old ${index}`,
    categoryId: 1n,
    status: statuses[index % statuses.length] ?? '',
  }))
}

function isMember(name: string): boolean {
  return ['name', 'categoryId', 'status'].includes(name)
}

function newFreeId(pets: Pet[]): bigint {
  return pets.reduce((highest, { id }) => (id > highest ? id : highest), 0n) + 1n
}

interface Outcome {
  /** The numbers of the sections, separated by spaces. */
  readonly passed: string
  readonly failed: string
  /** What each failed case says. */
  readonly words: readonly string[]
  readonly skipped: readonly string[]
  readonly summary: string
  readonly caseCount: number
}

/** Runs the cases in this process, one after the other. */
async function verify(client: Client): Promise<Outcome> {
  const cases: { readonly section: string; readonly run: Parameters<Runner['test']>[1] }[] = []
  const titles: string[] = []
  const { cleanUp, summarize } = defineCases(client, {
    describe(title, define) {
      titles.push(title)
      define()
      titles.pop()
    },
    test: (_title, run) => cases.push({ section: titles[0] ?? '', run }),
  })
  const failed = new Set<string>()
  const words: string[] = []
  const skipped: string[] = []
  for (const { section, run } of cases) {
    try {
      await run({ skip: (reason) => skipped.push(reason) })
    } catch (error) {
      failed.add(section)
      words.push(String(error))
    }
  }
  await cleanUp()
  const all = new Set(cases.map(({ section }) => section))
  return {
    passed: formatNumbers([...all].filter((section) => !failed.has(section))),
    failed: formatNumbers(failed),
    words,
    skipped,
    summary: summarize() ?? '',
    caseCount: cases.length,
  }
}

/** Of "4.1 List animals" the 4.1; of a section without a number, its title. */
function formatNumbers(sections: Iterable<string>): string {
  const numbers = Array.from(sections, (section) => /^\d[\d.]*/.exec(section)?.[0] ?? section)
  return numbers.toSorted().join(' ')
}

/** Runs the cases against a store that is called directly: HTTP itself is not what breaks in it. */
function verifyStore(change: Partial<Behaviour>, pets = createPets(102)): Promise<Outcome> {
  return verify(connect(createStore(key, change, pets)))
}

function connect(store: Operate): Client {
  return createClient('http://store/v1', key, async ({ method, address, headers, body = '' }) => {
    // A header's value loses the spaces around it on its way (RFC 9110 5.5).
    const authorization = (headers['Authorization'] ?? '').trim()
    const { status, type, text } = store(parseRequest(method, address, authorization, body))
    if (status === 0) throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    if (status === -1) throw new LateError(10_000)
    return { status, phrase: STATUS_CODES[status] ?? '', contentType: type, text }
  })
}

function expectPass({ passed, failed, words }: Outcome): void {
  assert.equal(failed, '', words.join('\n'))
  assert.equal(passed, allSections)
}

describe('the contract suite', () => {
  for (const [fault, [sections, change]] of Object.entries(faults))
    test(`fails in section ${sections.replaceAll(' ', ', ')} when the server ${fault}`, async () => {
      const { passed, failed, words } = await verifyStore(change)
      assert.equal(failed, sections, words.join('\n'))
      const failing = sections.split(' ')
      assert.equal(
        passed,
        allSections
          .split(' ')
          .filter((section) => !failing.includes(section))
          .join(' '),
      )
      for (const text of words) {
        assert.match(text, /sent: .*\n *expected: .*\n *received: /)
        assert.ok(!text.includes(key), 'the key is printed')
      }
    })

  for (const group of variants)
    test(`passes when the server ${Object.keys(group).join(', ')}`, async () => {
      const changes = Object.values(group)
      const change: Partial<Behaviour> = Object.assign({}, ...changes)
      const places = changes.flatMap((each) => Object.keys(each))
      assert.deepEqual(Object.keys(change), places, 'two of the group change the same place')
      expectPass(await verifyStore(change))
    })

  test('passes twice in a row on an empty store, with at least 60 cases', async () => {
    const store = createStore(key)
    const first = await verify(connect(store))
    expectPass(first)
    assert.ok(first.caseCount >= 60)
    expectPass(await verify(connect(store)))
  })

  test('passes on a store of 1,000 animals', async () => {
    expectPass(await verifyStore({}, createPets(1000)))
  })

  test('has the server delete what it added, when the server can', async () => {
    const pets = createPets(1)
    const other: Behaviour['other'] = (_pets, { method, path }) => {
      const index = pets.findIndex(({ id }) => path === `/v1/pets/${id}`)
      if (method !== 'DELETE' || index === -1) return refuse(404)
      pets.splice(index, 1)
      return reply(204, '')
    }
    expectPass(await verifyStore({ other }, pets))
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
    const { words, skipped } = await verify(createClient(server.url, key))
    const text = words.join('\n')
    assert.equal(text.match(/it may have crashed on this request/g)?.length, 1, text)
    assert.equal(text.match(/connection refused/g)?.length, 1, text)
    assert.ok(skipped.filter((reason) => reason === 'the server is gone').length > 20)
  })
})

describe('a server that does not respond', () => {
  test('costs two time limits when it hangs for good: the rest is skipped, and said in a sentence', async () => {
    const store = createStore(key, {}, createPets(102))
    let hungCount = 0
    const { words, skipped, summary } = await verify(
      connect((asked) => {
        if (hungCount === 0 && asked.body !== 'null') return store(asked)
        hungCount += 1
        return reply(-1, '')
      }),
    )
    assert.equal(hungCount, 2)
    const sentence =
      'The server no longer responds (not within 10 seconds), so the cases that follow are skipped.'
    assert.equal(words.length, 1, words.join('\n'))
    assert.ok(words[0]?.endsWith(sentence), words[0])
    assert.ok(skipped.filter((reason) => reason === 'the server is gone').length > 50)
    assert.ok(summary.includes(sentence), summary)
  })

  test('costs two time limits a section when it hangs at malformed JSON only, and other sections are judged', async () => {
    let hungCount = 0
    const { failed, skipped } = await verifyStore({
      malformed() {
        hungCount += 1
        return reply(-1, '')
      },
    })
    assert.equal(failed, '4.2 7')
    assert.equal(hungCount, 4)
    assert.ok(skipped.length > 20)
    assert.ok(skipped.every((reason) => reason.startsWith('the server left two requests in a row')))
  })

  test('is given up after a time limit that HTTP is held to', async (t) => {
    const server = await startServer(key, { rewrite: () => reply(-1, '') })
    t.after(() => server.close())
    const client = createClient(server.url, key, createHttpTransport(50))
    await assert.rejects(client.list(), { isLate: true, reason: 'not within 0.05 seconds' })
  })
})

describe('the summary', () => {
  test('names each cause once, with its sections, the number of failures and one of them, the most frequent first', async () => {
    const together = ['takes any token for a key', 'has a default limit of 50', 'leaves code out of Error']
    const changes = together.map((fault) => faults[fault]?.[1])
    const { words, summary } = await verifyStore(Object.assign({}, ...changes))
    const [head = '', ...lines] = summary.split('\n')
    assert.equal(head, `Fix these first: ${words.length} failures, 4 causes.`)
    const causes = lines.flatMap(
      (line) => /^\d\. (.+): (\d+) failures?, such as "/.exec(line)?.slice(1) ?? [],
    )
    assert.deepEqual(causes, [
      '5 Keys',
      '12',
      '2 Data, 7 Errors',
      '8',
      '4.1 List animals',
      '4',
      '8 Limits',
      '1',
    ])
    assert.match(
      summary,
      /^3\. [^]*?\n {2}sent: {5}GET \S+, with the key\n {2}expected: at most 20 animals\n {2}received: 50 animals$/m,
    )
    assert.ok(lines.every((line) => line.length <= 200))
  })

  test('names a missing operation once and first, whatever was expected of it, with its body on one line', async () => {
    const { summary } = await verifyStore({
      rewrite: (answer, { method }) =>
        method === 'POST' ? { status: 501, type: 'text/html', text: '<html>\n  <p>Not yet' } : answer,
    })
    const [head = '', first = '', ...lines] = summary.split('\n')
    // The other one is that this refusal has no Error body.
    assert.match(head, /, 2 causes\.$/)
    assert.match(first, /^1\. .*4\.2 Add an animal.*: \d\d failures, such as "/)
    assert.ok(lines.includes('  received: 501 Not Implemented, text/html, <html> <p>Not yet'), summary)
  })

  test('is left out when there is one failure, or none', async () => {
    const [, change = assert.fail()] = faults['has a default limit of 10'] ?? []
    for (const each of [change, {}]) assert.equal((await verifyStore(each)).summary, '')
  })
})

describe('the server to verify', () => {
  const setups: Record<string, [env: Record<string, string>, words: RegExp]> = {
    'the address without the key': [{ PETSTORE_URL: 'http://127.0.0.1:1/v1' }, /PETSTORE_API_KEY is not/],
    'the key without the address': [{ PETSTORE_API_KEY: key }, /PETSTORE_URL is not/],
    'an address that is none': [
      { PETSTORE_URL: '127.0.0.1:1', PETSTORE_API_KEY: key },
      /is not an address such as http/,
    ],
    'a key with a space in it': [
      { PETSTORE_URL: 'http://127.0.0.1:1', PETSTORE_API_KEY: 'a b' },
      /a bearer key cannot have/,
    ],
    'an address where nothing listens': [
      { PETSTORE_URL: 'http://127.0.0.1:1/v1', PETSTORE_API_KEY: key },
      /http:\/\/127\.0\.0\.1:1\/v1 does not respond.*connection refused/,
    ],
  }
  for (const [setup, [env, words]] of Object.entries(setups))
    test(`is refused in one sentence, given ${setup}`, async () => {
      await assert.rejects(openTarget(env), { message: words })
    })

  test('is refused in one sentence when it does not know the key', async (t) => {
    const server = await startServer('another-key')
    t.after(() => server.close())
    const env = { PETSTORE_URL: server.url, PETSTORE_API_KEY: key }
    await assert.rejects(openTarget(env), { message: /refuses the key/ })
  })

  for (const end of ['', '/', '/v1', '/v1/'])
    test(`is found at an address that ends in "${end}"`, async (t) => {
      const server = await startServer(key)
      t.after(() => server.close())
      const address = new URL(server.url).origin + end
      const target = await openTarget({ PETSTORE_URL: address, PETSTORE_API_KEY: key })
      assert.equal(target.base, server.url)
    })
})

describe('the built file', () => {
  test('passes against a right server, fails against a wrong one, and says in one sentence that there is none', async (t) => {
    const right = await startServer(key)
    t.after(() => right.close())
    const wrong = await startServer(key, { readLimit: () => 50 })
    t.after(() => wrong.close())

    const passing = await runSuite(right.url)
    assert.equal(passing.exitCode, 0, passing.output)
    assert.ok(passing.output.startsWith(`TAP version 13\n# Verifying ${right.url}\n`), passing.output)
    assert.match(passing.output, /^# fail 0$/m)
    assert.ok(Number(/^# pass (\d+)/m.exec(passing.output)?.[1]) >= 60, passing.output)

    const failing = await runSuite(wrong.url)
    assert.equal(failing.exitCode, 1)
    const failed = [...failing.output.matchAll(/^ *not ok \d+ - (\d[\d.]*) /gm)].map(([, number]) => number)
    assert.deepEqual(failed, ['4.1', '8'])
    assert.match(failing.output, /sent: .*\n *expected: .*\n *received: /)
    assert.match(
      failing.output,
      /^ *not ok \d+ - Summary: there is nothing to fix\n[^]*Fix these first: \d+ failures, 2 causes\./m,
    )
    assert.ok(!failing.output.includes(key), 'the key is printed')
    assert.doesNotMatch(failing.output, /^ *at /m, 'a stack is printed')

    const none = await runSuite('http://127.0.0.1:1')
    assert.equal(none.exitCode, 1)
    assert.match(none.output, /does not respond/)
    assert.match(none.output, /^# tests 1$/m)
    assert.match(none.output, /^# fail 1$/m)
    assert.doesNotMatch(none.output, /^ *at /m, 'a stack is printed')
  })

  test('says first that it verifies the bundled service when no other is named, and how to name one', async () => {
    const { exitCode, output } = await runSuite()
    assert.equal(exitCode, 0, output)
    assert.match(
      output,
      /^TAP version 13\n# Verifying the bundled service at http:\S+\/v1, since PETSTORE_URL is not set\. To verify yours, set PETSTORE_URL and PETSTORE_API_KEY\.\n/,
    )
  })
})

/** Runs the built suite as users do, in a process of its own. */
function runSuite(address?: string): Promise<{ exitCode: unknown; output: string }> {
  const named = address !== undefined && { PETSTORE_URL: address, PETSTORE_API_KEY: key }
  const env = { ...cleanEnvironment(), ...named }
  return new Promise((resolve) => {
    execFile(process.execPath, ['--test', '--test-reporter=tap', suite], { env }, (error, stdout, stderr) =>
      resolve({ exitCode: error === null ? 0 : error.code, output: stdout + stderr }),
    )
  })
}

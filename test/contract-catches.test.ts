/**
 * Proves that the contract suite catches what is wrong: against each server that breaks the interface in one place, the sections
 * that this place belongs to fail and no others; against each server that fills the interface's gaps in another way, all pass.
 *
 * Its cases run in this process, against servers in this process. Then the built file runs as users run it: alone, by the program,
 * and as a test, with `PETSTORE_URL` and `PETSTORE_API_KEY`.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import {
  type AddressInfo,
  connect as connectSocket,
  createServer as createProxy,
  type Server,
} from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { createSuite } from './contract-cases.ts'
import { type Client, createClient } from './contract-client.ts'
import { isStatus, statuses } from './contract-expect.ts'
import { isInt64 } from './contract-json.ts'
import { openTarget } from './contract-target.ts'
import { createHttpTransport } from './contract-wire.ts'
import { buildOnce } from './built.ts'
import { cleanEnvironment, isThorough, share } from './support.ts'
import {
  type Asked,
  type Behaviour,
  connect,
  createStore,
  type Pet,
  reference,
  refuse,
  reply,
  type Reply,
  startServer,
} from './wrong-server.ts'

const suite = join(buildOnce(), 'contract.test.js')
const key = 'Workshop-key-1'
/** Over HTTP, the quick run tries the basic cases alone: what the others say is tried without it. */
const isShort = !isThorough
const basics = isShort ? ['--basics'] : []
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
/** For a fault that changes names. */
const rename = (change: (name: string) => string): Partial<Behaviour> => ({
  readNewPet(body, pets) {
    const pet = reference.readNewPet(body, pets)
    return pet && { ...pet, name: change(pet.name) }
  },
})
/** For a fault that ends the connection without a response. */
const dropping = (isDropped: (asked: Asked) => boolean): Partial<Behaviour> => ({
  rewrite: (answer, asked) => (isDropped(asked) ? reply(0, '') : answer),
})
const authorized = (isKey: (token: string) => boolean): Partial<Behaviour> => ({
  isAuthorized: ({ authorization }) => authorization.startsWith('Bearer ') && isKey(authorization.slice(7)),
})

/** Each with the numbers of the sections that have to fail. */
const faults: Record<string, [sections: string, change: Partial<Behaviour>]> = {
  'has a default limit of 50': [
    '4.1',
    { readLimit: (limit) => (limit === null ? 50 : reference.readLimit(limit)) },
  ],
  'has a default limit of 10': [
    '8',
    { readLimit: (limit) => (limit === null ? 10 : reference.readLimit(limit)) },
  ],
  'ignores limit': ['4.1 8', { readLimit: () => 20 }],
  'takes limit for one more than it is': [
    '4.1',
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
    '2',
    {
      newId: (pets, { id }) => (isInt64(id) ? id : newFreeId(pets)),
      save(pets, pet) {
        const index = pets.findIndex(({ id }) => id === pet.id)
        pets[index === -1 ? pets.length : index] = pet
      },
    },
  ],
  'gives each id twice': ['2', { newId: (pets) => 1_000_000n + BigInt(pets.length >> 1) }],
  'has string ids': ['2', successes((text) => text.replaceAll(/"id":(\d+)/g, '"id":"$1"'))],
  'has string categoryIds': [
    '2',
    successes((text) => text.replaceAll(/"categoryId":(-?\d+)/g, '"categoryId":"$1"')),
  ],
  'leaves code out of Error': ['7', errors((text) => text.replace(/"code":"\w+",/, ''))],
  'leaves message out of Error': ['7', errors((text) => text.replace(/"message":"[^"]+",/, ''))],
  'leaves status out of Error': ['7', errors((text) => text.replace(/,"status":\d+/, ''))],
  'has a string for the status of Error': [
    '7',
    errors((text) => text.replace(/"status":(\d+)/, '"status":"$1"')),
  ],
  'wraps Error': ['7', errors((text) => `{"error":${text}}`)],
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
  'wraps a petId around at 32 bits': [
    '4.3',
    {
      find: (pets, petId) =>
        /^\d{1,18}$/.test(petId) ? reference.find(pets, String(BigInt.asIntN(32, BigInt(petId)))) : 404,
    },
  ],
  'answers 410 to the deprecated getPet': [
    '4.3 9',
    { rewrite: (answer, { path }) => (answer.status === 200 && path !== '/v1/pets' ? refuse(410) : answer) },
  ],
  'keeps no pet': ['4.2', { save: () => {}, newId: () => BigInt(`0x1${randomBytes(7).toString('hex')}`) }],
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
  'takes a pet without name': ['4.2', lenient(({ name }) => (name === undefined ? { name: '' } : {}))],
  'takes a pet without categoryId': [
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
  'stores what it refuses for its key': [
    '5',
    {
      refuseKey(pets, { method, body }) {
        const [, name = ''] = /"name":"(\w+)"/.exec(body) ?? []
        if (method === 'POST') pets.push({ id: newFreeId(pets), name, categoryId: 1n, status: 'available' })
        return refuse(401)
      },
    },
  ],
  'stores before it validates': [
    '4.2',
    {
      readNewPet(body, pets) {
        const { name = null, categoryId, status = 'available' } = body
        const pet = reference.readNewPet(body, pets)
        // What does not fit is stored as it came, as JavaScript does it.
        if (pet === undefined) {
          const rest = JSON.stringify([name, status], (_, value: unknown) =>
            typeof value === 'bigint' ? Number(value) : value,
          )
          const [storedName, storedStatus] = JSON.parse(rest)
          pets.push({
            id: newFreeId(pets),
            name: storedName,
            categoryId: isInt64(categoryId) ? categoryId : 0n,
            status: storedStatus,
          })
        }
        return pet
      },
    },
  ],
  'stores what it refuses without an id': [
    '4.2',
    {
      readNewPet(body, pets) {
        const pet = reference.readNewPet(body, pets)
        const { name } = body
        if (pet === undefined && typeof name === 'string')
          pets.splice(-1, 0, { id: -1n, name, categoryId: 1n, status: 'sold' })
        return pet
      },
    },
  ],
  'stores each pet twice, with two ids': [
    '4.2',
    {
      save(pets, pet) {
        pets.push(pet, { ...pet, id: pet.id + 1n })
      },
    },
  ],
  'stores each pet twice, with one id': ['2', { save: (pets, pet) => void pets.push(pet, pet) }],
  'assigns the status of the filter': [
    '4.1',
    {
      filter(pets, status) {
        if (isStatus(status)) for (const pet of pets) pet.status = status
        return reference.filter(pets, status)
      },
    },
  ],
  'assigns the status of the filter to what it lists': [
    '4.1',
    {
      filter(pets, status) {
        if (!isStatus(status)) return reference.filter(pets, status)
        const listed = pets.slice(0, 100)
        for (const pet of listed) pet.status = status
        return listed
      },
    },
  ],
  'lists available pets when there is no filter': [
    '4.1',
    { filter: (pets, status) => reference.filter(pets, status ?? 'available') },
  ],
  'keeps its first list without a filter': ['4.1 8', { keepsList: (query) => !query.has('status') }],
  'keeps its first list for each address': ['4.1 8', { keepsList: () => true }],
  'trims names': ['2', rename((name) => name.trim())],
  'makes names small': ['1 2 4.2', rename((name) => name.toLowerCase())],
  'makes names of capitalized words': [
    '2',
    rename((name) =>
      name.replaceAll(/\w+/g, (word) => (word[0] ?? '').toUpperCase() + word.slice(1).toLowerCase()),
    ),
  ],
  'makes several blanks one': ['2', rename((name) => name.replaceAll(/ +/g, ' '))],
  'makes each blank a space': ['2', rename((name) => name.replaceAll(/\s/g, ' '))],
  'escapes HTML in names': ['2', rename((name) => name.replaceAll('<', '&lt;'))],
  'composes the letters of names': ['2', rename((name) => name.normalize('NFC'))],
  'sends a web page for an unknown path': [
    '7',
    { other: () => ({ status: 404, type: 'text/html', text: '<h1>Not Found</h1>' }) },
  ],
  'sends JSON of another shape for an unknown path': [
    '7',
    { other: () => reply(404, '{"error":"Not Found"}') },
  ],
  'drops the connection at a creation without a body and Content-Length': [
    '4.2',
    dropping(
      ({ method, headers }) => method === 'POST' && !('Content-Type' in headers || 'content-type' in headers),
    ),
  ],
  'drops the connection at a body in chunks': ['4.2', dropping(({ delivery }) => delivery === 'chunks')],
  'reads the first packet of a body alone': [
    '4.2',
    { rewrite: (answer, { delivery }) => (delivery === 'pieces' ? refuse(400) : answer) },
  ],
  'does not know content-length in small letters': [
    '4.2',
    { rewrite: (answer, { headers }) => (headers['content-length'] === undefined ? answer : refuse(400)) },
  ],
  'sends null for an empty list': [
    '4.1',
    { rewrite: (answer) => (answer.text === '[]' ? { ...answer, text: 'null' } : answer) },
  ],
  'sends 404 for an empty list': [
    '4.1',
    { rewrite: (answer) => (answer.text === '[]' ? refuse(404) : answer) },
  ],
  'sends 204 for an empty list': [
    '4.1',
    { rewrite: (answer) => (answer.text === '[]' ? { ...answer, status: 204, text: '' } : answer) },
  ],
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
    'returns no pet for limit=0': {
      readLimit: (limit) => (limit === '0' ? 0 : reference.readLimit(limit)),
    },
    'ignores an unknown status filter': { filter: (pets, status) => reference.filter(pets, status) ?? pets },
    'refuses unknown members': {
      readNewPet: (body, pets) =>
        Object.keys(body).every(isMember) ? reference.readNewPet(body, pets) : undefined,
    },
    'has ids beyond 2^53': { newId: (pets) => 9_007_199_254_740_993n + BigInt(pets.length) },
    'answers 501 without an Error body to what the interface leaves open': {
      other: (_pets, { method, path }) =>
        method !== 'GET' || path === '/v1/store/orders'
          ? { status: 501, type: 'text/plain', text: 'No.' }
          : refuse(404),
    },
    'adds members of its own': {
      rewrite: (answer) => ({
        ...answer,
        text: answer.text.replaceAll('{"', '{"more":{"a":[1.5e3,"\\"7"]},"'),
      }),
    },
  },
  {
    'finds no pet of an unknown status': {
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

/** If there are 102, the suite has to add none to see a full page. */
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

/** `open`: it was not tried, or cannot be judged. */
interface Result {
  readonly title: string
  readonly state: 'passed' | 'failed' | 'open'
}

interface Outcome {
  /** The numbers of the sections, separated by spaces. */
  readonly passed: string
  readonly failed: string
  /** What each failed case says. */
  readonly words: readonly string[]
  /** Why cases were not tried, or not judged. */
  readonly skipped: readonly string[]
  /** What became of each case, in their order. */
  readonly results: readonly Result[]
  readonly isGood: boolean
  readonly summary: string
  readonly caseCount: number
}

/** Runs the cases in this process, one after the other. */
async function verify(client: Client, { isPatient = true, isBasic = false } = {}): Promise<Outcome> {
  const { cases, cleanUp, conclude } = createSuite(client, { isPatient, isBasic })
  const failed = new Set<string>()
  const words: string[] = []
  const skipped: string[] = []
  const results: Result[] = []
  for (const { section, title, run } of cases) {
    try {
      const reason = await run()
      if (reason !== undefined) skipped.push(reason)
      results.push({ title, state: reason === undefined ? 'passed' : 'open' })
    } catch (error) {
      results.push({ title, state: 'failed' })
      failed.add(section)
      words.push(String(error))
    }
  }
  await cleanUp()
  const all = new Set(cases.map(({ section }) => section))
  const { exitCode, text } = conclude()
  return {
    passed: formatNumbers([...all].filter((section) => !failed.has(section))),
    failed: formatNumbers(failed),
    words,
    skipped,
    results,
    isGood: exitCode === 0,
    summary: text,
    caseCount: cases.length,
  }
}

/** Of "4.1 List pets" the 4.1. */
function formatNumbers(sections: Iterable<string>): string {
  return Array.from(sections, (section) => section.split(' ', 1)[0])
    .toSorted()
    .join(' ')
}

function verifyStore(change: Partial<Behaviour>, pets: Pet[] = []): Promise<Outcome> {
  return verify(connect(key, createStore(key, change, pets)))
}

function expectPass({ passed, failed, words, isGood, summary }: Outcome): void {
  assert.equal(failed, '', words.join('\n'))
  assert.equal(passed, allSections)
  assert.ok(isGood, summary)
}

describe('the contract suite', () => {
  for (const [fault, [sections, change]] of share(Object.entries(faults), 8))
    test(`fails in section ${sections.replaceAll(' ', ', ')} when the server ${fault}`, async () => {
      const { passed, failed, words, isGood, summary } = await verifyStore(change)
      assert.equal(failed, sections, words.join('\n'))
      assert.equal(isGood, false)
      // What could not be judged is explained by these failures.
      assert.ok(summary.includes(` ${words.length} failed (`), summary)
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

  test('passes on an empty store, with at least 60 cases', async () => {
    const outcome = await verifyStore({})
    expectPass(outcome)
    assert.ok(outcome.caseCount >= 60)
  })

  test('fails over HTTP, too, when the server reads the first packet of a body alone', async (t) => {
    // On an Ethernet, a packet has 1460 bytes of it. Here, two may come at once when the machine is busy.
    const server = await startServer(key, {
      readBody: ([first]) => first?.subarray(0, 1460) ?? Buffer.alloc(0),
    })
    t.after(() => server.close())
    const { cases, conclude } = createSuite(createClient(server.url, key), {
      isPatient: true,
      isBasic: false,
    })
    for (const { title, run } of cases)
      if (title === 'answers 201' || title.includes('several packets')) await run().catch(() => {})
    assertCauses(conclude().text, [
      /^4\.2 Add a pet \| POST .* in three pieces, .* \| success: the body is as long as Content-Length says \| 400 /,
    ])
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
    const { words, skipped, summary } = await verify(createClient(server.url, key), { isBasic: isShort })
    assert.equal(words.length, 1, words.join('\n'))
    assert.match(
      summary,
      /^1\. .*\n.*\n.*\n.* your server ended while it handled POST \/pets: read its window$/m,
    )
    const reason = 'the server no longer responds: nothing listens there (connection refused)'
    assert.ok(skipped.length > 20)
    assert.ok(skipped.every((each) => each === reason))
    assert.ok(summary.startsWith(`${skipped.length} cases not tried: ${reason}.\n`), summary)
    assert.match(summary, /\nNot passed: \d+ of .* passed, 1 failed \(1 cause\), \d+ not tried\.$/)
  })
})

/** Mistakes that were told several times, or as something else, with the causes that are told now. */
const onceMisleading: Record<string, [change: Partial<Behaviour>, causes: readonly RegExp[]]> = {
  'no key is asked for': [
    { isAuthorized: () => true },
    [/^5 Keys \| GET \S+, without Authorization \| 401: no key was sent \| 200 /],
  ],
  'a creation is answered with the id alone': [
    {
      rewrite: (answer) =>
        answer.status === 201 ? { ...answer, text: answer.text.replace(/,.*/, '}') } : answer,
    },
    [/^2 Data \| POST .* \| a pet with members named id .* \| name \(missing\), which is no string: 201 /],
  ],
  'ids are five in turn': [
    { newId: (pets) => BigInt(1 + (pets.length % 5)) },
    [/^2 Data \| .* \| an id that no other pet has \| id \d, which another pet was given as well$/],
  ],
  'a category is renamed': [
    successes((text) => text.replaceAll('categoryId', 'category_id')),
    [/^2 Data \| .* \| no categoryId, but category_id: 201 /],
  ],
  'integers have 32 bits': [
    {
      readNewPet(body, pets) {
        const pet = reference.readNewPet(body, pets)
        return pet && { ...pet, categoryId: BigInt.asIntN(32, pet.categoryId) }
      },
    },
    [
      /^2 Data \| .* \| categoryId \d+, as a 64-bit integer: 32 bits cut it, and a double rounds it \| categoryId -1: /,
    ],
  ],
  'a list has the JSON of its pets as strings': [
    successes((text) => (text.startsWith('[{') ? JSON.stringify(text.slice(1, -1).split(/(?<=\}),/)) : text)),
    [/^2 Data \| .* \| an array of objects \| 200 /],
  ],
  'getPet gives an array': [
    {
      rewrite: (answer, { path }) =>
        answer.status === 200 && path !== '/v1/pets' ? reply(200, `[${answer.text}]`) : answer,
    },
    [/^2 Data \| .* \| an array, which is no object: 200 /],
  ],
  'getPet finds nothing': [
    { find: () => 404 },
    [/^4\.3 Get a pet \| .* \| 200: pet \d+ was just added \| 404 /],
  ],
  'getPet gives the next pet': [
    { find: (pets, petId) => pets[Number(petId)] ?? 404 },
    [/^4\.3 Get a pet \| /],
  ],
  'the filter is ignored': [
    { filter: (pets) => pets },
    [/^4\.1 List pets \| .* \| only pets that are \w+ \| pet \d+ with status "\w+": 200 /],
  ],
  'the id alone is renamed': [
    successes((text) => text.replaceAll('"id"', '"_id"')),
    [/^2 Data \| POST .* \| no id, but _id: 201 /],
  ],
  'members have capitals': [
    successes((text) =>
      text.replaceAll(/"(id|name|categoryId|status)":/g, (_all, name: string) => `"${name.toUpperCase()}":`),
    ),
    [/^2 Data \| POST .* \| no id, no name, no categoryId, but ID, NAME, CATEGORYID, STATUS: 201 /],
  ],
  'an empty list is null': [
    successes((text) => (text === '[]' ? 'null' : text)),
    [
      /^4\.1 List pets \| .* \| a JSON array \(\[\] if there is nothing\), wrapped in nothing \| 200 OK, application\/json, null$/,
    ],
  ],
  'the limit comes before the filter': [
    {
      filter: (pets, status) =>
        status === null ? pets : pets.slice(0, 100).filter((pet) => pet.status === status),
    },
    [
      /^4\.1 List pets \| .* \| pet \d+ among them, for .* 100 of its status were asked for \| \d+ pets, that one not among them$/,
    ],
  ],
  'a handler goes on after its refusal': [
    { rewrite: (answer) => (answer.status === 401 ? { ...answer, text: `${answer.text}\n[]` } : answer) },
    [
      /^1 The service \| .* without Authorization \| a body that is JSON, and nothing else \| text behind the JSON: \[\]: 401 /,
    ],
  ],
  'no status is given': [
    successes((text) => text.replaceAll(/,"status":"\w+"/g, '')),
    [/^3 Statuses \| .* \| a pet with status \| status \(missing\): 201 /],
  ],
  'errors have another form': [
    errors(() => '{"error":"no"}'),
    [
      /^7 Errors \| .* \| an Error body: .* \| code is \(missing\), message is \(missing\), status is \(missing\): 4/,
    ],
  ],
  'errors are plain text': [
    errors(() => 'no'),
    [/^7 Errors \| .* \| an Error body: .* \| what is no JSON: 4/],
  ],
  'everything is sent as HTML': [
    { rewrite: (answer) => ({ ...answer, type: 'text/html' }) },
    [/^1 The service, 7 Errors \| .* \| Content-Type: application\/json \| text\/html: 200 /],
  ],
  'every response is 200': [
    { rewrite: (answer) => ({ ...answer, status: 200 }) },
    [
      / \| 201 \| 200 /,
      / \| status 400 not only in the body, but also in the first line of the response \| 200 /,
    ],
  ],
  'JSON is written as Ruby writes it': [
    { rewrite: (answer) => ({ ...answer, text: answer.text.replaceAll(/"(\w+)":/g, ':$1=>') }) },
    [/^1 The service \| .* \| a body that is JSON, and nothing else \| => where JSON has a colon: /],
  ],
}

/** In the order in which they were added, so that a list of the first hundred has all statuses, and shows no new pet. */
const fullStoreCount = isThorough ? 3000 : 306

/** What a run found first and a later one, of the same server, does not see any more. */
function findForgotten(runs: readonly Outcome[]): readonly string[] {
  const forgotten: string[] = []
  const hasFailed = new Set<number>()
  for (const { results } of runs)
    for (const [index, { title, state }] of results.entries()) {
      if (state === 'failed') hasFailed.add(index)
      if (state === 'passed' && hasFailed.has(index)) forgotten.push(title)
    }
  return forgotten
}

async function runThrice(change: Partial<Behaviour>, pets: Pet[]): Promise<readonly Outcome[]> {
  const store = createStore(key, change, pets)
  const runs: Outcome[] = []
  for (let run = 0; run < 3; run += 1) runs.push(await verify(connect(key, store)))
  return runs
}

describe('three runs', () => {
  const mistakes = [
    ...Object.entries(faults).map(([mistake, [, change]]) => [mistake, change] as const),
    ...Object.entries(onceMisleading).map(([mistake, [change]]) => [mistake, change] as const),
  ]
  for (const [mistake, change] of share(mistakes, 4))
    test(`find on an empty store and on a full one what the first has found: ${mistake}`, async () => {
      for (const count of [0, fullStoreCount]) {
        const runs = await runThrice(change, createPets(count))
        assert.deepEqual(findForgotten(runs), [], `with ${count} pets`)
        // What a full store hides is not tried, so that it does not count as passed.
        for (const { isGood, summary } of runs) assert.equal(isGood, false, `with ${count} pets: ${summary}`)
      }
    })

  test('find the pets that an earlier run has stored twice, when lists show no new ones', async () => {
    for (const { failed } of await runThrice({ save: (pets, pet) => void pets.push(pet, pet) }, []))
      assert.equal(failed, '2')
  })

  test('find nothing wrong with a right server, and say what its pets hide', async () => {
    const [first = assert.fail(), ...later] = await runThrice({}, [])
    expectPass(first)
    for (const { failed, skipped } of [...later, ...(await runThrice({}, createPets(fullStoreCount)))]) {
      assert.equal(failed, '')
      assert.ok(skipped.length > 0)
      for (const reason of skipped)
        assert.match(reason, /^the store holds .*\. Start the server with an empty store$/)
    }
  })

  for (const [group, changes] of share(variants.entries(), 1))
    test(`find nothing wrong with a right server of another style: group ${group + 1}`, async () => {
      for (const count of [0, fullStoreCount])
        for (const { words } of await runThrice(
          Object.assign({}, ...Object.values(changes)),
          createPets(count),
        ))
          assert.deepEqual(words, [])
    })
})

describe('a server that does not respond', () => {
  test('costs two time limits when it hangs for good: the rest is skipped, and said in a sentence', async () => {
    const store = createStore(key)
    let hungCount = 0
    const { words, skipped, summary } = await verify(
      connect(key, (asked) => {
        if (hungCount === 0 && asked.body !== 'null') return store(asked)
        hungCount += 1
        return reply(-1, '')
      }),
    )
    assert.equal(hungCount, 2)
    assert.equal(words.length, 1, words.join('\n'))
    const reason = 'the server no longer responds: not within 10 seconds'
    assert.ok(skipped.length > 50)
    assert.ok(skipped.every((each) => each === reason))
    assert.ok(summary.includes(`cases not tried: ${reason}.`), summary)
  })

  test('costs three time limits when it hangs at malformed JSON only, and other sections are judged', async () => {
    let hungCount = 0
    const { failed, skipped, summary } = await verifyStore({
      malformed() {
        hungCount += 1
        return reply(-1, '')
      },
    })
    assert.equal(failed, '4.2 7')
    assert.equal(hungCount, 3)
    assert.ok(skipped.length > 20)
    assert.match(
      summary,
      /^\d+ cases not tried: the server left two requests in a row without a response\.$/m,
    )
    assert.match(summary, /^\d+ cases not tried: the server left 3 requests without a response\.$/m)
  })

  test('costs four time limits when it hangs at every creation', async () => {
    let hungCount = 0
    const { summary } = await verifyStore({
      newId() {
        hungCount += 1
        return 1n
      },
      rewrite: (answer) => (answer.status === 201 ? reply(-1, '') : answer),
    })
    assert.equal(hungCount, 4)
    assert.match(
      summary,
      /^1\. .*\n {2}sent: {5}POST [^]*\n {2}received: none, not within 10 seconds: does it wait for more than the Content-Length bytes of the body\?$/m,
    )
  })

  test('is given up after a time limit that HTTP is held to', async (t) => {
    const server = await startServer(key, { rewrite: () => reply(-1, '') })
    t.after(() => server.close())
    const client = createClient(server.url, key, createHttpTransport(50))
    await assert.rejects(client.list(), { isLate: true, reason: 'not within 0.05 seconds' })
  })
})

/** As if each response had taken two seconds, and the first one longer. */
const verifySlowly = (change: Partial<Behaviour>, isPatient: boolean) => {
  const client = connect(key, createStore(key, change))
  Object.defineProperty(client, 'timesMs', { get: () => [9000, 2000, 2000] })
  return verify(client, { isPatient })
}

describe('a slow server', () => {
  test('is tried with some cases of each section, and passes only with all', async () => {
    const { failed, passed, skipped, isGood, summary, caseCount } = await verifySlowly({}, false)
    assert.equal(failed, '')
    assert.equal(passed, allSections)
    assert.equal(isGood, false)
    const triedCount = caseCount - skipped.length
    assert.ok(triedCount >= 20 && triedCount <= 60, summary)
    assert.ok(
      summary.endsWith(
        `\nNothing failed, but not all was tried: ${triedCount} of ${caseCount} cases passed, ${skipped.length} not tried.`,
      ),
      summary,
    )
    expectPass(await verifySlowly({}, true))
  })

  test('is told what is wrong in those', async () => {
    const { failed } = await verifySlowly(
      successes((text) => text.replaceAll(/"id":(\d+)/g, '"id":"$1"')),
      false,
    )
    assert.equal(failed, '2')
  })
})

/** The sections and the message of each cause, in the order in which they are to be fixed: the first one is printed last. */
function listCauses(summary: string): string[] {
  return Array.from(
    summary.matchAll(/^\d+\. (.+?): .*\n {2}sent: {5}(.*)\n {2}expected: (.*)\n {2}received: (.*)$/gm),
    ([, sections, sent, expected, received]) => `${sections} | ${sent} | ${expected} | ${received}`,
  ).toReversed()
}

function assertCauses(summary: string, expected: readonly RegExp[]): void {
  const causes = listCauses(summary)
  assert.equal(causes.length, expected.length, summary)
  for (const [index, pattern] of expected.entries()) assert.match(causes[index] ?? '', pattern)
}

describe('the summary', () => {
  test('names each cause once, with its sections and cases, numbered, and refusals last', async () => {
    const together = ['takes any token for a key', 'has a default limit of 50', 'leaves code out of Error']
    const changes = together.map((fault) => faults[fault]?.[1])
    const { words, summary } = await verifyStore(Object.assign({}, ...changes))
    assertCauses(summary, [
      /^5 Keys \| .* \| 401: the key is wrong \| 200 /,
      /^7 Errors \| .* \| an Error body: .* \| code is \(missing\): 400 /,
      /^4\.1 List pets \| GET \S+, with the key \| at most 20 pets \| 50 pets$/,
    ])
    const lines = summary.split('\n')
    assert.equal(lines.at(-2), 'Fix number 1 first, and run this again: it may be behind others.')
    assert.match(lines.at(-6) ?? '', /^1\. 5 Keys: answers listPets with an unknown key with 401; \d+ more$/)
    assert.ok(
      summary.endsWith(` ${words.length} failed (3 causes), 1 cannot be judged before these are fixed.`),
      summary,
    )
  })

  test('names a missing operation once and first, whatever was expected of it, with its body on one line', async () => {
    const { summary } = await verifyStore({
      rewrite: (answer, { method }) =>
        method === 'POST' ? { status: 501, type: 'text/html', text: '<html>\n  <p>Not yet' } : answer,
    })
    assertCauses(summary, [
      /\b4\.2 Add a pet\b.* \| POST .* \| 501 Not Implemented, text\/html, <html>\\n<p>Not yet$/,
    ])
  })

  test('has one failure, too, and says in one line that there is none', async () => {
    const [, change = assert.fail()] = faults['has a default limit of 10'] ?? []
    const { summary } = await verifyStore(change)
    assert.match(
      summary,
      /^1\. 8 Limits: returns a full page of 20 .*\n[^]*\nNot passed: \d+ of \d+ cases passed, 1 failed \(1 cause\)\.$/,
    )
    assert.match((await verifyStore({})).summary, /^Passed: all \d+ cases\.$/)
  })

  test('keeps apart what is wrong with a body that should have been refused', async () => {
    const { summary } = await verifyStore(
      lenient(({ name, categoryId, status }) => ({
        name: typeof name === 'string' ? name : '',
        categoryId: isInt64(categoryId) ? categoryId : 1n,
        status: isStatus(status) ? status : 'sold',
      })),
    )
    const reasons = listCauses(summary).map((cause) => cause.split(' | ')[2])
    assert.deepEqual(
      new Set(reasons),
      new Set([
        '400: name is missing',
        '400: name is no string',
        '400: categoryId is missing',
        '400: categoryId is a string, not an integer',
        '400: categoryId has a fraction',
        '400: categoryId is no number',
        '400: categoryId is beyond int64',
        '400: status is none of the three',
        '400: status is no string',
      ]),
    )
  })

  for (const [mistake, [change, causes]] of share(Object.entries(onceMisleading), 3))
    test(`tells once, and as what it is, that ${mistake}`, async () => {
      const { summary } = await verifyStore(change, [])
      assertCauses(summary, causes)
    })

  test('tells mistakes that come together one by one, and what is behind others first', async () => {
    const { summary } = await verifyStore(
      {
        save: () => {},
        newId: () => BigInt(randomInt(2 ** 40)),
        filter: (pets) => pets,
        ...lenient(({ name, status }) => ({
          name: typeof name === 'string' ? name : 'none',
          status: isStatus(status) ? 'available' : 'sold',
        })),
        malformed: () => refuse(500),
        rewrite(answer, { authorization }) {
          if (answer.status === 401 && authorization === '') return refuse(403)
          if (answer.status === 201) return { ...answer, status: 200 }
          return answer.status === 404 ? { ...answer, text: '{"error":"none"}' } : answer
        },
      },
      createPets(50),
    )
    const [first = '', second = ''] = listCauses(summary)
    assert.match(first, /^4\.2 Add a pet \| .* \| 201 \| 200 /)
    assert.match(second, /^4\.2 Add a pet \| .* \| it is not stored, or no longer: /)
    for (const told of [
      'only pets that are ',
      '400: the body is no JSON | 500 ',
      '400: name is no string | 200 ',
      '400: status is none of the three | 200 ',
      '401: no key was sent | 403 ',
    ])
      assert.ok(
        listCauses(summary).some((cause) => cause.includes(told)),
        `${told}\n${summary}`,
      )
  })

  test('puts a pet that is not stored before the ids, lookups and lists that miss it', async () => {
    const { summary } = await verifyStore({ save: () => {} }, [])
    const [first = ''] = listCauses(summary)
    assert.match(
      first,
      /\b4\.2 Add a pet \| .* \| pet 1, which was added before \| it is not stored, or no longer: no list has it, and/,
    )
    assert.doesNotMatch(summary, /an id that no other pet has/)
  })

  test('puts an id that is sent as text before the 404 that it causes', async () => {
    const { summary } = await verifyStore({
      ...successes((text) => text.replaceAll(/"id":(\d+)/g, '"id":"pet-$1"')),
    })
    const [first = ''] = listCauses(summary)
    assert.match(
      first,
      /^2 Data \| .* \| a pet with members named id .* \| id "pet-\d+", which is no int64 integer/,
    )
  })
})

/** The server that these arguments name. */
function open(args: readonly string[], env: Record<string, string> = {}) {
  return openTarget([process.execPath, resolve('contract.test.js'), ...args], env)
}

describe('the server to verify', () => {
  const line =
    'Type its address and a key that it knows, such as:\n  node contract.test.js http://127.0.0.1:4000/v1 my-key'
  const nowhere = 'http://127.0.0.1:1/v1'
  const setups: Record<string, [args: readonly string[], env: Record<string, string>, words: string]> = {
    'the address without the key': [[nowhere], {}, `The key of the server is missing. ${line}`],
    'the key without the address': [[], { PETSTORE_API_KEY: key }, `Which server is to be verified? ${line}`],
    'an address that is none': [
      ['127.0.0.1:1', key],
      {},
      `127.0.0.1:1 is no address such as http://127.0.0.1:4000/v1. ${line}`,
    ],
    'an address that has a password, which is not printed': [
      ['http://ann:hush@127.0.0.1:1/v1', key],
      {},
      `An address has no user and no password. ${line}`,
    ],
    'an argument that there is not': [['--port', '1'], {}, `--port: does not go with this. ${line}`],
    'a key with a space in it': [
      [nowhere, 'a b'],
      {},
      'The key, by the second argument, has characters that a bearer key cannot have (spaces, or characters beyond ASCII).',
    ],
    'an address where nothing listens': [
      [],
      { PETSTORE_URL: nowhere, PETSTORE_API_KEY: key },
      `${nowhere} does not respond: nothing listens there (connection refused). Is your server running, and is this its address?`,
    ],
  }
  for (const [setup, [args, env, message]] of Object.entries(setups))
    test(`is refused in few words, given ${setup}`, async () => {
      await assert.rejects(open(args, env), { message })
    })

  const sources: Record<string, [args: readonly string[], env: Record<string, string>]> = {
    'the second argument': [[key], {}],
    '--keys': [['--keys', `${key},other`], { PETSTORE_API_KEY: 'third' }],
    PETSTORE_API_KEY: [[], { PETSTORE_API_KEY: key }],
  }
  for (const [source, [args, env]] of Object.entries(sources))
    test(`is refused with the header that was sent and what came, when it does not know the key of ${source}`, async (t) => {
      const server = await startServer('another-key')
      t.after(() => server.close())
      await assert.rejects(open([server.url, ...args], env), ({ message }: Error) => {
        assert.ok(message.startsWith(`The server refuses the key, which came by ${source}. `), message)
        assert.ok(message.includes(`with the header "Authorization: Bearer ${key}"`), message)
        assert.match(message, /received: 401 Unauthorized, application\/json, \{"code":/)
        return true
      })
    })

  const keyForms: Record<string, Behaviour['isAuthorized']> = {
    'Authorization: <key>': ({ authorization }) => authorization === key,
    'Authorization: bearer <key>': ({ authorization }) => authorization === `bearer ${key}`,
    'authorization: Bearer <key>': ({ headers }) => headers['authorization'] === `Bearer ${key}`,
  }
  for (const [form, isAuthorized] of share(Object.entries(keyForms), 1))
    test(`is judged for the rest when it takes the key as "${form}", which is told first`, async (t) => {
      const server = await startServer(key, { isAuthorized, readLimit: () => 50 }, createPets(102))
      t.after(() => server.close())
      const { client } = await open([server.url, key])
      const { failed, summary } = await verify(client, { isBasic: isShort })
      assert.equal(failed, '4.1 5 8')
      const [first = ''] = listCauses(summary)
      assert.match(first, /^5 Keys \| .* \| success for "Authorization: Bearer <key>" \| 401, and 200 to /)
      assert.ok(first.endsWith(`"${form}", with which the rest is tried`), first)
    })

  test('is judged for the rest when it takes neither the path nor the key as it has to', async (t) => {
    const inner = createStore(key, { isAuthorized: () => true }, createPets(102))
    const server = await startServer(key, {
      isAuthorized: ({ authorization }) => authorization === key,
      rewrite: (answer, asked) =>
        answer.status === 401
          ? answer
          : asked.path.startsWith('/v1/')
            ? refuse(404)
            : inner({ ...asked, path: `/v1${asked.path}` }),
    })
    t.after(() => server.close())
    const { client } = await open([server.url, key])
    const { failed, summary } = await verify(client, { isBasic: isShort })
    assert.equal(failed, '5 9')
    assertCauses(summary, [/^9 Versions \|/, /^5 Keys \|/])
  })

  test('is told that its paths end with a slash, and not each 404 that this causes', async (t) => {
    const server = await startServer(key, {
      rewrite: (answer, { path }) =>
        path === '/v1/pets/' ? reply(200, '[]') : answer.status === 401 ? answer : refuse(404),
    })
    t.after(() => server.close())
    const { client } = await open([server.url, key])
    const [first = '', ...others] = listCauses((await verify(client, { isBasic: isShort })).summary)
    assert.match(
      first,
      /^9 Versions.* \| the path \/pets \| 404 there, and 200 for \S+\/v1\/pets\/, with a slash at the end$/,
    )
    assert.doesNotMatch(others.join('\n'), /GET \S+\/pets, with the key/)
  })

  test('is told once that it compares the path together with its query', async (t) => {
    const server = await startServer(key, {
      rewrite: (answer, { query }) => (query.size > 0 ? refuse(404) : answer),
    })
    t.after(() => server.close())
    const { client } = await open([server.url, key])
    assertCauses((await verify(client, { isBasic: isShort })).summary, [
      /^9 Versions, others \| GET \S+\/pets\?limit=20, .* \| 404, and 200 without "\?limit=20": is the path compared together with its query\?$/,
    ])
  })

  test('is judged for the rest when its paths are not under /v1, which is told first', async (t) => {
    const inner = createStore(key, { readLimit: () => 50 }, createPets(102))
    const server = await startServer(key, {
      isAuthorized: () => true,
      rewrite: (_reply, asked) =>
        asked.path.startsWith('/v1/') ? refuse(404) : inner({ ...asked, path: `/v1${asked.path}` }),
    })
    t.after(() => server.close())
    const { client } = await open([server.url, key])
    const { failed, summary } = await verify(client, { isBasic: isShort })
    assert.equal(failed, '4.1 8 9')
    const root = server.url.replace('/v1', '')
    assert.match(
      listCauses(summary)[0] ?? '',
      new RegExp(
        `^9 Versions \\| GET ${server.url}/pets, .* \\| 404 there, and 200 for ${root}/pets, where the rest`,
      ),
    )
  })

  for (const end of ['', '/', '/v1', '/v1/', '/v1/pets'])
    test(`is found at an address that ends in "${end}"`, async (t) => {
      const server = await startServer(key)
      t.after(() => server.close())
      const { client } = await open([new URL(server.url).origin + end, key])
      assert.equal(client.base, server.url)
    })
})

describe('the built file', () => {
  test('passes against a right server, fails against a wrong one, and says in one sentence that there is none', async (t) => {
    const right = await startServer(key)
    t.after(() => right.close())
    const wrong = await startServer(key, { readLimit: () => 50 })
    t.after(() => wrong.close())

    const passing = await runSuite(right.url, [], basics)
    assert.equal(passing.exitCode, 0, passing.output)
    assert.ok(passing.output.startsWith(`TAP version 13\nVerifying ${right.url}\n`), passing.output)
    assert.match(passing.output, /^# fail 0$/m)
    assert.ok(Number(/^# pass (\d+)/m.exec(passing.output)?.[1]) >= 60, passing.output)

    const failing = await runSuite(wrong.url, ['--test'])
    assert.equal(failing.exitCode, 1)
    const failed = [...failing.output.matchAll(/^ *not ok \d+ - (\d[\d.]*) /gm)].map(([, number]) => number)
    assert.deepEqual(failed, ['4.1', '8'])
    assert.match(failing.output, /sent: .*\n *expected: .*\n *received: /)
    assert.match(
      failing.output,
      /^ *not ok \d+ - Summary\n[^]*Not passed: \d+ of \d+ cases passed, \d+ failed \(2 causes\)/m,
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

  test('tries only the cases whose name is asked for, and ends', async (t) => {
    const server = await startServer(key)
    t.after(() => server.close())
    const { exitCode, output } = await runSuite(server.url, ['--test-name-pattern=an unknown pet'])
    assert.equal(exitCode, 0, output)
    assert.match(output, /^ *ok \d+ - .*an unknown pet.*$/m)
    assert.match(output, /^# pass [1-9]\d?$/m)
  })

  test('fails with the line to type when no server is named', async () => {
    const { exitCode, output } = await runSuite()
    assert.equal(exitCode, 1)
    assert.match(
      output,
      /Which server is to be verified\? Type its address and a key that it knows, such as:\n *node \S*contract\.test\.js http:\/\/127\.0\.0\.1:4000\/v1 my-key\n/,
    )
    assert.match(output, /^# tests 1$/m)
  })
})

describe('the suite by itself', () => {
  test('says in two lines that a right server passes', async (t) => {
    const server = await startServer(key)
    t.after(() => server.close())
    // A slow machine shortens a run without --all.
    const { exitCode, output } = await runNode([suite, server.url, key, '--all'])
    assert.match(output, new RegExp(`^Verifying ${server.url}\nPassed: all \\d+ cases\\.\n$`))
    assert.equal(exitCode, 0)
  })

  test('exits with 2, and says why, when nothing failed and the store hides something', async (t) => {
    const server = await startServer(key, {}, createPets(3))
    t.after(() => server.close())
    const { exitCode, output } = await runNode([suite, server.url, key, '--all'])
    assert.match(output, /^1 case not tried: the store holds .*\. Start the server with an empty store\.$/m)
    assert.match(output, /\nNothing failed, but not all was tried: \d+ of \d+ cases passed, 1 not tried\.\n$/)
    assert.equal(exitCode, 2)
  })

  test('counts as many cases as the test runner, which the summary is none of', async (t) => {
    const servers = [
      await startServer(key, { readLimit: () => 50 }),
      await startServer(key, { readLimit: () => 50 }),
    ]
    t.after(() => Promise.all(servers.map((server) => server.close())))
    const [one, other] = servers.map(({ url }) => url)
    const { output } = await runNode([suite, one ?? '', key, '--all', ...basics])
    const [, passed, total, failed, notJudged] =
      /: (\d+) of (\d+) cases(?: of --basics)? passed, (\d+) failed \(\d causes\), (\d+) cannot be judged/.exec(
        output,
      ) ?? []
    assert.equal(Number(passed) + Number(failed) + Number(notJudged), Number(total))
    const run = await runSuite(other, [], basics)
    const counts = Object.fromEntries(
      Array.from(run.output.matchAll(/^# (\w+) (\d+)$/gm), ([, name, count]) => [name, count]),
    )
    assert.deepEqual(
      [counts['tests'], counts['pass'], counts['fail'], counts['skipped']],
      [total, passed, failed, notJudged],
    )
  })

  test('passes a right server that sends byte by byte', async (t) => {
    const server = await startServer(key)
    t.after(() => server.close())
    const { hostname, port } = new URL(server.url)
    const front = createProxy((client) => {
      client.setNoDelay(true).on('error', () => {})
      const inner = connectSocket(Number(port), hostname)
      client.pipe(inner)
      inner.on('data', (bytes) => {
        for (const byte of bytes) client.write(Uint8Array.of(byte))
      })
      inner.on('end', () => client.end())
      inner.on('error', () => client.destroy())
    })
    const address = await listenOn(t, front)
    const { cases, conclude } = createSuite(createClient(address, key), { isPatient: true, isBasic: false })
    for (const { run } of share(cases, 12)) await run()
    // What the quick run leaves out is not tried.
    assert.equal(conclude().exitCode, isThorough ? 0 : 2)
  })

  test('says in one line that nothing listens', async () => {
    const { exitCode, output } = await runNode([suite, 'http://127.0.0.1:1', key])
    assert.match(output, /^http:\/\/127\.0\.0\.1:1\/v1 does not respond: .*\(connection refused\).*\n$/)
    assert.equal(exitCode, 1)
  })
})

async function listenOn(t: TestContext, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  // A server that listens on a port has an address of this form (Node's documentation of server.address).
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}/v1`
}

/** The ways to run it alone. They differ only in how it is started, so the quick run takes one. */
const commands: Record<string, (address: string, key: string) => readonly string[]> = {
  'the suite by itself': (address, ofServer) => [suite, address, ofServer],
  'the program with --verify': (address, ofServer) => [
    join(dirname(suite), 'server.js'),
    '--verify',
    address,
    '--keys',
    ofServer,
  ],
}

for (const [how, command] of share(Object.entries(commands), 1))
  describe(`${how}`, () => {
    test('prints the summary alone, and each failure in full with --all', async (t) => {
      const server = await startServer(key, { readLimit: () => 50 })
      t.after(() => server.close())
      const { exitCode, output } = await runNode([...command(server.url, key), ...basics])
      assert.equal(exitCode, 1)
      assert.ok(output.split('\n').length < 15, output)
      assert.match(
        output,
        /^Verifying .*\n(?:--basics leaves out .*\n)?2\. 8 Limits: [^]*\n1\. 4\.1 List pets: [^]*\nFix number 1 first, .*\nNot passed: /,
      )
      assert.match(
        output,
        /\nNot passed: \d+ of \d+ cases(?: of --basics)? passed, \d+ failed \(2 causes\), \d+ cannot be judged before these are fixed\.\n$/,
      )
      assert.ok(!output.includes(key), 'the key is printed')

      const fresh = await startServer(key, { readLimit: () => 50 })
      t.after(() => fresh.close())
      const all = await runNode([...command(fresh.url, key), '--all', ...basics])
      assert.equal(all.exitCode, 1)
      assert.equal(
        all.output.match(/^✖ \S+ .*\n {2}sent: {5}.*\n {2}expected: .*\n {2}received: /gm)?.length,
        Number(/ (\d+) failed/.exec(output)?.[1]),
      )
      const ending = output.slice(output.indexOf('2. 8 Limits')).replaceAll(server.url, fresh.url)
      assert.ok(all.output.endsWith(ending), all.output)
    })

    test('prints nothing more when nobody reads it', async (t) => {
      const server = await startServer(key, { readLimit: () => 50 })
      t.after(() => server.close())
      const child = spawn(process.execPath, [...command(server.url, key), '--all', ...basics], {
        env: cleanEnvironment(),
      })
      let complaints = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
      await once(child.stdout, 'data')
      child.stdout.destroy()
      assert.deepEqual(await once(child, 'exit'), [1, null])
      assert.equal(complaints, '')
    })
  })

/** Runs the built suite as a test. With `--test`, Node starts a second process, for the file: half as much work again. */
function runSuite(
  address?: string,
  args: readonly string[] = [],
  suiteArgs: readonly string[] = [],
): Promise<{ exitCode: unknown; output: string }> {
  const named = address !== undefined && { PETSTORE_URL: address, PETSTORE_API_KEY: key }
  return runNode([...args, '--test-reporter=tap', suite, ...suiteArgs], { ...named })
}

function runNode(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const env = { ...cleanEnvironment(), ...more }
  return new Promise<{ exitCode: unknown; output: string }>((done) => {
    execFile(process.execPath, args, { env }, (error, stdout, stderr) =>
      done({ exitCode: error === null ? 0 : error.code, output: stdout + stderr }),
    )
  })
}

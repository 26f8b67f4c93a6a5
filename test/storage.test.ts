/**
 * Pets in a storage of the embedder's: what it promises is answered as if the pets were here, what it gets wrong never is.
 * Real databases are in `test/postgres/`.
 */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { runInNewContext } from 'node:vm'
import { deprecation, sunset } from '../src/api/operations.ts'
import { createPetStore, startPetStore, type RequestLog } from '../src/index.ts'
import type { Int64, Pet, PetPage, PetQuery, PetStorage, PetWithoutId } from '../src/options/types.ts'
import { createStorageStore } from '../src/store/storage-store.ts'
import { clock } from '../src/system/clock.ts'
import { createGate } from './file-system.ts'
import { assertRefusal, connectRaw, formatRequest, key, send, type ReceivedAnswer } from './support.ts'

const rex: Pet = { id: 1, name: 'Rex', categoryId: 1, status: 'available' }
const mia: Pet = { id: 2, name: 'Mia', categoryId: 2, status: 'sold' }
const unknownText = 'The storage failed; it is not known whether the pet was stored.'

/** Pets in this process, behind promises; ids go on as they do in a store. */
class TestStorage implements PetStorage {
  readonly pets: Pet[]
  readonly calls: string[] = []
  lastId: bigint

  constructor(pets: readonly Pet[] = []) {
    this.pets = [...pets]
    this.lastId = BigInt(pets.at(-1)?.id ?? 0)
  }

  async list({ limit, status, after = 0 }: PetQuery): Promise<PetPage> {
    this.calls.push('list')
    const matches = this.pets.filter((pet) => status === undefined || pet.status === status)
    const rest = matches.filter(({ id }) => id > after)
    return { pets: rest.slice(0, limit), total: BigInt(matches.length), hasMore: rest.length > limit }
  }

  async get(id: Int64): Promise<Pet | undefined> {
    this.calls.push('get')
    return this.pets.find((pet) => BigInt(pet.id) === BigInt(id))
  }

  async create(newPets: readonly PetWithoutId[]): Promise<readonly Pet[]> {
    this.calls.push(`create ${newPets.length}`)
    const created = newPets.map((newPet) => ({ ...newPet, id: ++this.lastId }))
    this.pets.push(...created)
    return created
  }
}

interface StartedStorage {
  readonly url: string
  readonly messages: string[]
  readonly errors: string[]
  readonly send: (path: string, body?: unknown) => Promise<ReceivedAnswer>
  readonly close: () => Promise<void>
}

async function startOn(t: TestContext, storage: PetStorage, closeMs = 5_000): Promise<StartedStorage> {
  const messages: string[] = []
  const errors: string[] = []
  const server = await startPetStore({
    apiKeys: [key],
    storage,
    timeouts: { closeMs },
    onMessage: (message) => messages.push(message),
    onError: (message) => errors.push(message),
  })
  t.after(() => server.close())
  return {
    url: server.url,
    messages,
    errors,
    send: (path, body) => send(server.url, path, body === undefined ? {} : { body }),
    close: server.close,
  }
}

/** A storage of which one method does something else. */
function withMethod(changes: Readonly<Record<string, () => unknown>>): PetStorage {
  return Object.assign(new TestStorage([rex, mia]), changes)
}

// Node warns once in a process of each thing.
const warnings: Error[] = []
process.on('warning', (warning) => warnings.push(warning))

const never = (): Promise<never> => new Promise(() => {})

test('is asked for a list each time, since others change the pets too', async (t) => {
  const storage = new TestStorage([rex])
  const app = await startOn(t, storage)
  assert.equal((await app.send('/v1/pets')).text, `[${JSON.stringify(rex)}]`)
  storage.pets.push(mia)
  assert.equal((await app.send('/v1/pets')).text, `[${JSON.stringify(rex)},${JSON.stringify(mia)}]`)
  assert.deepEqual(storage.calls, ['list', 'list'])
})

test('lists, creates and gets what is in the storage, exactly', async (t) => {
  const big = {
    id: 2n ** 63n - 2n,
    name: 'a\u0000"\u{1F415}',
    categoryId: -(2n ** 63n),
    status: 'sold',
  } as const
  const app = await startOn(t, new TestStorage([rex, mia, { ...rex, id: 7n, categoryId: 5n }, big]))
  const first = await app.send('/v1/pets?limit=1&status=sold')
  assert.equal(first.text, `[${JSON.stringify(mia)}]`)
  assert.equal(first.headers.get('x-total-count'), '2')
  assert.equal(first.headers.get('link'), '</v1/pets?limit=1&status=sold&after=2>; rel="next"')
  const last = await app.send('/v1/pets?limit=1&status=sold&after=2')
  const bigText = String.raw`{"id":9223372036854775806,"name":"a\u0000\"🐕","categoryId":-9223372036854775808,"status":"sold"}`
  assert.equal(last.text, `[${bigText}]`)
  assert.equal(last.headers.get('link'), undefined)
  assert.equal((await app.send('/v1/pets/9223372036854775806')).text, bigText)
  const seven = await app.send('/v1/pets/7')
  assert.equal(seven.text, '{"id":7,"name":"Rex","categoryId":5,"status":"available"}')
  const created = await app.send('/v1/pets', '{"name":"Max","categoryId":9007199254740993}')
  assert.equal(created.status, 201)
  assert.equal(created.headers.get('location'), '/v1/pets/9223372036854775807')
  assert.match(created.text, /"id":9223372036854775807,"name":"Max","categoryId":9007199254740993,/)
  assert.deepEqual([app.messages, app.errors], [[], []])
})

test('answers an empty list with a total of 0', async (t) => {
  const app = await startOn(t, new TestStorage([rex]))
  const { status, headers, text } = await app.send('/v1/pets?status=sold')
  assert.deepEqual([status, text, headers.get('x-total-count')], [200, '[]', '0'])
})

test('answers a list without X-Total-Count when the storage leaves the total out', async (t) => {
  const uncounted = { pets: [rex], hasMore: true }
  for (const page of [uncounted, { ...uncounted, total: undefined }]) {
    const app = await startOn(t, withMethod({ list: async () => page }))
    const { status, headers, text } = await app.send('/v1/pets?limit=1')
    assert.deepEqual([status, text], [200, `[${JSON.stringify(rex)}]`])
    assert.equal(headers.get('x-total-count'), undefined)
    assert.equal(headers.get('link'), '</v1/pets?limit=1&after=1>; rel="next"')
  }
})

test('announces the removal of getPet on refusals that come late as well', async (t) => {
  const app = await startOn(t, new TestStorage([rex]))
  const failing = await startOn(t, withMethod({ get: () => Promise.reject(new Error('down')) }))
  const wrong = await startOn(t, withMethod({ get: () => [mia] }))
  const answers = [
    await app.send('/v1/pets/1'),
    await app.send('/v1/pets/2'),
    await app.send('/v1/pets/x'),
    await failing.send('/v1/pets/1'),
    await wrong.send('/v1/pets/1'),
  ]
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers.get('deprecation'), headers.get('sunset')]),
    [200, 404, 404, 503, 500].map((status) => [status, deprecation, sunset]),
  )
})

test('keeps the order of pipelined requests: a list shows the creation before it', async (t) => {
  const app = await startOn(t, new TestStorage())
  const client = await connectRaw(t, app.url)
  client.write(
    formatRequest('POST /v1/pets', [], '{"name":"Rex","categoryId":1}') + formatRequest('GET /v1/pets'),
  )
  assert.equal((await client.read()).status, 201)
  assert.equal((await client.read()).body, `[${JSON.stringify(rex)}]`)
})

describe('creations', () => {
  test('of 64 clients at once take few calls, each of which begins when the one before has ended', async (t) => {
    const storage = new TestStorage()
    const gate = createGate()
    let isRunning = false
    const create = storage.create.bind(storage)
    storage.create = async (newPets) => {
      assert.equal(isRunning, false)
      isRunning = true
      if (storage.calls.length === 0) await gate.pass()
      const pets = await create(newPets)
      isRunning = false
      return pets
    }
    const store = createStorageStore(storage)
    const creations = Array.from({ length: 64 }, (_, categoryId) => store.create({ ...rex, categoryId }))
    await gate.reached
    gate.open()
    const pets = await Promise.all(creations)
    assert.deepEqual(
      pets.map(({ categoryId }) => categoryId),
      creations.map((_, categoryId) => categoryId),
    )
    assert.equal(storage.pets.length, 64)
    assert.ok(storage.calls.length <= 2, storage.calls.join())
    t.diagnostic(storage.calls.join())
  })

  test('come as at most 1000 a call', async () => {
    const storage = new TestStorage()
    const store = createStorageStore(storage)
    await Promise.all(Array.from({ length: 2_500 }, () => store.create(rex)))
    assert.deepEqual(storage.calls, ['create 1000', 'create 1000', 'create 500'])
  })

  test('are refused together when the storage has no room, and the message says that nothing was stored', async (t) => {
    const full = Object.assign(new Error('disk full'), { code: 'insufficient_storage' })
    const app = await startOn(t, withMethod({ create: () => Promise.reject(full) }))
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => app.send('/v1/pets', { name: 'Max', categoryId: 1 })),
    )
    for (const answer of answers)
      assert.match(assertRefusal(answer, 507, 'insufficient_storage'), /nothing was stored/)
    assert.equal((await app.send('/v1/pets')).headers.get('x-total-count'), '2')
    assert.equal(app.messages.length, 1)
  })

  test('are refused with the words that nothing was stored when the storage knows it', async (t) => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'nothing_stored' })
    const app = await startOn(t, withMethod({ create: () => Promise.reject(refused) }))
    const answer = await app.send('/v1/pets', { name: 'Max', categoryId: 1 })
    const message = assertRefusal(answer, 503, 'storage_failed')
    assert.equal(message, 'The storage failed; nothing was stored.')
  })

  test('are refused for the reason that the error gives also when its class is not our Error, as in Jest', async (t) => {
    const full: unknown = runInNewContext(
      `Object.assign(new Error('disk full'), { code: 'insufficient_storage' })`,
    )
    assert.ok(!(full instanceof Error))
    const app = await startOn(t, withMethod({ create: () => Promise.reject(full) }))
    assertRefusal(await app.send('/v1/pets', { name: 'Max', categoryId: 1 }), 507, 'insufficient_storage')
    assert.deepEqual(app.messages, ['the storage failed: disk full; each request tries it again'])
  })
})

for (const [how, fail] of Object.entries({
  'throws at once': () => {
    throw new Error('connect ECONNREFUSED db:5432')
  },
  'rejects later': () => Promise.reject(new Error('connect ECONNREFUSED db:5432')),
  'rejects with what is no error': () => Promise.reject(null),
  'throws what cannot be made a string': () => {
    throw Object.create(null)
  },
})) {
  test(`answers 503 and none of the storage's words when it ${how}`, async (t) => {
    const app = await startOn(t, withMethod({ list: fail, get: fail, create: fail }))
    const creation = await app.send('/v1/pets', { name: 'Max', categoryId: 1 })
    assert.equal(assertRefusal(creation, 503, 'storage_failed'), unknownText)
    for (const path of ['/v1/pets', '/v1/pets/1']) {
      const message = assertRefusal(await app.send(path), 503, 'storage_failed')
      assert.equal(message, 'The storage failed; no pet can be read now.')
    }
    assert.equal((await app.send('/healthz')).status, 200)
    assertRefusal(await app.send('/healthz?ready'), 503, 'storage_failed')
    assert.deepEqual(app.errors, [])
    assert.equal(app.messages.length, 1)
  })
}

test('says once that the storage fails, and once that it works again', async (t) => {
  let isDown = false
  let isFull = false
  const storage = new TestStorage([rex])
  const failWhenDown =
    <Argument, Result>(method: (argument: Argument) => Promise<Result>, isCreation = false) =>
    (argument: Argument): Promise<Result> => {
      if (isDown) throw new Error('the database is down')
      if (isFull && isCreation) throw Object.assign(new Error(''), { code: 'insufficient_storage' })
      return method.call(storage, argument)
    }
  const app = await startOn(t, {
    list: failWhenDown(storage.list),
    get: failWhenDown(storage.get),
    create: failWhenDown(storage.create, true),
  })
  const use = async (): Promise<readonly number[]> => {
    const answers = []
    for (let i = 0; i < 3; i++) {
      answers.push(await app.send('/v1/pets'), await app.send('/v1/pets', { name: 'Max', categoryId: 1 }))
    }
    return [...new Set(answers.map(({ status }) => status))]
  }
  assert.deepEqual(await use(), [200, 201])
  isDown = true
  assert.deepEqual(await use(), [503])
  isDown = false
  assert.deepEqual(await use(), [200, 201])
  isFull = true
  assert.deepEqual(await use(), [200, 507])
  isFull = false
  assert.deepEqual(await use(), [200, 201])
  assert.deepEqual(app.messages, [
    'the storage failed: the database is down; each request tries it again',
    'the storage works again',
    'the storage failed: insufficient_storage; each request tries it again',
    'the storage works again',
  ])
})

test('tells of an outage of reads hours after a creation that failed and was not tried again', async (t) => {
  let ms = 0
  t.mock.method(clock, 'performanceNow', () => ms)
  const messages: string[] = []
  let isDown = true
  const failWhenDown = async <Result>(result: Result): Promise<Result> => {
    if (isDown) throw new Error('the database is down')
    return result
  }
  const store = createStorageStore(
    {
      list: () => failWhenDown({ pets: [], hasMore: false }),
      get: () => failWhenDown(undefined),
      create: () => failWhenDown([]),
    },
    (message) => messages.push(message),
  )
  await assert.rejects(store.create({ name: 'Max', categoryId: 1, status: 'sold' }))
  ms += 3 * 3_600_000
  await assert.rejects(async () => store.list({ limit: 1 }))
  isDown = false
  await store.list({ limit: 1 })
  assert.deepEqual(messages, [
    'the storage failed: the database is down; each request tries it again',
    'the storage failed: the database is down; each request tries it again',
    'the storage works again',
  ])
})

const page = { pets: [rex, mia], total: 2, hasMore: false }
const wrongResults: readonly [request: string, method: keyof PetStorage, result: unknown, why: RegExp][] = [
  ['/v1/pets', 'list', undefined, /the result: .*undefined/],
  ['/v1/pets', 'list', [rex], /pets/],
  ['/v1/pets', 'list', { ...page, pets: 'Rex' }, /pets: .*Rex/],
  ['/v1/pets', 'list', { ...page, pets: [rex, null] }, /pets\.1: .*null/],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, id: '1' }] }, /pets\.0\.id: .*got "1"/],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, id: 0 }] }, /pets\.0\.id: .*got 0/],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, id: 2 ** 53 }] }, /pets\.0\.id: /],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, id: 2n ** 63n }] }, /pets\.0\.id: /],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, name: 5 }] }, /pets\.0\.name: .*got 5/],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, name: '\uD800' }] }, /pets\.0\.name: .*surrogate/],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, categoryId: 1.5 }] }, /pets\.0\.categoryId: .*got 1\.5/],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, status: 'lost' }] }, /pets\.0\.status: .*got "lost"/],
  ['/v1/pets', 'list', { ...page, pets: [{ ...rex, status: undefined }] }, /pets\.0\.status: /],
  ['/v1/pets', 'list', { ...page, pets: [{ id: 1, name: 'Rex', categoryId: 1 }] }, /pets\.0\.status: /],
  ['/v1/pets?limit=1', 'list', page, /expected at most 1 pets, got 2/],
  ['/v1/pets', 'list', { ...page, total: -1 }, /total: expected an integer from 0 to 2\^63-1, got -1/],
  ['/v1/pets', 'list', { ...page, total: '2' }, /total: /],
  ['/v1/pets', 'list', { ...page, total: null }, /total: /],
  ['/v1/pets', 'list', { ...page, total: 1.5 }, /total: /],
  ['/v1/pets', 'list', { ...page, hasMore: 1 }, /hasMore: /],
  ['/v1/pets', 'list', { ...page, hasMore: undefined }, /hasMore: /],
  ['/v1/pets/1', 'get', null, /the result: .*null/],
  ['/v1/pets/1', 'get', [rex], /id: /],
  ['/v1/pets/1', 'get', { ...rex, id: '1' }, /id: .*got "1"/],
  ['POST', 'create', undefined, /the result: .*undefined/],
  ['POST', 'create', [], /expected 1 pets, got 0/],
  ['POST', 'create', [rex, mia], /expected 1 pets, got 2/],
  ['POST', 'create', [{ ...rex, id: undefined }], /0\.id: /],
  ['POST', 'create', [{ ...rex, id: -1 }], /0\.id: .*got -1/],
]

test('answers 500 to whatever the storage gets wrong, and says what it was to onError alone', async (t) => {
  const storage = new TestStorage()
  const app = await startOn(t, storage)
  for (const [request, method, result, why] of wrongResults) {
    Object.assign(storage, { [method]: async () => result })
    const isCreation = method === 'create'
    const answer = await (isCreation
      ? app.send('/v1/pets', { name: 'Rex', categoryId: 1 })
      : app.send(request))
    assert.equal(assertRefusal(answer, 500, 'internal_error'), 'Something went wrong in the service.')
    const where = isCreation ? 'POST /v1/pets' : `GET ${request.replace(/\?.*/, '')}`
    const [error = '', ...others] = app.errors.splice(0)
    assert.ok(error.startsWith(`internal_error in ${where}: storage: `), error)
    assert.match(error, why)
    assert.deepEqual(others, [])
  }
  assert.deepEqual(app.messages, [])
})

/** A storage that throws this for each group with a pet of this name, and counts the groups in which one is. */
class RefusingStorage extends TestStorage {
  readonly errors: Readonly<Record<string, Error>>
  constructor(errors: Readonly<Record<string, Error>>) {
    super()
    this.errors = errors
  }

  override async create(newPets: readonly PetWithoutId[]): Promise<readonly Pet[]> {
    const error = newPets.map(({ name }) => this.errors[name]).find((each) => each !== undefined)
    if (error === undefined) return super.create(newPets)
    this.calls.push(`refused ${newPets.length}`)
    throw error
  }
}

const withCode = (message: string, code: string): Error => Object.assign(new Error(message), { code })

/** Pets of these names are created as one group; gives the id of each, or what its client reads. */
async function createGroup(storage: TestStorage, names: string, onMessage?: (message: string) => void) {
  const store = createStorageStore(storage, onMessage)
  const results = names.split(' ').map(async (name) => (await store.create({ ...rex, name })).id)
  return Promise.all(results.map((id) => id.catch(({ message }: Error) => message)))
}

describe('a group of which the storage refuses a pet', () => {
  const refused = 'The pet was refused by the database; nothing was stored.'

  test('is created but for that pet', async () => {
    const storage = new RefusingStorage({ bad: withCode('not a name', 'pet_refused') })
    const messages: string[] = []
    const results = await createGroup(storage, 'a bad b bad c', (message) => messages.push(message))
    assert.deepEqual(results, [1, refused, 2, refused, 3])
    assert.deepEqual(storage.calls, [
      'refused 5',
      'create 1',
      'refused 1',
      'create 1',
      'refused 1',
      'create 1',
    ])
    assert.deepEqual(messages, ['the storage refused a pet: not a name'])
  })

  test('is told without what a terminal would obey, and cut where the reason is long', async () => {
    const reason = `not a name: \u001b[2J\n${'x'.repeat(2_000)}`
    const storage = new RefusingStorage({ bad: withCode(reason, 'pet_refused') })
    const messages: string[] = []
    await createGroup(storage, 'a bad', (message) => messages.push(message))
    const told = `not a name: <U+001B>[2J<U+000A>${'x'.repeat(1_000 - 'not a name: ?[2J?'.length)}`
    assert.deepEqual(messages, [`the storage refused a pet: ${told}`])
  })

  test('is not split if the storage knows nothing of one pet', async () => {
    for (const code of ['nothing_stored', 'insufficient_storage', 'ECONNRESET', '23514']) {
      const storage = new RefusingStorage({ bad: withCode('down', code) })
      const results = await createGroup(storage, 'a bad b')
      assert.equal(new Set(results).size, 1)
      assert.deepEqual(storage.calls, ['refused 3'])
    }
  })

  for (const [code, own, rest] of [
    ['ETIMEDOUT', unknownText, 'The storage failed; nothing was stored.'],
    ['nothing_stored', 'The storage failed; nothing was stored.', 'The storage failed; nothing was stored.'],
    [
      'insufficient_storage',
      'There is no room left; nothing was stored.',
      'The storage failed; nothing was stored.',
    ],
  ] as const)
    test(`is tried no further when the try of a pet fails with ${code}`, async () => {
      const silent = withCode('no response', code)
      const storage = new RefusingStorage({ bad: withCode('not a name', 'pet_refused'), silent })
      const messages: string[] = []
      const results = await createGroup(storage, 'a bad silent b bad c', (message) => messages.push(message))
      assert.deepEqual(results, [1, refused, own, rest, rest, rest])
      assert.deepEqual(storage.calls, ['refused 6', 'create 1', 'refused 1', 'refused 1'])
      assert.deepEqual(messages, [
        'the storage refused a pet: not a name',
        'the storage failed: no response; each request tries it again',
      ])
    })

  test('is refused as one that cannot be right when a single try gives what is wrong', async () => {
    const storage = new RefusingStorage({ bad: withCode('not a name', 'pet_refused') })
    const create = storage.create.bind(storage)
    storage.create = async (newPets) => (await create(newPets)).slice(1)
    const results = await createGroup(storage, 'a bad')
    assert.deepEqual(results, ['storage: expected 1 pets, got 0', 'The storage failed; nothing was stored.'])
  })

  test('leaves the service ready, which says each reason once in a row', async (t) => {
    const errors = { bad: withCode('not a name', 'pet_refused'), long: withCode('too long', 'pet_refused') }
    const app = await startOn(t, new RefusingStorage(errors))
    for (const name of ['bad', 'bad', 'long', 'bad']) {
      const answer = await app.send('/v1/pets', { name, categoryId: 1 })
      assert.equal(assertRefusal(answer, 503, 'storage_failed'), refused)
    }
    assert.equal((await app.send('/healthz?ready')).status, 200)
    assert.deepEqual(app.messages, [
      'the storage refused a pet: not a name',
      'the storage refused a pet: too long',
      'the storage refused a pet: not a name',
    ])
    assert.deepEqual(app.errors, [])
  })
})

test('is asked for exactly what the query says', async (t) => {
  const storage = new TestStorage([rex])
  const list = storage.list.bind(storage)
  const queries: unknown[] = []
  storage.list = async (query) => {
    queries.push(query)
    return list(query)
  }
  const { url } = await startOn(t, storage)
  for (const query of ['', '?after=0&limit=5', '?after=7&status=sold']) await send(url, `/v1/pets${query}`)
  assert.deepEqual(queries, [
    { limit: 20, status: undefined, after: undefined },
    { limit: 5, status: undefined, after: 0 },
    { limit: 20, status: 'sold', after: 7 },
  ])
})

test('stays in order when a client goes before the storage answers', async (t) => {
  const gate = createGate()
  const storage = new TestStorage([rex])
  const list = storage.list.bind(storage)
  let isFirst = true
  storage.list = async (query) => {
    if (isFirst) {
      isFirst = false
      await gate.pass()
    }
    return list(query)
  }
  const app = await startOn(t, storage)
  const client = await connectRaw(t, app.url)
  client.write(formatRequest('GET /v1/pets'))
  await gate.reached
  client.socket.destroy()
  gate.open()
  assert.equal((await app.send('/v1/pets')).text, `[${JSON.stringify(rex)}]`)
  assert.deepEqual(app.errors, [])
})

describe('close', () => {
  test('waits for a creation in flight, whose client still gets its answer', async (t) => {
    const gate = createGate()
    const storage = new TestStorage()
    const create = storage.create.bind(storage)
    storage.create = async (newPets) => {
      await gate.pass()
      return create(newPets)
    }
    const app = await startOn(t, storage)
    const answer = app.send('/v1/pets', { name: 'Rex', categoryId: 1 })
    await gate.reached
    const closed = app.close()
    gate.open()
    assert.equal((await answer).status, 201)
    await closed
  })

  test('ends although the storage never answers, and refuses the requests that wait for it', async (t) => {
    const gates = { list: createGate(), get: createGate(), create: createGate() }
    const { list, get, create } = gates
    const app = await startOn(t, withMethod({ list: list.pass, get: get.pass, create: create.pass }), 100)
    const creation = app.send('/v1/pets', { name: 'Rex', categoryId: 1 })
    const reads = [app.send('/v1/pets'), app.send('/v1/pets/1')]
    const half = await connectRaw(t, app.url)
    half.write(formatRequest('POST /v1/pets', ['Content-Length: 9', 'Expect: 100-continue']))
    assert.equal((await half.read()).status, 100)
    await Promise.all(Object.values(gates).map(({ reached }) => reached))
    await app.close()
    assert.equal(assertRefusal(await creation, 503, 'storage_failed'), unknownText)
    for (const read of reads) assertRefusal(await read, 503, 'shutting_down')
    // Nothing of this one can be stored.
    assertRefusal(await half.read(), 503, 'shutting_down')
    await half.closed
  })

  test('of a handle calls the storage no more, even for a body that ends later', async () => {
    const storage = new TestStorage()
    const store = await createPetStore({ apiKeys: [key], storage })
    const { readable: body, writable } = new TransformStream()
    const headers = { authorization: `Bearer ${key}` }
    const init: RequestInit = { method: 'POST', headers, body, duplex: 'half' }
    const response = store.fetch(new Request('http://localhost/v1/pets', init))
    await store.close()
    const writer = writable.getWriter()
    void writer.write(new TextEncoder().encode('{"name":"Rex","categoryId":1}'))
    void writer.close()
    const { status } = await response
    assert.deepEqual([status, (await storage.list({ limit: 1 })).pets], [503, []])
  })

  test('logs a request that it gave up once, as it was answered', async () => {
    const gate = createGate()
    const storage = new TestStorage()
    const create = storage.create.bind(storage)
    storage.create = async (newPets) => {
      await gate.pass()
      return create(newPets)
    }
    const logged: RequestLog[] = []
    const onResponse = (entry: RequestLog): void => void logged.push(entry)
    const server = await startPetStore({ apiKeys: [key], storage, onResponse, timeouts: { closeMs: 50 } })
    const answer = send(server.url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
    await gate.reached
    await server.close()
    assert.equal((await answer).status, 503)
    gate.open()
    // The rest of the request, behind the store's queue.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => void setImmediate(resolve))
    assert.deepEqual(
      logged.map(({ status, key: digits, milliseconds }) => [status, digits?.length, milliseconds > 40]),
      [[503, 6, true]],
    )
  })

  test('of a listener waits for what is in flight, but not for what never ends', async (t) => {
    const gate = createGate()
    const storage = new TestStorage()
    const create = storage.create.bind(storage)
    storage.create = async (newPets) => {
      await gate.pass()
      return create(newPets)
    }
    const store = createStorageStore(storage)
    const created = store.create(rex)
    await gate.reached
    const limits: number[] = []
    t.mock.method(clock, 'setTimeout', (call: () => void, limitMs: number) => {
      limits.push(limitMs)
      return setTimeout(call, limitMs)
    })
    const closed = store.close(performance.now() + 60_000)
    gate.open()
    await closed
    assert.ok(Number(limits[0]) > 50_000, String(limits))
    assert.equal((await created).id, 1)
    const stuck = createStorageStore(withMethod({ create: never }))
    void stuck.create(rex)
    await stuck.close(performance.now() + 50)
    // Newer versions of Node warn of a time that is below 0.
    await stuck.close(performance.now() - 50)
    assert.equal(limits.at(-1), 0)
  })
})

test('has neither a count nor a reset, and calls nothing but the three methods', async () => {
  const touched: PropertyKey[] = []
  const storage = new Proxy(new TestStorage(), {
    get(target, name, receiver) {
      touched.push(name)
      return Reflect.get(target, name, receiver)
    },
  })
  const store = await createPetStore({ apiKeys: [key], storage })
  assert.deepEqual(Object.keys(store).toSorted(), ['close', 'disturb', 'fetch', 'listener'])
  await store.close()
  assert.deepEqual(
    touched.filter((name) => !['list', 'get', 'create'].includes(String(name))),
    [],
  )
})

test('refuses what is no storage, or more than one place for the pets', async () => {
  const storage = new TestStorage()
  const options = (more: object): { apiKeys: string[]; storage: PetStorage } =>
    Object.assign({ apiKeys: [key], storage }, more)
  const [list, get, create] = [() => {}, () => {}, () => {}]
  for (const wrong of [{}, [], 'postgres://', { list, get }, { list, create }, { get, create }])
    await assert.rejects(
      startPetStore(options({ storage: wrong })),
      /^TypeError: storage: expected an object/,
    )
  for (const more of [{ pets: [] }, { dataFile: 'a.json' }])
    await assert.rejects(createPetStore(options(more)), /pets, dataFile, storage: expected exactly one/)
})

test('has made Node warn of nothing, also when no time was left to close', async () => {
  const stuck = createStorageStore(withMethod({ create: never }))
  void stuck.create(rex)
  await stuck.close(performance.now() - 50)
  // A warning comes in a later tick.
  await new Promise(setImmediate)
  assert.deepEqual(warnings, [])
})

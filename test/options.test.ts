/** Embedding code that passes wrong options, or callbacks that fail. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  createPetStore,
  type PetStoreOptions,
  type PetStoreServerOptions,
  startPetStore,
} from '../src/index.ts'
import { assertRefusal, key, makeDataFile, send } from './support.ts'

const pets = [{ id: 1, name: 'Rex', categoryId: 1, status: 'available' }] as const
const good = { apiKeys: [key], pets }

/** Options as JavaScript may pass them. */
function untyped(options: unknown): PetStoreOptions & PetStoreServerOptions {
  // The cast is what these tests are about: types do not stop JavaScript.
  return options as PetStoreOptions & PetStoreServerOptions
}

async function errorOf(started: Promise<{ close(): Promise<void> }>): Promise<string> {
  try {
    await (await started).close()
  } catch (error) {
    assert.ok(error instanceof TypeError, String(error))
    return error.message
  }
  return 'no error'
}

const wrongOptions: readonly (readonly [options: object, expected: RegExp])[] = [
  [{ apiKeys: undefined }, /^apiKeys: is required, an array of keys$/],
  [{ apiKeys: 'secret' }, /^apiKeys: expected an array of keys, got a string$/],
  [{ apiKeys: [] }, /^apiKeys: expected at least one key, got an empty array$/],
  [{ apiKeys: [key, 5] }, /^apiKeys\[1\]: expected a key, got 5$/],
  [{ apiKeys: ['a b', key] }, /^apiKeys\[0\]: expected letters, digits and [^ ]+ with "=" at the end only$/],
  [
    { apiKeys: ['k'.repeat(15_361)] },
    /^apiKeys\[0\]: is too long to be sent in 16 KiB of headers: expected at most 15360 characters, got 15361$/,
  ],
  [{ pets: undefined }, /^pets, dataFile, storage: expected exactly one of them, got none$/],
  [{ dataFile: 'a.json' }, /^pets, dataFile, storage: expected exactly one of them, got pets and dataFile$/],
  [{ pets: { id: 1 } }, /^pets: expected an array of pets, got an object$/],
  [{ pets: [{ name: 'Rex' }] }, /categoryId: is required$/],
  [{ pets: undefined, dataFile: ' ' }, /^dataFile: expected the path of a file, got " "$/],
  [{ pets: undefined, dataFile: 5 }, /^dataFile: expected the path of a file, got 5$/],
  [{ pets: undefined, dataFile: '~/a.json' }, /^dataFile: .*, got "~\/a\.json": no shell expanded the "~"/],
  [
    { pets: undefined, storage: { list: 5 } },
    /^storage: expected an object with the methods list, get, create, /,
  ],
  [{ corsOrigins: 'https://a.test' }, /^corsOrigins: expected "\*" or an array of origins, got "https:/],
  [
    { corsOrigins: ['https://a.test', 'https://b.test/'] },
    /^corsOrigins\[1\]: expected an origin such as https:\/\/example\.org, got "https:\/\/b\.test\/"; write https:\/\/b\.test$/,
  ],
  [
    { corsOrigins: ['a.test', null] },
    /^corsOrigins\[0\]: .*\ncorsOrigins\[1\]: expected an origin, got null$/,
  ],
  [
    { delayMs: -1 },
    /^delayMs: expected milliseconds from 0 to 10000, or \[minimum, maximum\] in this order, got -1$/,
  ],
  [{ delayMs: [5, 1] }, /^delayMs: expected .* in this order, got an array$/],
  [{ delayMs: 10_001 }, /^delayMs: .* got 10001$/],
  [{ delayMs: Number.NaN }, /^delayMs: .* got NaN$/],
  [{ delayMs: '300' }, /^delayMs: .* got "300"$/],
  [{ delayMs: [800, 200] }, /^delayMs: .* got an array$/],
  [{ delayMs: [200] }, /^delayMs: .* got an array$/],
  [{ delayMs: [1, 2, 3] }, /^delayMs: .* got an array$/],
  [{ onMessage: 'log' }, /^onMessage: expected a function, got "log"$/],
  [{ onResponse: {} }, /^onResponse: expected a function, got an object$/],
  [{ onError: null }, /^onError: expected a function, got null$/],
  [{ apiKey: key }, /^apiKey: is unknown, expected one of apiKeys, pets, dataFile, storage, /],
  [{ toString: key }, /^toString: is unknown/],
]

const wrongServerOptions: readonly (readonly [options: object, expected: RegExp])[] = [
  [{ port: 65_536 }, /^port: expected an integer from 0 to 65535, got 65536$/],
  [{ port: '3000' }, /^port: expected an integer from 0 to 65535, got "3000"$/],
  [{ host: '' }, /^host: expected an address or a name of this machine, got ""$/],
  [{ host: () => {} }, /^host: expected an address or a name of this machine, got a function$/],
  [{ mountPath: '/a' }, /^mountPath: is unknown, expected one of .*, timeouts$/],
  [{ basePath: '/a/' }, /^basePath: expected a path such as \/store, got "\/a\/"; write \/a$/],
  [{ timeouts: 5 }, /^timeouts: expected an object, got 5$/],
  [
    { timeouts: { idleMs: -1 } },
    /^timeouts\.idleMs: expected an integer of milliseconds from 1 to 2147483647, got -1$/,
  ],
  [{ timeouts: { idleMs: Number.NaN } }, /^timeouts\.idleMs: .* got NaN$/],
  [{ timeouts: { idleMs: Infinity } }, /^timeouts\.idleMs: .* got Infinity$/],
  [{ timeouts: { closeMs: '5' } }, /^timeouts\.closeMs: .* got "5"$/],
  [{ timeouts: { idle: 1 } }, /^timeouts\.idle: is unknown, expected one of headersMs, /],
  [{ timeouts: { requestMs: 5 } }, /^timeouts: expected headersMs to be at most requestMs, got 10000 and 5$/],
]

for (const [options, expected] of [...wrongOptions, ...wrongServerOptions]) {
  test(`refuses ${expected.source.slice(1, 70)}…`, async () => {
    assert.match(await errorOf(startPetStore(untyped({ ...good, ...options }))), expected)
  })
}

for (const [options, expected] of wrongOptions) {
  test(`refuses without listening ${expected.source.slice(1, 60)}…`, async () => {
    assert.match(await errorOf(createPetStore(untyped({ ...good, ...options }))), expected)
  })
}

test('refuses a base path that no request target can have', async () => {
  for (const basePath of ['store', '/store/', '/a b', '/ä', '/a\r\nX-A: 1', '/%zz', 5]) {
    const message = await errorOf(createPetStore(untyped({ ...good, basePath })))
    assert.match(message, /^basePath: expected a path such as \/store, got /)
  }
  assert.match(await errorOf(createPetStore(untyped({ ...good, port: 0 }))), /^port: is unknown/)
})

test('names all that is wrong with the pets, one after the other', async () => {
  const wrong = [{ name: 5 }, { id: 1, name: 'a', categoryId: 1 }, { id: 1, name: 'b', categoryId: 1 }]
  assert.equal(
    await errorOf(createPetStore(untyped({ apiKeys: [key], pets: wrong }))),
    'pets[0].name: expected a string, got 5\npets[0].categoryId: is required\n' +
      'pets[2].id: 1 is given twice, first in pets[1]',
  )
})

test('refuses options that are not an object', async () => {
  for (const options of [undefined, null, 'a', [good]]) {
    assert.match(await errorOf(startPetStore(untyped(options))), /^options: expected an object, got /)
  }
})

test('names all errors together, and shows no key', async () => {
  const message = await errorOf(
    startPetStore(untyped({ apiKeys: ['hush hush'], port: -1, timeouts: { idle: 1 }, b: 2 })),
  )
  const places = message.split('\n').map((fault) => fault.slice(0, fault.indexOf(':')))
  assert.deepEqual(places, ['apiKeys[0]', 'port', 'timeouts.idle', 'b', 'pets, dataFile, storage'])
  assert.doesNotMatch(message, /hush/)
})

test('names what is wrong with the pets beside what is wrong with the options, a line each', async () => {
  const options = { apiKeys: [key], pets: [{ name: 'x' }, 5], delayMs: 'x', prot: 3 }
  for (const create of [startPetStore, createPetStore]) {
    const lines = (await errorOf(create(untyped(options)))).split('\n')
    assert.deepEqual(
      lines.map((line) => line.replace(/, expected one of .*/, '')),
      [
        'delayMs: expected milliseconds from 0 to 10000, or [minimum, maximum] in this order, got "x"',
        'prot: is unknown',
        'pets[0].categoryId: is required',
        'pets[1]: expected a pet, got 5',
      ],
    )
  }
})

test('treats an undefined option, id and status as not given', async () => {
  const options = { ...good, dataFile: undefined, port: undefined, host: undefined, timeouts: undefined }
  await (await startPetStore({ ...good, timeouts: { headersMs: undefined, closeMs: undefined } })).close()
  const undefinedMembers = { id: undefined, name: 'Rex', categoryId: 1, status: undefined }
  const callbacks = { onMessage: undefined, onResponse: undefined, onError: undefined }
  const store = await startPetStore(
    untyped({
      ...options,
      ...callbacks,
      corsOrigins: undefined,
      delayMs: undefined,
      pets: [undefinedMembers],
    }),
  )
  assert.equal(
    (await send(store.url, '/v1/pets')).text,
    '[{"id":1,"name":"Rex","categoryId":1,"status":"available"}]',
  )
  await store.close()
})

test('accepts the longest key, and a client can send it', async (t) => {
  const longest = 'k'.repeat(15_360)
  const store = await startPetStore({ apiKeys: [longest], pets })
  t.after(() => store.close())
  const headers = { authorization: `Bearer ${longest}` }
  assert.equal((await send(store.url, '/v1/pets', { headers })).status, 200)
})

const failures: Readonly<Record<string, () => unknown>> = {
  throws: () => {
    throw new Error('mistake')
  },
  rejects: async () => {
    await Promise.resolve()
    throw new Error('mistake')
  },
}

test('responds as usual when a callback fails with what cannot be put into words', async (t) => {
  const unspeakable = Object.assign(new Error(), {
    toString() {
      throw new Error('not even that')
    },
  })
  for (const onResponse of [() => assert.fail(unspeakable), () => Promise.reject(unspeakable)]) {
    const errors: string[] = []
    const store = await startPetStore({ ...good, onResponse, onError: (message) => errors.push(message) })
    t.after(() => store.close())
    const body = { name: 'Kit', categoryId: 1 }
    const refused = await send(store.url, '/v1/pets', { body, headers: { 'content-type': 'text/plain' } })
    assertRefusal(refused, 415, 'unsupported_media_type')
    assert.equal((await send(store.url, '/v1/pets')).status, 200)
    assert.deepEqual(errors, [])
  }
})

const giveNoPets = async (): Promise<string> => 'no pets'
const wrongStorage = { list: giveNoPets, get: giveNoPets, create: giveNoPets }

for (const [how, fail] of Object.entries(failures)) {
  test(`responds as usual when onResponse ${how}, and tells onError`, async (t) => {
    const errors = new EventEmitter()
    const told = once(errors, 'told')
    const store = await startPetStore({
      ...good,
      onResponse: fail,
      onError: (message) => errors.emit('told', message),
    })
    t.after(() => store.close())
    assert.equal((await send(store.url, '/v1/pets')).text, JSON.stringify(pets))
    assert.deepEqual(await told, ['onResponse failed: Error: mistake'])
    assertRefusal(await send(store.url, '/nowhere'), 404, 'not_found')
  })

  test(`reloads the data file when onMessage ${how}, and tells onError`, async (t) => {
    const dataFile = makeDataFile([JSON.stringify(pets[0])])
    const errors = new EventEmitter()
    const told = once(errors, 'told')
    const store = await startPetStore({
      apiKeys: [key],
      dataFile,
      onMessage: fail,
      onError: (message) => errors.emit('told', message),
    })
    t.after(() => store.close())
    writeFileSync(dataFile, readFileSync(dataFile, 'utf8').replace('Rex', 'Rosie'))
    await store.reset()
    assert.match((await send(store.url, '/v1/pets')).text, /Rosie/)
    assert.deepEqual(await told, ['onMessage failed: Error: mistake'])
  })

  test(`responds as usual when onError ${how} as well`, async (t) => {
    let calls = 0
    const onError = (): unknown => {
      calls++
      return fail()
    }
    const store = await startPetStore({ ...good, onResponse: fail, onError })
    t.after(() => store.close())
    for (let i = 1; i <= 3; i++) assert.equal((await send(store.url, '/v1/pets')).status, 200)
    assert.equal(calls, 3)
  })

  test(`answers 500 to what the storage gets wrong when onError ${how}`, async (t) => {
    let calls = 0
    const onError = (): unknown => {
      calls++
      return fail()
    }
    const store = await startPetStore(untyped({ apiKeys: [key], storage: wrongStorage, onError }))
    t.after(() => store.close())
    for (let i = 1; i <= 3; i++) assertRefusal(await send(store.url, '/v1/pets'), 500, 'internal_error')
    assert.equal(calls, 3)
  })
}

/** The service in other people's code: its types, its options, where it is mounted, and how it is closed. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { type RequestListener, ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createPetStore, type PetStoreHandle, type RequestLog, startPetStore } from '../src/index.ts'
import { buildOnce } from './built.ts'
import {
  assertRefusal,
  connectRaw,
  formatRequest,
  isThorough,
  key,
  listen,
  makeDataFile,
  makeFolder,
  readPetLines,
  root,
  send,
  share,
} from './support.ts'

const dist = buildOnce()
const rex = { id: 1, name: 'Rex', categoryId: 1, status: 'available' } as const
const memory = { apiKeys: [key], pets: [rex] }

/** A project that has installed this package, and Node's types, and nothing else. */
function makeProject(files: Readonly<Record<string, string>>): string {
  const folder = makeFolder()
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, 'petstore'), { recursive: true })
  cpSync(dist, join(modules, 'petstore/dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(modules, 'petstore/package.json'))
  for (const name of ['@types', 'undici-types']) {
    symlinkSync(join(root, 'node_modules', name), join(modules, name), 'junction')
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** Runs a script that ends by itself. */
async function runScript(cwd: string, name: string): Promise<string> {
  const child = spawn(process.execPath, [name], { cwd, timeout: 120_000 })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code, signal]: unknown[] = await once(child, 'close')
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, output)
  return output
}

const optionsText = `{ apiKeys: ['k'], pets: [{ name: 'Rex', categoryId: 1 }] }`
const use = `
  const store = await startPetStore(${optionsText})
  const answer = await fetch(store.url + '/v1/pets', { headers: { authorization: 'Bearer k' } })
  console.log(await answer.text())
  await store.close()`
const listed = '[{"id":1,"name":"Rex","categoryId":1,"status":"available"}]\n'

test('a store that is started anew on the port of one that was closed responds to the first request', async () => {
  let port = 0
  for (let round = 0; round < 20; round++) {
    const store = await startPetStore({ apiKeys: [key], pets: [], port })
    port = Number(new URL(store.url).port)
    // Node's fetch keeps its connections for the next request.
    const response = await fetch(`${store.url}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })
    assert.equal(await response.text(), '[]')
    await store.close()
  }
})

test('is imported by an ES module, whose process ends by itself once it is closed', async () => {
  const text = `import { startPetStore } from 'petstore'\n${use}`
  assert.equal(await runScript(makeProject({ 'a.mjs': text }), 'a.mjs'), listed)
})

test('is required by a CommonJS module', async () => {
  const text = `const { startPetStore } = require('petstore')\nvoid (async () => {${use}\n})()`
  assert.equal(await runScript(makeProject({ 'a.cjs': text }), 'a.cjs'), listed)
})

test('does not keep a process alive that created a store and never closed it', async () => {
  const text = `
    import { createPetStore } from 'petstore'
    await createPetStore(${optionsText})
    await createPetStore({ apiKeys: ['k'], dataFile: 'pets.json' })
    console.log('end')`
  assert.equal(await runScript(makeProject({ 'a.mjs': text }), 'a.mjs'), 'end\n')
})

test('reads no environment, prints nothing, and leaves signals, exit code and globals as they are', async () => {
  const text = `
    const names = () => [...Object.getOwnPropertyNames(globalThis), process.eventNames().join(), process.exitCode]
    fetch; const before = names()
    const read = []
    const { env } = process
    Object.defineProperty(process, 'env', {
      configurable: true,
      get() {
        // Node itself reads the environment too, so only reads by the package count.
        const caller = new Error().stack.split('\\n')[2]
        if (caller.includes('petstore')) read.push(caller)
        return env
      },
    })
    const { startPetStore } = await import('petstore')
    const log = console.log
    for (const name of ['log', 'info', 'warn', 'error', 'debug']) console[name] = () => read.push(name)
    const store = await startPetStore({ apiKeys: ['k'], dataFile: 'pets.json', port: 0 })
    for (const [method, headers] of [['GET', {}], ['POST', { authorization: 'Bearer k' }]]) {
      await (await fetch(store.url + '/v1/pets', { method, headers })).text()
    }
    await store.reset()
    const during = names()
    await store.close()
    log(JSON.stringify([read, before.join() === during.join(), before.join() === names().join()]))`
  const env = { 'a.mjs': text }
  assert.equal(await runScript(makeProject(env), 'a.mjs'), '[[],true,true]\n')
})

const typed = `
  const seeds: readonly SeedPet[] = [{ name: 'Rex', categoryId: 2n ** 53n, status: 'sold' }, { id: 7, name: '', categoryId: 1 }]
  const lines: string[] = []
  export async function use(): Promise<number> {
    await using store: PetStoreServer = await startPetStore({ apiKeys: ['k'], pets: seeds, port: 0 })
    const onResponse = ({ method, path, status, milliseconds }: RequestLog): void => {
      lines.push(method + path + status.toFixed() + milliseconds.toFixed())
    }
    const options: PetStoreOptions = { apiKeys: ['k'], dataFile: 'a.json', basePath: '/a', corsOrigins: [], onResponse }
    const mounted: PetStoreHandle = await createPetStore(options)
    createServer(mounted.listener)
    await mounted.reset()
    await mounted.close()
    const storage: PetStorage = {
      list: async ({ limit, status, after }) => ({ pets: [], total: 0n, hasMore: limit > 9 && status === 'sold' && after === 1n }),
      get: async (id) => (id > 1 ? { id, name: 'Rex', categoryId: 1, status: 'sold' } : undefined),
      create: async (newPets) => newPets.map((newPet, index) => ({ ...newPet, id: index + 1 })),
    }
    await using shared: StorageServer = await startPetStore({ apiKeys: ['k'], storage, port: 0 })
    const mountedShared: StorageHandle = await createPetStore({ apiKeys: ['k'], storage, basePath: '/a' })
    createServer(mountedShared.listener)
    await mountedShared.close()
    const shortest: NewPet = { name: 'Rex', categoryId: 1 }
    const complete: PetWithoutId = { ...shortest, status: 'sold' }
    const pet: Pet = { id: 1, ...complete }
    // @ts-expect-error A storage gets no pet without its status.
    await storage.create([shortest])
    // @ts-expect-error A server on a storage has no reset,
    await shared.reset()
    // @ts-expect-error and no countPets.
    shared.countPets()
    // @ts-expect-error Nor does a handle have them.
    await (await createPetStore({ apiKeys: ['k'], storage })).reset()
    // @ts-expect-error Pets are on a storage or in a file.
    await startPetStore({ apiKeys: ['k'], storage, dataFile: 'a.json' })
    // @ts-expect-error Pets are on a storage or in memory.
    await createPetStore({ apiKeys: ['k'], storage, pets: [] })
    // @ts-expect-error A storage has three methods.
    await startPetStore({ apiKeys: ['k'], storage: { list: storage.list, get: storage.get } })
    // @ts-expect-error There is no such option.
    await startPetStore({ apiKeys: ['k'], storage, dataFolder: 'a' })
    // @ts-expect-error A key is required.
    await startPetStore({ pets: [] })
    // @ts-expect-error Pets are in memory or on a file.
    await startPetStore({ apiKeys: ['k'], pets: [], dataFile: 'a.json' })
    // @ts-expect-error One of the three is required.
    await createPetStore({ apiKeys: ['k'] })
    // @ts-expect-error There is no such status.
    await createPetStore({ apiKeys: ['k'], pets: [{ name: 'Rex', categoryId: 1, status: 'lost' }] })
    const nothing = { basePath: undefined, corsOrigins: undefined, delayMs: undefined, fail: undefined, dataFile: undefined }
    const silence = { onMessage: undefined, onResponse: undefined, onError: undefined, storage: undefined }
    const timeouts = { headersMs: undefined, requestMs: undefined, idleMs: undefined, closeMs: undefined }
    const bare: SeedPet = { id: undefined, name: 'Rex', categoryId: 1, status: undefined }
    await startPetStore({ apiKeys: ['k'], pets: [bare], ...nothing, ...silence, port: undefined, host: undefined, timeouts })
    return pet.name.length + store.countPets() + store.url.length + shared.url.length
  }`
const typeNames =
  'type NewPet, type Pet, type PetWithoutId, type RequestLog, type PetStorage, type PetStoreHandle, type PetStoreOptions, type PetStoreServer, type SeedPet, type StorageHandle, type StorageServer'
const typedImports = `import { createPetStore, startPetStore, ${typeNames} } from 'petstore'
  import { createServer } from 'node:http'`

const compiler = join(dirname(fileURLToPath(import.meta.resolve('typescript/package.json'))), 'bin/tsc')

function assertCompiles(folder: string, args: readonly string[] = []): void {
  // The compiler ends before it has to collect garbage: a third less work.
  const env = { ...process.env, GOGC: 'off' }
  const options = { cwd: folder, env, encoding: 'utf8' } as const
  const { stdout, status } = spawnSync(process.execPath, [compiler, '--singleThreaded', ...args], options)
  assert.equal(stdout, '')
  assert.equal(status, 0)
}

const moduleSettings = [
  ['nodenext', 'nodenext'],
  ['node16', 'node16'],
  ['preserve', 'bundler'],
] as const
// Without the browser's types, as for a program on Node; checking those is half of the work. The next test has them.
for (const [module, resolution] of share(moduleSettings, 1)) {
  test(`has types that strict code compiles against with module ${module}`, () => {
    const text = `${typedImports}\n${typed}`
    const folder = makeProject({ 'a.mts': text, 'b.cts': text })
    const settings = `--noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --skipLibCheck false
      --target es2022 --lib es2022 --types node --module ${module} --moduleResolution ${resolution} a.mts b.cts`
    assertCompiles(folder, settings.split(/\s+/))
  })
}

// The quick run compiles one project, which is the one above.
const skip = isThorough ? false : 'npm run test:thorough runs it'
test(
  "compiles in a project of Vite's template without skipLibCheck, with Node's types added as the documentation says",
  { skip },
  () => {
    const types = /`("types": \[.+?\])`/.exec(readFileSync(join(root, 'src/embedding.md'), 'utf8'))?.[1]
    const line = /^const pets: SeedPet\[\] = .+/m.exec(
      readFileSync(join(root, 'src/embedding.md'), 'utf8'),
    )?.[0]
    const folder = makeProject({
      'tsconfig.json': `{ "compilerOptions": {
      "target": "es2022", "module": "esnext", "moduleResolution": "bundler", "moduleDetection": "force", "noEmit": true, "strict": true,
      "lib": ["ES2022", "DOM", "DOM.Iterable"], "verbatimModuleSyntax": true, "skipLibCheck": false, ${types} } }`,
      'a.ts': `import { startPetStore, type SeedPet } from 'petstore'
      ${line}
      const store = await startPetStore({ apiKeys: ['k'], pets: [{ name: 'Mia', categoryId: 2, status: 'sold' }] })
      await store.reset(pets)`.replaceAll(/^ +/gm, ''),
    })
    const vite = join(folder, 'node_modules/vite')
    mkdirSync(vite)
    writeFileSync(join(vite, 'package.json'), '{"exports":{"./client":{"types":"./client.d.ts"}}}')
    writeFileSync(join(vite, 'client.d.ts'), 'interface ImportMeta { readonly env: Record<string, string> }')
    assertCompiles(folder)
  },
)

test('brings back the pets in memory with reset', async (t) => {
  const store = await startPetStore(memory)
  t.after(() => store.close())
  assert.equal((await send(store.url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } })).status, 201)
  assert.equal(store.countPets(), 2)
  await store.reset()
  assert.equal(store.countPets(), 1)
  assert.equal((await send(store.url, '/v1/pets')).text, JSON.stringify([rex]))
  const again = await send(store.url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } })
  assert.equal(again.headers.get('location'), '/v1/pets/2')
})

test('is not affected when the caller changes the pets that it passed', async (t) => {
  const pets = [{ ...rex }]
  const store = await startPetStore({ apiKeys: [key], pets })
  t.after(() => store.close())
  pets.push({ ...rex, id: 1 })
  Object.assign(pets[0] ?? {}, { name: 'Max' })
  await store.reset()
  assert.equal((await send(store.url, '/v1/pets')).text, JSON.stringify([rex]))
})

test('has other pets from a reset with them on, and at the next reset those that it was created with', async (t) => {
  const store = await startPetStore(memory)
  t.after(() => store.close())
  const list = async (): Promise<unknown> => JSON.parse((await send(store.url, '/v1/pets')).text)
  const pets = [{ name: 'Kit', categoryId: 3 }]
  await store.reset(pets)
  const kit = { id: 1, name: 'Kit', categoryId: 3, status: 'available' }
  assert.deepEqual(await list(), [kit])
  store.disturb({ fail: '503' })
  for (const [wrong, message] of [
    [
      [rex, { name: 5, categoryId: 1 }, rex],
      /^pets\[1\]\.name: .+\npets\[2\]\.id: 1 is given twice, first in pets\[0\]$/,
    ],
    [{ name: 'a context' }, /^pets: expected an array of pets, got /],
    [null, /^pets: expected an array of pets, got null; as a hook, write \(\) => store\.reset\(\)$/],
  ] as const) {
    // @ts-expect-error These are no pets.
    await assert.rejects(store.reset(wrong), { name: 'TypeError', message })
    assert.equal((await send(store.url, '/v1/pets')).status, 503)
  }
  store.disturb({ fail: 'none' })
  assert.deepEqual(await list(), [kit])
  await store.reset()
  assert.deepEqual(await list(), [rex])
  assert.equal(store.reset.length, 0)
})

test('refuses to be reset to other pets on a data file, and changes nothing', async (t) => {
  const dataFile = makeDataFile([JSON.stringify(rex)])
  const store = await startPetStore({ apiKeys: [key], dataFile })
  t.after(() => store.close())
  await assert.rejects(store.reset([]), {
    name: 'TypeError',
    message: /^pets: a store on a data file takes no/,
  })
  assert.equal(readPetLines(dataFile).length, 1)
  assert.equal(store.countPets(), 1)
})

test('reads the data file again with reset', async (t) => {
  const dataFile = makeDataFile([JSON.stringify(rex)])
  const store = await startPetStore({ apiKeys: [key], dataFile })
  t.after(() => store.close())
  writeFileSync(dataFile, readFileSync(dataFile, 'utf8').replace('Rex', 'Rosie'))
  await store.reset()
  assert.match((await send(store.url, '/v1/pets')).text, /Rosie/)
  assert.equal((await send(store.url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } })).status, 201)
  assert.equal(readPetLines(dataFile).length, 2)
})

test('rejects reset with the code of the refusal while the data file cannot be used, after it has ended failures on purpose', async (t) => {
  const dataFile = makeDataFile([JSON.stringify(rex)])
  const store = await startPetStore({ apiKeys: [key], dataFile })
  t.after(() => store.close())
  store.disturb({ fail: '503' })
  writeFileSync(dataFile, '{"pets": [}')
  const fault = 'line 1, column 11: expected a value, got "}"'
  const message = `The data file is not valid (${fault}); the last valid pets are still served.`
  await assert.rejects(store.reset(), { code: 'data_file_invalid', message })
  assert.equal((await send(store.url, '/v1/pets')).status, 200)
})

test('closes once, however often it is told to, and releases port and file', async () => {
  const dataFile = makeDataFile()
  const store = await startPetStore({ apiKeys: [key], dataFile })
  assert.deepEqual(await Promise.all([store.close(), store.close(), store[Symbol.asyncDispose]()]), [
    undefined,
    undefined,
    undefined,
  ])
  await store.close()
  const port = Number(new URL(store.url).port)
  const next = await startPetStore({ apiKeys: [key], dataFile, port })
  assert.equal(next.url, store.url)
  await next.close()
  await assert.rejects(fetch(store.url))
})

test('closes at the end of a block with `await using`', async () => {
  let url = ''
  {
    await using store = await startPetStore(memory)
    url = store.url
    assert.equal((await send(url, '/v1/pets')).status, 200)
  }
  await assert.rejects(fetch(url))
})

test('refuses to be reset and disturbed once it is closed', async () => {
  const onFile = { apiKeys: [key], dataFile: makeDataFile() }
  for (const start of [
    () => createPetStore(memory),
    () => startPetStore(memory),
    () => createPetStore(onFile),
    () => startPetStore(onFile),
  ]) {
    const store = await start()
    const closed = store.close()
    const refusal = { code: 'shutting_down', message: 'The store is closed.' }
    assert.throws(() => store.disturb({ fail: '503' }), refusal)
    await assert.rejects(store.reset(), refusal)
    await closed
    assert.throws(() => store.disturb({ fail: '503' }), refusal)
    await assert.rejects(store.reset(), refusal)
  }
})

test('responds, sees edits and closes while the timers of the process are fake', async (t) => {
  t.mock.timers.enable()
  const dataFile = makeDataFile()
  const said: string[] = []
  const store = await startPetStore({
    apiKeys: [key],
    dataFile,
    delayMs: 1,
    onMessage: (message) => said.push(message),
  })
  t.after(() => store.close())
  const client = await connectRaw(t, store.url)
  for (const [request, status] of [
    [formatRequest('POST /v1/pets', [], '{"name":"Mia","categoryId":2}'), 201],
    [formatRequest('GET /v1/pets', ['Authorization: Bearer wrong']), 401],
    [formatRequest('GET /v1/pets'), 200],
  ] as const) {
    client.write(request)
    assert.equal((await client.read()).status, status)
  }
  writeFileSync(dataFile, readFileSync(dataFile, 'utf8').replace('Mia', 'Max'))
  while (said.length === 0) {
    client.write(formatRequest('GET /v1/pets'))
    await client.read()
  }
  assert.deepEqual(said, ['reloaded 1 pet: 0 added, 0 removed, 1 changed'])
  await store.close()
  await client.closed
})

test('runs several in one process, each with its own pets and keys', async (t) => {
  const stores = await Promise.all(
    Array.from({ length: 5 }, (_, index) =>
      startPetStore({ apiKeys: [`key-${index}`], pets: [{ ...rex, name: `Rex ${index}` }] }),
    ),
  )
  t.after(() => Promise.all(stores.map((store) => store.close())))
  for (const [index, { url }] of stores.entries()) {
    const authorized = await send(url, '/v1/pets/1', { headers: { authorization: `Bearer key-${index}` } })
    assert.match(authorized.text, new RegExp(`"Rex ${index}"`))
    const other = await send(url, '/v1/pets/1', { headers: { authorization: `Bearer key-${index + 1}` } })
    assert.equal(other.status, 401)
  }
})

test('rejects when it cannot start, and keeps neither port nor file', async (t) => {
  const dataFile = makeDataFile()
  await assert.rejects(startPetStore({ apiKeys: ['a b'], dataFile }), TypeError)
  await assert.rejects(createPetStore({ apiKeys: [key], pets: [rex, rex] }), TypeError)
  const taken = await startPetStore(memory)
  t.after(() => taken.close())
  const port = Number(new URL(taken.url).port)
  await assert.rejects(startPetStore({ apiKeys: [key], dataFile, port }), {
    code: 'EADDRINUSE',
    message: `port: ${port} is taken by another program on 127.0.0.1; stop that program, or choose another port`,
  })
  await assert.rejects(startPetStore({ apiKeys: [key], dataFile, host: 'host.invalid' }), {
    code: /^(?:ENOTFOUND|EAI_AGAIN)$/,
    message: /^host: host\.invalid could not be looked up; /,
  })
  const store = await startPetStore({ apiKeys: [key], dataFile })
  await assert.rejects(createPetStore({ apiKeys: [key], dataFile }), /pets\.json/)
  await store.close()
})

test('closes the connection, tells onError, and goes on, when a response cannot be sent as it is', async (t) => {
  const told: string[] = []
  const store = await startPetStore({ ...memory, onError: (message) => told.push(message) })
  t.after(() => store.close())
  t.mock.method(
    ServerResponse.prototype,
    'writeHead',
    () => {
      throw new TypeError('an invalid header')
    },
    { times: 1 },
  )
  await assert.rejects(send(store.url, '/healthz'))
  assert.deepEqual(told, ['internal_error in GET /healthz: TypeError'])
  assert.equal((await send(store.url, '/healthz')).status, 200)
})

test('reports every response to onResponse: who did what, and how it ended', async (t) => {
  const told: RequestLog[] = []
  const store = await startPetStore({ ...memory, onResponse: (entry) => told.push(entry) })
  t.after(() => store.close())
  await send(store.url, '/v1/pets?secret=hush&limit=1')
  await send(store.url, '/v1/pets', { body: {} })
  await send(store.url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } })
  await send(store.url, '/v1/pets', { headers: { authorization: null } })
  const accepted = { query: '', code: undefined, isOnPurpose: false, key: '62af87', id: undefined }
  const usual = { client: '127.0.0.1', path: '/v1/pets', isPoll: false, isGone: false }
  assert.deepEqual(
    told.map(({ milliseconds: _milliseconds, ...entry }) => entry),
    [
      { ...usual, ...accepted, method: 'GET', status: 200, query: '?limit=1' },
      { ...usual, ...accepted, method: 'POST', status: 400, code: 'invalid_body' },
      { ...usual, ...accepted, method: 'POST', status: 201, id: 2 },
      { ...usual, ...accepted, method: 'GET', status: 401, code: 'unauthorized', key: undefined },
    ],
  )
})

test('works as the listener of another server', async (t) => {
  const store = await createPetStore(memory)
  t.after(() => store.close())
  const url = await listen(t, store.listener)
  assert.equal((await send(url, '/v1/pets')).text, JSON.stringify([rex]))
  assert.equal((await send(url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } })).status, 201)
  assertRefusal(await send(url, '/elsewhere'), 404, 'not_found')
})

test('tells onError that the body was read before, and what to do about it', async (t) => {
  const errors: string[] = []
  const store = await createPetStore({ ...memory, onError: (message) => errors.push(message) })
  t.after(() => store.close())
  const readers: readonly RequestListener[] = [
    // As express.json() does.
    (request, response) => {
      request.on('end', () => store.listener(request, response)).resume()
    },
    // Something that still reads it.
    (request, response) => {
      request.once('data', () => store.listener(request, response))
    },
  ]
  for (const reader of readers) {
    const url = await listen(t, reader)
    const answer = await send(url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } })
    assert.doesNotMatch(assertRefusal(answer, 500, 'internal_error'), /body/)
  }
  const empty = await send(await listen(t, readers[0] ?? assert.fail()), '/v1/pets', { body: '' })
  assertRefusal(empty, 500, 'internal_error')
  const expected =
    'internal_error in POST /v1/pets: the body was read before; mount the listener ahead of body parsers such as express.json()'
  assert.deepEqual(errors, [expected, expected, expected])
  assert.equal(store.countPets(), 1)
})

test('closes the connection, and lives on, when the app around it throws while a pet is confirmed', async (t) => {
  const errors: string[] = []
  const store = await createPetStore({ ...memory, onError: (message) => errors.push(message) })
  t.after(() => store.close())
  const url = await listen(t, (request, response) => {
    if (request.method === 'POST') {
      response.writeHead = () => {
        throw new TypeError('of the app')
      }
    }
    store.listener(request, response)
  })
  await assert.rejects(send(url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } }))
  assert.deepEqual(errors, ['internal_error in POST /v1/pets: TypeError'])
  assert.equal((await send(url, '/v1/pets')).status, 200)
})

test('closes the connection, and lives on, when the app around it throws at a delayed response', async (t) => {
  const errors: string[] = []
  const store = await createPetStore({ ...memory, delayMs: 1, onError: (message) => errors.push(message) })
  t.after(() => store.close())
  const url = await listen(t, (request, response) => {
    if (request.method === 'HEAD') {
      response.writeHead = () => {
        throw new TypeError('of the app')
      }
    }
    store.listener(request, response)
  })
  await assert.rejects(send(url, '/v1/pets', { method: 'HEAD' }))
  assert.match(errors.join(), /internal_error in HEAD \/v1\/pets: TypeError/)
  assert.equal((await send(url, '/v1/pets')).status, 200)
})

test('answers HEAD in a server that refuses to write a body there', async (t) => {
  const store = await createPetStore(memory)
  t.after(() => store.close())
  const url = await listen(t, store.listener, { rejectNonStandardBodyWrites: true })
  const { status, headers, text } = await send(url, '/v1/pets/1', { method: 'HEAD' })
  assert.deepEqual(
    [status, headers.get('content-length'), text],
    [200, String(JSON.stringify(rex).length), ''],
  )
})

test('keeps the headers that the app around it sets, and calls its writeHead', async (t) => {
  const store = await createPetStore(memory)
  t.after(() => store.close())
  const own = await send(await listen(t, store.listener), '/v1/pets/1')
  const sethead: RequestListener = (request, response) => {
    response.setHeader('Set-Cookie', ['a=1', 'b=2'])
    store.listener(request, response)
  }
  const wrapped: RequestListener = (request, response) => {
    const writeHead = response.writeHead.bind(response)
    response.writeHead = (status: number) => {
      response.setHeader('X-Status', status)
      return writeHead(status)
    }
    store.listener(request, response)
  }
  const client = await connectRaw(t, await listen(t, sethead))
  client.write(formatRequest('GET /v1/pets/1'))
  const cookies = await client.read()
  assert.deepEqual(
    cookies.headerLines.filter((line) => line.startsWith('Set-Cookie')),
    ['Set-Cookie: a=1', 'Set-Cookie: b=2'],
  )
  for (const [name, value] of own.headers) if (name !== 'date') assert.equal(cookies.headers.get(name), value)
  assert.equal(cookies.body, own.text)
  const counted = await send(await listen(t, wrapped), '/v1/pets/1')
  assert.equal(counted.headers.get('x-status'), '200')
  assert.equal(counted.text, own.text)
})

const mounts: Readonly<Record<string, (store: PetStoreHandle) => RequestListener>> = {
  'with its prefix': (store) => (request, response) => {
    if (request.url?.startsWith('/store/') === true) store.listener(request, response)
    else response.end('another app')
  },
  'without its prefix, as Express and Connect pass it on': (store) => (request, response) => {
    if (request.url?.startsWith('/store/') === true) {
      request.url = request.url.slice('/store'.length)
      store.listener(request, response)
    } else response.end('another app')
  },
}

for (const [how, mount] of Object.entries(mounts)) {
  test(`works under a path when the request comes ${how}`, async (t) => {
    const store = await createPetStore({ ...memory, pets: [rex, { ...rex, id: 2 }], basePath: '/store' })
    t.after(() => store.close())
    const url = await listen(t, mount(store))

    assert.equal((await send(url, '/')).text, 'another app')
    const page = await send(url, '/store/v1/pets?limit=1')
    const [, next = ''] = /^<(.*)>; rel="next"$/.exec(page.headers.get('link') ?? '') ?? []
    assert.equal(next, '/store/v1/pets?limit=1&after=1')
    assert.equal((await send(url, next)).text, JSON.stringify([{ ...rex, id: 2 }]))
    const added = await send(url, '/store/v1/pets', { body: { name: 'Mia', categoryId: 2 } })
    assert.equal(added.headers.get('location'), '/store/v1/pets/3')
    assert.equal((await send(url, '/store/v1/pets/3')).text, added.text)
    assert.match((await send(url, '/store/openapi.json')).text, /"url":"\/store\/v1"/)
    assert.equal((await send(url, '/store/pets.schema.json')).status, 200)
    assert.match((await send(url, '/store/')).text, /^<!doctype html>/)
    assert.equal((await send(url, '/store/healthz')).text, '{"status":"ok"}')
    await store.close()
    assertRefusal(await send(url, '/store/healthz'), 503, 'shutting_down')
    assert.equal((await send(url, '/')).text, 'another app')
  })
}

test('behind a proxy that shows it under a path, the own server takes requests with and without it, and links to it', async (t) => {
  const store = await startPetStore({ ...memory, pets: [rex, { ...rex, id: 2 }], basePath: '/store' })
  t.after(() => store.close())
  assert.equal(new URL(store.url).pathname, '/')
  for (const prefix of ['', '/store']) {
    const page = await send(store.url, `${prefix}/v1/pets?limit=1`)
    assert.equal(page.headers.get('link'), '</store/v1/pets?limit=1&after=1>; rel="next"')
  }
  const added = await send(store.url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } })
  assert.equal(added.headers.get('location'), '/store/v1/pets/3')
})

test('works under a path that a request spells in another way (RFC 9112 3.2.2, RFC 3986 6.2.2.2)', async (t) => {
  const store = await createPetStore({ ...memory, pets: [rex], basePath: '/store' })
  t.after(() => store.close())
  const url = await listen(t, store.listener)
  const client = await connectRaw(t, url)
  for (const target of [
    'http://pets.test/store/v1/pets',
    '/%73tore/v1/pets',
    'http://pets.test/%73tore/v1/pets',
  ]) {
    client.write(formatRequest(`GET ${target}`))
    const { status, body } = await client.read()
    assert.deepEqual([status, body], [200, JSON.stringify([rex])], target)
  }
})

/** Mounts the store under a path as Express and connect do: they take the path off `url`, and keep all of it as `originalUrl`. */
function mountAt(path: string, store: PetStoreHandle): RequestListener {
  return (request, response) => {
    const { url = '' } = request
    const rest = url.slice(path.length)
    Object.assign(request, { originalUrl: url, url: rest.startsWith('/') ? rest : `/${rest}` })
    store.listener(request, response)
  }
}

test('leads from its path without a slash at the end to the page, also where an app has taken the path off', async (t) => {
  for (const [basePath, path] of [
    ['/store', '/store'],
    ['/shop/api', '/api'],
  ] as const) {
    const store = await createPetStore({ ...memory, basePath })
    t.after(() => store.close())
    const mounted = await listen(t, mountAt(path, store))
    const whole = await listen(t, store.listener)
    for (const [url, method] of [
      [mounted + path, 'GET'],
      [mounted + path.toUpperCase(), 'GET'],
      [`${mounted}${path}?a=b`, 'GET'],
      [whole + basePath, 'GET'],
      [whole + basePath, 'HEAD'],
    ] as const) {
      const response = await fetch(url, { method, redirect: 'manual' })
      assert.deepEqual([response.status, response.headers.get('location')], [308, `${basePath}/`], url)
      assert.equal(response.headers.get('content-length'), '0')
    }
    const direct = await store.fetch(new Request(`http://pets.test${basePath}`))
    assert.deepEqual([direct.status, direct.headers.get('location')], [308, `${basePath}/`])
    for (const url of [`${mounted}${path}/`, `${whole}${basePath}/`, whole])
      assert.match(await (await fetch(url, { redirect: 'error' })).text(), /^<!doctype html>/)
    const refused = await fetch(whole + basePath, { method: 'POST' })
    assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
    assert.equal((await fetch(whole + basePath + basePath)).status, 404)
  }
})

test('tells onError, once, which basePath to pass when it is mounted under a path that it does not know', async (t) => {
  for (const basePath of ['', '/store']) {
    const errors: string[] = []
    const store = await createPetStore({ ...memory, basePath, onError: (message) => errors.push(message) })
    t.after(() => store.close())
    const url = await listen(t, mountAt('/my/shop', store))
    assert.equal((await send(url, '/my/shop/')).status, 200)
    for (let i = 0; i < 2; i++) assert.equal((await send(url, '/my/shop/v1/pets?limit=1')).status, 200)
    assert.deepEqual(errors, [
      'the listener is mounted under /my/shop; pass this as basePath, or Link, Location and openapi.json name paths that do not exist',
    ])
  }
})

test('says nothing of the mount path when basePath is right, also behind a proxy that takes off a part of it', async (t) => {
  const errors: string[] = []
  for (const [basePath, path] of [
    ['', ''],
    ['/shop', '/shop'],
    ['/shop', '/Shop'],
    ['/shop', ''],
    ['/outer/shop', '/shop'],
  ] as const) {
    const store = await createPetStore({ ...memory, basePath, onError: (message) => errors.push(message) })
    t.after(() => store.close())
    const url = await listen(t, mountAt(path, store))
    for (const target of [`${path}/v1/pets?limit=1`, path, `${path}?a=/`]) {
      assert.ok((await send(url, target)).status < 400, target)
    }
  }
  assert.deepEqual(errors, [])
})

test('tells onError, once, that a mount by a wildcard leaves it no path', async (t) => {
  const errors: string[] = []
  const onError = (message: string) => errors.push(message)
  const store = await createPetStore({ ...memory, basePath: '/store', onError })
  t.after(() => store.close())
  // As Express 5 does for app.use('/store/*path', store.listener).
  const url = await listen(t, (request, response) => {
    const { url: originalUrl = '' } = request
    Object.assign(request, { originalUrl, url: originalUrl.replace(/^[^?]*/, '/') })
    store.listener(request, response)
  })
  for (const path of ['/store', '/store/', '/store/v1/pets?limit=1', '/store/v1/pets/1'])
    await send(url, path)
  assert.deepEqual(errors, [
    'the listener is mounted by a wildcard, which takes the whole path off; mount it without one',
  ])
})

test('responds to /healthz with 503 while it shuts down', async (t) => {
  const store = await createPetStore(memory)
  const url = await listen(t, store.listener)
  const healthy = await send(url, '/healthz', { headers: { authorization: null } })
  assert.deepEqual([healthy.status, healthy.text], [200, '{"status":"ok"}'])
  await store.close()
  const closing = await send(url, '/healthz', { headers: { authorization: null } })
  assertRefusal(closing, 503, 'shutting_down')
})

test('keeps no process alive for a request that was held back and is no longer waited for', async () => {
  const script = `
    import { createPetStore } from 'petstore'
    const store = await createPetStore({ apiKeys: ['k'], pets: [], delayMs: 10_000 })
    const abort = new AbortController()
    const response = store.fetch(new Request('http://a.example/v1/pets', { signal: abort.signal }))
    abort.abort()
    await response.catch(({ name }) => console.log(name))
    await store.close()
    console.log(process.getActiveResourcesInfo().includes('Timeout'))`
  assert.equal(await runScript(makeProject({ 'a.mjs': script }), 'a.mjs'), 'AbortError\nfalse\n')
})

test('says of an integer that JavaScript has rounded how to write it', async () => {
  const pets = [{ name: 'Rex', categoryId: 2 ** 60 }]
  await assert.rejects(createPetStore({ apiKeys: [key], pets }), {
    message:
      'pets[0].categoryId: expected an int64 integer, got 1152921504606847000, which JavaScript has rounded: write it as a bigint',
  })
})

test('rejects with the error of a body that fails while it is read, even if that is undefined', async () => {
  const store = await createPetStore({ apiKeys: [key], pets: [] })
  for (const cause of [new Error('boom'), undefined]) {
    const body = new ReadableStream({
      pull(controller) {
        controller.error(cause)
      },
    })
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body, duplex: 'half' } as const
    await assert.rejects(store.fetch(new Request('http://a.example/v1/pets', init)), {
      message: 'the body of the request could not be read',
      cause,
    })
  }
})

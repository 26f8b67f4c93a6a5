/** What `/healthz` tells a monitor, and a load balancer: red while it is known that pets cannot be read or created, then green by itself. */
import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { createCore } from '../src/api/core.ts'
import { createFetch } from '../src/http/doors.ts'
import { createPetStore } from '../src/index.ts'
import { openFileStore } from '../src/store/file-store.ts'
import type { PetStorage, Store } from '../src/store/store.ts'
import { clock } from '../src/system/clock.ts'
import { holdLooks, petLine, systemError, watchFileSystem } from './file-system.ts'
import { authorization, key, makeDataFile } from './support.ts'

type Fetch = (request: Request) => Promise<Response>

/** The status and, of an error, the code. */
async function ask(fetch: Fetch, path: string, body?: unknown): Promise<string> {
  const init = {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { authorization, 'content-type': 'application/json' },
  }
  const response = await fetch(new Request(`http://a${path}`, body === undefined ? {} : init))
  const text = await response.text()
  assert.doesNotMatch(text, /pets\.json|\/tmp/)
  if (response.ok) return String(response.status)
  const { code, status }: { code: string; status: number } = JSON.parse(text)
  assert.equal(status, response.status)
  return `${status} ${code}`
}

const mia = { name: 'Mia', categoryId: 1 }
const create = (fetch: Fetch) => ask(fetch, '/v1/pets', mia)
const askAll = (fetch: Fetch) =>
  Promise.all(['/healthz', '/healthz?ready', '/healthz?ready=write'].map((path) => ask(fetch, path)))
const green = ['200', '200', '200']
const readOnly = ['200', '200', '503 read_only']
const failed = ['200', '200', '503 storage_failed']

function serve(store: Store): Fetch {
  return createFetch(createCore({ store, apiKeys: [key] }))
}

/** A store on a data file whose calls fail while `fault` has a code for their name. Looks are made by hand. */
async function openFaulty(t: TestContext) {
  const look = holdLooks(t)
  // A busy machine may stop this process between a look and a write: then the file would be read again.
  const time = clock.now()
  t.mock.method(clock, 'now', () => time)
  const path = makeDataFile([petLine(1, 'Rex')])
  const fault: { name: string; code: string } = { name: '', code: '' }
  /** NaN: the system does not tell. */
  const room = { freeBytes: 2 ** 30 }
  const opened: string[] = []
  const fileSystem = watchFileSystem({
    before({ name, path: place, args }) {
      if (name === 'statfsSync') {
        const blocks = Number.isNaN(room.freeBytes) ? 0 : 2 ** 20
        return { blocks, bavail: Math.floor(room.freeBytes / 4096), bsize: 4096 }
      }
      const isOpenToWrite = name === 'openSync' && args[1] === 'r+'
      if (isOpenToWrite) opened.push(place)
      if (place === path && (name === fault.name || (isOpenToWrite && fault.name === 'r+')))
        throw systemError(fault.code)
      return undefined
    },
  })
  const said: string[] = []
  const store = await openFileStore(path, { fileSystem, onMessage: (message) => said.push(message) })
  t.after(() => store.close())
  /** Looks until the file was read, or was found unusable. */
  const lookUntil = async (pattern: RegExp): Promise<void> => {
    for (said.length = 0; !said.some((line) => pattern.test(line));) {
      look(1_000)
      await new Promise((resolve) => void setImmediate(resolve))
    }
  }
  /** A look begins when the one before it has ended. */
  const lookOften = async (): Promise<void> => {
    await store.reset().catch(() => {})
    await store.reset().catch(() => {})
  }
  return { path, store, fault, room, opened, said, lookUntil, lookOften, fetch: serve(store) }
}

test('asks a storage for one pet to see whether it is ready', async (t) => {
  const limits: number[] = []
  const storage: PetStorage = {
    list: ({ limit }) => Promise.resolve({ pets: [], hasMore: limits.push(limit) === 0 }),
    get: () => Promise.resolve(undefined),
    create: () => Promise.reject(new Error('not asked')),
  }
  const store = await createPetStore({ apiKeys: [key], storage })
  t.after(() => store.close())
  assert.deepEqual([await ask(store.fetch, '/healthz?ready'), limits], ['200', [1]])
})

test('takes no other value of ready than none and write, and each once', async (t) => {
  const store = await createPetStore({ apiKeys: [key], pets: [] })
  t.after(() => store.close())
  for (const query of ['', '?', '?ready', '?ready=', '?ready=write', '?a=b'])
    assert.equal(await ask(store.fetch, `/healthz${query}`), '200', query)
  for (const query of ['?ready=read', '?ready=Write', '?ready&ready', '?ready=write&ready=write'])
    assert.equal(await ask(store.fetch, `/healthz${query}`), '400 invalid_parameter', query)
  const refused = await store.fetch(new Request('http://pets.test/healthz?ready=read'))
  const { errors } = (await refused.json()) as { readonly errors: unknown }
  assert.deepEqual(errors, [{ field: 'ready', message: 'expected no value or write, once' }])
})

for (const [name, code, answer] of [
  ['writeSync', 'ENOSPC', '507 insufficient_storage'],
  ['fdatasync', 'EIO', '503 storage_failed'],
] as const) {
  test(`is red after ${code} until a pet is created, or for a minute`, async (t) => {
    const { fault, fetch } = await openFaulty(t)
    // Whole, so that a minute more is not rounded.
    let now = Math.floor(clock.performanceNow())
    t.mock.method(clock, 'performanceNow', () => now)
    assert.deepEqual(await askAll(fetch), green)
    Object.assign(fault, { name, code })
    assert.equal(await create(fetch), answer)
    assert.deepEqual(await askAll(fetch), failed)
    now += 59_999
    assert.deepEqual(await askAll(fetch), failed)
    now += 1
    assert.deepEqual(await askAll(fetch), green)
    assert.equal(await create(fetch), answer)
    assert.deepEqual(await askAll(fetch), failed)
    fault.name = ''
    assert.equal(await create(fetch), '201')
    assert.deepEqual(await askAll(fetch), green)
  })
}

for (const code of ['EACCES', 'EPERM', 'EROFS']) {
  test(`is red once a look finds that the file may not be written (${code}), and green once it may; the log agrees`, async (t) => {
    const { fault, lookUntil, fetch, said } = await openFaulty(t)
    Object.assign(fault, { name: 'accessSync', code })
    await lookUntil(/: cannot be written: .*; pets can be listed, but not added$/)
    assert.deepEqual(await askAll(fetch), readOnly)
    fault.name = ''
    await lookUntil(/: can be used again$/)
    assert.deepEqual(await askAll(fetch), green)
    assert.equal(said.length, 1, 'nothing was reloaded')
  })

  test(`is red once a creation finds that the file cannot be written (${code}), and green once a look finds that it can`, async (t) => {
    const { fault, lookOften, lookUntil, fetch } = await openFaulty(t)
    Object.assign(fault, { name: 'r+', code })
    assert.equal(await create(fetch), '503 storage_failed')
    assert.deepEqual(await askAll(fetch), readOnly)
    await lookOften()
    assert.deepEqual(await askAll(fetch), readOnly)
    fault.name = ''
    await lookUntil(/: can be used again$/)
    assert.deepEqual(await askAll(fetch), green)
  })
}

test('opens no file for writing to see whether it may be written', async (t) => {
  const { lookOften, opened } = await openFaulty(t)
  opened.length = 0
  await lookOften()
  assert.deepEqual(opened, [])
})

test('is red while less than 1 MiB is free after a creation that found no room, and says one pair of lines a minute at most', async (t) => {
  const { path, fault, lookOften, fetch, said, room } = await openFaulty(t)
  let now = Math.floor(clock.performanceNow())
  t.mock.method(clock, 'performanceNow', () => now)
  room.freeBytes = 2 ** 20 - 4096
  Object.assign(fault, { name: 'writeSync', code: 'ENOSPC' })
  assert.equal(await create(fetch), '507 insufficient_storage')
  fault.name = ''
  assert.equal(await create(fetch), '201', 'a small pet fits')
  assert.deepEqual(await askAll(fetch), failed)
  now += 3_600_000
  writeFileSync(path, `{"pets":[${petLine(1, 'Kit')}]}`)
  await lookOften()
  assert.deepEqual(await askAll(fetch), failed)
  const lines = () => said.filter((line) => !line.startsWith('reloaded'))
  const full = `${path}: has too little room: no space left on device (ENOSPC); pets that do not fit are refused`
  assert.deepEqual(lines(), [full])
  room.freeBytes = 2 ** 20
  await lookOften()
  assert.deepEqual(await askAll(fetch), green)
  assert.deepEqual(lines(), [full, `${path}: can be used again`])
  // Somebody fills the disk and makes room on it all the time.
  for (let second = 0; second < 120; second++) {
    now += 1_000
    room.freeBytes = 0
    fault.name = 'writeSync'
    await create(fetch)
    assert.deepEqual(await askAll(fetch), failed)
    room.freeBytes = 2 ** 20
    fault.name = ''
    await create(fetch)
    assert.deepEqual(await askAll(fetch), green)
  }
  assert.ok(lines().length <= 8, lines().join('\n'))
})

test('says that a mistake is mended while the disk is full, and that it is still full', async (t) => {
  const { path, fault, lookUntil, fetch, said, room } = await openFaulty(t)
  room.freeBytes = 0
  Object.assign(fault, { name: 'writeSync', code: 'ENOSPC' })
  assert.equal(await create(fetch), '507 insufficient_storage')
  fault.name = ''
  writeFileSync(path, '{"pets":[secret]}')
  await lookUntil(/no pet can be added/)
  writeFileSync(path, `{"pets":[${petLine(1, 'Kit')}]}`)
  await lookUntil(/^reloaded/)
  assert.deepEqual(await askAll(fetch), failed)
  const full = `${path}: has too little room: no space left on device (ENOSPC); pets that do not fit are refused`
  const mended = `${path}: is valid again, and the pets come from it`
  assert.deepEqual(said, [mended, full, 'reloaded 1 pet: 0 added, 0 removed, 1 changed'])
  room.freeBytes = 2 ** 30
  await lookUntil(/: can be used again$/)
})

for (const [what, freeBytes] of [
  ['is not known', NaN],
  ['seems to be there', 2 ** 30],
] as const) {
  test(`is red for a minute after a creation that found no room where the room ${what}`, async (t) => {
    const { path, fault, lookOften, fetch, said, room } = await openFaulty(t)
    let now = Math.floor(clock.performanceNow())
    t.mock.method(clock, 'performanceNow', () => now)
    room.freeBytes = freeBytes
    Object.assign(fault, { name: 'writeSync', code: 'EDQUOT' })
    assert.equal(await create(fetch), '507 insufficient_storage')
    fault.name = ''
    now += 59_999
    await lookOften()
    assert.deepEqual(await askAll(fetch), failed)
    now += 1
    await lookOften()
    assert.deepEqual(await askAll(fetch), green)
    assert.equal(said.at(-1), `${path}: no creation has failed for a minute`)
  })
}

test('is red while the data file has an error, and green once it is mended', async (t) => {
  const { path, lookUntil, fetch } = await openFaulty(t)
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, '{"pets":[secret]}')
  await lookUntil(/no pet can be added/)
  assert.deepEqual(await askAll(fetch), readOnly)
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
  await lookUntil(/valid again/)
  assert.deepEqual(await askAll(fetch), green)
})

test('is red, and the log says why, while a save takes longer than a look waits for it', async (t) => {
  const { path, store, said, lookUntil, fetch } = await openFaulty(t)
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, '')
  const saving = setInterval(() => appendFileSync(path, ' '), 10)
  t.after(() => clearInterval(saving))
  await assert.rejects(store.reset(), /is being written/)
  assert.match(said.join('\n'), /is being written, again and again; no pet can be added/)
  assert.deepEqual(await askAll(fetch), readOnly)
  clearInterval(saving)
  writeFileSync(path, text)
  await lookUntil(/valid again/)
  assert.deepEqual(await askAll(fetch), green)
})

test('is red while ids cannot be filled in, and green once they can', async (t) => {
  const { path, fault, lookUntil, fetch } = await openFaulty(t)
  Object.assign(fault, { name: 'renameSync', code: 'EACCES' })
  writeFileSync(path, '{"pets":[{"name":"Kit","categoryId":1}]}')
  // The new file is what is renamed, and the old one before it.
  await lookUntil(/no pet can be added/)
  assert.deepEqual(await askAll(fetch), readOnly)
  fault.name = ''
  await lookUntil(/is valid again/)
  assert.deepEqual(await askAll(fetch), green)
})

test('knows the last creation of a storage, where one pet that is refused does not count', async (t) => {
  // Whole, so that a minute more is not rounded.
  let now = Math.floor(clock.performanceNow())
  t.mock.method(clock, 'performanceNow', () => now)
  let code = ''
  let isReadable = true
  const storage: PetStorage = {
    list: () =>
      isReadable
        ? Promise.resolve({ pets: [], hasMore: false })
        : Promise.reject(Object.assign(new Error('down'), { code: 'insufficient_storage' })),
    get: () => Promise.resolve(undefined),
    create: (newPets) =>
      code === ''
        ? Promise.resolve(newPets.map((pet, i) => ({ ...pet, id: i + 1 })))
        : Promise.reject(Object.assign(new Error('down'), { code })),
  }
  const { fetch, close } = await createPetStore({ apiKeys: [key], storage })
  t.after(close)
  code = 'nothing_stored'
  assert.deepEqual(await askAll(fetch), green)
  assert.equal(await create(fetch), '503 storage_failed')
  assert.deepEqual(await askAll(fetch), failed)
  code = 'pet_refused'
  assert.equal(await create(fetch), '503 storage_failed')
  assert.deepEqual(await askAll(fetch), green)
  code = 'insufficient_storage'
  assert.equal(await create(fetch), '507 insufficient_storage')
  assert.deepEqual(await askAll(fetch), failed)
  now += 60_000
  assert.deepEqual(await askAll(fetch), green)
  assert.equal(await create(fetch), '507 insufficient_storage')
  code = ''
  assert.equal(await create(fetch), '201')
  assert.deepEqual(await askAll(fetch), green)
  isReadable = false
  assert.deepEqual(await askAll(fetch), ['200', '503 storage_failed', '503 storage_failed'])
})

test('says that no pet can be created once no id is left, in a file and in memory', async (t) => {
  const id = 2n ** 63n - 1n
  const stores = [
    await createPetStore({ apiKeys: [key], dataFile: makeDataFile([petLine(id, 'Rex')]) }),
    await createPetStore({ apiKeys: [key], pets: [{ id, name: 'Rex', categoryId: 1 }] }),
  ]
  t.after(() => Promise.all(stores.map((store) => store.close())))
  for (const { fetch } of stores) {
    assert.equal(await create(fetch), '507 insufficient_storage')
    assert.deepEqual(await askAll(fetch), failed)
  }
})

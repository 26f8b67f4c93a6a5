/** A hand edit that cannot be used, or not yet, while the store runs: the old pets are served, and nothing that a person wrote is written over. */
import assert from 'node:assert/strict'
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { PetStoreError } from '../src/store/store.ts'
import {
  countTime,
  namesIn,
  namesInFile,
  newPet,
  openStore,
  petLine,
  systemError,
  watchFileSystem,
} from './file-system.ts'
import { assertRefusal, formatDataFile, makeDataFile, makeFolder, send, startProgram } from './support.ts'

const rex = petLine(1, 'Rex')
const mia = petLine(2, 'Mia')

describe('keeps the old pets and refuses new ones while the file is', { concurrency: true }, () => {
  const emptySaid =
    /pets\.json: is empty; no pet can be added until this is fixed; the last valid pets are still served, and are kept in/
  const cases: readonly [what: string, spoil: (path: string) => void, said: RegExp][] = [
    [
      'not JSON',
      (path) => appendFileSync(path, '}'),
      /pets\.json:7:1: expected the end, got "\}"; no pet can be added until this is fixed; the last valid pets are still served/,
    ],
    [
      'cut off',
      (path) => truncateSync(path, 40),
      /pets\.json:3:27: expected the closing quote, got the end; no pet can be added until this is fixed; the last valid pets are still served/,
    ],
    [
      'with a wrong value',
      (path) => writeFileSync(path, formatDataFile(rex, mia.replace('available', 'lost'))),
      /pets\.json:4:\d+: pets\[1\]\.status: expected available, .*, got "lost"; no pet can be added until this is fixed; the last valid pets are still served/,
    ],
    ['empty', (path) => truncateSync(path), emptySaid],
    ['blank', (path) => writeFileSync(path, ' \n'), emptySaid],
    [
      'missing',
      (path) => rmSync(path),
      /pets\.json: is missing; no pet can be added until this is fixed; the last valid pets are still served, and are kept in/,
    ],
  ]
  for (const [what, spoil, said] of cases) {
    test(what, async (t) => {
      const path = makeDataFile([rex, mia])
      const { store, lines } = await openStore(t, path)
      spoil(path)
      const read = (): string | undefined => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)
      const spoilt = read()
      const refused = store.create(newPet('refused'))
      await assert.rejects(refused, {
        code: 'data_file_invalid',
        message:
          /^The data file is not valid \((?:line \d+, column \d+: .+|it is (?:empty|missing))\); nothing was stored\.$/,
      })
      await assert.rejects(store.create(newPet('refused, too')), PetStoreError)
      assert.match(lines.join('\n'), said)
      assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
      assert.equal(read(), spoilt, 'nothing is written into it')
      writeFileSync(path, formatDataFile(rex, mia, petLine(3, 'Kit')))
      assert.equal((await store.create(newPet('accepted'))).id, 4)
      assert.deepEqual(lines.slice(1), [
        `${path}: is valid again, and the pets come from it`,
        'reloaded 3 pets: 1 added, 0 removed, 0 changed',
      ])
    })
  }
})

test('refuses new pets while a folder stands in the place of the file, and says so once', async (t) => {
  const path = makeDataFile([rex])
  const { store, lines } = await openStore(t, path)
  renameSync(path, `${path}.mine`)
  mkdirSync(path)
  assert.match(
    await lines.next(/./),
    /pets\.json: is a folder, not a file; no pet can be added until this is fixed; the last valid pets are still served/,
  )
  await assert.rejects(store.create(newPet('refused')), PetStoreError)
  rmdirSync(path)
  renameSync(`${path}.mine`, path)
  assert.equal((await store.create(newPet('Mia'))).id, 2)
  assert.deepEqual(lines.slice(1), [
    `${path}: is valid again, and the pets come from it`,
    'reloaded 1 pet: 0 added, 0 removed, 0 changed',
  ])
})

test('says to a creation that a folder has just taken the place of the file', async (t) => {
  const path = makeDataFile([rex])
  const { store } = await openStore(t, path)
  renameSync(path, `${path}.mine`)
  mkdirSync(path)
  await assert.rejects(store.create(newPet('refused')), {
    code: 'data_file_invalid',
    message: 'The data file is not valid (it is a folder, not a file); nothing was stored.',
  })
})

test('goes on when the same file is back after a folder stood in its place', async (t) => {
  const path = join(makeFolder(), 'data', 'pets.json')
  mkdirSync(dirname(path))
  writeFileSync(path, formatDataFile(rex))
  const { store, lines } = await openStore(t, path)
  // Moving the folder around it leaves the file as it is, its times included.
  renameSync(dirname(path), `${dirname(path)}2`)
  mkdirSync(path, { recursive: true })
  await lines.next(/is a folder, not a file/)
  rmSync(dirname(path), { recursive: true })
  renameSync(`${dirname(path)}2`, dirname(path))
  await lines.next(/is valid again/)
  assert.equal((await store.create(newPet('Mia'))).id, 2)
})

test('says that the file is valid again also when a slow save came in between', async (t) => {
  const path = makeDataFile([rex])
  const { store, lines } = await openStore(t, path)
  writeFileSync(path, '{')
  await lines.next(/no pet can be added until this is fixed;/)
  // Each read finds the file longer than the one before, until the store says that it is being written.
  let isSaving = true
  const save = setInterval(() => isSaving && appendFileSync(path, ' '), 20)
  t.after(() => clearInterval(save))
  appendFileSync(path, ' ')
  await assert.rejects(store.create(newPet('refused')), /it is being written/)
  isSaving = false
  writeFileSync(path, formatDataFile(rex))
  await lines.next(/: is valid again, and the pets come from it$/)
})

test('waits for a slow save without a word, and loses neither it nor the creations', async (t) => {
  countTime(t, 0)
  const path = makeDataFile([rex])
  const text = formatDataFile(petLine(1, 'Max'), mia)
  const editor = openSync(path, 'r+')
  let isSaving = false
  let looks = 0
  let written = 0
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      // A piece at a time, whenever the store has looked three times.
      if (!isSaving || name !== 'statSync' || place !== path) return
      if (++looks % 3 !== 0 || written === text.length) return
      const end = Math.min(written + 30, text.length)
      writeSync(editor, text.slice(written, end), written)
      written = end
    },
  })
  const { store, lines } = await openStore(t, path, fileSystem)
  truncateSync(path)
  isSaving = true
  const creations = await Promise.all([store.create(newPet('Kit')), store.create(newPet('Otto'))])
  closeSync(editor)
  assert.deepEqual(
    creations.map(({ id }) => id),
    [3, 4],
  )
  assert.deepEqual(namesInFile(path), ['Max', 'Mia', 'Kit', 'Otto'])
  assert.deepEqual([...lines], ['reloaded 2 pets: 1 added, 0 removed, 1 changed'])
})

test('says that a file is being written on and on, and where the pets are kept', async (t) => {
  const path = makeDataFile([rex])
  const { store, lines } = await openStore(t, path)
  writeFileSync(path, '')
  const writing = setInterval(() => appendFileSync(path, ' '), 10)
  const line = await lines.next(/./).finally(() => clearInterval(writing))
  assert.match(
    line,
    /: is being written, again and again; no pet can be added .* are kept in \S+ until then$/,
  )
  writeFileSync(path, formatDataFile(rex, mia))
  await lines.next(/: is valid again, and the pets come from it$/)
  assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
})

test('takes over an edit that needs ids only when it can be written, and overwrites nothing of it before', async (t) => {
  const path = makeDataFile([rex, mia])
  let isFull = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (isFull && name === 'writeSync' && place.endsWith('.petstore-new')) throw systemError('ENOSPC')
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  await store.create(newPet('Kit'))
  const edited = '{"pets":[{"name":"a person wrote this by hand and wants to keep it","categoryId":1}]}'
  isFull = true
  writeFileSync(path, edited)
  for (let i = 0; i < 3; i++) {
    const creation = store.create(newPet('refused'))
    await assert.rejects(
      creation,
      (error) => error instanceof PetStoreError && error.code === 'insufficient_storage',
    )
    assert.equal(readFileSync(path, 'utf8'), edited)
  }
  isFull = false
  assert.equal((await store.create(newPet('accepted'))).id, 5)
})

test('the program tells of edits and answers 503 while one is not valid', async (t) => {
  const folder = makeFolder()
  const { url, waitFor, output } = await startProgram(t, folder)
  const path = join(folder, 'data/pets.json')
  writeFileSync(path, '{"pets": [{"name": "Rex", "categoryId": 1}, {"name": "Mia", "categoryId": 2}]}')
  await waitFor(/^\S+Z reloaded 2 pets: 2 added, 0 removed, 0 changed$/m)
  const good = readFileSync(path, 'utf8')
  const bad = good.replace('"Rex",', '"Rex"')
  // This list may be cached.
  assert.equal((await send(url, '/v1/pets')).headers.get('x-data-file-error'), undefined)
  writeFileSync(path, bad)
  await waitFor(
    /^\S+Z data\/pets\.json:1:\d+: expected "," or "\}", got "\\""; no pet can be added until this is fixed; the last valid pets are still served, and are kept in \S+ until then$/m,
  )
  const refused = await send(url, '/v1/pets', { body: { name: 'x', categoryId: 1 } })
  const message = assertRefusal(refused, 503, 'data_file_invalid')
  assert.match(
    message,
    /^The data file is not valid \(line 1, column \d+: expected "," or "\}", got "\\""\); nothing was stored\.$/,
  )
  assert.equal(readFileSync(path, 'utf8'), bad)
  const listed = await send(url, '/v1/pets')
  assert.equal(listed.headers.get('x-total-count'), '2')
  assert.match(
    listed.headers.get('x-data-file-error') ?? '',
    /^line 1, column \d+: expected "," or "\}", got "\\""$/,
  )
  writeFileSync(path, good)
  const accepted = await send(url, '/v1/pets', { body: { name: 'x', categoryId: 1 } })
  assert.equal((await send(url, '/v1/pets')).headers.get('x-data-file-error'), undefined)
  assert.equal(accepted.headers.get('location'), '/v1/pets/3')
  assert.equal(output().match(/got "\\""; no pet can be added/g)?.length, 1)
})

/** `--check`: what a start would say of settings and data file, without a change to either. */
import assert from 'node:assert/strict'
import nodeFs, { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { inspectDataFile } from '../src/data-file/inspection.ts'
import { openDataFile } from '../src/data-file/start.ts'
import { describeInspected } from '../src/program/main.ts'
import { systemError } from './file-system.ts'
import {
  formatDataFile,
  key,
  makeDataFile,
  makeFolder,
  makeOld,
  runProgram,
  send,
  startProgram,
  withoutTimes,
} from './support.ts'

const rex = '{"id":1,"name":"Rex","categoryId":1,"status":"sold"}'
const mia = '{"id":7,"name":"Mia","categoryId":2,"status":"sold"}'

/** Names, texts, and times of change. */
function describeFolder(folder: string): unknown {
  return readdirSync(folder).map((name) => {
    const { mtimeMs, ctimeMs, ino, mode } = statSync(join(folder, name))
    return { name, text: readFileSync(join(folder, name), 'utf8'), mtimeMs, ctimeMs, ino, mode }
  })
}

interface Checked {
  readonly output: string
  readonly code: number | null
}

/** Checks `pets.json` in the folder, which has to be as it was. */
async function check(t: TestContext, folder: string, env: NodeJS.ProcessEnv = {}): Promise<Checked> {
  const before = describeFolder(folder)
  const program = runProgram(t, folder, { PETSTORE_DATA_FILE: 'pets.json', ...env }, [], ['--check'])
  const { code } = await program.ended
  assert.deepEqual(describeFolder(folder), before)
  return { output: program.output(), code }
}

/** The program prints the message of such an error alone. */
async function findRefusal(path: string): Promise<DataFileUnusable> {
  const outcome: unknown = await inspectDataFile(path).catch((error: unknown) => error)
  assert.ok(outcome instanceof DataFileUnusable)
  return outcome
}

function makeStore(text: string, name = 'pets.json'): string {
  const folder = makeFolder()
  writeFileSync(join(folder, name), text)
  makeOld(join(folder, name))
  return folder
}

const whole = formatDataFile(rex, mia)

const withHole = (() => {
  const pets = Array.from({ length: 99 }, (_, index) => rex.replace(/"id": ?\d+/, `"id":${index + 1}`))
  const bytes = Buffer.from(formatDataFile(...pets))
  bytes.fill(0, 3 * 512, 4 * 512)
  return bytes.toString()
})()

const refuse = (): never => {
  throw systemError('EACCES')
}

const openReadOnly: typeof nodeFs.openSync = (file, flags, mode) => {
  if (flags === 'r+') throw systemError('EACCES')
  return nodeFs.openSync(file, flags, mode)
}

for (const [what, text, found] of [
  ['is there', whole, '2 pets, the highest id is 7'],
  ['is there, of no pets', formatDataFile(), '0 pets'],
  [
    'it would fill in',
    '{"pets":[{"name":"a","categoryId":1},{"id":7,"name":"b","categoryId":1},{"name":"c","categoryId":1}]}',
    '3 pets, the highest id is 7; a start would fill in 2 ids',
  ],
  ['it would repair', whole.slice(0, -5), '2 pets, the highest id is 7; a start would repair its end'],
  [
    'it would do of both kinds',
    '{"pets":[{"name":"a","categoryId":1}\n',
    '1 pet; a start would fill in 1 id and repair its end',
  ],
  [
    'it would take out',
    withHole,
    '89 pets, the highest id is 99; a start would take out 596 damaged bytes: ids 26 to 35 were there, or were never given',
  ],
] as const) {
  test(`says what ${what}, and changes and makes nothing`, async () => {
    const folder = makeStore(text)
    const before = describeFolder(folder)
    const checked = await inspectDataFile(join(folder, 'pets.json'), { onMessage: assert.fail })
    assert.equal(describeInspected(checked), found)
    assert.deepEqual(describeFolder(folder), before)
  })
}

test('says what is there under silent too, and of the settings what a start says', async (t) => {
  const env = {
    PETSTORE_LOG: 'silent',
    PETSTORE_API_KEYS: key,
    PETSTORE_FAIL: '503',
    PETSTORE_BASE_PATH: '/a',
  }
  const output =
    'Failures on purpose: 503\nBase path: /a\npets.json: 2 pets, the highest id is 7; a start would repair its end\n'
  assert.deepEqual(await check(t, makeStore(whole.slice(0, -5)), env), { output, code: 0 })
})

for (const [what, text, kept] of [
  ['with several mistakes', '{"pets":[\n{"name":1},\n{"name":"a","categoryId":"x"}\n]}', undefined],
  ['that is empty', '', undefined],
  ['that is a torn one beside kept pets', whole.slice(0, -5), whole],
] as const) {
  test(`refuses a file ${what} in the words of a start`, async () => {
    const folder = makeStore(text)
    if (kept !== undefined) writeFileSync(join(folder, 'pets.json.kept-2026-11-26T09-00-00.000Z'), kept)
    const before = describeFolder(folder)
    const path = join(folder, 'pets.json')
    const { message } = await findRefusal(path)
    assert.deepEqual(describeFolder(folder), before)
    await assert.rejects(openDataFile(path), { message })
  })
}

test('names kept pets beside a file that can be used, and a file that cannot be written, as a start does', async (t) => {
  const folder = makeStore(whole)
  writeFileSync(join(folder, 'pets.json.kept-2026-11-26T09-00-00.000Z'), formatDataFile(rex))
  const { output, code } = await check(t, folder)
  assert.match(
    output,
    /^pets\.json: pets\.json\.kept-\S+ has 1 pet that .*\npets\.json: 2 pets, the highest id is 7\n$/,
  )
  assert.equal(code, 0)
  const path = makeDataFile([rex])
  const messages: string[] = []
  const fileSystem = { ...nodeFs, openSync: openReadOnly }
  await inspectDataFile(path, { fileSystem, onMessage: (message) => messages.push(message) })
  assert.match(
    messages.join(),
    /cannot be written: permission denied \(EACCES\); pets can be listed, but not added$/,
  )
})

test('refuses a missing file, which may be a mistyped backup, and makes no folder for it', async () => {
  const folder = makeFolder()
  const path = join(folder, 'backups/pets.json')
  const message = `${path}: is missing; a start would create it`
  assert.equal((await findRefusal(path)).message, message)
  assert.ok(!existsSync(join(folder, 'backups')))
})

test('says the faults of settings and file together, each on a line, and takes no other file for one that is wrong', async (t) => {
  const folder = makeStore('{"pets":[\n{"name":1,"categoryId":1}\n]}')
  const { output, code } = await check(t, folder, { PORT: 'x', PETSTORE_LOG: 'silent' })
  assert.equal(code, 1)
  assert.match(output, /^PORT: .*\nPETSTORE_API_KEYS: .*silent.*\npets\.json:2:2: pets\[0\]\.name: .*\n$/)
  mkdirSync(join(folder, 'data'))
  const wrong = runProgram(t, folder, { PETSTORE_DATA_FILE: 'http://a/b' }, [], ['--check'])
  assert.equal((await wrong.ended).code, 1)
  assert.match(wrong.output(), /^PETSTORE_DATA_FILE: .*\n$/)
})

test('checks the settings alone with a database, and asks nobody', async (t) => {
  const folder = makeFolder()
  const env = { PETSTORE_DATA_FILE: '', PETSTORE_DATABASE_URL: 'postgres://127.0.0.1:1/pets' }
  const expected = { output: 'The settings have no fault. The database was not asked.\n', code: 0 }
  assert.deepEqual(await check(t, folder, env), expected)
  const unread = await check(t, folder, { ...env, PGSERVICE: 'shop' })
  assert.match(unread.output, /^Set, but not read by this program: PGSERVICE\n/)
})

test('says each fault of the address of a database in the words of a start, beside those of other settings', async (t) => {
  const folder = makeFolder()
  const url = 'postgres://ann:hush@127.0.0.1:99999/pets?foo=1&sslmode=prefer&connection_limit=x'
  const env = {
    PORT: 'x',
    PETSTORE_DATA_FILE: '',
    PETSTORE_DATABASE_URL: url,
    PGTARGETSESSIONATTRS: 'bogus',
    PGCONNECT_TIMEOUT: 'abc',
  }
  const { output, code } = await check(t, folder, env)
  assert.equal(code, 1)
  const places = output.split('\n').map((line) => line.slice(0, line.lastIndexOf(': expected ')))
  const setting = 'PETSTORE_DATABASE_URL'
  const ofAddress = ['"foo"', 'port', 'sslmode', 'connection_limit'].map((name) => `${setting}: ${name}`)
  const expected = ['PORT', ...ofAddress, 'PGCONNECT_TIMEOUT', 'PGTARGETSESSIONATTRS', '']
  assert.deepEqual(places.toSorted(), expected.toSorted())
  const start = runProgram(t, folder, env)
  assert.equal((await start.ended).code, 1)
  assert.equal(withoutTimes(start.output()), output)
})

test('takes neither the lock nor the port of a server that runs', async (t) => {
  const folder = makeFolder()
  const { url } = await startProgram(t, folder)
  await send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
  const env = { PORT: new URL(url).port }
  const program = runProgram(t, folder, env, [], ['--check', '--file', 'data/pets.json'])
  assert.equal((await program.ended).code, 0)
  assert.equal(program.output(), 'data/pets.json: 1 pet, the highest id is 1\n')
  assert.equal((await send(url, '/v1/pets', { body: { name: 'Mia', categoryId: 1 } })).status, 201)
})

test('looks again at a file to which a server is appending, and calls it not torn', async () => {
  const path = makeDataFile([rex])
  writeFileSync(path, whole.slice(0, -5))
  let looks = 0
  const look: typeof nodeFs.statSync = Object.assign((...args: Parameters<typeof nodeFs.statSync>) => {
    // Of the look for an end of the save.
    if (++looks === 1) writeFileSync(path, whole)
    return nodeFs.statSync(...args)
  })
  const checked = await inspectDataFile(path, { fileSystem: { ...nodeFs, statSync: look } })
  assert.deepEqual(checked, { petCount: 2, highestId: 7, missingIdCount: 0, repair: undefined })
  assert.ok(looks > 0)
})

test('refuses, as a start does, a file that has to be rewritten and cannot be', async () => {
  const path = makeDataFile('{"pets":[{"name":"Rex","categoryId":1}]}')
  const fileSystem = { ...nodeFs, accessSync: refuse, linkSync: refuse, renameSync: refuse }
  const expected =
    /has to be rewritten, but it or its folder cannot be written: permission denied \(EACCES\)$/
  await assert.rejects(openDataFile(path, { fileSystem }), expected)
  await assert.rejects(inspectDataFile(path, { fileSystem }), expected)
})

test('refuses a file that fits into the memory of this process, and its pets do not', async (t) => {
  const pet = '{"name":"","categoryId":1}'
  const path = makeDataFile(`{"pets":[${`${pet},`.repeat(99_999)}${pet}]}`)
  const limitBytes = 6 * 2 ** 20
  assert.ok(statSync(path).size < limitBytes)
  t.mock.method(process, 'constrainedMemory', () => limitBytes)
  await assert.rejects(inspectDataFile(path), {
    message: `${path}: takes 11 MiB of memory at least, and this process may have 6 MiB`,
  })
})

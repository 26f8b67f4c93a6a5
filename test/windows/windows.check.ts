/**
 * The built program with a data file, on Windows: what people and programs do there with the file while it runs. Runs on Node for
 * Windows, and needs `hold.c` as a program, whose path PETSTORE_TEST_HOLD has.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { formatDataFile, key, makeFolder, readPetLines, runProgram, send, startProgram } from '../support.ts'
import { namesInFile, petLine } from '../file-system.ts'

const rex = petLine(1, 'Rex')
const creation = { body: { name: 'Mia', categoryId: 1 } }

interface Store {
  readonly path: string
  readonly env: NodeJS.ProcessEnv
}

function makeStore(text: string): Store {
  const path = join(makeFolder(), 'pets.json')
  writeFileSync(path, text)
  return { path, env: { PETSTORE_DATA_FILE: path } }
}

/** Another program that opens the file and shares it as `shared` says; `letGo` resolves when it has closed it. */
async function hold(
  t: TestContext,
  path: string,
  access: 'r' | 'w' | 'rw',
  shared: string,
): Promise<{ letGo: () => Promise<unknown> }> {
  const child = spawn(process.env['PETSTORE_TEST_HOLD'] ?? '', [path, access, shared])
  t.after(() => child.kill('SIGKILL'))
  const [said]: unknown[] = await once(child.stdout, 'data')
  assert.match(String(said), /^held/)
  return {
    letGo: () => {
      const ended = once(child, 'exit')
      child.stdin.end()
      return ended
    },
  }
}

test('the contract suite passes against the program with a data file', async (t) => {
  const { env, path } = makeStore(formatDataFile())
  const program = await startProgram(t, makeFolder(), env)
  const { PETSTORE_TEST_DIST: dist = '' } = process.env
  const suite = spawn(process.execPath, ['--test', join(dist, 'contract.test.js')], {
    env: { ...process.env, PETSTORE_URL: program.url, PETSTORE_API_KEY: program.key },
  })
  let output = ''
  for (const stream of [suite.stdout, suite.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text))
  assert.deepEqual(await once(suite, 'close'), [0, null], output)
  assert.ok(readPetLines(path).length > 50)
})

describe('an edit is served', () => {
  const saves: readonly [how: string, save: (path: string, text: string) => void][] = [
    ['in place', (path, text) => writeFileSync(path, text)],
    [
      'by a backup and a new file',
      (path, text) => {
        renameSync(path, `${path}~`)
        writeFileSync(path, text)
      },
    ],
    [
      'with CRLF, a BOM and ids that are missing',
      (path, text) => writeFileSync(path, `\uFEFF${text.replaceAll('\n', '\r\n').replace('"id":2,', '')}`),
    ],
  ]
  for (const [how, save] of saves) {
    test(`saved ${how}`, async (t) => {
      const { env, path } = makeStore(formatDataFile(rex))
      const program = await startProgram(t, makeFolder(), env)
      save(path, formatDataFile(petLine(1, 'Max'), petLine(2, 'Mia')))
      await program.waitFor(/reloaded 2 pets: 1 added, 0 removed, 1 changed/)
      const { status } = await send(program.url, '/v1/pets', creation)
      assert.equal(status, 201, program.output())
      const { text } = await send(program.url, '/v1/pets')
      assert.equal(text, `[${[petLine(1, 'Max'), petLine(2, 'Mia'), petLine(3, 'Mia')].join()}]`)
      assert.ok(readFileSync(path, 'utf8').includes('"id":2'))
    })
  }
})

test('missing ids are written into the file at the start, and nothing is left beside it', async (t) => {
  const { env, path } = makeStore('{"pets":[{"name":"Rex","categoryId":1},{"name":"Mia","categoryId":2}]}')
  const program = await startProgram(t, makeFolder(), env)
  await send(program.url, '/v1/pets', creation)
  assert.deepEqual(namesInFile(path), ['Rex', 'Mia', 'Mia'])
  assert.deepEqual(readdirSync(join(path, '..')), ['pets.json'])
})

test('confirmed pets survive a program that is ended at once', async (t) => {
  const { env } = makeStore(formatDataFile(rex))
  const folder = makeFolder()
  const first = await startProgram(t, folder, env)
  assert.equal((await send(first.url, '/v1/pets', creation)).status, 201)
  first.child.kill('SIGKILL')
  await first.ended
  const second = await startProgram(t, folder, env)
  assert.equal((await send(second.url, '/v1/pets')).headers.get('x-total-count'), '2')
})

test('a folder with spaces and letters beyond ASCII is made', async (t) => {
  const path = join(makeFolder(), 'Zoë’s Läden', 'pets.json')
  const program = await startProgram(t, makeFolder(), { PETSTORE_DATA_FILE: path })
  assert.equal((await send(program.url, '/v1/pets', creation)).status, 201)
  assert.equal(readPetLines(path).length, 1)
})

describe('while another program holds the file', () => {
  for (const [access, shared] of [
    ['r', 'rwd'],
    ['r', 'rw'],
    ['rw', 'rw'],
    ['r', 'r'],
    ['r', '-'],
    ['rw', '-'],
  ] as const) {
    test(`open for ${access} and shared for ${shared}, pets are served, and a creation works or is refused`, async (t) => {
      const { env, path } = makeStore(formatDataFile(rex))
      const program = await startProgram(t, makeFolder(), env)
      const { letGo } = await hold(t, path, access, shared)
      const refused = await send(program.url, '/v1/pets', creation)
      assert.equal(refused.status, shared.includes('w') ? 201 : 503, refused.text)
      assert.equal((await send(program.url, '/v1/pets')).status, 200)
      await letGo()
      const { status, text } = await send(program.url, '/v1/pets', creation)
      assert.equal(status, 201, text + program.output())
    })
  }
})

test('names of variables count in any case', async (t) => {
  const { path } = makeStore(formatDataFile(rex))
  const program = await startProgram(t, makeFolder(), { petstore_Data_File: path, PETSTORE_delay: '0' })
  assert.equal((await send(program.url, '/v1/pets')).headers.get('x-total-count'), '1')
})

test('the printed command is one that PowerShell has, in quotes that cmd knows', async (t) => {
  const program = await startProgram(t, makeFolder())
  const curl = `curl.exe -H "Authorization: Bearer YOUR_API_KEY" "${program.url}/v1/pets"`
  assert.ok(program.output().includes(`\n  ${curl}\n`), program.output())
})

test('a second SIGHUP, which Windows cannot send to a process, ends the program at once without an error', async (t) => {
  const folder = makeFolder()
  // The creation's sync never returns, so the first signal waits for it. (The new file itself was synced by fsync.) The second comes later than
  // one key press could send both.
  const signals = `
    const fs = require('node:fs')
    const hangUp = () => process.emit('SIGHUP', 'SIGHUP')
    fs.fdatasync = () => { hangUp(); setTimeout(hangUp, 1_000) }`
  writeFileSync(join(folder, 'signals.cjs'), signals)
  const { ended, output, waitFor } = runProgram(t, folder, {
    NODE_OPTIONS: '--require ./signals.cjs',
    PETSTORE_API_KEYS: key,
  })
  const [, url = ''] = await waitFor(/listens on (http:\S+)\r?\n/)
  await assert.rejects(send(url, '/v1/pets', creation))
  await ended
  assert.doesNotMatch(output(), /ENOSYS/)
})

test('a wrong setting ends the program with exit code 1 and a sentence', async (t) => {
  const { ended, output } = runProgram(t, makeFolder(), { PORT: 'x' })
  assert.equal((await ended).code, 1)
  assert.match(output(), /^\S+Z PORT: expected a port/m)
})

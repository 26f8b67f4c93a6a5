/** The packed package in test runners: the documents' examples, and timers that a test fakes. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { connectRaw, formatRequest } from '../support.ts'
import { findFreePort, makeProject, readExample, run, runToEnd } from './tools.ts'

/** For a busy machine: both runners fail a test that takes 5 s. */
const patience = '--testTimeout=120000'
const fakeTimers = join(import.meta.dirname, 'fake-timers')

test("runs the README's test in Vitest, and the other document's in node:test", async (t) => {
  const folder = makeProject({
    'pets.test.mjs': readExample("from 'vitest'"),
    'node.test.mjs': readExample("from 'node:test'"),
  })
  assert.match(await runToEnd(t, folder, '--test', 'node.test.mjs'), /pass 1\n/)
  assert.match(
    await runToEnd(t, folder, 'node_modules/.bin/vitest', 'run', patience, 'pets.test.mjs'),
    /Tests {2}1 passed/,
  )
})

test('says how to write the hook where reset itself is given to one, in Vitest and in node:test', async (t) => {
  const [vitest, node] = ["from 'vitest'", "from 'node:test'"].map((text) =>
    readExample(text).replace('() => store.reset()', 'store.reset'),
  )
  const folder = makeProject({ 'pets.test.mjs': vitest ?? '', 'node.test.mjs': node ?? '' })
  for (const [script, ...args] of [
    ['--test', 'node.test.mjs'],
    ['node_modules/.bin/vitest', 'run', patience, 'pets.test.mjs'],
  ] as const) {
    const { ended, output } = run(t, folder, script, ...args)
    assert.notDeepEqual(await ended, [0, null])
    assert.match(
      output(),
      /pets: expected an array of pets, got .*; as a hook, write \(\) => store\.reset\(\)/,
    )
  }
})

test('finishes what is in flight at one Ctrl-C under pnpm exec', async (t) => {
  const folder = makeProject({ 'package.json': '{"name":"app"}' })
  const pnpm = ['node_modules/pnpm/bin/pnpm.cjs', 'exec', 'petstore'] as const
  const program = run(t, folder, ...pnpm, '--port', '0', '--keys', 'k', '--file', join(folder, 'pets.json'))
  const [, url = ''] = await program.waitFor(/listens on (http:\S+)/)
  const client = await connectRaw(t, url)
  const body = '{"name":"Rex","categoryId":1}'
  const lines = ['Authorization: Bearer k', `Content-Length: ${body.length}`, 'Expect: 100-continue']
  client.write(formatRequest('POST /v1/pets', lines))
  assert.equal((await client.read()).status, 100)
  program.killGroup('SIGINT')
  // Until it has begun to stop.
  for (let isServing = true; isServing;)
    isServing = await fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )
  client.write(body)
  assert.equal((await client.read()).status, 201)
  await program.waitFor(/stopped/)
})

test("starts the program by the README's webServer in Playwright", async (t) => {
  const port = await findFreePort()
  // Without a browser: Playwright's own requests.
  const text = `import { expect, test } from '@playwright/test'
    test('lists', async ({ request }) => {
      const headers = { authorization: 'Bearer test-key' }
      const response = await request.get('http://127.0.0.1:${port}/v1/pets', { headers })
      expect((await response.json()).length).toBe(12)
    })`
  const folder = makeProject({
    'playwright.config.mjs': readExample('webServer')
      .replaceAll('3001', port)
      .replaceAll('/tmp/e2e.json', 'e2e.json'),
    'pets.spec.mjs': text,
  })
  const output = await runToEnd(t, folder, 'node_modules/.bin/playwright', 'test', '--reporter=line')
  assert.match(output, /1 passed/)
})

test('resets the store of a worker of Playwright before each test, ids too, as the example does', async (t) => {
  const example = readExample('parallelIndex').replace('3101', await findFreePort())
  const folder = makeProject({ 'pets.spec.mjs': example })
  const output = await runToEnd(
    t,
    folder,
    'node_modules/.bin/playwright',
    'test',
    '--reporter=line',
    '--workers=1',
  )
  assert.match(output, /2 passed/)
})

test('resets the store behind a page before each test, as the example does', async (t) => {
  const html = `<!doctype html><title>Pets</title><ul></ul><button>Add Mia</button><script>
    const headers = { authorization: 'Bearer test-key', 'content-type': 'application/json' }
    const show = async () => {
      const pets = await (await fetch('/v1/pets', { headers })).json()
      const items = pets.map(({ id, name }) => Object.assign(document.createElement('li'), { textContent: id + ' ' + name }))
      document.querySelector('ul').replaceChildren(...items)
    }
    document.querySelector('button').onclick = async () => {
      await fetch('/v1/pets', { method: 'POST', headers, body: '{"name":"Mia","categoryId":2}' })
      await show()
    }
    void show()
  </script>`
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end(html)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
  // Chromium's sandbox does not start as root, who is the only user of a container.
  const use = { launchOptions: { executablePath, args: ['--no-sandbox'] } }
  const folder = makeProject({
    'playwright.config.mjs': `export default ${JSON.stringify({ use })}`,
    'page.spec.mjs': readExample("'**/v1/**'").replace('5173', String(address.port)),
  })
  const args = ['test', '--reporter=line', '--workers=1']
  assert.match(await runToEnd(t, folder, 'node_modules/.bin/playwright', ...args), /2 passed/)
})

test("runs the example's hook in Jest", async (t) => {
  const folder = makeProject({ 'pets.test.cjs': readExample('pets.test.cjs'), 'package.json': '{}' })
  assert.match(await runToEnd(t, folder, 'node_modules/.bin/jest', patience), /Tests: +1 passed, 1 total/)
})

test('runs in the jsdom of Jest, which has timers of its own, and no setImmediate', async (t) => {
  const folder = makeProject({
    'package.json': '{}',
    'jsdom.test.cjs': `/** @jest-environment jsdom */
      const { request } = require('node:http')
      const { startPetStore } = require('petstore')
      test('is served', async () => {
        expect(typeof setImmediate).toBe('undefined')
        const store = await startPetStore({ apiKeys: ['k'], dataFile: 'pets.json', delayMs: 1 })
        const ask = (path) => new Promise((resolve) => request(store.url + path, resolve).end())
        for (const [path, status] of [['/healthz', 200], ['/v1/pets', 401]])
          expect((await ask(path)).statusCode).toBe(status)
        await store.close()
      })`,
  })
  assert.match(await runToEnd(t, folder, 'node_modules/.bin/jest', patience), /Tests: +1 passed, 1 total/)
})

for (const [runner, ...args] of [['vitest', 'run'], ['jest']]) {
  test(`answers while timers are fake in ${runner}`, async (t) => {
    const folder = makeProject({ 'package.json': '{}' })
    for (const name of [`${runner}.test.${runner === 'jest' ? 'cjs' : 'mjs'}`, 'requests.cjs'])
      copyFileSync(join(fakeTimers, name), join(folder, name))
    const output = await runToEnd(t, folder, `node_modules/.bin/${runner}`, ...args, patience)
    assert.match(output, /Tests:? +\d passed/)
    assert.doesNotMatch(output, /failed|skipped/)
  })
}

for (const [where, isGlobal] of [
  ['by the configuration of Jest', true],
  ['above the require', false],
] as const) {
  test(`responds where the timers are fake before it is loaded: ${where}`, async (t) => {
    const config = isGlobal ? { fakeTimers: { enableGlobally: true } } : {}
    const first = isGlobal ? '' : 'jest.useFakeTimers()\n'
    const folder = makeProject({
      'package.json': '{}',
      'jest.config.json': JSON.stringify(config),
      'early.test.cjs': first + readFileSync(join(fakeTimers, 'early.cjs'), 'utf8'),
    })
    copyFileSync(join(fakeTimers, 'requests.cjs'), join(folder, 'requests.cjs'))
    const output = await runToEnd(t, folder, 'node_modules/.bin/jest', patience, 'early.test.cjs')
    assert.match(output, /Tests:? +1 passed/)
  })
}

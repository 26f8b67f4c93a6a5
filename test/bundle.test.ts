import assert from 'node:assert/strict'
import { accessSync, constants, copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { buildOnce } from './built.ts'
import { makeFolder, send, startProgram } from './support.ts'

const dist = buildOnce()

/** `dist/server.js` alone in a folder that is otherwise empty, and to be what runProgram runs. */
function copyAlone(t: TestContext): string {
  const folder = makeFolder(t)
  copyFileSync(join(dist, 'server.js'), join(folder, 'server.js'))
  process.env['PETSTORE_TEST_ENTRY'] = join(folder, 'server.js')
  t.after(() => delete process.env['PETSTORE_TEST_ENTRY'])
  return folder
}

test('serves from one file in an empty folder, and stops, without a warning', async (t) => {
  const folder = copyAlone(t)
  const program = await startProgram(t, folder)
  const { url } = program
  let errors = ''
  program.child.stderr?.on('data', (text: string) => {
    errors += text
  })

  const body = { name: 'Rex', categoryId: 1 }
  assert.equal((await send(url, '/v1/pets', { body })).status, 201)
  assert.equal(
    (await send(url, '/v1/pets')).text,
    '[{"id":1,"name":"Rex","categoryId":1,"status":"available"}]',
  )
  assert.equal((await send(url, '/healthz', { headers: { authorization: null } })).text, '{"status":"ok"}')
  assert.match((await send(url, '/openapi.json')).text, /"openapi":"3\.1/)
  const page = await send(url, '/')
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(page.text, /<script type="module">[^]+<\/script>/)

  program.child.kill('SIGTERM')
  assert.deepEqual(await program.ended, { code: 0, signal: null })
  assert.equal(errors, '')
  assert.doesNotMatch(program.output(), /warning/i)
  assert.deepEqual(readdirSync(folder).toSorted(), ['data', 'server.js'])
})

test('starts the file by its own name, as a program', () => {
  const path = join(dist, 'server.js')
  assert.equal(readFileSync(path, 'utf8').split('\n', 1)[0], '#!/usr/bin/env node')
  if (process.platform !== 'win32') accessSync(path, constants.X_OK)
})

test('can be read: names and lines are as in the source', () => {
  const text = readFileSync(join(dist, 'server.js'), 'utf8')
  assert.match(
    text,
    /^function describeFailure\(error, config\) \{\n {2}if \(error instanceof ConfigFault\)/m,
  )
})

test('needs nothing but Node: every module that it loads is one of Node', () => {
  for (const name of ['server.js', 'index.js', 'contract.test.js']) {
    const text = readFileSync(join(dist, name), 'utf8')
    const modules = [...text.matchAll(/(?:require|import)\("([^"]+)"\)/g)].map(([, module]) => module ?? '')
    const foreign = modules.filter((module) => !module.startsWith('node:'))
    assert.deepEqual(foreign, [])
  }
})

test('ships the files that package.json names', () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const named = [...JSON.stringify(manifest).matchAll(/"\.?\/?dist\/([^"]+)"/g)].map(([, name]) => name ?? '')
  assert.ok(named.length >= 5)
  for (const name of named) assert.ok(existsSync(join(dist, name)), name)
})

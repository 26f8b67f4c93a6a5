/** The packed package behind what speaks HTTP/2 or `Request` and `Response`, and in other runtimes: the documents' examples, run. */
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { makeFolder } from '../support.ts'
import { findFreePort, makeProject, readExample, run, runCommand, runToEnd, tryStore } from './tools.ts'

const open = `import { createPetStore } from 'petstore'
  const store = await createPetStore({ apiKeys: ['dev-key'], pets: [], basePath: '/store', onError: console.error })`
const [forHono = '', forMsw = '', forBun = ''] = readExample('Bun.serve').split(/^\/\/ (?:MSW|Bun).*\n/m)

async function start(t: TestContext, script: string): Promise<string> {
  const started = run(t, makeProject({ 'server.mjs': script }), 'server.mjs')
  const [url = ''] = await started.waitFor(/http:\/\/127\.0\.0\.1:\d+/)
  return url
}

test('runs in Express behind compression, whose on-headers knows no flat list of headers', async (t) => {
  const url = await start(
    t,
    `import express from 'express'; import compression from 'compression'; ${open}
    const app = express().use(compression({ threshold: 0 })).use('/store', store.listener)
    const server = app.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port))`,
  )
  await tryStore(`${url}/store`, 'dev-key')
  const response = await fetch(`${url}/store/`)
  assert.equal(response.headers.get('content-encoding'), 'gzip')
  const suite = 'node_modules/petstore/dist/contract.test.js'
  await runToEnd(t, makeProject({}), suite, `${url}/store`, 'dev-key')
})

test('runs the line in Hono', async (t) => {
  const url = await start(
    t,
    `import { Hono } from 'hono'; import { serve } from '@hono/node-server'; const app = new Hono(); ${open}
    ${forHono}
    serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.log('http://127.0.0.1:' + port))`,
  )
  await tryStore(`${url}/store`, 'dev-key')
  assert.equal((await fetch(`${url}/elsewhere`)).status, 404)
})

test('runs the line of MSW in Node', async (t) => {
  const script = `import assert from 'node:assert/strict'
    import { http } from 'msw'; import { setupServer } from 'msw/node'
    import { createPetStore } from 'petstore'
    const store = await createPetStore({ apiKeys: ['dev-key'], pets: [{ name: 'Rex', categoryId: 1 }] })
    ${forMsw}
    server.listen({ onUnhandledRequest: 'error' })
    const headers = { authorization: 'Bearer dev-key', 'content-type': 'application/json' }
    const body = '{"name":"Mia","categoryId":2}'
    const created = await fetch('https://pets.example/v1/pets', { method: 'POST', headers, body })
    assert.equal(created.status, 201)
    const listed = await fetch('https://pets.example/v1/pets', { headers })
    assert.equal((await listed.json()).length, 2)
    server.close()
    await store.close()`
  await runToEnd(t, makeProject({ 'msw.mjs': script }), 'msw.mjs')
})

test('runs the plugin in Vite with HTTPS, where requests come by HTTP/2', async (t) => {
  const config = readExample('configureServer').replace('[petStore]', '[ssl(), petStore]')
  const client = `import assert from 'node:assert/strict'; import { connect } from 'node:http2'; import { text } from 'node:stream/consumers'
    const session = connect(process.argv[2], { rejectUnauthorized: false })
    const ask = async (headers, body) => {
      const stream = session.request({ authorization: 'Bearer dev-key', ...headers }, { endStream: body === undefined })
      if (body !== undefined) stream.end(body)
      const status = new Promise((resolve) => stream.once('response', (head) => resolve(head[':status'])))
      return [await status, await text(stream)]
    }
    const pets = { ':path': '/store/v1/pets' }
    assert.match((await ask(pets)).join(), /^200,.*Rex/)
    const [status] = await ask({ ...pets, ':method': 'POST', 'content-type': 'application/json' }, '{"name":"Mia","categoryId":2}')
    assert.equal(status, 201)
    assert.match((await ask({ ':path': '/store/' }))[1], /^<!doctype html>/)
    session.close()`
  const folder = makeProject({
    'vite.config.ts': `import ssl from '@vitejs/plugin-basic-ssl'\n${config}`,
    'package.json': '{"type":"module"}',
    'client.mjs': client,
  })
  const vite = run(t, folder, 'node_modules/.bin/vite', '--host', '127.0.0.1', '--port', await findFreePort())
  const [url = ''] = await vite.waitFor(/https:\/\/127\.0\.0\.1:\d+/)
  await runToEnd(t, folder, 'client.mjs', url)
})

test('runs the route handler in Next', { timeout: 300_000 }, async (t) => {
  // Next compiles nothing that is reached by a link to elsewhere.
  const folder = makeFolder(import.meta.dirname)
  const route = join(folder, 'app/store/[...path]')
  mkdirSync(route, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  // The tsconfig.json that it finds above the folder has its base there.
  const root = JSON.stringify(join(import.meta.dirname, '../..'))
  writeFileSync(join(folder, 'next.config.mjs'), `export default { turbopack: { root: ${root} } }`)
  writeFileSync(join(route, 'route.js'), readExample('in Next'))
  const port = await findFreePort()
  const next = run(t, folder, '../node_modules/.bin/next', 'dev', '--port', port, '--hostname', '127.0.0.1')
  await next.waitFor(/Ready/)
  const headers = { authorization: 'Bearer dev-key', 'content-type': 'application/json' }
  const url = `http://127.0.0.1:${port}/store/v1/pets`
  const body = '{"name":"Mia","categoryId":2}'
  const created = await fetch(url, { method: 'POST', headers, body })
  assert.equal(created.status, 201, next.output())
  assert.equal(created.headers.get('location'), '/store/v1/pets/1')
  assert.equal(
    await (await fetch(url, { headers })).text(),
    `[{"id":1,${body.slice(1, -1)},"status":"available"}]`,
  )
})

/** The executable of an optional package: there is none for this system. */
function findRuntime(path: string): string | undefined {
  const file = join(import.meta.dirname, 'node_modules', path)
  if (!existsSync(file)) return undefined
  chmodSync(file, 0o755)
  return file
}
const bun = findRuntime('@oven/bun-linux-x64-baseline/bin/bun')
const deno = findRuntime('@deno/linux-x64-glibc/deno')

test('runs the lines in Bun, where the own server is refused', { skip: bun === undefined }, async (t) => {
  const folder = makeProject({
    'server.mjs': `import { createPetStore, startPetStore } from 'petstore'
      const store = await createPetStore({ apiKeys: ['dev-key'], pets: [] })
      await startPetStore({ apiKeys: ['dev-key'], pets: [] }).catch(({ message }) => console.log(message))
      ${forBun.replace('3000', await findFreePort()).replace('Bun.serve', 'const server = Bun.serve')}
      console.log('http://127.0.0.1:' + server.port)`,
  })
  const served = runCommand(t, folder, bun ?? '', 'server.mjs')
  await served.waitFor(
    /^Bun does not run the server of Petstore: pass the fetch of createPetStore to Bun\.serve/m,
  )
  const [url = ''] = await served.waitFor(/http:\/\/127\.0\.0\.1:\d+/)
  await tryStore(url, 'dev-key')
  const program = runCommand(t, folder, bun ?? '', 'node_modules/petstore/dist/server.js')
  assert.deepEqual(await program.ended, [1, null])
  assert.match(program.output(), /^\S+Z Bun does not run .*\n$/)
})

test('runs whole in Deno', { skip: deno === undefined }, async (t) => {
  const folder = makeProject({
    'package.json': '{"dependencies":{"petstore":"*"}}',
    'server.mjs': `import { createPetStore, startPetStore } from 'petstore'
      const options = { apiKeys: ['dev-key'], pets: [] }
      const { url } = await startPetStore(options)
      console.log('own ' + url)
      const { fetch } = await createPetStore(options)
      Deno.serve({ port: 0, hostname: '127.0.0.1', onListen: ({ port }) => console.log('fetch http://127.0.0.1:' + port) }, fetch)`,
  })
  const served = runCommand(t, folder, deno ?? '', 'run', '-A', '--node-modules-dir=manual', 'server.mjs')
  for (const door of [/own (http:\/\/127\.0\.0\.1:\d+)/, /fetch (http:\/\/127\.0\.0\.1:\d+)/]) {
    const [, url = ''] = await served.waitFor(door)
    await tryStore(url, 'dev-key')
  }
})

/** The packed package in the frameworks that people mount it in: the documents' examples, run as they stand but for the port. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { findFreePort, makeProject, readExample, run, runToEnd, tryStore } from './tools.ts'

/** Runs a script that prints its address when it listens. */
async function start(t: TestContext, script: string): Promise<ReturnType<typeof run> & { url: string }> {
  const started = run(t, makeProject({ 'server.mjs': script }), 'server.mjs')
  const [url] = await started.waitFor(/http:\/\/127\.0\.0\.1:\d+/)
  return { ...started, url }
}

const open = `import { createPetStore } from 'petstore'
  const store = await createPetStore({ apiKeys: ['dev-key'], pets: [], basePath: '/store', onError: console.error })`
const listen = `server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port))`

test('runs the example in Express, which says what happens and stops', async (t) => {
  const example = readExample("from 'express'").replaceAll('3000', await findFreePort())
  const { url, kill, ended, output } = await start(t, example)
  await tryStore(`${url}/store`, 'dev-key')
  kill('SIGINT')
  assert.deepEqual(await ended, [0, null])
  assert.match(output(), /^The store is at http:\S+\/store\/\n$/)
})

test('runs in connect as in Express', async (t) => {
  const { url } = await start(
    t,
    `import connect from 'connect'; import { createServer } from 'node:http'; ${open}
    const server = createServer(connect().use('/store', store.listener)); ${listen}`,
  )
  await tryStore(`${url}/store`, 'dev-key')
})

const [forFastify = '', forKoa = ''] = readExample('koa.use').split(/^\/\/ Koa.*\n/m)

test('runs the lines in Fastify', async (t) => {
  const { url } = await start(
    t,
    `import createFastify from 'fastify'; const fastify = createFastify(); ${open}
    ${forFastify}
    console.log(await fastify.listen({ host: '127.0.0.1', port: 0 }))`,
  )
  await tryStore(`${url}/store`, 'dev-key')
  assert.equal((await fetch(`${url}/elsewhere`)).status, 404)
})

test('rejects a request that Fastify injects, where it is dropped, and goes on', async (t) => {
  const injecting = `import createFastify from 'fastify'; const fastify = createFastify(); ${open}
    ${forFastify}
    const list = () => fastify.inject({ url: '/store/v1/pets', headers: { authorization: 'Bearer dev-key' } })
    store.disturb({ fail: 'drop', requests: 1 })
    console.log(await list().catch((error) => error.message))
    console.log((await list()).body)
    await store.close()`
  const output = await runToEnd(t, makeProject({ 'inject.mjs': injecting }), 'inject.mjs')
  assert.equal(output, 'response destroyed before completion\n[]\n')
})

test('runs the lines in Koa', async (t) => {
  const { url } = await start(
    t,
    `import Koa from 'koa'; import { createServer } from 'node:http'; const koa = new Koa(); ${open}
    ${forKoa}
    const server = createServer(koa.callback()); ${listen}`,
  )
  await tryStore(`${url}/store`, 'dev-key')
  assert.equal((await fetch(`${url}/elsewhere`)).status, 404)
})

test('runs the plugin in Vite', async (t) => {
  const url = await startVite(t, readExample('configureServer'))
  await tryStore(`${url}/store`, 'dev-key')
  assert.equal((await fetch(`${url}/store`, { redirect: 'manual' })).headers.get('location'), '/store/')
})

test("passes requests on by Vite's proxy to the program with that base path", async (t) => {
  const example = readExample('server: { proxy')
  const [port, folder] = [await findFreePort(), makeProject({})]
  const [, args = ''] = /npx --no -- petstore (.*)$/m.exec(example.replaceAll('3001', port)) ?? []
  const program = run(t, folder, 'node_modules/petstore/dist/server.js', ...args.split(' '))
  await program.waitFor(/listens on/)
  const url = await startVite(t, example.replaceAll('3001', port))
  await tryStore(`${url}/store`, 'dev-key')
  assert.equal((await fetch(`${url}/store`, { redirect: 'manual' })).headers.get('location'), '/store/')
})

/** With this vite.config.ts. Gives its address. */
async function startVite(t: TestContext, config: string): Promise<string> {
  const folder = makeProject({ 'vite.config.ts': config, 'package.json': '{"type":"module"}' })
  const vite = run(t, folder, 'node_modules/.bin/vite', '--host', '127.0.0.1', '--port', await findFreePort())
  const [url] = await vite.waitFor(/http:\/\/127\.0\.0\.1:\d+/)
  return url
}

test('runs the example of failures on purpose, which ends without any', async (t) => {
  const example = readExample('failures.mjs')
  const script = `import assert from 'node:assert/strict'
    import { store } from './failures.mjs'
    const ask = () => fetch(store.url + '/v1/pets', { headers: { authorization: 'Bearer dev-key' } })
    assert.equal((await (await ask()).json()).length, 1)
    store.disturb({ fail: '503', requests: 1 })
    const refusal = await ask()
    assert.deepEqual([refusal.status, (await refusal.json()).code], [503, 'failed_on_purpose'])
    store.disturb({ fail: 'drop' })
    await assert.rejects(ask())
    await store.reset()
    assert.equal((await ask()).status, 200)
    await store.close()`
  const folder = makeProject({ 'failures.mjs': example, 'try.mjs': script })
  await runToEnd(t, folder, 'try.mjs')
})

test('runs the example of a workshop', async (t) => {
  const example = readExample('workshop.mjs').replaceAll('3000', await findFreePort())
  const { url, waitFor } = await start(t, example)
  await tryStore(url, 'workshop')
  await waitFor(/^201 POST \/v1\/pets$/m)
})

test('says what to do about express.json() ahead of it, and about a mount path that it does not know', async (t) => {
  const { url, waitFor } = await start(
    t,
    `import express from 'express'; ${open.replace(", basePath: '/store'", '')}
    const app = express().use(express.json()).use('/shop', store.listener)
    const server = app.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port))`,
  )
  const headers = { authorization: 'Bearer dev-key', 'content-type': 'application/json' }
  const response = await fetch(`${url}/shop/v1/pets`, { method: 'POST', headers, body: '{"name":"Max"}' })
  assert.equal(response.status, 500)
  await waitFor(/^the listener is mounted under \/shop; pass this as basePath, /m)
  await waitFor(/^internal_error in POST \/v1\/pets: the body was read before; mount the listener ahead of /m)
})

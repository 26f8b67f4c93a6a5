/** What the systemd unit and the image run to see whether the service serves, as it stands there. (Whole: test/machine, test/container.) */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { cleanEnvironment, listen, makeFolder, root, runProgram, startApp } from './support.ts'

const read = (name: string): string => readFileSync(join(root, 'src/program', name), 'utf8')

/** The script of HEALTHCHECK. */
function findHealthCheck(): string {
  const [, command = '[]'] = /^HEALTHCHECK CMD (.*)$/m.exec(read('Containerfile')) ?? []
  const [, , script]: string[] = JSON.parse(command)
  return script ?? assert.fail('Containerfile has no HEALTHCHECK')
}

/** The script of ExecStartPost, as systemd passes it on. */
function findStartCheck(): string {
  const lines = read('petstore.service').replaceAll('\\\n', ' ')
  const [, script] = /^ExecStartPost=\/usr\/bin\/node -e "(.*)"$/m.exec(lines) ?? []
  return script?.replaceAll('$$', '$') ?? assert.fail('petstore.service has no ExecStartPost')
}

async function run(script: string, env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, ['-e', script], { env: { ...cleanEnvironment(), ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [code]: (number | null)[] = await once(child, 'close')
  return { code, output }
}

/** A port at which nobody listens. */
async function findClosedPort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? String(address.port) : assert.fail()
}

for (const HOST of ['127.0.0.1', '0.0.0.0', '::', '::1']) {
  test(`the checks of unit and image find a service that serves at HOST=${HOST}`, async (t) => {
    const { url } = await startApp(t, { host: HOST })
    const PORT = new URL(url).port
    const MAINPID = String(process.pid)
    const done = { code: 0, output: '' }
    assert.deepEqual(await run(findHealthCheck(), { HOST, PORT }), done)
    assert.deepEqual(await run(findStartCheck(), { HOST, PORT, MAINPID }), done)
  })
}

test('the health check of the image fails without a stack where nobody listens, or what does is not ready', async (t) => {
  const failed = { code: 1, output: '' }
  const [HOST, PORT] = ['127.0.0.1', await findClosedPort()]
  assert.deepEqual(await run(findHealthCheck(), { HOST, PORT }), failed)
  const url = await listen(t, (_request, response) => response.writeHead(503).end())
  assert.deepEqual(await run(findHealthCheck(), { HOST, PORT: new URL(url).port }), failed)
})

test('the check of the unit fails for a refused start, also where another program responds at the port', async (t) => {
  const PORT = new URL((await startApp(t)).url).port
  const refused = runProgram(t, makeFolder(), { PORT })
  const MAINPID = String(refused.child.pid)
  assert.equal((await refused.ended).code, 1)
  assert.deepEqual(await run(findStartCheck(), { PORT, MAINPID }), { code: 1, output: '' })
})

test('the unit starts the service again however it ends, and gives up a stop that hangs', () => {
  const unit = read('petstore.service')
  assert.match(unit, /^Restart=always$/m)
  assert.match(unit, /^StartLimitIntervalSec=0$/m)
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? []
  assert.ok(Number(seconds) > 6)
})

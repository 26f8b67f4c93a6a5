import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { buildOnce } from './built.ts'
import { connectRaw, key, makeFolder, runProgram, send, startProgram } from './support.ts'

process.env['PETSTORE_TEST_ENTRY'] = join(buildOnce(), 'server.js')

/** The `curl` of the start text, pasted into bash. */
function pasteCurl(output: string, env: NodeJS.ProcessEnv = {}): string {
  const [, curl = ''] = /^ {2}(curl .*)$/m.exec(output) ?? []
  assert.notEqual(curl, '', output)
  const { stdout, stderr } = spawnSync('bash', ['-c', curl], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
  assert.notEqual(stdout, '', stderr)
  return stdout
}

/** Runs the program until it ends by itself. */
async function runToEnd(
  t: TestContext,
  env: NodeJS.ProcessEnv,
): Promise<{ output: string; code: number | null }> {
  const program = runProgram(t, makeFolder(t), env)
  const { code } = await program.ended
  return { output: program.output(), code }
}

test('prints a curl with the made-up key that works when pasted', async (t) => {
  const program = await startProgram(t, makeFolder(t), { PETSTORE_API_KEYS: '' })
  assert.match(program.key, /^[\w-]{32}$/)
  assert.equal(pasteCurl(program.output()), '[]')
})

test('makes another key for each run, and none that was chosen before', async (t) => {
  const folder = makeFolder(t)
  const first = await startProgram(t, folder, { PETSTORE_API_KEYS: '', PETSTORE_DATA_FILE: 'a.json' })
  const second = await startProgram(t, folder, { PETSTORE_API_KEYS: '', PETSTORE_DATA_FILE: 'b.json' })
  assert.notEqual(first.key, second.key)
})

test('prints a curl that works in a shell that has the keys, and prints no key', async (t) => {
  const keys = { PETSTORE_API_KEYS: ' secret-one , secret-two' }
  const program = await startProgram(t, makeFolder(t), keys)
  assert.equal(pasteCurl(program.output(), keys), '[]')
  assert.doesNotMatch(program.output(), /secret/)
})

for (const [host, address] of [
  ['0.0.0.0', 'http://127.0.0.1:'],
  ['localhost', 'http://'],
  ['::1', 'http://[::1]:'],
] as const) {
  test(`prints an address that is reached when the host is ${host}`, async (t) => {
    const program = runProgram(t, makeFolder(t), { HOST: host, PETSTORE_API_KEYS: key })
    const outcome = await program.waitFor(/listens on (\S+)\n[^]*curl .*\n|^HOST: .*\n/)
    if (outcome[1] === undefined && host === '::1') {
      t.skip('this machine has no IPv6')
      return
    }
    assert.ok(outcome[1]?.startsWith(address), outcome[0])
    assert.equal(pasteCurl(program.output(), { PETSTORE_API_KEYS: key }), '[]')
  })
}

test('says which file it uses and how many pets are in it', async (t) => {
  const folder = makeFolder(t)
  writeFileSync(join(folder, 'one.json'), '{"pets":[{"name":"Rex","categoryId":1}]}')
  const program = await startProgram(t, folder, { PETSTORE_DATA_FILE: 'one.json' })
  await program.waitFor(/^Data file: one\.json, 1 pet$/m)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`ends in order at ${signal}, and closes sockets that never sent a request`, async (t) => {
    const program = await startProgram(t, makeFolder(t))
    const silent = await connectRaw(t, program.url)
    const half = await connectRaw(t, program.url)
    half.write('GET /v1/pets HTTP/1.1\r\nHost: a')
    const kept = await connectRaw(t, program.url)
    kept.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await kept.read()).status, 200)

    const start = performance.now()
    program.child.kill(signal)
    assert.deepEqual(await program.ended, { code: 0, signal: null })
    assert.ok(performance.now() - start < 5_900)
    await Promise.all([silent.closed, half.closed, kept.closed])
  })
}

test('delivers the answers that are under way when it is told to stop', async (t) => {
  const program = await startProgram(t, makeFolder(t))
  const client = await connectRaw(t, program.url)
  const body = '{"name":"Rex","categoryId":1}'
  const head = `POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}`
  client.write(`${head}\r\nExpect: 100-continue\r\n\r\n`)
  assert.equal((await client.read()).status, 100)
  program.child.kill('SIGTERM')
  await refusesConnections(program.url)
  client.write(body)
  const answer = await client.read()
  assert.equal(answer.status, 201)
  assert.equal(answer.headers.get('connection'), 'close')
  assert.deepEqual(await program.ended, { code: 0, signal: null })
})

test('ends at once at the second signal', async (t) => {
  const program = await startProgram(t, makeFolder(t))
  const client = await connectRaw(t, program.url)
  client.write(`POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: 9\r\n`)
  client.write('Expect: 100-continue\r\n\r\n')
  assert.equal((await client.read()).status, 100)
  program.child.kill('SIGINT')
  await refusesConnections(program.url)
  program.child.kill('SIGINT')
  assert.deepEqual(await program.ended, { code: 130, signal: null })
})

test('takes the Ctrl-C that npm hands on for the same one', async (t) => {
  const program = await startProgram(t, makeFolder(t), { npm_lifecycle_event: 'start' })
  const client = await connectRaw(t, program.url)
  client.write(`POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: 2\r\n`)
  client.write('Expect: 100-continue\r\n\r\n')
  assert.equal((await client.read()).status, 100)
  program.child.kill('SIGINT')
  // Another one, since the system may deliver two of a kind as one.
  program.child.kill('SIGTERM')
  await refusesConnections(program.url)
  client.write('{}')
  assert.equal((await client.read()).status, 400)
  assert.deepEqual(await program.ended, { code: 0, signal: null })
})

/** Resolves when nobody listens at the address any more. */
async function refusesConnections(url: string): Promise<void> {
  for (;;) {
    try {
      await fetch(url, { headers: { connection: 'close' } })
    } catch {
      return
    }
  }
}

test('says in one plain line that the port is taken', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  t.after(() => other.close())
  await once(other, 'listening')
  const address = other.address()
  assert.ok(typeof address === 'object' && address !== null)
  const PORT = String(address.port)
  const { output, code } = await runToEnd(t, { PORT })
  assert.equal(output, `PORT: ${PORT} is taken by another program on 127.0.0.1\n`)
  assert.equal(code, 1)
})

test('says in one plain line that another server uses the file', async (t) => {
  const folder = makeFolder(t)
  await startProgram(t, folder)
  const second = runProgram(t, folder)
  assert.equal((await second.ended).code, 1)
  assert.match(second.output(), /^data\/pets\.json: .*\n$/)
})

const refusedStarts: readonly (readonly [string, NodeJS.ProcessEnv, RegExp])[] = [
  [
    'a host of no machine',
    { HOST: 'host.invalid' },
    /^HOST: host\.invalid is not an address of this machine\n$/,
  ],
  // TEST-NET-1 (RFC 5737): nobody's address.
  [
    'a host of another machine',
    { HOST: '192.0.2.1' },
    /^HOST: 192\.0\.2\.1 is not an address of this machine\n$/,
  ],
  [
    'a data file below a file',
    { PETSTORE_DATA_FILE: '/dev/null/pets.json' },
    /^\/dev\/null\/pets\.json: .*\n$/,
  ],
  ['a data file that is a folder', { PETSTORE_DATA_FILE: '.' }, /^\.: .*\n$/],
  ['a setting that there is not', { PETSTORE_KEYS: 'a' }, /^PETSTORE_KEYS: is not a setting; .*\n$/],
  ['several faults', { PORT: 'x', PETSTORE_LOG: 'x' }, /^PORT: .*\nPETSTORE_LOG: .*\n$/],
  [
    'an open host without keys',
    { HOST: '0.0.0.0', PETSTORE_API_KEYS: '' },
    /^PETSTORE_API_KEYS: is required when HOST is not a loopback address, and HOST is 0\.0\.0\.0\n$/,
  ],
]

for (const [what, env, expected] of refusedStarts) {
  test(`refuses ${what} in plain lines, with exit code 1`, async (t) => {
    const { output, code } = await runToEnd(t, { PETSTORE_API_KEYS: key, ...env })
    assert.match(output, expected)
    assert.equal(code, 1)
  })
}

test('names the place of a fault in the data file and leaves the file alone', async (t) => {
  const folder = makeFolder(t)
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'data/pets.json'), '{"pets":[\n{"name":1,"categoryId":1}\n]}')
  const program = runProgram(t, folder)
  assert.equal((await program.ended).code, 1)
  assert.match(program.output(), /^data\/pets\.json:2:\d+: pets\[0\]\.name: expected a string, got 1\n$/)
})

test('logs a line a request: method, path, status and time, and neither query nor key', async (t) => {
  const program = await startProgram(t, makeFolder(t), { PETSTORE_LOG: 'requests' })
  await send(program.url, '/v1/pets?limit=1&secret=hush')
  await send(program.url, '/v1/pets', { body: {} })
  await send(program.url, '/nowhere', { headers: { authorization: 'Bearer hush' } })
  await program.waitFor(/^GET \/v1\/pets 200 \d+\.\d ms$/m)
  await program.waitFor(/^POST \/v1\/pets 400 \d+\.\d ms$/m)
  await program.waitFor(/^GET \/nowhere 404 \d+\.\d ms$/m)
  const unreadable = await connectRaw(t, program.url)
  unreadable.write('garbage\r\n\r\n')
  await program.waitFor(/^- - 400 \d+\.\d ms$/m)
  assert.doesNotMatch(program.output(), /hush|test-key/)
})

test('prints nothing at all when it is to be silent, but faults', async (t) => {
  const port = await findFreePort()
  const folder = makeFolder(t)
  const env = { PETSTORE_LOG: 'silent', PETSTORE_API_KEYS: key, PORT: String(port) }
  const program = runProgram(t, folder, env)
  const url = `http://127.0.0.1:${port}`
  while (!(await isAnswered(url))) await new Promise(setImmediate)
  assert.equal((await send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })).status, 201)
  const { output, code } = await runToEnd(t, env)
  assert.match(output, /^PORT: /)
  assert.equal(code, 1)
  program.child.kill('SIGTERM')
  assert.equal((await program.ended).code, 0)
  assert.equal(program.output(), '')
})

async function isAnswered(url: string): Promise<boolean> {
  return fetch(`${url}/healthz`).then(
    () => true,
    () => false,
  )
}

/** A port that was free a moment ago: the one way to find a program that does not say where it listens. */
async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  server.close()
  await once(server, 'close')
  return address.port
}

test('goes on serving when whoever reads its output has gone', async (t) => {
  const folder = makeFolder(t)
  const program = await startProgram(t, folder, { PETSTORE_LOG: 'requests' })
  program.child.stdout?.destroy()
  program.child.stderr?.destroy()
  for (let i = 0; i < 5; i++) assert.equal((await send(program.url, '/v1/pets')).status, 200)
  program.child.kill('SIGTERM')
  assert.deepEqual(await once(program.child, 'exit'), [0, null])
})

test('goes on serving behind `| head -1`', async (t) => {
  const folder = makeFolder(t)
  const { PETSTORE_TEST_ENTRY: entry = '', ...inherited } = process.env
  const env = { ...inherited, PORT: '0', PETSTORE_API_KEYS: key, PETSTORE_LOG: 'requests' }
  const script = '"$0" "$1" > >(head -1) & echo "pid $!"; wait $!; echo "ended $?"'
  const shell = spawn('bash', ['-c', script, process.execPath, entry], { cwd: folder, env })
  let output = ''
  let wake: (() => void) | undefined
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    wake?.()
  })
  const read = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const [, found] = pattern.exec(output) ?? []
      if (found !== undefined) return found
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  const pid = Number(await read(/pid (\d+)\n/))
  t.after(() => shell.kill('SIGKILL'))
  const url = await read(/listens on (\S+)\n/)
  for (let i = 0; i < 5; i++) assert.equal((await send(url, '/v1/pets')).status, 200)
  process.kill(pid, 'SIGTERM')
  assert.equal(await read(/ended (\d+)\n/), '0')
})

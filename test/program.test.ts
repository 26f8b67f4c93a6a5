/** The program as people start it: its arguments, what it prints, and how signals and faults end it. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import {
  copyFileSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
  type Stats,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { createServer } from 'node:net'
import os from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text as readText } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { formatUrl, ListenError } from '../src/http/address.ts'
import { type Setting, settings } from '../src/options/settings.ts'
import { formatCommand, parseArguments } from '../src/program/arguments.ts'
import { parseConfig } from '../src/program/config.ts'
import { formatEntry, formatStartText } from '../src/program/console.ts'
import { buildOnce } from './built.ts'
import {
  cleanEnvironment,
  connectRaw,
  holdClock,
  isThorough,
  passSecond,
  key,
  makeFolder,
  pause,
  runProgram,
  send,
  share,
  startApp,
  startProgram,
  type StartedProgram,
  withoutTimes,
} from './support.ts'

const entry = join(buildOnce(), 'server.js')
process.env['PETSTORE_TEST_ENTRY'] = entry

/** Runs the `curl` of the start text in bash, as if it was pasted and its key filled in, and returns what it prints. */
async function pasteCurl(output: string, filledInKey = ''): Promise<string> {
  const [, curl = ''] = /^ {2}(curl .*)$/m.exec(output) ?? []
  assert.notEqual(curl, '', output)
  const command = curl.replace('YOUR_API_KEY', filledInKey)
  // Where its input is a socket, as here, bash would read the .bashrc of whoever runs this, which may do anything.
  // On stderr, curl shows its progress.
  const { stdout, stderr } = spawn('bash', ['--norc', '-c', command], { env: cleanEnvironment() })
  const [printed, errors] = await Promise.all([readText(stdout), readText(stderr)])
  assert.notEqual(printed, '', errors)
  return printed
}

/** Runs the program with arguments that make it end by itself. */
function runWithArguments(args: readonly string[]): readonly (string | number | null)[] {
  const folder = makeFolder()
  copyFileSync(entry, join(folder, 'server.js'))
  const env = { ...cleanEnvironment(), PETSTORE_LOG: 'wrong' }
  const options = { cwd: folder, env, encoding: 'utf8', timeout: 60_000 } as const
  const { stdout, stderr, status } = spawnSync(process.execPath, ['server.js', ...args], options)
  assert.deepEqual(readdirSync(folder), ['server.js'])
  return [stdout, withoutTimes(stderr), status]
}

test('prints usage and all settings at --help, in lines that fit a window, and starts nothing', () => {
  const [stdout, ...rest] = runWithArguments(['--help'])
  assert.deepEqual(rest, ['', 0])
  const lines = String(stdout).split('\n')
  assert.deepEqual(lines.slice(0, 5), [
    'Usage: node server.js [--port 4000] [--file mypets.json] …',
    '',
    'A pet store service: JSON over HTTP, with one JSON file or a PostgreSQL as its database.',
    'A setting is an argument or an environment variable; the argument wins:',
    '',
  ])
  const columns = lines.slice(5, 6 + Object.keys(settings).length).map((line) => line.trim().split(/ {2,}/))
  const rows = Object.values<Setting>(settings).map(({ argument, variable, fallback, meaning }) => [
    `--${argument}`,
    variable,
    fallback || '-',
    meaning,
  ])
  assert.deepEqual(columns, [['Argument', 'Variable', 'Default', 'Meaning'], ...rows])
  assert.ok(rows.every(([, , , meaning]) => meaning !== ''))
  assert.ok(lines.every((line) => line.length <= 110))
  assert.ok(
    lines.includes('Other users of this machine can see a key or a password that is given as an argument.'),
  )
  assert.ok(
    lines.includes(
      'In the log of requests, those that an open page sends by itself have the word poll at the end.',
    ),
  )
  assert.ok(
    lines.includes(
      '  --verify URL   test another server against the interface, with its key by --keys; --verify --help says more',
    ),
  )
  assert.ok(lines.includes('  -h, --help     print this text'))
  assert.ok(lines.includes('  -v, --version  print the version'))
})

for (const [short, long] of [
  ['-v', '--version'],
  ['-h', '--help'],
] as const) {
  test(`takes ${short} for ${long}`, () => {
    const answer = parseArguments([short], 'node server.js', '1.0.0')
    assert.deepEqual(answer, parseArguments([long], 'node server.js', '1.0.0'))
    assert.equal(typeof answer, 'string')
  })
}

const wrongArguments: readonly (readonly [args: readonly string[], fault: string])[] = [
  [['--watch'], '--watch: unknown'],
  [['-p', '4000'], '-p: unknown'],
  [['--token=hush'], '--token: unknown'],
  [['--a\nb'], '--a…: unknown'],
  [['--postgres://ann:hu=sh@h/d'], '--postgres…: unknown'],
  [['4000'], 'argument 1: expected one that begins with --'],
  [['--keys', 'one', 'hush'], 'argument 3: expected one that begins with --'],
  [['--keys', 'one', '--', 'hush'], 'argument 4: expected one that begins with --'],
  [['--check', 'hush'], 'argument 2: expected one that begins with --'],
  [['--port'], '--port: expected a value after it'],
  [['--keys', '--help'], '--keys: expected a value after it; one that begins with -- comes behind a ='],
]

for (const [args, fault] of wrongArguments) {
  test(`refuses ${JSON.stringify(args)} in one line that names it`, () => {
    const faults = [`${fault}; node server.js --help lists the arguments`]
    assert.deepEqual(Object(parseArguments(args, 'node server.js', '1.0.0')).faults, faults)
  })
}

test('ends with exit code 1 after a line for each wrong argument, each wrong value and what an import lacks, and starts nothing', () => {
  const [output, errors, code] = runWithArguments([
    '--delay',
    '5s',
    '--fial',
    '10%',
    '--port=-1',
    'x',
    '--import',
    'a.json',
    '--file',
    'postgres://ann:hush@127.0.0.1:1/d',
    '--log',
  ])
  assert.equal(output, '')
  assert.equal(
    errors,
    [
      '--fial: unknown; node server.js --help lists the arguments',
      'argument 6: expected one that begins with --; node server.js --help lists the arguments',
      '--log: expected a value after it; node server.js --help lists the arguments',
      '--port: expected a port from 0 to 65535, got "-1"',
      '--file: expected the path of a file, got "postgres://…@127.0.0.1:1/d"; the URL of a database is for PETSTORE_DATABASE_URL',
      '--delay: expected milliseconds from 0 to 10000, such as 300 or 200-800, got "5s"',
      'PETSTORE_LOG: expected one of silent, info, requests, got "wrong"',
      '--import, --export: expected one of them, and a database',
      '',
    ].join('\n'),
  )
  assert.equal(code, 1)
})

test('takes a value that begins with -- behind a =', () => {
  assert.deepEqual(
    { ...Object(parseArguments(['--keys=--help'], 'node server.js', '1.0.0')).given },
    { keys: '--help' },
  )
})

for (const [args, env, meant] of [
  [['3005'], { npm_config_port: 'true' }, 'npm start -- --port 3005'],
  [[], { npm_config_port: '3005' }, 'npm start -- --port 3005'],
  [[], { npm_config_base_path: '/store' }, 'npm start -- --base-path /store'],
  [['hush'], { npm_config_keys: 'true' }, 'npm start -- --keys …'],
  [[], { npm_config_database: 'postgres://ann:hush@h/d' }, 'npm start -- --database …'],
  [['postgres://ann:hush@h/d'], { npm_config_file: 'true' }, 'npm start -- --file postgres://…@h/d'],
  [['3005', 'hush'], { npm_config_keys: 'true', npm_config_port: 'true' }, 'npm start -- --port … --keys …'],
  [[], { npm_config_port: 'true' }, 'npm start -- --port …'],
] as const) {
  test(`says what was probably meant where npm took an argument: ${meant}`, () => {
    const ofNpm = { npm_package_name: 'petstore', npm_lifecycle_event: 'start', ...env }
    assert.deepEqual(Object(parseArguments(args, 'node server.js', '1.0.0', ofNpm)).faults, [
      `npm took ${meant.split(' ')[3]}; did you mean \`${meant}\`; node server.js --help lists the arguments`,
    ])
  })
}

test('takes what npm took for another package for none of its own', () => {
  const env = { npm_package_name: 'shop', npm_lifecycle_event: 'dev', npm_config_host: 'true' }
  assert.deepEqual(parseArguments([], 'node server.js', '1.0.0', env), { given: {}, faults: [] })
})

test('says in one sentence that a program copied alone has no suite to verify a server with', () => {
  const sentence =
    '--verify: the contract suite, contract.test.js, is not beside this program; the package petstore has both, and so has dist after a build\n'
  assert.deepEqual(runWithArguments(['--verify', 'http://127.0.0.1:1/v1', '--keys', 'a']), ['', sentence, 1])
})

test('takes each setting as an argument, which wins over its variable, and prints no key that was set', async (t) => {
  const folder = makeFolder()
  const env = { PORT: 'wrong', PETSTORE_API_KEYS: 'from-the-environment', PETSTORE_DATA_FILE: 'other.json' }
  const args = ['--port', '0', '--keys=key-1,key-2', '--file', 'mine/pets.json', '--log', 'requests']
  const { url, waitFor, output } = await startProgram(
    t,
    folder,
    env,
    [],
    [...args, '--cors=none', '--delay', '300-400', '--base-path', '/store'],
  )
  await waitFor(/mine\/pets\.json, 0 pets/)
  await waitFor(new RegExp(`^Page: ${url}/$`, 'm'))
  await waitFor(/^Try, with your API key instead of YOUR_API_KEY:\n {2}curl .*YOUR_API_KEY.*\n/m)
  assert.doesNotMatch(output(), /key-\d/)
  assert.equal(await pasteCurl(output(), 'key-2'), '[]')
  const headers = { authorization: 'Bearer key-2', origin: 'http://a.test' }
  const answer = await send(url, '/v1/pets', { headers })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('access-control-allow-origin'), undefined)
  const [, heldMs] = await waitFor(/ GET \/v1\/pets 200 (\d+\.\d) ms /m)
  // By this clock, a timer may fire a millisecond early.
  assert.ok(Number(heldMs) >= 299, heldMs)
  const body = { name: 'Rex', categoryId: 1 }
  for (const [path, id] of [
    ['/store/v1/pets', 1],
    ['/v1/pets', 2],
  ] as const) {
    const made = await send(url, path, { body, headers: { authorization: 'Bearer key-2' } })
    assert.equal(made.headers.get('location'), `/store/v1/pets/${id}`)
  }
  assert.deepEqual(readdirSync(folder), ['mine'])
})

test('names the argument when its value is wrong, and says all faults at once', () => {
  assert.throws(() => parseConfig({ PETSTORE_LOG: 'loud' }, { port: '70000', host: '0.0.0.0' }), {
    message: [
      '--port: expected a port from 0 to 65535, got "70000"',
      'PETSTORE_LOG: expected one of silent, info, requests, got "loud"',
      'PETSTORE_API_KEYS: is required because --host (0.0.0.0) is not a loopback address',
    ].join('\n'),
  })
})

test('names the command by which it was started', () => {
  const folder = join('/', 'home', 'ann', 'shop')
  assert.equal(formatCommand(join(folder, 'dist', 'server.js'), folder), `node ${join('dist', 'server.js')}`)
  assert.equal(formatCommand(join('/', 'opt', 'server.js'), folder), `node ${join('/', 'opt', 'server.js')}`)
  assert.equal(formatCommand(join(folder, 'node_modules', '.bin', 'petstore'), folder), 'npx petstore')
})

const v4 = (address: string) => [{ family: 'IPv4', address, internal: address.startsWith('127.') }]
const v6 = (address: string) => [{ family: 'IPv6', address, internal: false }]

test('says that other machines can reach it, and where, when it listens on every address', (t) => {
  const inner = {
    lo: v4('127.0.0.1'),
    docker0: v4('172.17.0.1'),
    'br-1f2e3d4c5b6a': v4('172.18.0.1'),
    wg0: v4('10.8.0.2'),
  }
  const linkLocal = { eth1: v4('169.254.7.7'), eth2: v6('fe80::1') }
  t.after(syncBuiltinESMExports)
  for (const [host, interfaces, expected] of [
    ['0.0.0.0', { ...inner, ...linkLocal, eth0: v4('192.0.2.7') }, 'probably at http://192.0.2.7:3000'],
    [
      '0.0.0.0',
      {
        ...inner,
        eth0: v4('203.0.113.4'),
        eth3: v4('10.1.2.3'),
        br0: v4('172.20.0.3'),
        wlan0: v4('192.168.1.20'),
      },
      'probably at http://192.168.1.20:3000 or http://10.1.2.3:3000 or http://203.0.113.4:3000 or http://172.20.0.3:3000',
    ],
    ['0.0.0.0', { ...inner, ...linkLocal, eth0: v6('2001:db8::5') }, "at any of this machine's addresses"],
    [
      '::',
      { ...inner, wlan0: [...v6('2001:db8::5'), ...v4('192.0.2.7')] },
      'probably at http://192.0.2.7:3000 or http://[2001:db8::5]:3000',
    ],
    ['::', { ...inner, ...linkLocal, eth0: v6('2001:db8::5') }, 'probably at http://[2001:db8::5]:3000'],
    ['::', { ...inner, ...linkLocal }, "at any of this machine's addresses"],
    ['0.0.0.0', undefined, "at any of this machine's addresses"],
  ] as const) {
    const { mock } = t.mock.method(os, 'networkInterfaces', () => {
      // As where the system denies the call.
      if (interfaces === undefined) throw new Error('uv_interface_addresses returned Unknown system error 97')
      return interfaces
    })
    syncBuiltinESMExports()
    const config = parseConfig({ HOST: host, PETSTORE_API_KEYS: 'a' })
    const text = formatStartText(config, formatUrl(host, 3000), '', undefined)
    mock.restore()
    const [first, second] = text.split('\n')
    assert.equal(first, 'Petstore listens on http://127.0.0.1:3000')
    assert.equal(second, `Other machines can reach it too, ${expected}`)
  }
  const alone = formatStartText(parseConfig({}), 'http://127.0.0.1:3000', '', 'a')
  assert.doesNotMatch(alone, /Other machines/)
})

for (const host of ['::', 'localhost', '::1', 'a link-local address'])
  test(`prints an address that curl takes when the host is ${host}`, async (t) => {
    const [zone, [local] = []] =
      Object.entries(os.networkInterfaces())
        .map(
          ([name, list = []]) => [name, list.filter(({ address }) => address.startsWith('fe80:'))] as const,
        )
        .find(([, list]) => list.length > 0) ?? []
    if (host.endsWith('address') && local === undefined)
      return t.skip('needs an interface with a link-local address')
    const HOST = host.endsWith('address') ? `${local?.address}%${zone}` : host
    const config = parseConfig({ HOST, PETSTORE_API_KEYS: key })
    const { server } = await startApp(t, { host: config.host }).catch((error: unknown) => {
      if (host === '::1' && error instanceof ListenError) return { server: undefined }
      throw error
    })
    if (server === undefined) return t.skip('this machine has no IPv6')
    // `::` may have no address of IPv6 that others can reach.
    const start = { '::': 'http://127.0.0.1:', localhost: 'http://', '::1': 'http://[::1]:' }[host]
    assert.ok(server.url.startsWith(start ?? `http://[${local?.address}%25${zone}]:`), server.url)
    assert.equal(await pasteCurl(formatStartText(config, server.url, '', undefined), key), '[]')
  })

function formatWithKeys(host: string, isTerminal: boolean): string {
  const config = parseConfig({ HOST: host, PETSTORE_API_KEYS: 'mine,other' })
  return formatStartText(config, 'http://a', '', undefined, isTerminal)
}

test('prints a key of the environment on a terminal only, and only if no other machine can use it', () => {
  const shown = formatWithKeys('127.0.0.1', true)
  assert.match(
    shown,
    /^Page: http:\/\/a\/#key=mine\nTry:\n {2}curl\S* -H "Authorization: Bearer mine" "http:\/\/a\/v1\/pets"$/m,
  )
  assert.doesNotMatch(shown, /for this run|other/)
  for (const hidden of [formatWithKeys('127.0.0.1', false), formatWithKeys('192.0.2.7', true)])
    assert.doesNotMatch(hidden, /mine|other/)
})

test('names at the start what is done to responses on purpose, and prints addresses without the base path', () => {
  const config = parseConfig({
    PETSTORE_API_KEYS: 'a',
    PETSTORE_FAIL: '10%:503',
    PETSTORE_DELAY: '200-800',
    PETSTORE_BASE_PATH: '/store',
  })
  const text = formatStartText(config, 'http://a', 'Data file: p', undefined)
  assert.match(
    text,
    /^Failures on purpose: 10%:503\nDelay: 200-800 ms\nBase path: \/store\nPage: http:\/\/a\/\n/m,
  )
  assert.match(text, /"http:\/\/a\/v1\/pets"$/)
  const plain = parseConfig({ PETSTORE_API_KEYS: 'a', PETSTORE_DELAY: '0' })
  assert.doesNotMatch(formatStartText(plain, 'http://a', '', undefined), /Failures|Delay|Base path/)
})

test('prints of each key that is set the digits that its requests have in the log', () => {
  // By `printf %s KEY | sha256sum`.
  const config = parseConfig({ PETSTORE_API_KEYS: 'test-key,mine' })
  const text = formatStartText(config, 'http://a', '', undefined)
  assert.match(text, /^API keys, by the first digits of their SHA-256: 62af87, 3fd305$/m)
  assert.doesNotMatch(formatStartText(parseConfig({}), 'http://a', '', 'made'), /SHA-256/)
})

test('creates a key for each run, and prints a curl and a link to the page that work with it', async (t) => {
  const folder = realpathSync(makeFolder())
  writeFileSync(join(folder, 'one.json'), '{"pets":[{"name":"Rex","categoryId":1}]}')
  const env = { PETSTORE_API_KEYS: '', PETSTORE_API_KEY: 'mine', PETSTORE_DATA_FILE: 'one.json' }
  const program = await startProgram(t, folder, env)
  await program.waitFor(new RegExp(`^Page: ${program.url}/#key=${program.key}$`, 'm'))
  assert.match(program.key, /^[\w-]{32}$/)
  assert.match(
    program.output(),
    / \(set PETSTORE_API_KEYS to choose your own\)\nNote: PETSTORE_API_KEY is set, but [^\n]*PETSTORE_API_KEYS/,
  )
  assert.doesNotMatch(program.output(), /mine/)
  assert.ok(program.output().includes(`Data file: ${join(folder, 'one.json')}, 1 pet\n`), program.output())
  await program.waitFor(/^ {2}curl .*\n/m)
  assert.match(await pasteCurl(program.output()), /^\[\{"id":1,"name":"Rex"/)
  const second = await startProgram(t, makeFolder(), { PETSTORE_API_KEYS: '' })
  assert.notEqual(program.key, second.key)
})

// Other tests stop it by the other two, each with exit code 0.
for (const signal of isThorough ? (['SIGTERM', 'SIGINT', 'SIGHUP'] as const) : (['SIGHUP'] as const)) {
  test(`says that it stopped and ends with exit code 0 at ${signal}, and closes sockets that never sent a request`, async (t) => {
    const folder = makeFolder()
    const program = await startProgram(t, folder, holdClock(folder))
    const silent = await connectRaw(t, program.url)
    const half = await connectRaw(t, program.url)
    half.write('GET /v1/pets HTTP/1.1\r\nHost: a')
    const kept = await connectRaw(t, program.url)
    kept.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await kept.read()).status, 200)

    program.child.kill(signal)
    assert.deepEqual(await program.ended, { code: 0, signal: null })
    assert.match(program.output(), /\n\S+Z stopped\n$/)
    await Promise.all([silent.closed, half.closed, kept.closed])
  })
}

test('says why a stop failed, and ends with exit code 1', async (t) => {
  const folder = makeFolder()
  // Of the servers, only those of the lock listen on a path.
  const preload = `const { Server } = require('node:net')
    const { close } = Server.prototype
    Server.prototype.close = function (...args) {
      if (typeof this.address() === 'string') throw new Error('the lock is stuck')
      return close.apply(this, args)
    }`
  writeFileSync(join(folder, 'stuck.cjs'), preload)
  const program = await startProgram(t, folder, { NODE_OPTIONS: '--require ./stuck.cjs' })
  program.child.kill('SIGTERM')
  assert.deepEqual(await program.ended, { code: 1, signal: null })
  assert.match(program.output(), /\n\S+Z The stop failed: the lock is stuck\n$/)
})

test('sends the responses in flight when it is told to stop, and takes two signals of one Ctrl-C for one, whoever started it', async (t) => {
  const folder = makeFolder()
  const program = await startProgram(t, folder, holdClock(folder))
  const client = await connectRaw(t, program.url)
  const body = '{"name":"Rex","categoryId":1}'
  const head = `POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}`
  client.write(`${head}\r\nExpect: 100-continue\r\n\r\n`)
  assert.equal((await client.read()).status, 100)
  program.child.kill('SIGINT')
  // Another signal than the first, because the system may merge two of the same kind.
  program.child.kill('SIGTERM')
  await refusesConnections(program.url)
  client.write(body)
  const answer = await client.read()
  assert.equal(answer.status, 201)
  assert.equal(answer.headers.get('connection'), 'close')
  assert.deepEqual(await program.ended, { code: 0, signal: null })
})

test('ends at once at the second signal, by that signal', async (t) => {
  const folder = makeFolder()
  const program = await startProgram(t, folder, holdClock(folder))
  const client = await connectRaw(t, program.url)
  client.write(`POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: 9\r\n`)
  client.write('Expect: 100-continue\r\n\r\n')
  assert.equal((await client.read()).status, 100)
  program.child.kill('SIGINT')
  await refusesConnections(program.url)
  passSecond(folder)
  program.child.kill('SIGINT')
  assert.deepEqual(await program.ended, { code: null, signal: 'SIGINT' })
})

/** A preloaded script: once there is a pipe called `hang`, a sync occupies a thread of the pool and never returns. */
const hangingDisk = `
  const fs = require('node:fs')
  const { fdatasync } = fs
  fs.fdatasync = (descriptor, callback) => {
    // Opening a pipe that nobody writes to blocks the thread in the kernel, as a disk that never responds does.
    if (fs.existsSync('hang')) fs.open('hang', 'r', callback)
    else fdatasync(descriptor, callback)
  }`

/** A program in which a creation waits for a sync that never returns. Its clock is held unless real time is to pass. */
async function startHanging(
  t: TestContext,
  { wrapper = [], isRealTime = false }: { wrapper?: readonly string[]; isRealTime?: boolean } = {},
): Promise<StartedProgram & { readonly folder: string }> {
  const folder = makeFolder()
  writeFileSync(join(folder, 'hang.cjs'), hangingDisk)
  const { NODE_OPTIONS: clock } = isRealTime ? { NODE_OPTIONS: '' } : holdClock(folder)
  const program = await startProgram(t, folder, { NODE_OPTIONS: `--require ./hang.cjs ${clock}` }, wrapper)
  assert.equal((await send(program.url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })).status, 201)
  assert.equal(spawnSync('mkfifo', [join(folder, 'hang')]).status, 0)
  const creation = send(program.url, '/v1/pets', { body: { name: 'Mia', categoryId: 2 } })
  creation.catch(() => {})
  // The creation has reached the disk when its pet is in the file.
  while (!readFileSync(join(folder, 'data/pets.json'), 'utf8').includes('Mia')) await pause()
  return { ...program, folder }
}

test('ends within seconds of a signal when a sync never returns', async (t) => {
  const program = await startHanging(t, { isRealTime: true })
  const start = performance.now()
  program.child.kill('SIGTERM')
  assert.deepEqual(await program.ended, { code: null, signal: 'SIGKILL' })
  assert.ok(performance.now() - start > 5_000, 'what is in flight has 5 s')
})

for (const signal of share(['SIGTERM', 'SIGINT', 'SIGHUP'] as const, 1)) {
  test(`ends at the second signal when a sync never returns: ${signal}`, async (t) => {
    const program = await startHanging(t)
    program.child.kill('SIGTERM')
    await refusesConnections(program.url)
    passSecond(program.folder)
    program.child.kill(signal)
    assert.deepEqual(await program.ended, { code: null, signal })
  })
}

const container = ['unshare', '--pid', '--fork', '--kill-child']
const hasContainer = spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0
const needsContainer = {
  skip: hasContainer ? false : 'needs Linux, and the right to make a process namespace',
}

/** Sends two signals to the process 1 of a container. */
async function stopTwice(program: StartedProgram & { readonly folder: string }): Promise<void> {
  const { pid } = program.child
  const inside = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'))
  process.kill(inside, 'SIGTERM')
  await refusesConnections(program.url)
  passSecond(program.folder)
  process.kill(inside, 'SIGTERM')
}

test('ends at the second signal as process 1 of a container, with exit code 1', needsContainer, async (t) => {
  const folder = makeFolder()
  const program = await startProgram(t, folder, holdClock(folder), container)
  const client = await connectRaw(t, program.url)
  client.write(`POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: 9\r\n`)
  client.write('Expect: 100-continue\r\n\r\n')
  assert.equal((await client.read()).status, 100)
  await stopTwice({ ...program, folder })
  assert.deepEqual(await program.ended, { code: 1, signal: null })
  assert.doesNotMatch(program.output(), /trace/i)
})

test('ends at the second signal as process 1 when a sync never returns', needsContainer, async (t) => {
  const program = await startHanging(t, { wrapper: container })
  await stopTwice(program)
  const { code, signal } = await program.ended
  assert.notEqual(signal ?? code, 0)
})

test(
  'stops in order as process 1 at a signal that comes in the last moment of its start',
  needsContainer,
  async (t) => {
    // The signal waits for the next turn of the event loop, for which the start leaves no time.
    const preload = `const { off } = process
    process.off = (...args) => {
      process.off = off
      process.kill(process.pid, 'SIGTERM')
      return process.off(...args)
    }`
    const folder = makeFolder()
    writeFileSync(join(folder, 'signal.cjs'), preload)
    const env = { NODE_OPTIONS: '--require ./signal.cjs', PETSTORE_API_KEYS: key }
    const program = runProgram(t, folder, env, container)
    assert.deepEqual(await program.ended, { code: 0, signal: null })
    assert.match(program.output(), /^Petstore listens on [^]*stopped\n$/)
  },
)

test('ends at once as process 1 while it waits for its database', needsContainer, async (t) => {
  const env = { PETSTORE_DATABASE_URL: 'postgres://ann@127.0.0.1:1/pets', PETSTORE_API_KEYS: key }
  const { child, waitFor, ended, output } = runProgram(t, makeFolder(), env, container)
  await waitFor(/waiting 30 s at most/)
  process.kill(Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')), 'SIGTERM')
  assert.deepEqual(await ended, { code: 1, signal: null })
  // No refusal, as after half a minute.
  assert.match(output(), /^waiting 30 s at most for .*\n$/)
})

/** Resolves when nobody listens at the address any more. */
async function refusesConnections(url: string): Promise<void> {
  for (;;) {
    try {
      await fetch(url, { headers: { connection: 'close' } })
    } catch {
      return
    }
    await pause()
  }
}

test('says in one plain line that the port is taken, by the name by which it came', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  t.after(() => other.close())
  await once(other, 'listening')
  const address = other.address()
  assert.ok(typeof address === 'object' && address !== null)
  const port = String(address.port)
  const folder = makeFolder()
  const { output, ended } = runProgram(t, folder, {}, [], ['--port', port])
  assert.equal((await ended).code, 1)
  assert.equal(withoutTimes(output()), `--port: ${formatTaken(port)}\n`)
  assert.deepEqual(readdirSync(folder), [], 'no data file is left behind')
})

const formatTaken = (port: string): string =>
  `${port} is taken by another program on 127.0.0.1; stop that program, or choose another port`

for (const [what, options, expected] of [
  [
    'a host of no machine',
    { host: 'host.invalid' },
    /^host: host\.invalid could not be looked up; give an address, such as 0\.0\.0\.0 for all addresses of this machine$/,
  ],
  // TEST-NET-1 (RFC 5737): nobody's address.
  [
    'a host of another machine',
    { host: '192.0.2.1' },
    /^host: 192\.0\.2\.1 is not an address of this machine; 0\.0\.0\.0 listens on all of its addresses$/,
  ],
  ['a data file below a file', { dataFile: '/dev/null/pets.json' }, /^\/dev\/null\/pets\.json: .*$/],
  ['a data file that is a folder', { dataFile: '.' }, /^\.: .*$/],
] as const) {
  test(`refuses ${what} in a line that a person can use`, async (t) => {
    await assert.rejects(startApp(t, options), (error) => {
      // The program prints the messages of these two alone, without a stack.
      assert.ok(error instanceof ListenError || error instanceof DataFileUnusable)
      assert.match(error.message, expected)
      return true
    })
  })
}

test('names the place of an error in the data file, and leaves the file alone', async (t) => {
  const folder = makeFolder()
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'data/pets.json'), '{"pets":[\n{"name":1,"categoryId":1}\n]}')
  const program = runProgram(t, folder)
  assert.equal((await program.ended).code, 1)
  assert.match(
    withoutTimes(program.output()),
    /^data\/pets\.json:2:\d+: pets\[0\]\.name: expected a string, got 1\n$/,
  )
})

test('logs one line per request: who did what, and how it ended, with neither key nor unknown query, and opens no debugger at SIGUSR1', async (t) => {
  const program = await startProgram(t, makeFolder(), { PETSTORE_LOG: 'requests' })
  program.child.kill('SIGUSR1')
  // By `printf %s test-key | sha256sum`.
  const shownKey = 'key=62af87'
  const wrongKey = { headers: { authorization: 'Bearer hush' } }
  const requests: [path: string, options: Parameters<typeof send>[2], line: string][] = [
    [
      '/v1/pets?after=0&secret=hush&status=sold&limit=1',
      {},
      `GET /v1/pets?limit=1&status=sold&after=0 200 ms ${shownKey}`,
    ],
    [
      '/v1/pets?limit=hush&after=1&after=2&status=sold',
      {},
      `GET /v1/pets?status=sold 400 ms invalid_parameter ${shownKey}`,
    ],
    ['/v1/pets', { body: {} }, `POST /v1/pets 400 ms invalid_body ${shownKey}`],
    ['/v1/pets', { body: { name: 'Rex', categoryId: 1 } }, `POST /v1/pets 201 ms ${shownKey} id=1`],
    ['/v1/pets?limit=2', wrongKey, 'GET /v1/pets?limit=2 401 ms unauthorized'],
    ['/nowhere?status=sold', wrongKey, 'GET /nowhere?status=sold 404 ms not_found'],
    ['/v1/pets', { headers: { 'x-petstore-page': 'poll' } }, `GET /v1/pets 200 ms ${shownKey} poll`],
    ['/healthz', {}, 'GET /healthz 200 ms'],
  ]
  for (const [path, options] of requests) await send(program.url, path, options)
  const unreadable = await connectRaw(t, program.url)
  unreadable.write('garbage\r\n\r\n')
  await program.waitFor(/^\S+Z 127\.0\.0\.1 - - 400 \d+\.\d ms malformed_request$/m)
  const lines = [...program.output().matchAll(/^(\S+Z) 127\.0\.0\.1 (.*) \d+\.\d( ms.*)$/gm)]
  assert.deepEqual(
    lines.map(([, , request = '', rest = '']) => request + rest).slice(0, -1),
    requests.map(([, , line]) => line),
  )
  for (const [, time = ''] of lines) assert.ok(Math.abs(Date.now() - Date.parse(time)) < 600_000, time)
  program.child.kill('SIGTERM')
  assert.equal((await program.ended).code, 0)
  assert.doesNotMatch(program.output(), /hush|test-key/)
  // Also where another program has the debugger's port.
  assert.doesNotMatch(program.output(), /debugger|inspector/i)
})

test('puts what is noted of a request in one order, poll last', () => {
  const request = {
    client: '::1',
    method: 'POST',
    path: '/v1/pets',
    query: '',
    status: 503,
    milliseconds: 1.25,
  }
  const notes = {
    code: 'storage_failed',
    isOnPurpose: true,
    key: '62af87',
    id: 2n ** 60n,
    isGone: true,
    isPoll: true,
  }
  const expected = 'storage_failed on purpose key=62af87 id=1152921504606846976 gone poll'
  assert.equal(formatEntry({ ...request, ...notes }), `::1 POST /v1/pets 503 1.3 ms ${expected}`)
})

test('prints only errors when it is to be silent', async (t) => {
  const port = await findFreePort()
  const folder = makeFolder()
  const env = { PETSTORE_LOG: 'silent', PETSTORE_API_KEYS: key, PORT: String(port) }
  const program = runProgram(t, folder, env)
  const url = `http://127.0.0.1:${port}`
  while (!(await isAnswered(url))) await pause()
  assert.equal((await send(url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })).status, 201)
  const second = runProgram(t, makeFolder(), env)
  assert.equal((await second.ended).code, 1)
  assert.equal(withoutTimes(second.output()), `PORT: ${formatTaken(String(port))}\n`)
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

/**
 * A port that was free a moment ago: the one way to find a program that does not say where it listens. It is below those that
 * systems give to connections, which other tests make by the thousand.
 */
async function findFreePort(): Promise<number> {
  const port = randomInt(10_000, 30_000)
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch {
    return findFreePort()
  }
  server.close()
  await once(server, 'close')
  return port
}

test('goes on serving when nobody reads its output any more', async (t) => {
  const folder = makeFolder()
  const program = await startProgram(t, folder, { PETSTORE_LOG: 'requests' })
  program.child.stdout?.destroy()
  program.child.stderr?.destroy()
  for (let i = 0; i < 5; i++) assert.equal((await send(program.url, '/v1/pets')).status, 200)
  program.child.kill('SIGTERM')
  assert.deepEqual(await once(program.child, 'exit'), [0, null])
})

/** Collects what is printed, and waits for a pattern in it. */
function follow(stream: Readable): { text: () => string; read: (pattern: RegExp) => Promise<string> } {
  let output = ''
  let wake: (() => void) | undefined
  for (const event of ['data', 'end']) {
    stream.setEncoding('utf8').on(event, (text = '') => {
      output += text
      wake?.()
    })
  }
  const read = async (pattern: RegExp): Promise<string> => {
    let from = 0
    for (;;) {
      const [, found] = pattern.exec(output.slice(from)) ?? []
      if (found !== undefined) return found
      assert.equal(stream.readableEnded, false, output)
      // Megabytes may come, and each pattern is of one line.
      from = output.lastIndexOf('\n') + 1
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { text: () => output, read }
}

test(
  'goes on serving behind `| head -1`',
  { skip: isThorough ? false : 'npm run test:thorough runs it' },
  async (t) => {
    const folder = makeFolder()
    const env = { ...cleanEnvironment(), PORT: '0', PETSTORE_API_KEYS: key, PETSTORE_LOG: 'requests' }
    const script = '"$0" "$1" > >(head -1) & echo "pid $!"; wait $!; echo "ended $?"'
    const shell = spawn('bash', ['--norc', '-c', script, process.execPath, entry], { cwd: folder, env })
    const { read } = follow(shell.stdout)
    const pid = Number(await read(/pid (\d+)\n/))
    t.after(() => shell.kill('SIGKILL'))
    const url = await read(/listens on (\S+)\n/)
    for (let i = 0; i < 5; i++) assert.equal((await send(url, '/v1/pets')).status, 200)
    process.kill(pid, 'SIGTERM')
    assert.equal(await read(/ended (\d+)\n/), '0')
  },
)

const longRequests = 150
const longPath = `/${'a'.repeat(15_000)}`

/** Makes the service log twice as much as may wait for a reader, each line of 15 kB. */
async function logMuch(url: string): Promise<void> {
  const responses = await Promise.all(Array.from({ length: longRequests }, () => send(url, longPath)))
  assert.ok(responses.every(({ status }) => status === 404))
}

test('responds and stops while nobody reads its output, and says how many lines it dropped', async (t) => {
  const env = { ...cleanEnvironment(), PORT: '0', PETSTORE_API_KEYS: key, PETSTORE_LOG: 'requests' }
  const stdio = ['ignore', 'pipe', 'inherit'] as const
  const child = spawn(process.execPath, [entry], { cwd: makeFolder(), env, stdio: [...stdio] })
  t.after(() => child.kill('SIGKILL'))
  const { read, text } = follow(child.stdout)
  const url = await read(/listens on (\S+)\n/)
  child.stdout.pause()
  await logMuch(url)
  child.stdout.resume()
  const dropped = Number(await read(/^\S+Z (\d+) lines were dropped here, since nobody read them$/m))
  const printed = text().split(` GET ${longPath} 404 `).length - 1
  assert.equal(printed + dropped, longRequests)
  assert.ok(dropped > longRequests / 4, `${dropped} lines were dropped`)
  await send(url, '/v1/pets')
  await read(/^\S+Z \S+ GET (\/v1\/pets) 200 /m)

  child.stdout.pause()
  await logMuch(url)
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('responds and stops while its terminal is stopped, and says how many lines it dropped', async (t) => {
  if (spawnSync('script', ['--version']).error !== undefined) {
    t.skip('needs script of util-linux')
    return
  }
  const env = { ...cleanEnvironment(), PORT: '0', PETSTORE_API_KEYS: key, PETSTORE_LOG: 'requests' }
  const command = `echo pid $$; exec "${process.execPath}" "${entry}"`
  const terminal = spawn('script', ['-qefc', command, '/dev/null'], { cwd: makeFolder(), env })
  t.after(() => terminal.kill('SIGKILL'))
  const { read } = follow(terminal.stdout)
  const pid = Number(await read(/pid (\d+)\r\n/))
  t.after(() => {
    if (terminal.exitCode === null) process.kill(pid, 'SIGKILL')
  })
  const url = await read(/listens on (\S+)\r\n/)
  assert.equal(await read(/^Page: \S+\/#key=(\S+)\r$/m), key)
  const [stop, goOn] = ['\x13', '\x11']
  terminal.stdin.write(stop)
  await logMuch(url)
  terminal.stdin.write(goOn)
  const dropped = Number(await read(/^\S+Z (\d+) lines were dropped here, since nobody read them\r$/m))
  assert.ok(dropped > longRequests / 4, `${dropped} lines were dropped`)

  terminal.stdin.write(stop)
  await logMuch(url)
  process.kill(pid, 'SIGTERM')
  assert.deepEqual(await once(terminal, 'exit'), [0, null])
})

test('prints on the terminal of its output, and on no other, where there is no /proc, as on macOS', async (t) => {
  if (spawnSync('script', ['--version']).error !== undefined) return t.skip('needs script of util-linux')
  const folder = makeFolder()
  const noProc = `const fs = require('node:fs')
    const { existsSync, openSync } = fs
    const isProc = (path) => String(path).startsWith('/proc/')
    fs.existsSync = (path) => !isProc(path) && existsSync(path)
    fs.openSync = (path, ...rest) => openSync(isProc(path) ? '/none' : path, ...rest)
    require('node:module').syncBuiltinESMExports()`
  writeFileSync(join(folder, 'no-proc.cjs'), noProc)
  const env = {
    ...cleanEnvironment(),
    PORT: '0',
    PETSTORE_API_KEYS: key,
    NODE_OPTIONS: '--require ./no-proc.cjs',
  }
  const open = (command: string) => {
    const terminal = spawn('script', ['-qefc', command, '/dev/null'], { cwd: folder, env })
    t.after(() => terminal.kill('SIGKILL'))
    return follow(terminal.stdout)
  }
  const other = open('tty; exec sleep 600')
  const path = await other.read(/(\/dev\/\S+)\r\n/)
  const own = open(`"${process.execPath}" "${entry}" >${path} & echo "pid $!."; wait $!`)
  const pid = Number(await own.read(/pid (\d+)\./))
  t.after(() => process.kill(pid, 'SIGKILL'))
  assert.match(await other.read(/listens on (\S+)\r\n/), /^http:/)
  assert.doesNotMatch(own.text(), /Petstore/)
})

test('begins each line after the start text with the time, unless the journal does', async (t) => {
  const start =
    /^Petstore listens on \S+\nVersion: .*\nData file: .*\nAPI keys, .*\nPage: .*\nTry.*\n {2}curl .*\n/
  const run = async (findStream: (place: Stats) => string): Promise<string> => {
    const folder = makeFolder()
    const log = join(folder, 'log')
    const descriptor = openSync(log, 'a')
    const env = {
      ...cleanEnvironment(),
      PORT: '0',
      PETSTORE_API_KEYS: key,
      PETSTORE_LOG: 'requests',
      JOURNAL_STREAM: findStream(fstatSync(descriptor)),
    }
    const stdio = ['ignore', descriptor, descriptor] as const
    const child = spawn(process.execPath, [entry], { cwd: folder, env, stdio: [...stdio] })
    t.after(() => child.kill('SIGKILL'))
    const waitFor = async (pattern: RegExp): Promise<string> => {
      for (;;) {
        const text = readFileSync(log, 'utf8')
        if (pattern.test(text)) return text
        assert.equal(child.exitCode, null, text)
        await pause()
      }
    }
    const startText = await waitFor(start)
    await send(/listens on (\S+)/.exec(startText)?.[1] ?? '', '/healthz')
    writeFileSync(join(folder, 'data/pets.json'), '{"pets":[\n{"name":1,"categoryId":"x"}\n]}')
    await waitFor(/pets\.json:2:.*name.*\n.*pets\.json:2:.*categoryId.*\n/)
    child.kill('SIGTERM')
    await once(child, 'exit')
    return readFileSync(log, 'utf8').replace(start, '')
  }
  const lines = (await run(({ dev, ino }) => `${dev}:${ino + 1}`)).trimEnd().split('\n')
  for (const line of lines)
    assert.match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?:127\.0\.0\.1 GET|.*pets\.json|stopped$)/)
  const bare = await run(({ dev, ino }) => `${dev}:${ino}`)
  assert.match(bare, /^127\.0\.0\.1 GET \/healthz 200 \d+\.\d ms\n/)
  assert.equal(withoutTimes(bare), bare)
})

test('begins no line of a refused start with the time under the journal or on a terminal', () => {
  const [fault, others] = [
    'PORT: expected a port from 0 to 65535, got "x"',
    'PETSTORE_LOG: expected one of .*',
  ]
  const folder = makeFolder()
  const log = join(folder, 'log')
  const descriptor = openSync(log, 'w')
  const { dev, ino } = fstatSync(descriptor)
  const wrong = { PORT: 'x', PETSTORE_LOG: 'y', JOURNAL_STREAM: `${dev}:${ino}` }
  const { status } = spawnSync(process.execPath, [entry], {
    cwd: folder,
    env: { ...cleanEnvironment(), ...wrong },
    stdio: ['ignore', 1, descriptor],
  })
  assert.equal(status, 1)
  assert.match(readFileSync(log, 'utf8'), new RegExp(`^${fault}\n${others}\n$`))
  const env = { ...cleanEnvironment(), PORT: 'x', PETSTORE_LOG: 'y' }
  const command = `"${process.execPath}" "${entry}"`
  const { stdout, error } = spawnSync('script', ['-qefc', command, '/dev/null'], {
    cwd: folder,
    env,
    encoding: 'utf8',
  })
  if (error === undefined) assert.match(stdout, new RegExp(`^${fault}\r\n${others}\r\n$`))
})

test('begins each line of a refused start with the time elsewhere, and ends even where something else keeps the process alive', async (t) => {
  const folder = makeFolder()
  writeFileSync(join(folder, 'keep.cjs'), 'setInterval(() => {}, 1_000_000)')
  // The journal is not the stream to which it prints.
  const env = { NODE_OPTIONS: '--require ./keep.cjs', PORT: 'x', PETSTORE_LOG: 'y', JOURNAL_STREAM: '1:1' }
  const program = runProgram(t, folder, env)
  assert.deepEqual(await program.ended, { code: 1, signal: null })
  const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z `
  assert.match(
    program.output(),
    new RegExp(`^${time}PORT: expected a port.*\n${time}PETSTORE_LOG: expected .*\n$`),
  )
})

test('ends after a refused start and after a stop, even where `process.exit` would wait for ever', async (t) => {
  // As it does in a heap that is almost full (https://github.com/nodejs/node/issues/54918).
  const preload = 'process.exit = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'
  const folder = makeFolder()
  writeFileSync(join(folder, 'exit.cjs'), preload)
  const NODE_OPTIONS = '--require ./exit.cjs'
  const refused = runProgram(t, folder, { NODE_OPTIONS, PORT: 'x' })
  assert.deepEqual(await refused.ended, { code: 1, signal: null })
  const stopped = await startProgram(t, folder, { NODE_OPTIONS })
  stopped.child.kill('SIGTERM')
  assert.deepEqual(await stopped.ended, { code: 0, signal: null })
})

test("says in words that Node's permission model forbids what makes a pet durable", async (t) => {
  const allowed = process.allowedNodeEnvironmentFlags
  const flags = [
    allowed.has('--permission') ? '--permission' : '--experimental-permission',
    ...(allowed.has('--allow-net') ? ['--allow-net'] : []),
    '--allow-fs-read=*',
    '--allow-fs-write=*',
  ]
  const program = runProgram(t, makeFolder(), { NODE_OPTIONS: flags.join(' '), PETSTORE_API_KEYS: key })
  const [said] = await program.waitFor(
    /^Petstore listens|cannot be opened or created: .*fsync API is disabled/m,
  )
  if (said === 'Petstore listens') {
    t.skip('needs a Node whose permission model forbids fsync')
    return
  }
  assert.deepEqual(await program.ended, { code: 1, signal: null })
  assert.doesNotMatch(program.output(), /^ +at /m)
})

test('prints the stack of a bug, even one to which Node gave a code', async (t) => {
  const folder = makeFolder()
  const script = `const net = require('node:net')
    net.Server.prototype.listen = () => { Buffer.alloc('bug') }`
  writeFileSync(join(folder, 'bug.cjs'), script)
  const program = runProgram(t, folder, { NODE_OPTIONS: '--require ./bug.cjs' })
  assert.equal((await program.ended).code, 1)
  assert.match(program.output(), /^TypeError \[ERR_INVALID_ARG_TYPE\]: .*\n +at /m)
})

/**
 * What the contract suite shows to the author of a server: which cause it tells first, how much room it takes, what it says of a server that
 * cannot be reached, and its arguments.
 */
import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { buildOnce } from './built.ts'
import { createSuite, type Suite } from './contract-cases.ts'
import { isInt64 } from './contract-json.ts'
import type { Conclusion } from './contract-summary.ts'
import { openTarget } from './contract-target.ts'
import { cleanEnvironment } from './support.ts'
import {
  type Behaviour,
  connect,
  createStore,
  reference,
  refuse,
  reply,
  startServer,
  type Reply,
} from './wrong-server.ts'

const key = 'Workshop-key-1'

/** Runs the suite against a store that is changed so. */
async function verify(
  change: Partial<Behaviour>,
  isBasic = false,
): Promise<Conclusion & { readonly suite: Suite }> {
  const suite = createSuite(connect(key, createStore(key, change)), { isPatient: true, isBasic })
  // Failures are in the conclusion.
  for (const { run } of suite.cases) await run().catch(() => {})
  return { ...suite.conclude(), suite }
}

/** The lines of each cause, in the order in which they are to be fixed. */
function splitCauses(text: string): readonly (readonly string[])[] {
  const parts = text.split(/^(?=\d+\. )/m).filter((part) => /^\d+\. /.test(part))
  return parts.map((part) => part.split('\n').filter((line) => /^(?:\d+\.| {2})/.test(line))).toReversed()
}

/** As JavaScript reads integers. */
const rounding: Behaviour['readNewPet'] = (body, pets) => {
  const pet = reference.readNewPet(body, pets)
  return pet && { ...pet, categoryId: BigInt.asIntN(64, BigInt(Number(pet.categoryId))) }
}

const asText = (answer: Reply): Reply =>
  answer.status < 400 ? answer : { ...answer, type: 'text/plain', text: 'No' }

/** As a language does whose lists and maps are one type. */
const asObject = (answer: Reply): Reply =>
  answer.text.startsWith('[{') ? { ...answer, text: JSON.stringify({ ...JSON.parse(answer.text) }) } : answer

describe('the cause to fix first', () => {
  test('is what is built first: the key, then the body of refusals, then the size of a page, and integers last', async () => {
    const { text } = await verify({
      isAuthorized: () => true,
      rewrite: asText,
      readLimit: (limit) => (limit === null ? 50 : reference.readLimit(limit)),
      readNewPet: rounding,
    })
    const heads = splitCauses(text).map(([head = '']) => head)
    assert.deepEqual(
      heads.map((head) => head.replace(/: .*/, '')),
      ['1. 5 Keys', '2. 7 Errors', '3. 4.1 List pets', '4. 2 Data'],
      text,
    )
    const [, , , integers = []] = splitCauses(text)
    assert.match(integers.at(-1) ?? '', /^ {2}hint: {5}JavaScript: JSON\.parse rounds it/)
  })

  test('stands at the end, with what to do, and the sum', async () => {
    const { text } = await verify({ isAuthorized: () => true, rewrite: asText })
    const lines = text.split('\n')
    assert.match(lines.at(-6) ?? '', /^1\. 5 Keys: /)
    assert.equal(lines.at(-2), 'Fix number 1 first, and run this again: it may be behind others.')
    assert.match(lines.at(-1) ?? '', /^Not passed: \d+ of \d+ cases passed, /)
  })

  test('is, where no pet can be added, a plain pet and the 201 that it should get', async () => {
    const { text } = await verify({
      rewrite: (answer, { method }) => (method === 'POST' ? refuse(501) : answer),
    })
    const [first = []] = splitCauses(text)
    assert.match(first.join('\n'), /body \{"name":"Rex\w+","categoryId":1\}\n {2}expected: 201\n/)
  })

  test('is that nothing is there, and nothing else, where each path is 404', async () => {
    const { text } = await verify({ rewrite: () => refuse(404) })
    const causes = splitCauses(text)
    assert.equal(causes.length, 1, text)
    assert.match(text, /^ {2}received: nothing is at \/v1\/pets: 404 Not Found/m)
  })

  test('is, once, that the names of headers are looked up in small letters alone', async () => {
    const { text } = await verify({
      rewrite: (answer, { headers }) => (headers['Content-Length'] === undefined ? answer : refuse(400)),
    })
    assert.match(
      splitCauses(text)[0]?.join('\n') ?? '',
      /^1\. 4\.2 Add a pet\b.*: answers 201.*\n.*\n {2}expected: 201, as for "content-length" in small letters: the name of a header is the same in any letter case\n {2}received: 400 /,
    )
  })

  test('is JSON that is wrong from the first response on, and not an integer that is too large', async () => {
    const { text } = await verify({
      readNewPet: (body, pets) =>
        reference.readNewPet(
          typeof body['categoryId'] === 'bigint'
            ? { ...body, categoryId: BigInt.asIntN(64, body['categoryId']) }
            : body,
          pets,
        ),
      rewrite: (answer) => ({ ...answer, text: answer.text.replace(/]$/, ',]') }),
    })
    const heads = splitCauses(text).map(([head = '']) => head.replace(/: .*/, ''))
    assert.deepEqual(heads, ['1. 1 The service', '2. 4.2 Add a pet'], text)
  })

  test('has in its heading what it shows: a list that is none, and a pet that is no longer there', async () => {
    const filtered = await verify({
      rewrite: (answer, { query }) => (query.has('status') ? asObject(answer) : answer),
    })
    assert.match(
      filtered.text,
      /^1\. 2 Data.*: Pets is a bare array for GET \/pets\?status=available; .*\n.*\?status=/m,
    )
    const evicting = await verify({
      save(pets, pet) {
        pets.push(pet)
        if (pets.length > 100) pets.shift()
      },
    })
    assert.match(
      evicting.text,
      /^1\. 4\.2 Add a pet: found by the case ".*\n.*\n {2}expected: pet 1, which was added before\n/m,
    )
  })

  test('shows the number that it is about, at the end of a request, too', async () => {
    const { text } = await verify({ readNewPet: rounding })
    assert.match(text, /^ {2}sent: {5}POST .*"categoryId":9007199254740993\}$/m)
  })

  test('is the pet that should have been refused, and not the list that it breaks', async () => {
    let isBroken = false
    const { text } = await verify({
      readNewPet({ name, categoryId = 0n, status = 'available' }) {
        if (typeof name !== 'string') isBroken = true
        return {
          name: String(name),
          categoryId: isInt64(categoryId) ? categoryId : 0n,
          status: String(status),
        }
      },
      // As of a function that sorts by name, and expects texts.
      rewrite: (answer, { method }) => (method === 'GET' && isBroken ? refuse(500) : answer),
    })
    assert.match(
      splitCauses(text)[0]?.join('\n') ?? '',
      /^1\. 4\.2 Add a pet: .*\n.*\n {2}expected: 400: /,
      text,
    )
  })
})

test('a cause takes at most eight rows of 80 characters, however much is to be said', async () => {
  const long = 'x'.repeat(500)
  const { text } = await verify({
    readNewPet: rounding,
    isAuthorized: () => true,
    rewrite: (answer) =>
      answer.status < 400 ? answer : { ...answer, text: `{"code":"${long}","message":${long}` },
    readLimit: () => 200,
    other: () => reply(500, long),
  })
  const causes = splitCauses(text)
  assert.ok(causes.length > 3, text)
  for (const lines of causes) {
    const rows = lines.reduce((sum, line) => sum + Math.ceil(line.length / 80), 0)
    assert.ok(rows <= 8, `${rows} rows\n${lines.join('\n')}`)
  }
})

test('a cause keeps its lines, whatever a response has in it', async () => {
  const { text } = await verify({
    rewrite: (answer) => ({
      ...answer,
      text: `<br />\r\n<b>Warning</b>:\tno \u001B[31mstatus\n${answer.text}`,
    }),
  })
  const [first = []] = splitCauses(text)
  assert.deepEqual(
    first.map((line) => line.slice(0, 12).trim()),
    ['1. 1 The ser', 'sent:', 'expected:', 'received:'],
    text,
  )
  assert.match(
    first[3] ?? '',
    /text in front of the JSON: <br \/>\\n<b>Warning<\/b>:\\tno U\+001B\[31mstatus: 200 OK/,
  )
})

test('what was expected and what was received are told apart, also where they look the same', async () => {
  const { text } = await verify({
    readNewPet(body, pets) {
      const pet = reference.readNewPet(body, pets)
      // Of a long name, the last letter: what a screen has no room for.
      return pet && { ...pet, name: pet.name.normalize('NFD').replace(/(?<=.{1000})x$/s, 'y') }
    },
  })
  for (const lines of splitCauses(text)) {
    const [expected, received] = ['expected', 'received'].map((word) =>
      lines.find((line) => line.startsWith(`  ${word}: `))?.slice(12),
    )
    assert.notEqual(expected?.normalize(), received?.normalize())
  }
  assert.match(text, /^ {2}expected: name "Zoë .*", with U\+00EB as character 3/m)
  assert.match(text, /^ {2}received: U\+0065 as character 3: name "Zo/m)
})

describe('--basics', () => {
  const unsteady: Partial<Behaviour> = {
    readNewPet: rounding,
    find: (pets, petId) => reference.find(pets, String(Number.parseInt(petId, 10))),
  }

  test('passes a first server that rounds large integers, and says what it leaves out', async () => {
    const { text, exitCode, suite } = await verify(unsteady, true)
    assert.equal(exitCode, 0, text)
    const [, leftOut] =
      /^--basics leaves out (\d+) cases, of .*2 Data \(\d+\).*4\.2 Add a pet \(\d+\).*\. Run this without --basics for them\.$/m.exec(
        text,
      ) ?? []
    assert.match(text, new RegExp(`\nPassed: all ${suite.cases.length} cases of --basics\\.$`))
    const whole = await verify(unsteady)
    assert.equal(whole.exitCode, 1)
    assert.equal(suite.cases.length + Number(leftOut), whole.suite.cases.length)
  })

  test('passes a right server whose store is not empty any more, and says what that hides', async () => {
    const store = createStore(key)
    const suite = () => createSuite(connect(key, store), { isPatient: true, isBasic: true })
    for (const { run } of suite().cases) await run()
    const second = suite()
    for (const { run } of second.cases) await run()
    const { exitCode, text } = second.conclude()
    assert.equal(exitCode, 0, text)
    assert.match(text, /\d cases? not tried: the store holds .*, \d not tried\.$/s)
  })

  test('does not pass a right server when it was stopped before its end', async () => {
    const suite = createSuite(connect(key, createStore(key)), { isPatient: true, isBasic: true })
    for (const { run } of suite.cases.slice(0, 5)) await run()
    const { exitCode, text } = suite.conclude()
    assert.equal(exitCode, 2, text)
  })

  test('fails a first server that takes any key', async () => {
    const { exitCode } = await verify({ isAuthorized: ({ authorization }) => authorization !== '' }, true)
    assert.equal(exitCode, 1)
  })
})

test('every case is counted once: passed, failed, not judged or not tried', async () => {
  const changes: readonly Partial<Behaviour>[] = [
    {},
    { readLimit: () => 50 },
    { save: () => {} },
    { rewrite: (answer) => ({ ...answer, text: `x${answer.text}` }) },
    { newId: () => 7n },
    { malformed: () => reply(0, '') },
  ]
  for (const change of changes) {
    const { text, suite } = await verify(change)
    const [, sum = ''] = /^[A-Z][^:]*: (.*)\.$/m.exec(text.slice(text.lastIndexOf('\n') + 1)) ?? []
    const [, passed = '', total = passed] = /^(?:all )?(\d+)(?: of (\d+))? cases/.exec(sum) ?? []
    const others = [...sum.matchAll(/, (\d+) /g)].map(([, number]) => Number(number))
    assert.equal(
      others.reduce((a, b) => a + b, Number(passed)),
      Number(total),
      text,
    )
    assert.equal(suite.cases.length, Number(total))
  }
})

/** The server that these arguments name. */
function open(...args: readonly string[]) {
  return openTarget([process.execPath, resolve('contract.test.js'), ...args], {})
}

async function listenOn(t: TestContext, host: string, port = 0): Promise<number> {
  const server = createServer((socket) => socket.destroy())
  t.after(() => server.close())
  server.listen(port, host)
  await once(server, 'listening')
  // A server that listens on a port has an address of this form (Node's documentation of server.address).
  return (server.address() as AddressInfo).port
}

describe('a server that cannot be reached', () => {
  test('is said to have ended, if it did so at the first request', async (t) => {
    const child = spawn(process.execPath, [
      '-e',
      "const s = require('http').createServer(() => process.exit(1)).listen(0, '127.0.0.1', () => console.log(s.address().port))",
    ])
    t.after(() => child.kill())
    const [port] = await once(child.stdout.setEncoding('utf8'), 'data')
    const origin = `http://127.0.0.1:${String(port).trim()}`
    await assert.rejects(open(origin, key), {
      message: `${origin}: your server ended while it handled GET /pets: read its window.`,
    })
  })

  test('has a port that there is not', async () => {
    await assert.rejects(open('http://127.0.0.1:99999/v1', key), ({ message }: Error) =>
      message.startsWith('http://127.0.0.1:99999/v1: ports end at 65535. '),
    )
  })

  test('is told to go without TLS, with http and with https, if its certificate is its own', async (t) => {
    const server = createTlsServer(ownCertificate, (socket) => socket.destroy())
    server.on('tlsClientError', () => {})
    server.listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (const protocol of ['http', 'https'])
      await assert.rejects(open(`${protocol}://127.0.0.1:${port}`, key), ({ message }: Error) => {
        assert.match(message, /Start your server without TLS, and use http\.$/)
        return true
      })
  })

  test('is found at the other address that "localhost" may be', async (t) => {
    const port = await listenOn(t, '::1').catch(() => undefined)
    if (port === undefined) return t.skip('needs IPv6')
    await assert.rejects(open(`http://127.0.0.1:${port}/v1`, key), {
      message: `Nothing listens on 127.0.0.1:${port}, but something does on [::1]:${port}, which may be what "localhost" is there. Use http://[::1]:${port}/v1, or have your server listen on 127.0.0.1.`,
    })
  })
})

/** For these tests alone: nobody trusts it. */
const ownCertificate = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgdBk5EstWEyz7GtjH
l7A9NYlcITzbVwj2Vw2ssOtX6b6hRANCAAQlVW3XWfqIXK8S+p2QlU9qjFTDlTdq
kz0258MxjA7mtWtJ9LjGh0M3Uk4LJNnz3Dv2TqgyAZAj92O3CL+GknUJ
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUCUVXak7L+yD8te7bfcPnc2+UotkwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNzA4MjEwMloYDzIxMjYxMTAz
MDgyMTAyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQlVW3XWfqIXK8S+p2QlU9qjFTDlTdqkz0258MxjA7mtWtJ9LjGh0M3
Uk4LJNnz3Dv2TqgyAZAj92O3CL+GknUJo1MwUTAdBgNVHQ4EFgQUQ/8bnWImkmj7
LrSrr18gTAF7jbgwHwYDVR0jBBgwFoAUQ/8bnWImkmj7LrSrr18gTAF7jbgwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiBwqNUyy7zLXp1A0d9qitxE
FCQUnYjxb3IbzDxxPEym0QIhAMBNklhzx6oaFsOtGyCnJbrhtOqcvBBa1IIsjpj/
X+lX
-----END CERTIFICATE-----`,
}

const suiteFile = join(buildOnce(), 'contract.test.js')

/** Runs it to its end. */
function execute(command: string, args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const env = { ...cleanEnvironment(), ...more }
  return new Promise<{ exitCode: unknown; output: string }>((done) => {
    execFile(command, args, { env }, (error, stdout, stderr) =>
      done({ exitCode: error === null ? 0 : error.code, output: stdout + stderr }),
    )
  })
}

describe('the suite as a program', () => {
  test('says with --help what it takes, by itself and behind --verify', async () => {
    for (const [args, usage] of [
      [
        [suiteFile, '--help'],
        /^Usage: node \S*contract\.test\.js http:\/\/\S+ my-key \[--basics\] \[--all\]\n/,
      ],
      [
        [join(buildOnce(), 'server.js'), '--verify', '-h'],
        /^Usage: node \S*server\.js --verify http:\/\/\S+ --keys my-key \[--basics\] \[--all\]\n/,
      ],
    ] as const) {
      const { exitCode, output } = await execute(process.execPath, args)
      assert.equal(exitCode, 0)
      assert.match(output, usage)
      for (const argument of ['--basics', '--all', '--help', 'PETSTORE_URL', 'exit code'])
        assert.ok(output.includes(argument), argument)
    }
  })

  test('exits with 0 for --basics, if all of them passed', async (t) => {
    const basic = await startServer(key, { readNewPet: rounding })
    t.after(() => basic.close())
    assert.equal((await execute(process.execPath, [suiteFile, basic.url, key, '--basics'])).exitCode, 0)
  })

  test('prints at Ctrl-C what was found so far', async (t) => {
    if (process.platform === 'win32') return t.skip('needs signals')
    let hasHung: () => void
    const hangs = new Promise<void>((done) => (hasHung = done))
    const server = await startServer(key, {
      readLimit: (limit) => (limit === null ? 50 : reference.readLimit(limit)),
      malformed() {
        hasHung()
        return reply(-1, '')
      },
    })
    t.after(() => server.close())
    const child = spawn(process.execPath, [suiteFile, server.url, key], { env: cleanEnvironment() })
    t.after(() => child.kill('SIGKILL'))
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    await hangs
    child.kill('SIGINT')
    assert.deepEqual(await once(child, 'close'), [130, null])
    assert.match(output, /^\d+ cases not tried: the suite was stopped\.$/m)
    assert.match(output, /^1\. 4\.1 List pets: /m)
    assert.match(output, /\nNot passed: \d+ of \d+ cases passed, .* not tried\.\n$/)
  })

  test('has colors on a terminal, unless NO_COLOR is set, and none elsewhere', async (t) => {
    // It makes a terminal for a program (util-linux).
    const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0
    if (!hasScript) return t.skip('needs script')
    const server = await startServer(key, { readLimit: () => 50 })
    t.after(() => server.close())
    const args = [suiteFile, server.url, key, '--basics']
    const command = [process.execPath, ...args].join(' ')
    // Without what makes Node take a terminal for one without colors, such as a build server's CI (its documentation of `getColorDepth`).
    const plain = {
      CI: undefined,
      NO_COLOR: undefined,
      NODE_DISABLE_COLORS: undefined,
      TERM: 'xterm-256color',
    }
    const inTerminal = (more: NodeJS.ProcessEnv) =>
      execute('script', ['-qec', command, '/dev/null'], { ...plain, ...more })
    const red = '\u001B[31m'
    assert.ok((await inTerminal({})).output.includes(red))
    assert.ok(!(await inTerminal({ NO_COLOR: '1' })).output.includes(red))
    const { output } = await execute(process.execPath, args)
    assert.ok(!output.includes('\u001B'))
  })
})

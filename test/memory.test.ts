/**
 * What clients can make the service hold to nobody's use: it lives through each attack with a small heap. And what it does for the pets when
 * their file is lost, it can do in little more memory than it serves them with.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { inspect } from 'node:util'
import { petLine } from './file-system.ts'
import {
  assertRefusal,
  connectRaw,
  formatDataFile,
  formatRequest,
  isThorough,
  key,
  makeDataFile,
  makeFolder,
  type RawClient,
  runProgram,
  send,
  type StartedProgram,
  startProgram,
} from './support.ts'

/** A head of almost 16 KiB, of which Node makes thousands of strings. */
const largeHead = Array.from({ length: 2_700 }, () => 'a: b')

const chunked = 'Transfer-Encoding: chunked'
const oneByteChunks = '1\r\n \r\n'.repeat(60_000)

/** The quick run makes the service hold half as much, in half of the memory. */
const maxHeapMB = isThorough ? 128 : 64

/** What such a heap may hold, and what Node 24 takes besides for objects that have just become garbage. */
const maxGrownMB = isThorough ? 200 : 136

/** A preloaded script: a delay never ends, however long a busy machine takes. */
const slowTimers = `
  const timers = require('node:timers')
  const { setTimeout } = timers
  timers.setTimeout = (call, ms, ...args) => setTimeout(call, ms > 1_000 ? 2 ** 31 - 1 : ms, ...args)
  require('node:module').syncBuiltinESMExports()`

interface Target extends StartedProgram {
  connect(count: number): Promise<readonly RawClient[]>
  assertAnswers(): Promise<void>
  /** Asserts that the program still answers, and has at no time held much more memory than at its start. */
  assertStaysSmall(): Promise<void>
}

async function startTarget(t: TestContext, env: NodeJS.ProcessEnv = {}, preloaded = ''): Promise<Target> {
  const folder = makeFolder()
  writeFileSync(join(folder, 'preloaded.cjs'), preloaded)
  const NODE_OPTIONS = `--max-old-space-size=${maxHeapMB} --require ./preloaded.cjs`
  const program = await startProgram(t, folder, { NODE_OPTIONS, ...env })
  const { child, url } = program
  const assertAnswers = async (): Promise<void> => assert.equal((await send(url, '/healthz')).status, 200)
  await assertAnswers()
  const before = readPeakMB(child.pid)
  return {
    ...program,
    connect: (count) => Promise.all(Array.from({ length: count }, () => connectRaw(t, url))),
    assertAnswers,
    async assertStaysSmall() {
      await assertAnswers()
      const grownMB = readPeakMB(child.pid) - before
      assert.ok(grownMB < maxGrownMB, `${grownMB.toFixed()} MB more were resident`)
    },
  }
}

/** The most that was resident at any time since the process began. */
function readPeakMB(pid: number | undefined): number {
  const [, peakKiB] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(peakKiB) * 1024) / 1e6
}

/** Resolves when the system has taken all of it. */
const write = (client: RawClient, bytes: string): Promise<unknown> =>
  new Promise((resolve) => client.socket.write(bytes, resolve))

/** Each body took 24 MB when every chunk was a Buffer of its own: half of these are enough to kill the process. */
const bodyCount = isThorough ? 15 : 6

const skip = isThorough ? false : 'npm run test:thorough runs it'

describe('memory stays small', { concurrency: false }, () => {
  test('when bodies in one-byte chunks come behind requests that wait', async (t) => {
    const target = await startTarget(t)
    const clients = await target.connect(bodyCount)
    const health = formatRequest('GET /healthz').repeat(30)
    const creation = formatRequest('POST /v1/pets', ['Authorization: Bearer x', chunked])
    for (const { socket } of clients) socket.pause()
    await Promise.all(clients.map((client) => write(client, `${health}${creation}${oneByteChunks}0\r\n\r\n`)))
    for (const client of clients) {
      client.socket.resume()
      for (let i = 0; i < 30; i++) assert.equal((await client.read()).status, 200)
      assert.equal((await client.read()).status, 401)
    }
    await target.assertStaysSmall()
  })

  test('when connections are idle behind an answered request with a large head', { skip }, async (t) => {
    const target = await startTarget(t)
    for (let round = 0; round < 20; round++) {
      const clients = await target.connect(50)
      for (const client of clients) client.write(formatRequest('GET /healthz', largeHead))
      for (const client of clients) assert.equal((await client.read()).status, 200)
    }
    await target.assertStaysSmall()
  })

  test('when bodies in one-byte chunks have no end yet', async (t) => {
    const target = await startTarget(t)
    const clients = await target.connect(bodyCount)
    const creation = formatRequest('POST /v1/pets', [chunked])
    await Promise.all(clients.map((client) => write(client, creation + oneByteChunks)))
    for (const client of clients) client.write('0\r\n\r\n')
    for (const client of clients) assertRefusal(await client.read(), 400, 'malformed_json')
    await target.assertStaysSmall()
  })

  test('when bodies wait behind a delayed response', async (t) => {
    const target = await startTarget(t, { PETSTORE_DELAY: '10000' }, slowTimers)
    const clients = await target.connect(isThorough ? 110 : 75)
    const bytes = Buffer.from(formatRequest('POST /v1/pets', [], ' '.repeat(65_536)).repeat(32))
    for (const { socket } of clients) socket.write(bytes)
    // What would be read is read by then.
    for (let i = 0; i < 200; i++) await target.assertAnswers()
    await target.assertStaysSmall()
  })

  test('when a client asks for lists that do not repeat, short ones and long ones', async (t) => {
    // Any id below that of a pet is followed by the same list.
    const pets = [petLine(10_000, 'x'.repeat(65_000)), petLine(20_000, 'x'.repeat(2_000_000))]
    const target = await startTarget(t, { PETSTORE_DATA_FILE: makeDataFile(pets) })
    const [client = assert.fail()] = await target.connect(1)
    for (const [first, count] of [
      [0, 1_500],
      [10_000, 50],
    ] as const) {
      const requests = Array.from({ length: count }, (_, i) =>
        formatRequest(`HEAD /v1/pets?limit=1&after=${first + i}`),
      )
      while (requests.length > 0) {
        const some = requests.splice(0, 20)
        client.write(some.join(''))
        for (const _ of some) assert.equal((await client.read('HEAD')).status, 200)
      }
    }
    // All of them would not fit into the heap.
    await target.assertAnswers()
  })

  test('when clients go on sending bodies behind their last response', async (t) => {
    const target = await startTarget(t, {}, slowTimers)
    const { hostname, port } = new URL(target.url)
    const bodies = formatRequest('POST /v1/pets', [], ' '.repeat(65_536)).repeat(31)
    const goOn = async (): Promise<void> => {
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
      t.after(() => socket.destroy())
      socket.write(formatRequest('GET /healthz', ['Expect: tea']))
      await once(socket.resume(), 'end')
      await new Promise((resolve) => socket.write(bodies, resolve))
    }
    await Promise.all(Array.from({ length: isThorough ? 110 : 75 }, goOn))
    // What would be read is read by then.
    for (let i = 0; i < 200; i++) await target.assertAnswers()
    await target.assertStaysSmall()
  })

  test('when clients do not wait for their delayed responses', { skip }, async (t) => {
    const target = await startTarget(t, { PETSTORE_DELAY: '10000' }, slowTimers)
    for (let round = 0; round < 30; round++) {
      const clients = await target.connect(50)
      await Promise.all(clients.map((client) => write(client, formatRequest('GET /v1/pets', largeHead))))
      // It is answered without a delay, after those that came before.
      await target.assertAnswers()
      for (const { socket } of clients) {
        if (round % 2 === 0) socket.destroy()
        else socket.resetAndDestroy()
      }
    }
    await target.assertStaysSmall()
  })
})

test('keeps the pets of an emptied file in little more heap than serves them', async (t) => {
  const count = isThorough ? 100_000 : 60_000
  const text = formatDataFile(
    ...Array.from({ length: count }, (_, index) => petLine(index + 1, `Pet ${index}`)),
  )
  const start = async (heapMB: number) => {
    const folder = makeFolder()
    const path = join(folder, 'data/pets.json')
    mkdirSync(join(folder, 'data'))
    writeFileSync(path, text)
    const env = { PETSTORE_API_KEYS: key, NODE_OPTIONS: `--max-old-space-size=${heapMB}` }
    const program = runProgram(t, folder, env)
    const serves = await program
      .waitFor(/listens on (http:\S+)\n/)
      .then(([, url = '']) => send(url, '/v1/pets?limit=100'))
      .then(
        ({ status }) => status === 200,
        () => false,
      )
    return { ...program, path, serves }
  }
  let servingMB = 14
  for (; servingMB < 200; servingMB = Math.ceil(servingMB * 1.2)) {
    const { child, ended, serves } = await start(servingMB)
    child.kill('SIGKILL')
    await ended
    if (serves) break
  }
  assert.ok(servingMB < 200, 'no heap serves them')
  // Near its limit, a heap lasts or not by how far the collector got beside it. A copy of the pets' text would fail each time.
  const heapMB = Math.ceil(servingMB * 1.2)
  const failures: string[] = []
  for (let tries = 0; tries < 3; tries++) {
    const { output, waitFor, path, serves } = await start(heapMB)
    truncateSync(path)
    const keeps = serves && (await waitFor(/no pet can be added .* are kept in /).catch(() => undefined))
    if (keeps) {
      t.diagnostic(`${heapMB} MB of heap, after ${servingMB} MB were enough to serve`)
      const kept = readdirSync(dirname(path)).find((name) => name.includes('.kept-')) ?? ''
      assert.equal(readFileSync(join(dirname(path), kept), 'utf8'), text)
      return
    }
    failures.push(output())
  }
  assert.fail(
    `${servingMB} MB of heap are enough to serve, ${heapMB} MB not to keep:\n${failures.join('\n')}`,
  )
})

const feature =
  '{"type":"Feature","properties":{"name":"Rex"},"geometry":{"type":"Point","coordinates":[13.4,52.5]}}'

/** What somebody copies over the data file by mistake, of so many bytes, in pieces. */
const wrongFiles: Readonly<Record<string, (bytes: number) => Iterable<string>>> = {
  'a GeoJSON': (bytes) =>
    repeatTo(bytes, '{"type":"FeatureCollection","features":[', `${feature},`, `${feature}]}`),
  'other things in the place of pets': (bytes) =>
    repeatTo(bytes, '{"pets":[', `{"id":1,"features":[${feature},`, '[]]}'),
  'one long text': (bytes) => repeatTo(bytes, '{"pets":[{"photo":"', 'data:ä,'.repeat(100), '"}]}'),
  'brackets within brackets': (bytes) => repeatTo(bytes, '{"pets":[{"tags":', '[['.repeat(100), ''),
  'members by the thousand': (bytes) =>
    repeatTo(bytes, '{"pets":[{', `"photo${'o'.repeat(9)}":5,`, '"a":5}]}'),
  NULs: (bytes) => repeatTo(bytes, '', '\0'.repeat(1000), ''),
}

/** Why it is left out: the quick run tries one in the smaller heap. */
function skipOf(what: string, heapMB: number): string | false {
  return heapMB === 64 && what === 'a GeoJSON' ? false : skip
}

/** In pieces of a megabyte at most. */
function* repeatTo(bytes: number, start: string, text: string, end: string): Generator<string> {
  yield start
  const piece = text.repeat(Math.ceil(1_000_000 / text.length))
  for (let done = 0; done < bytes; done += piece.length) yield piece
  yield end
}

function writePieces(path: string, pieces: Iterable<string>): void {
  writeFileSync(path, '')
  for (const piece of pieces) appendFileSync(path, piece)
}

const servedPets = formatDataFile(...Array.from({ length: 100 }, (_, i) => petLine(i + 1, `p${i}`)))

/** Whether 100 pets are on the disk after the file was written over, whatever became of the process; and what a restart says. */
async function assertKept(
  t: TestContext,
  pieces: Iterable<string>,
  env: NodeJS.ProcessEnv,
  wrapper: readonly string[],
): Promise<string> {
  const folder = makeFolder()
  const path = join(folder, 'data/pets.json')
  mkdirSync(join(folder, 'data'))
  writeFileSync(path, servedPets)
  const first = await startProgram(t, folder, env, wrapper)
  writePieces(`${path}.wrong`, pieces)
  renameSync(`${path}.wrong`, path)
  const said = first.waitFor(/no pet can be added .*are kept in (\S+) until then/)
  await Promise.race([said, first.ended])
  const kept = readdirSync(join(folder, 'data')).filter((name) => name.includes('.kept-'))
  assert.equal(kept.length, 1, first.output())
  assert.equal(readFileSync(join(folder, 'data', kept[0] ?? ''), 'utf8'), servedPets)
  first.child.kill('SIGKILL')
  await first.ended
  said.catch(() => {})
  const second = runProgram(t, folder, { PETSTORE_API_KEYS: key, ...env }, wrapper)
  assert.equal((await second.ended).code, 1, second.output())
  assert.ok(second.output().includes(`${kept[0]}, which was kept last, has 100 pets; `), second.output())
  return second.output()
}

/** A control group of so many MiB, removed after the test; undefined where none can be made. Returns the arguments that start a program in it. */
function makeControlGroup(t: TestContext, mebibytes: number): readonly string[] | undefined {
  const isFirst = !existsSync('/sys/fs/cgroup/cgroup.controllers')
  const root = isFirst ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup'
  try {
    const own = readFileSync('/proc/self/cgroup', 'utf8')
    const [, path = ''] = (isFirst ? /:memory:(.*)/ : /^0::(.*)/m).exec(own) ?? []
    const group = join(root, path, `petstore-${randomUUID()}`)
    mkdirSync(group)
    // It can be removed once no process is in it.
    t.after(() => spawnSync('sh', ['-c', `for i in 1 2 3 4 5; do rmdir "$0" && exit; sleep 1; done`, group]))
    writeFileSync(join(group, isFirst ? 'memory.limit_in_bytes' : 'memory.max'), String(mebibytes * 2 ** 20))
    return ['sh', '-c', `echo $$ >"${group}/cgroup.procs" && exec "$@"`, 'sh']
  } catch {
    t.skip('no control group can be made here')
    return undefined
  }
}

describe(
  'keeps the pets before it reads a wrong file, and a restart says so in a sentence',
  { concurrency: 2 },
  () => {
    for (const [heapMB, fileMB] of [
      [64, 8],
      [128, 20],
    ] as const)
      for (const [what, make] of Object.entries(wrongFiles))
        test(
          `${fileMB} MB of ${what} in a heap of ${heapMB} MB`,
          { skip: skipOf(what, heapMB) },
          async (t) => {
            const env = { NODE_OPTIONS: `--max-old-space-size=${heapMB}` }
            await assertKept(t, make(fileMB * 1e6), env, [])
          },
        )

    test('20 MB of a GeoJSON in 256 MB', { skip }, async (t) => {
      const wrapper = makeControlGroup(t, 256)
      if (wrapper !== undefined) await assertKept(t, wrongFiles['a GeoJSON']?.(20e6) ?? [], {}, wrapper)
    })

    test('400 MB of anything in 256 MB, which it names', { skip }, async (t) => {
      const wrapper = makeControlGroup(t, 256)
      if (wrapper === undefined) return
      const output = await assertKept(t, wrongFiles['NULs']?.(400e6) ?? [], {}, wrapper)
      assert.match(
        output,
        /pets\.json: takes 38\d MiB of memory at least, and this process may have 256 MiB\n/,
      )
    })

    test('pets that need more heap than there is, which it names', async (t) => {
      const pet = '{"name":"","categoryId":1}'
      const option = '--max-old-space-size=64'
      // Versions of Node add more or less to it for new objects. A pet takes 80 bytes of the heap at least.
      const script = 'v8.getHeapStatistics().heap_size_limit'
      const limit = spawnSync(process.execPath, [option, '-p', script], { encoding: 'utf8' })
      const heapBytes = Number(limit.stdout)
      assert.ok(heapBytes > 0, inspect(limit))
      const bytes = (1.1 * heapBytes * pet.length) / 80
      const pets = repeatTo(bytes, '{"pets":[', `${pet},`, `${pet}]}`)
      const output = await assertKept(t, pets, { NODE_OPTIONS: option }, [])
      assert.match(
        output,
        /pets\.json: takes \d\d\d MiB of memory at least, and the heap of Node may have \d+ MiB\n/,
      )
    })
  },
)

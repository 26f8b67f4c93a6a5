/** Clients in numbers, slow, deaf and rude ones: the service answers the others, lets go of what they held, and ends in time. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  assertAnswersAtLast,
  assertRefusal,
  connectRaw,
  createRandom,
  formatRequest,
  holdClock,
  isThorough,
  makeDataFile,
  makeFolder,
  pause,
  readPetLines,
  send,
  startApp,
  startProgram,
} from './support.ts'

const list = formatRequest('GET /v1/pets?limit=100')
const creation = formatRequest('POST /v1/pets', [], '{"name":"Rex","categoryId":1}')

/** Of many clients: a third in the quick run. */
const some = (count: number): number => (isThorough ? count : Math.ceil(count / 3))

/** Opens connections that nothing reads yet; they are closed after the test at the latest. */
function createOpener(t: TestContext, url: string): (count: number) => Promise<Socket[]> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), hostname)
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    await once(socket, 'connect')
    return socket
  }
  return (count) => Promise.all(Array.from({ length: count }, open))
}

function isClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve()
    else socket.on('close', () => resolve())
  })
}

async function assertAnswers(url: string): Promise<void> {
  const { status } = await send(url, '/v1/pets', { headers: { connection: 'close' } })
  assert.equal(status, 200)
}

/** What the heap holds when nothing more can be let go. */
function measureHeapBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  assert.ok(typeof collect === 'function')
  collect()
  return process.memoryUsage().heapUsed
}

const countSockets = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length

/** Runs the rounds and asserts that the last left no more behind than the first: no sockets and no memory. */
async function assertLetsGo(round: () => Promise<void>): Promise<void> {
  // The test beside has a socket of its own.
  const sockets = countSockets() + 1
  const settle = async (): Promise<number> => {
    while (countSockets() > sockets) await pause()
    return measureHeapBytes()
  }
  await round()
  const before = await settle()
  for (let i = 0; i < 2; i++) await round()
  const grown = (await settle()) - before
  assert.ok(grown < 3_000_000, `${grown} bytes more are held`)
}

describe('under load', { concurrency: true }, () => {
  test('a head that drips gets 408 from the default limit for headers, before that for a request (RFC 9110 15.5.9)', async (t) => {
    const { url } = await startProgram(t, makeFolder())
    const client = await connectRaw(t, url)
    client.write('GET /v1/pets HTTP/1.1\r\n')
    const started = performance.now()
    const drip = setInterval(() => client.socket.write('X-A: 1\r\n'), 500)
    t.after(() => clearInterval(drip))
    assertRefusal(await client.read(), 408, 'request_timeout')
    assert.ok(performance.now() - started < 30_000)
    await client.closed
    await assertAnswers(url)
  })

  describe('in turn', { concurrency: false }, () => {
    const floods: readonly [what: string, bytes: string][] = [
      ['pipelined requests', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
      [
        'one-byte chunks',
        formatRequest('POST /v1/pets', ['Transfer-Encoding: chunked'], '1\r\n \r\n'.repeat(9_000)),
      ],
      ['16 KiB heads', formatRequest('GET /healthz', [`X-A: ${'a:b,'.repeat(3_950)}`])],
    ]
    for (const [what, bytes] of floods)
      test(`clients that flood it with ${what} and read nothing leave it alive, and it serves when they stop`, async (t) => {
        // A service that kept all that it reads would die of so many; in a small heap, of few.
        const NODE_OPTIONS = `--max-old-space-size=${isThorough ? 256 : 43}`
        const program = await startProgram(t, makeFolder(), { NODE_OPTIONS })
        const open = createOpener(t, program.url)
        for (let round = 0; round < (isThorough ? 3 : 1); round++) {
          const greedy = await open(isThorough ? 100 : 17)
          for (const socket of greedy) socket.pause().write(bytes.repeat(Math.ceil(262_144 / bytes.length)))
          // On a busy machine the others' turn may take longer than a request may.
          await assertAnswersAtLast(program.url)
          for (const socket of greedy) socket.destroy()
        }
        await assertAnswersAtLast(program.url)
        assert.equal(program.child.exitCode, null)
      })

    test('hundreds of idle connections keep nobody waiting, and leave nothing behind', async (t) => {
      const app = await startApp(t)
      const open = createOpener(t, app.url)
      await assertLetsGo(async () => {
        const idle = await open(isThorough ? 1000 : 200)
        for (const [index, socket] of idle.entries())
          if (index % 2 === 0) socket.write('GET /v1/pets HTTP/1.1\r\nHost: x')
        await assertAnswers(app.url)
        for (const socket of idle) socket.destroy()
      })
    })

    test('clients that never read are cut off, the others are answered, and nothing is left behind', async (t) => {
      const pets = Array.from({ length: 100 }, () => ({ name: 'x'.repeat(60_000), categoryId: 1 }))
      const app = await startApp(t, { pets, timeouts: { idleMs: 500 } })
      const open = createOpener(t, app.url)
      await assertLetsGo(async () => {
        const deaf = await open(isThorough ? 10 : 2)
        for (const [index, socket] of deaf.entries())
          socket.pause().write(list.repeat(index % 2 === 0 ? 1 : 32))
        await assertAnswersAtLast(app.url)
        // Whoever does not read learns of the end only by writing. Empty lines between requests are no sign of life.
        const pokes = deaf.map((socket) => setInterval(() => socket.write('\r\n'), 50))
        await Promise.all(deaf.map(isClosed))
        for (const each of pokes) clearInterval(each)
      })
    })

    test('clients that vanish at any moment leave whole pets or none, and nothing behind', async (t) => {
      const dataFile = makeDataFile()
      const app = await startApp(t, { dataFile })
      const open = createOpener(t, app.url)
      const random = createRandom(7)
      await assertLetsGo(async () => {
        for (const socket of await open(some(200))) {
          socket.write((creation + list).repeat(3).slice(0, random(900)))
          const vanish = (): unknown => (random(2) === 0 ? socket.destroy() : socket.resetAndDestroy())
          if (random(2) === 0) setImmediate(vanish)
          else socket.once('data', vanish)
          setTimeout(vanish, 200)
        }
        await assertAnswers(app.url)
      })
      // Some commits may be under way still.
      await app.server.close()
      const stored = readPetLines(dataFile)
      assert.ok(stored.length > 0)
      assert.equal(stored.length, app.server.countPets())
      for (const [index, line] of stored.entries())
        assert.equal(line, `{"id":${index + 1},"name":"Rex","categoryId":1,"status":"available"}`)
    })

    test('SIGTERM among idle, deaf and busy clients ends in order, and what was stored was answered', async (t) => {
      const dataFile = makeDataFile()
      const folder = makeFolder()
      const program = await startProgram(t, folder, { ...holdClock(folder), PETSTORE_DATA_FILE: dataFile })
      const open = createOpener(t, program.url)
      await open(200)
      for (const socket of await open(5)) socket.pause().write(list.repeat(32))
      const answered = new Set<string>()
      const busy = Array.from({ length: 20 }, async () => {
        const client = await connectRaw(t, program.url)
        for (;;) {
          client.write(creation)
          try {
            const { status, headers } = await client.read()
            assert.equal(status, 201)
            answered.add(headers.get('location') ?? '')
          } catch (error) {
            // Between two requests the connection closes without a word; never within an answer.
            assert.match(String(error), /the connection ended behind ""/)
            return
          }
          if (answered.size === 500) program.child.kill('SIGTERM')
        }
      })
      await Promise.all(busy)
      // The deaf ones are still in flight. The next wait to end is that for them, and not the one for a program that hangs.
      program.child.kill('SIGUSR2')
      assert.deepEqual(await program.ended, { code: 0, signal: null })
      assert.equal(readPetLines(dataFile).length, answered.size)
    })

    test('SIGTERM under clients that connect for each request resets nobody who had sent one', async (t) => {
      const program = await startProgram(t, makeFolder())
      const open = createOpener(t, program.url)
      const requests: { isAnswered: boolean }[] = []
      const ask = async (): Promise<void> => {
        const [socket] = await open(1)
        if (socket === undefined) return
        const request = { isAnswered: false }
        socket.write(formatRequest('GET /healthz', ['Connection: close']), () => requests.push(request))
        socket.once('data', () => (request.isAnswered = true))
        await isClosed(socket)
      }
      const busy = Array.from({ length: some(300) }, async () => {
        while (program.child.exitCode === null) await ask().catch(() => {})
      })
      while (requests.length < some(3_000)) await pause()
      const sent = [...requests]
      program.child.kill('SIGTERM')
      assert.deepEqual(await program.ended, { code: 0, signal: null })
      await Promise.all(busy)
      assert.equal(sent.filter(({ isAnswered }) => !isAnswered).length, 0)
    })

    const skip = isThorough ? false : 'npm run test:thorough runs it'
    test('SIGTERM under an endless flood ends in order', { skip }, async (t) => {
      const program = await startProgram(t, makeFolder())
      const { child } = program
      const open = createOpener(t, program.url)
      const flood = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3_000)
      const pour = async (): Promise<void> => {
        const [socket] = await open(1)
        if (socket === undefined) return
        const go = (): unknown => socket.writable && socket.write(flood, go)
        socket.pause().once('drain', go)
        go()
        await isClosed(socket)
      }
      const busy = Array.from({ length: 100 }, async () => {
        while (child.exitCode === null && child.signalCode === null) await pour().catch(() => {})
      })
      await assertAnswersAtLast(program.url)
      child.kill('SIGTERM')
      assert.deepEqual(await program.ended, { code: 0, signal: null })
      await Promise.all(busy)
    })

    test('SIGTERM under hundreds of busy clients ends without waiting for its limit, and within no response', async (t) => {
      const folder = makeFolder()
      // No time passes: the limit of 5 s does not come.
      const program = await startProgram(t, folder, holdClock(folder))
      let responses = 0
      const requests = formatRequest('GET /v1/pets').repeat(4)
      const busy = Array.from({ length: some(512) }, async () => {
        const client = await connectRaw(t, program.url)
        for (;;) {
          client.write(requests)
          try {
            for (let i = 0; i < 4; i++) assert.ok([200, 503].includes((await client.read()).status))
          } catch (error) {
            assert.match(String(error), /the connection ended behind ""/)
            return
          }
          if (++responses === some(2_000)) program.child.kill('SIGTERM')
        }
      })
      await Promise.all(busy)
      assert.deepEqual(await program.ended, { code: 0, signal: null })
    })
  })
})

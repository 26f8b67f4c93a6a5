/**
 * The work for a text grows as the text does, whoever sends or writes it: twice the text takes at most three times the work. What takes the
 * square of it takes four times as much, and one request could stop all others. Work is this process's time on a processor, in which a busy
 * machine does not count; and what is too much is measured again, before it counts.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { maxBodyBytes } from '../src/http/limits.ts'
import { RequestBody } from '../src/http/body.ts'
import { openFileStore } from '../src/store/file-store.ts'
import { petLine } from './file-system.ts'
import {
  connectRaw,
  formatDataFile,
  formatRequest,
  type RawClient,
  makeDataFile,
  makeOld,
  pause,
  share,
  startApp,
} from './support.ts'

const marks = '0 1 . - " \\ % / = ? & # ; : + [ ] { } , a é'.split(' ')
const words = [
  '[],',
  '{},',
  '"a":1,',
  '"",',
  '1e1,',
  '-0,',
  '\\n',
  '\\u00e4',
  '\\"',
  '%41',
  'a=',
  '/a',
  '; charset=',
]
/** What may be a pet that was cut off, or holes on the borders of sectors. */
const damages = ['{"name":[', '{"x":[\0', `${'\0'.repeat(512)}${'x'.repeat(512)}`]
const lineEnds = ['\n', '\r', '\r\n', ',\n', '\n  ]\n}\n', ',\n    {"id":', '\0']
const inLine = [' ', '\t', ...marks, ...words]

type Shape = (text: string) => string

const withBody: Shape = (body) => formatRequest('POST /v1/pets', [], body)
const withChunks: Shape = (chunks) =>
  formatRequest('POST /v1/pets', ['Transfer-Encoding: chunked'], `${chunks}0\r\n\r\n`)
const withTarget: Shape = (target) => formatRequest(`GET ${target}`)
const withLine: Shape = (line) => formatRequest('POST /v1/pets', [line], '{}')

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

/** How much more work it is to take twice the text. */
async function measureGrowth(
  take: (text: string) => Promise<void>,
  texts: readonly string[],
  runs: number,
): Promise<number> {
  const works: number[][] = [[], []]
  for (let run = 0; run < runs; run++)
    for (const [i, text] of texts.entries()) {
      const start = process.cpuUsage()
      await take(text)
      const { user, system } = process.cpuUsage(start)
      works[i]?.push(user + system)
    }
  const [once = 0, twice = 0] = works.map(median)
  return twice / once
}

async function assertLinear(
  take: (text: string) => Promise<void>,
  shapes: readonly Shape[],
  units: readonly string[],
  maxLength: number,
): Promise<void> {
  const cases = shapes.flatMap((shape) => units.map((unit) => ({ shape, unit })))
  let last: Shape | undefined
  for (const { shape, unit } of share(cases, 40)) {
    const texts = [maxLength / 2, maxLength].map((length) => shape(unit.repeat(length / unit.length)))
    // What is done only once would make the shorter text cost more.
    if (shape !== last) await take(texts[0] ?? '')
    last = shape
    const growths: number[] = []
    do growths.push(await measureGrowth(take, texts, growths.length === 0 ? 1 : 3))
    while (Number(growths.at(-1)) > 3 && growths.length < 6)
    const shown = JSON.stringify(`${texts[0]?.slice(0, 60)}…${texts[0]?.slice(-20)}`)
    assert.ok(
      Number(growths.at(-1)) <= 3,
      `twice as much of ${shown} is ${growths.join(', ')} times the work`,
    )
  }
}

/** Sends each request on the same connection, as long as that is open, and waits for the response. */
async function createSend(t: TestContext): Promise<(request: string) => Promise<void>> {
  const { url } = await startApp(t)
  let client: RawClient | undefined
  return async (request) => {
    client ??= await connectRaw(t, url)
    client.write(request)
    const { headers } = await client.read()
    if (headers.get('connection') !== 'close') return
    await client.closed
    client.socket.destroy()
    client = undefined
    // The service may still read what the client has sent.
    while (process.getActiveResourcesInfo().includes('TCPSocketWrap')) await pause()
  }
}

test('a body', async (t) => {
  const send = await createSend(t)
  const shapes: Shape[] = [
    (text) => text,
    (text) => `{"name":"x","categoryId":1${text}1}`,
    (text) => `{"name":"x","categoryId":1.${text}1}`,
    (text) => `{"name":"${text}","categoryId":-0}`,
    (text) => `{"${text}":1}`,
    (text) => `{"x":[${text}-0]}`,
    (text) => `{${text}"x":-0}`,
    (text) => `{"name":"x","categoryId":"${text}"}${text}`,
  ]
  await assertLinear(
    send,
    shapes.map((shape) => (text) => withBody(shape(text))),
    [...inLine, ...lineEnds],
    32_000,
  )
  // The quick run may leave out this one of those above.
  const withZeros: readonly Shape[] = [(text) => withBody(`{"name":"x","categoryId":1${text}1}`)]
  await assertLinear(send, withZeros, ['0'], 32_000)
})

test('a body in chunks of one byte, also where it is beyond the limit and dropped', async (t) => {
  await assertLinear(await createSend(t), [withChunks], ['1\r\n \r\n'], 2 * 65_536 * 6)
})

test('a body in chunks of one byte is copied a few times, and not for each of them', async (t) => {
  const concat = t.mock.method(Buffer, 'concat')
  const stream = new Readable({ read() {} })
  const body = new RequestBody((each) => each.collect(stream)).read()
  for (let i = 0; i < maxBodyBytes; i++) stream.emit('data', Buffer.from('x'))
  stream.push(null)
  assert.equal((await body).length, maxBodyBytes)
  assert.ok(concat.mock.callCount() <= 20, `${concat.mock.callCount()} copies`)
})

test('a request target', async (t) => {
  const send = await createSend(t)
  const shapes: Shape[] = [
    (text) => `/${text}`,
    (text) => `/v1/pets/${text}!`,
    (text) => `/v1/pets?limit=${text}!`,
    (text) => `/v1/pets?${text}`,
    (text) => `http://a${text}/v1/pet`,
    (text) => text,
  ]
  await assertLinear(
    send,
    shapes.map((shape) => (text) => withTarget(shape(text))),
    inLine,
    15_000,
  )
})

test('a header', async (t) => {
  const send = await createSend(t)
  const lines: Shape[] = [
    (text) => `Authorization: Bearer ${text}!`,
    (text) => `Authorization: Bearer${text}`,
    (text) => `Content-Type: application/json${text}!`,
    (text) => `Content-Type: application/json; charset=utf-8${text}!`,
    (text) => `Content-Type: ${text}`,
    (text) => `Content-Encoding: ${text}`,
    (text) => `Content-Length: 2${text}`,
    (text) => `Transfer-Encoding: chunked${text}`,
    (text) => `Connection: ${text}`,
    (text) => `Expect: ${text}`,
    (text) => `Host: ${text}!`,
    (text) => `Origin: ${text}`,
    (text) => `Prefer: code=${text}`,
  ]
  await assertLinear(
    send,
    lines.map((line) => (text) => withLine(line(text))),
    inLine,
    15_000,
  )
  await assertLinear(send, [(text) => withLine(`X: y${text}`)], ['\r\nX: y'], 15_000)
})

test('a data file', async () => {
  const path = makeDataFile()
  const take = async (text: string): Promise<void> => {
    writeFileSync(path, text)
    makeOld(path)
    const store = await openFileStore(path).catch((error: unknown) => {
      assert.ok(error instanceof DataFileUnusable)
    })
    await store?.close()
  }
  const shapes: Shape[] = [
    (text) => text,
    (text) => `{"pets":[{"name":"x","categoryId":1${text}1}]}`,
    (text) => `{"pets":[{"name":"${text}","categoryId":1}]}`,
    (text) => `{"pets":[${text}`,
    (text) => `{"pets":[{"id":1,"name":"a","categoryId":1}${text}`,
    (text) => `{"pets":[{"id":1,"name":"a","categoryId":1}`.padEnd(512) + text,
    (text) => `{"pets":[{"id":1,"name":"a","categoryId":1}${text}x\n  ]\n}\n`,
    (text) => `{"pets":[{"id":1,"name":"a","categoryId":1}]}${text}x\n  ]\n}\n`,
    (text) => `{"${text}":1,"$schema":"${text}"}`,
  ]
  await assertLinear(take, shapes, [...inLine, ...lineEnds, ...damages], 32_000)
  const descending: readonly Shape[] = [
    ({ length }) => formatDataFile(...Array.from({ length }, (_, i) => petLine(length - i, 'x'))),
  ]
  await assertLinear(take, descending, ['x'], 4_000)
})

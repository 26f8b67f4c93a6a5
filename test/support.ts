/** What the tests share: temporary folders, a started service, a started program, and raw bytes on a socket. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import {
  createServer,
  type IncomingMessage,
  request as openRequest,
  type RequestListener,
  type ServerOptions,
} from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { clock } from '../src/system/clock.ts'
import type { PetStoreServer, PetStoreServerOptions } from '../src/options/types.ts'
import { openApiText } from '../src/text/bundled-texts.ts'
import { limitEachTest } from './time-limit.ts'

limitEachTest()

export const root = fileURLToPath(new URL('..', import.meta.url))
export const key = 'test-key'
export const authorization = `Bearer ${key}`

/** `npm run test:thorough` sets it: what is exhaustive runs whole. `npm test` runs a share of it. */
export const isThorough = process.env['PETSTORE_TEST_THOROUGH'] === '1'

/** All items when thorough. Otherwise `count` of them, the same in each run: a random one from each of `count` equal parts. */
export function share<T>(items: Iterable<T>, count: number): readonly T[] {
  const all = [...items]
  if (isThorough || all.length <= count) return all
  const random = createRandom(count)
  const chosen = new Set<number>()
  for (let part = 0; part < count; part++) {
    const start = Math.floor((part * all.length) / count)
    const end = Math.floor(((part + 1) * all.length) / count)
    chosen.add(start + random(end - start))
  }
  return all.filter((_, index) => chosen.has(index))
}

const folders: string[] = []
/** Those that still run. A test that hangs ends this process before it can end its programs. */
const programs = new Set<ChildProcess>()
process.on('exit', () => {
  for (const program of programs) program.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A new folder. It is removed when the test file ends. */
export function makeFolder(base = tmpdir()): string {
  const folder = mkdtempSync(join(base, 'petstore-'))
  folders.push(folder)
  return folder
}

const isNoLock = (name: string): boolean => !name.includes('.petstore-lock')

/** The names in the folder of a data file but for its lock, which is there as long as the file is open, and after a kill. */
export function listFolder(folder: string): readonly string[] {
  return readdirSync(folder).filter(isNoLock)
}

/** Copies the folder of a data file as a kill would leave it. Node copies no sockets, and the lock is one. */
export function copyFolder(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: isNoLock })
}

/** The text of a data file with these lines as its pets, as the store writes it. */
export function formatDataFile(...lines: readonly string[]): string {
  const pets = lines.length === 0 ? '[]' : `[\n${lines.map((line) => `    ${line}`).join(',\n')}\n  ]`
  return `{\n  "pets": ${pets}\n}\n`
}

/** A data file in a new folder, with this text, or with these lines as its pets. */
export function makeDataFile(content: string | readonly string[] = []): string {
  const path = join(makeFolder(), 'pets.json')
  writeFileSync(path, typeof content === 'string' ? content : formatDataFile(...content))
  makeOld(path)
  return path
}

/** Sets the modification time back: a start waits for an invalid file that was just written. */
export function makeOld(path: string): void {
  utimesSync(path, 1, 1)
}

/** The pets' lines in a data file, without the commas. */
export function readPetLines(path: string): readonly string[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line.startsWith('    {')).map((line) => line.trim().replace(/,$/, ''))
}

export interface ReceivedAnswer {
  readonly status: number
  /** By name, in small letters. */
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
}

export interface RequestOptions {
  readonly method?: string
  /** Sent as it is when it is a string or bytes, as JSON otherwise. */
  readonly body?: unknown
  /** The key's header is sent unless it is overwritten; null leaves a header out. */
  readonly headers?: Readonly<Record<string, string | null>>
}

/** Sends a request with the test key, JSON by default, and reads the answer as text. */
export async function send(url: string, path: string, options: RequestOptions = {}): Promise<ReceivedAnswer> {
  const { body, method = body === undefined ? 'GET' : 'POST' } = options
  const headers = new Map([['authorization', authorization]])
  if (body !== undefined) headers.set('content-type', 'application/json')
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (value === null) headers.delete(name.toLowerCase())
    else headers.set(name.toLowerCase(), value)
  }
  const isRaw = typeof body === 'string' || body instanceof Uint8Array
  // By node:http: with fetch, all tests together take longer.
  const sent = openRequest(url + path, { method, headers: Object.fromEntries(headers) })
  sent.end(body === undefined || isRaw ? body : JSON.stringify(body))
  const [response]: IncomingMessage[] = await once(sent, 'response')
  assert.ok(response !== undefined)
  const received = Object.entries(response.headersDistinct).map(
    ([name, values]) => [name, values?.join(', ') ?? ''] as const,
  )
  return { status: response.statusCode ?? 0, headers: new Map(received), text: await readText(response) }
}

/**
 * Sends requests until one is answered with 200. With limits as short as tests set them, a busy machine is too late for some
 * requests, which get 408 or lose their connection.
 */
export async function assertAnswersAtLast(url: string): Promise<void> {
  const outcomes: unknown[] = []
  for (let attempt = 0; attempt < 100; attempt++) {
    const headers = { connection: 'close' }
    const outcome = await send(url, '/v1/pets', { headers }).then(({ status }) => status, String)
    if (outcome === 200) return
    outcomes.push(outcome)
  }
  assert.fail(outcomes.join())
}

export interface StartedApp {
  readonly server: PetStoreServer
  readonly url: string
  /** What was said about the data file. */
  readonly lines: string[]
  readonly send: (path: string, options?: RequestOptions) => Promise<ReceivedAnswer>
}

/** Starts the service in this process, in memory unless a data file is given, and closes it after the test. */
export async function startApp(
  t: TestContext,
  options: Partial<PetStoreServerOptions> = {},
): Promise<StartedApp> {
  const lines: string[] = []
  // Many test files have no use for it, and start faster without.
  const { startPetStore } = await import('../src/pet-store-server.ts')
  const { dataFile, pets = [], ...rest } = options
  const common = { apiKeys: [key], onMessage: (line: string) => lines.push(line), ...rest }
  const server = await startPetStore(dataFile === undefined ? { ...common, pets } : { ...common, dataFile })
  t.after(() => server.close())
  const sendDescribed = async (path: string, request?: RequestOptions): Promise<ReceivedAnswer> => {
    const answer = await send(server.url, path, request)
    assertDescribed(request?.method ?? (request?.body === undefined ? 'GET' : 'POST'), path, answer)
    return answer
  }
  return { server, url: server.url, lines, send: sendDescribed }
}

interface DescribedResponse {
  readonly $ref?: string
  readonly content?: {
    readonly 'application/json': { readonly examples: Readonly<Record<string, unknown>> }
  }
}

interface Described {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { readonly responses: Readonly<Record<string, DescribedResponse>> }>>
    >
  >
  readonly components: { readonly responses: Readonly<Record<string, DescribedResponse>> }
}

/** Fails for a status or an error code of an operation that src/api/openapi.json does not have. */
function assertDescribed(method: string, target: string, { status, text }: ReceivedAnswer): void {
  const { paths, components }: Described = JSON.parse(openApiText)
  const [path = ''] = target.split('?')
  const [, item] =
    Object.entries(paths).find(([template]) =>
      new RegExp(`^/v1${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
    ) ?? []
  const operation = item?.[method === 'HEAD' ? 'get' : method.toLowerCase()]
  if (operation === undefined) return
  const response = operation.responses[status] ?? operation.responses[status < 400 ? '' : 'default']
  const place = `src/api/openapi.json, ${method} ${path}`
  assert.ok(response !== undefined, `${place}, lacks ${status}`)
  if (status < 400 || text === '') return
  const { code }: { code: string } = JSON.parse(text)
  const { content } = components.responses[response.$ref?.split('/').at(-1) ?? ''] ?? response
  const codes = Object.keys(content?.['application/json'].examples ?? {})
  assert.ok(codes.includes(code), `${place}, ${status}, lacks an example of ${code}`)
}

/** Starts a plain server of `node:http`, closes it after the test, and gives its address. */
export async function listen(
  t: TestContext,
  listener: RequestListener,
  options: ServerOptions = {},
): Promise<string> {
  const server = createServer(options, listener).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return `http://127.0.0.1:${address.port}`
}

/** Between two looks at what tells nobody when it happens: without a pause they would keep a processor busy. */
export function pause(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 5))
}

/** From here on no timeout of the service ends, however slow this machine is, until the test does or calls `restore`. */
export function holdTimeouts(t: TestContext): { restore: () => void } {
  const { mock } = t.mock.method(clock, 'setTimeout', () => setTimeout(() => {}, 2 ** 31 - 1).unref())
  return mock
}

export interface StartedProgram {
  readonly child: ChildProcess
  readonly url: string
  /** The key that it printed, or the test key. */
  readonly key: string
  /** Standard output and error so far. */
  readonly output: () => string
  /** Resolves with the first match in the output; rejects when the program ends without one. */
  readonly waitFor: (pattern: RegExp) => Promise<RegExpExecArray>
  /** Resolves with exit code and signal. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/**
 * The environment for a program under test: without settings of whoever runs the tests, and without what npm sets, which
 * makes the program take a second signal for an echo of the first.
 */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _context, PORT: _port, HOST: _host, ...inherited } = process.env
  return Object.fromEntries(Object.entries(inherited).filter(([name]) => !/^(?:PETSTORE_|npm_)/.test(name)))
}

/**
 * Runs the program in `cwd`, behind `wrapper` if given, with these arguments: the build that `npm test` made, or else the source. It may end by itself.
 * After the test it is killed and waited for.
 */
export function runProgram(
  t: TestContext,
  cwd: string,
  env: NodeJS.ProcessEnv = {},
  wrapper: readonly string[] = [],
  programArgs: readonly string[] = [],
): Omit<StartedProgram, 'url' | 'key'> {
  const { PETSTORE_TEST_ENTRY, PETSTORE_TEST_DIST: dist } = process.env
  const entry =
    PETSTORE_TEST_ENTRY ?? (dist === undefined ? join(root, 'src/server.ts') : join(dist, 'server.js'))
  const loader = entry.endsWith('.ts') ? ['--import', import.meta.resolve('tsx')] : []
  const [file = '', ...args] = [...wrapper, process.execPath, ...loader, entry, ...programArgs]
  const child = spawn(file, args, {
    cwd,
    env: { ...cleanEnvironment(), PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  programs.add(child)
  child.once('exit', () => programs.delete(child))
  let output = ''
  const watchers = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      for (const watch of watchers) watch()
    })
  }
  const ended = once(child, 'close').then(([code, signal]: (number | NodeJS.Signals | null)[]) => ({
    code: typeof code === 'number' ? code : null,
    signal: typeof signal === 'string' ? signal : null,
  }))
  t.after(() => {
    child.kill('SIGKILL')
    return ended
  })
  const waitFor = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const watch = (): void => {
        const match = pattern.exec(output)
        if (match === null) return
        watchers.delete(watch)
        resolve(match)
      }
      watchers.add(watch)
      watch()
      void ended.then(() => reject(new Error(`ended without ${pattern}:\n${output}`)))
    })
  return { child, output: () => output, waitFor, ended }
}

/** What the program printed, without the time before each line. */
export function withoutTimes(output: string): string {
  return output.replaceAll(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /gm, '')
}

/** Runs the program and waits until it listens. */
export async function startProgram(
  t: TestContext,
  cwd: string,
  env: NodeJS.ProcessEnv = {},
  wrapper: readonly string[] = [],
  programArgs: readonly string[] = [],
): Promise<StartedProgram> {
  const program = runProgram(t, cwd, { PETSTORE_API_KEYS: key, ...env }, wrapper, programArgs)
  const [, url = ''] = await program.waitFor(/listens on (http:\S+)\n/)
  const printed = /API key for this run: (\S+)/.exec(program.output())?.[1]
  return { ...program, url, key: printed ?? key }
}

/**
 * A preloaded script: time stands still, but for the second that has passed once there is a file called `later`. At each SIGUSR2 the
 * shortest of all waits of more than a second ends.
 */
const heldClock = `
  const { existsSync } = require('node:fs')
  performance.now = () => (existsSync('later') ? 1_000 : 0)
  const timers = require('node:timers')
  const { setTimeout } = timers
  const held = []
  timers.setTimeout = (call, ms, ...args) => {
    if (!(ms > 1_000)) return setTimeout(call, ms, ...args)
    held.push({ ms, end: () => call(...args) })
    return setTimeout(() => {}, 2 ** 31 - 1)
  }
  require('node:module').syncBuiltinESMExports()
  process.on('SIGUSR2', () => held.sort((a, b) => a.ms - b.ms).shift().end())`

/**
 * The environment for a program in this folder whose clock the test holds. Limits such as the 5 s for what is in flight when
 * it stops then end in their order, and none of them while a busy machine pauses.
 */
export function holdClock(folder: string): NodeJS.ProcessEnv {
  writeFileSync(join(folder, 'clock.cjs'), heldClock)
  return { NODE_OPTIONS: '--require ./clock.cjs' }
}

/** For the program whose clock is held in this folder, a second passes. */
export function passSecond(folder: string): void {
  writeFileSync(join(folder, 'later'), '')
}

export interface RawAnswer {
  readonly status: number
  readonly reason: string
  /** By name, in small letters; the last line of a name that came twice. */
  readonly headers: ReadonlyMap<string, string>
  readonly headerLines: readonly string[]
  readonly body: string
}

/** Random integers from 0 below a bound, the same for the same seed (mulberry32). */
export function createRandom(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

/** A request as it goes over the wire, with Host, key and length unless `lines` (whole header lines) has another. */
export function formatRequest(start: string, lines: readonly string[] = [], body = ''): string {
  const given = new Set(lines.map((line) => line.split(':', 1)[0]?.toLowerCase()))
  const usual = ['Host: pets.test', `Authorization: ${authorization}`]
  if (body !== '') usual.push(`Content-Length: ${Buffer.byteLength(body)}`)
  const kept = usual.filter((line) => !given.has(line.slice(0, line.indexOf(':')).toLowerCase()))
  const withLength = given.has('transfer-encoding')
    ? kept.filter((line) => !line.startsWith('Content-Length'))
    : kept
  return `${start} HTTP/1.1\r\n${[...withLength, ...lines].join('\r\n')}\r\n\r\n${body}`
}

/** A raw connection: what is written goes out as it is, what comes is read one answer at a time. */
export interface RawClient {
  readonly socket: Socket
  write(bytes: string | Uint8Array): void
  /** The next answer. `to` tells that it has no body (HEAD). Rejects when the connection ends before it is whole. */
  read(to?: 'HEAD'): Promise<RawAnswer>
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>
}

export async function connectRaw(t: TestContext, url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  let received = Buffer.alloc(0)
  // Thousands of them may come before the next answer is read. They are joined only then.
  const chunks: Buffer[] = []
  let isEnded = false
  let wake: (() => void) | undefined
  socket.on('data', (chunk) => {
    chunks.push(chunk)
    wake?.()
  })
  const closed = new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) {
      socket.on(event, () => {
        isEnded = true
        wake?.()
        resolve()
      })
    }
  })
  const read = async (to?: 'HEAD'): Promise<RawAnswer> => {
    for (;;) {
      if (chunks.length > 0) received = Buffer.concat([received, ...chunks.splice(0)])
      const answer = takeAnswer(received, to === 'HEAD')
      if (answer !== undefined) {
        received = received.subarray(answer.length)
        return answer
      }
      if (isEnded)
        throw new Error(`the connection ended behind ${JSON.stringify(received.toString('latin1'))}`)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { socket, write: (bytes) => socket.write(bytes), read, closed }
}

/** The first answer in the bytes and how many it takes; undefined while it is not whole. */
export function takeAnswer(bytes: Buffer, isHead: boolean): (RawAnswer & { length: number }) | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const [start = '', ...headerLines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const [, status = '', reason = ''] = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(start) ?? []
  assert.notEqual(status, '', `not an answer: ${JSON.stringify(start)}`)
  const pairs = headerLines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
  })
  const headers = new Map(pairs)
  assert.equal(headers.has('transfer-encoding'), false, 'every answer has a length')
  const hasBody = !isHead && !status.startsWith('1') && status !== '204'
  const length = end + 4 + (hasBody ? Number(headers.get('content-length')) : 0)
  if (bytes.length < length) return undefined
  const body = bytes.subarray(end + 4, length).toString()
  return { status: Number(status), reason, headers, headerLines, body, length }
}

/** What `errors` of an Error says, in the form of its message; fails where it has other members. */
function joinErrors(errors: unknown): string {
  assert.ok(Array.isArray(errors) && errors.length > 0)
  return errors
    .map((error: Readonly<Record<string, unknown>>) => {
      assert.deepEqual(Object.keys(error), ['field', 'message'])
      return `${String(error['field'])}: ${String(error['message'])}`
    })
    .join('; ')
}

/** Asserts that the answer is a refusal in the interface's form (section 7), and gives its message. */
export function assertRefusal(answer: RawAnswer | ReceivedAnswer, status: number, code: string): string {
  const text = 'text' in answer ? answer.text : answer.body
  const error: unknown = JSON.parse(text)
  assert.ok(
    typeof error === 'object' && error !== null && 'message' in error && typeof error.message === 'string',
    text,
  )
  const { errors, ...others } = { errors: undefined, ...error }
  assert.deepEqual({ ...others, message: '' }, { code, message: '', status }, text)
  if (code === 'invalid_body' || code === 'invalid_parameter')
    assert.equal(error.message, joinErrors(errors), text)
  else assert.equal(errors, undefined, text)
  assert.equal(answer.status, status)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(text)))
  return error.message
}

/** Servers on PostgreSQL, and what clients of theirs see. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from '../built.ts'
import { key, type ReceivedAnswer, root, send, withoutTimes } from '../support.ts'
import { cleanEnvironment, makeFolder } from './processes.ts'

const loader = ['--import', import.meta.resolve('tsx')]
/** The program, built once. */
export const program = join(build(makeFolder()), 'server.js')

export interface Server {
  readonly url: string
  readonly child: ChildProcess
  /** What it printed up to the start text's end. */
  readonly startText: string
  /** What it printed after that, without the times. */
  readonly messages: readonly string[]
  /** What it printed on standard error. */
  readonly errors: () => string
}

/** Starts the program in a folder of makeFolder, with which it ends. `line` waits for a line of its output, which may have come. */
export function spawnProgram(
  folder: string,
  databaseUrl: string,
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
) {
  const source = { PORT: '0', PETSTORE_DATABASE_URL: databaseUrl, PETSTORE_API_KEYS: key }
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...cleanEnvironment, ...source, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (text) => lines.push(text.replace(/^\d{4}-\d\d-\d\dT\S+Z /, '')))
  const line = async (pattern: RegExp): Promise<string> => {
    const ended = once(reader, 'close')
    for (;;) {
      const found = lines.find((text) => pattern.test(text))
      if (found !== undefined) return found
      const outcome = await Promise.race([once(reader, 'line'), ended.then(() => 'ended')])
      if (outcome === 'ended') throw new Error(`the program ended: ${lines.join('\n')}\n${errors}`)
    }
  }
  return { child, lines, line, errors: () => errors }
}

/** Resolves when the program listens. */
export async function startServer(
  folder: string,
  databaseUrl: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const { child, lines, line, errors } = spawnProgram(folder, databaseUrl, env)
  await line(/^ {2}curl /)
  const startText = lines.splice(0).join('\n')
  const [, url = ''] = /^Petstore listens on (\S+)$/m.exec(startText) ?? []
  return { url, child, startText, messages: lines, errors }
}

/** Runs the program until it ends by itself. */
export async function runToEnd(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...cleanEnvironment, PORT: '0', PETSTORE_API_KEYS: key, ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [code]: (number | null)[] = await once(child, 'close')
  return { code: code ?? null, output: withoutTimes(output) }
}

export async function stopServer({ child }: Server): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
}

/** Runs the contract suite on all servers at once. What the pets of the others hide from one is not tried. */
export async function assertContract(servers: readonly Server[]): Promise<void> {
  const suites = servers.map(async ({ url }) => {
    // All cases, however slow a busy machine makes the server.
    const args = [...loader, join(root, 'test/contract.test.ts'), `${url}/v1`, key, '--all']
    const suite = spawn(process.execPath, args, { env: cleanEnvironment })
    let output = ''
    suite.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    const [code]: unknown[] = await once(suite, 'close')
    assert.ok(code === 0 || code === 2, output)
    const [, ...reasons] = output.split(/\d+ cases? not tried: /)
    for (const reason of reasons) assert.match(reason, /^the store holds /, output)
    assert.match(output, /^(?:Passed|Nothing failed)/m)
  })
  await Promise.all(suites)
}

/** A pet as its text in a body, by its id. */
export type Pets = Map<string, string>

/** Adds the pets of a body, and returns the last id. */
export function collect(pets: Pets, body: string): string | undefined {
  let last: string | undefined
  for (const [text, id = ''] of body.matchAll(/\{"id":(\d+),"name":"(?:[^"\\]|\\.)*",[^{}]*\}/g)) {
    assert.equal(pets.has(id), false, `the pet ${id} came twice`)
    pets.set(id, text)
    last = id
  }
  return last
}

/** Asks for a page, adds its pets, and returns the path of the next. */
export async function readPage(url: string, path: string, pets: Pets): Promise<string | undefined> {
  const answer: ReceivedAnswer = await send(url, path)
  assert.equal(answer.status, 200, answer.text)
  collect(pets, answer.text)
  return /<([^>]+)>/.exec(answer.headers.get('link') ?? '')?.[1]
}

/** Follows Link from a pet on, adds what it sees, and returns the last id. */
export async function walk(url: string, pets: Pets, from = '0'): Promise<string> {
  let path: string | undefined = `/v1/pets?limit=100&after=${from}`
  while (path !== undefined) path = await readPage(url, path, pets)
  return [...pets.keys()].at(-1) ?? '0'
}

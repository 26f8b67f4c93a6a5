/** Servers on PostgreSQL, and what clients of theirs see. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { key, type ReceivedAnswer, root, send } from '../support.ts'
import { cleanEnvironment } from './processes.ts'

const loader = ['--import', import.meta.resolve('tsx')]
const serverFile = fileURLToPath(new URL('serve.ts', import.meta.url))

export interface Server {
  readonly url: string
  readonly child: ChildProcess
  /** What it printed behind its address. */
  readonly messages: string[]
}

/** Starts serve.ts in a folder of makeFolder, with which it ends. */
export async function startServer(folder: string, databaseUrl: string, env = {}): Promise<Server> {
  const child = spawn(process.execPath, [...loader, serverFile], {
    cwd: folder,
    env: { ...cleanEnvironment, DATABASE_URL: databaseUrl, API_KEY: key, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })
  const [url = '']: string[] = await once(lines, 'line')
  const messages: string[] = []
  lines.on('line', (line) => messages.push(line))
  return { url, child, messages }
}

export async function stopServer({ child }: Server): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
}

/** Runs the contract suite on all servers at once. */
export async function assertContract(servers: readonly Server[]): Promise<void> {
  const suites = servers.map(async ({ url }) => {
    const env = { ...cleanEnvironment, PETSTORE_URL: `${url}/v1`, PETSTORE_API_KEY: key }
    const args = [...loader, '--test', '--test-reporter=spec', join(root, 'test/contract.test.ts')]
    const suite = spawn(process.execPath, args, { env })
    let output = ''
    suite.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    const [code]: unknown[] = await once(suite, 'close')
    assert.equal(code, 0, output)
    assert.match(output, /pass [1-9]/)
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

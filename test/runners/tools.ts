/** What the checks share: the documents' examples, and projects that have installed the package, to run them in. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { cleanEnvironment, makeFolder } from '../support.ts'

const modules = fileURLToPath(new URL('node_modules', import.meta.url))
const documents = ['README.md', 'src/embedding.md'].map((name) =>
  readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8'),
)

/** The documents' example in JavaScript or TypeScript that contains this text. */
export function readExample(text: string): string {
  const examples = [...documents.join('').matchAll(/^```[jt]s\n(.*?)^```$/gms)].map(([, code = '']) => code)
  const [example, ...others] = examples.filter((code) => code.includes(text))
  assert.ok(example !== undefined && others.length === 0, `expected one example with ${text}`)
  return example
}

/** A folder with these files, from which all packages of this folder can be imported, and the packed `petstore`. */
export function makeProject(files: Readonly<Record<string, string>>): string {
  const folder = makeFolder()
  symlinkSync(modules, join(folder, 'node_modules'), 'junction')
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

export async function findFreePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  server.close()
  await once(server, 'close')
  return String(address.port)
}

export interface Run {
  /** Standard output and error so far. */
  readonly output: () => string
  /** Resolves with the first match in the output; rejects when the script ends without one. */
  readonly waitFor: (pattern: RegExp) => Promise<RegExpExecArray>
  /** Resolves with exit code and signal. */
  readonly ended: Promise<unknown[]>
  kill(signal: NodeJS.Signals): void
  /** As a terminal does at Ctrl-C. */
  killGroup(signal: NodeJS.Signals): void
}

/** Runs a script with Node in a project: its own, or a command of a package. */
export function run(t: TestContext, folder: string, script: string, ...args: readonly string[]): Run {
  return runCommand(t, folder, process.execPath, script, ...args)
}

export function runCommand(t: TestContext, folder: string, file: string, ...args: readonly string[]): Run {
  const env = { ...cleanEnvironment(), NO_COLOR: '1', NEXT_TELEMETRY_DISABLED: '1' }
  // A runner waits for a server that never closes, for ever. And what it starts (Next's server) is in its group, to end with it.
  const child = spawn(file, args, { cwd: folder, env, timeout: 600_000, detached: true })
  const ended = once(child, 'close')
  t.after(() => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch (error) {
      assert.equal(Object(error).code, 'ESRCH')
    }
    return ended
  })
  let output = ''
  const watchers = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      for (const watch of watchers) watch()
    })
  }
  const waitFor = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const watch = (): void => {
        const match = pattern.exec(output)
        if (match !== null) resolve(match)
      }
      watchers.add(watch)
      watch()
      void ended.then(() => reject(new Error(`ended without ${pattern}:\n${output}`)))
    })
  return {
    output: () => output,
    waitFor,
    ended,
    kill: (signal) => void child.kill(signal),
    killGroup: (signal) => void process.kill(-(child.pid ?? Number.NaN), signal),
  }
}

/** Runs it to its end, which has to be a success, and gives what it printed. */
export async function runToEnd(
  t: TestContext,
  folder: string,
  ...args: readonly [string, ...string[]]
): Promise<string> {
  const { ended, output } = run(t, folder, ...args)
  assert.deepEqual(await ended, [0, null], output())
  return output()
}

/** Adds two pets, follows the Link from the first page to the second, and reads what needs no key. */
export async function tryStore(store: string, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const places = []
  for (const name of ['Max', 'Kit']) {
    const body = JSON.stringify({ name, categoryId: 1 })
    const response = await fetch(`${store}/v1/pets`, { method: 'POST', headers, body })
    assert.equal(response.status, 201, await response.text())
    places.push(response.headers.get('location') ?? '')
  }
  for (const place of places) assert.equal((await fetch(new URL(place, store), { headers })).status, 200)
  const first = await fetch(`${store}/v1/pets?limit=1`, { headers })
  const [, next = ''] = /^<(.*)>; rel="next"$/.exec(first.headers.get('link') ?? '') ?? []
  assert.equal((await fetch(new URL(next, store), { headers })).status, 200)
  assert.equal((await fetch(`${store}/v1/pets`)).status, 401)
  assert.match(await (await fetch(`${store}/`)).text(), /^<!doctype html>/)
}

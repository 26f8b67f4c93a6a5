/** What the checks share: the document as a file, the tools as commands, and the service for them to talk to. */
import assert from 'node:assert/strict'
import { execFile, type ExecFileException, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openApiText } from '../../src/text/bundled-texts.ts'
import { cleanEnvironment } from '../support.ts'

export const folder = fileURLToPath(new URL('.', import.meta.url))

export function makeFolder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'petstore-openapi-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** The document as a file, gone after the test. */
export function writeDocument(t: TestContext): string {
  const path = join(makeFolder(t), 'openapi.json')
  writeFileSync(path, openApiText)
  return path
}

/** The path of a command that this package has installed. */
function toolPath(name: string): string {
  return join(folder, 'node_modules/.bin', name)
}

// No tool is to report that it is used, or to ask whether there is a newer one.
const toolEnv = { ...cleanEnvironment(), REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** Runs a command to its end, and gives what it printed. Fails the test when it fails. */
export function runTool(name: string, ...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const settle = (error: ExecFileException | null, stdout: string, stderr: string): void => {
      if (error === null) resolve(stdout)
      else reject(new assert.AssertionError({ message: `${name} failed:\n${stdout}\n${stderr}` }))
    }
    execFile(toolPath(name), args, { cwd: folder, env: toolEnv }, settle)
  })
}

/** Starts Prism between a client and the service, and gives the address for the client, which is the base address. */
export async function startPrism(
  t: TestContext,
  upstream: string,
  ...options: readonly string[]
): Promise<string> {
  const args = ['proxy', writeDocument(t), upstream, '--port', '0', ...options]
  const child = spawn(toolPath('prism'), args, {
    cwd: folder,
    env: toolEnv,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  t.after(() => {
    child.kill()
    return closed
  })
  let output = ''
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        const url = /listening on (http:\S+)/.exec(output)?.[1]
        if (url !== undefined) resolve(url)
      })
    }
    void closed.then(() => reject(new Error(`Prism ended:\n${output}`)))
  })
}

/**
 * A time limit for each test, wherever it is run: a test that hangs ends its file, and is named. Node itself sets one for all tests
 * from Node 24 on, by `run({ timeout })` and `--test-timeout`. Before, these limit a whole file and name no test; and none of them ends
 * a test that keeps its thread busy for ever. So the time is taken in a second thread.
 *
 * The limit is for a test that will never end: it is far above what a busy machine needs.
 */
import { afterEach, beforeEach } from 'node:test'
import { Worker } from 'node:worker_threads'

const minutes = process.env['PETSTORE_TEST_THOROUGH'] === '1' ? 30 : 2
const limitMs = Number(process.env['PETSTORE_TEST_LIMIT_MS'] ?? minutes * 60_000)

/** Each message gives those that run the whole time again. */
const watch = `
  const { writeSync } = require('node:fs')
  const { parentPort } = require('node:worker_threads')
  let limit
  parentPort.on('message', (names) => {
    clearTimeout(limit)
    limit = setTimeout(() => {
      writeSync(2, 'Not ended after ${limitMs / 1000} s: ' + names + '\\n')
      parentPort.postMessage('exit')
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), ${Math.min(3_000, limitMs)})
    }, ${limitMs})
  })`

/** Limits the tests of this file. Call it once, at the top level of a test file, unless that imports support.ts. */
export function limitEachTest(): void {
  const watcher = new Worker(watch, { eval: true, execArgv: [], env: {} })
  // An exit in order removes temporary folders and ends programs. A busy thread does not come to it.
  watcher.on('message', () => process.exit(1))
  watcher.unref()
  /** Those that have begun and not ended: several, in a suite that runs them together or around subtests. */
  const running = new Set<string>()
  const restart = (lastEnded = ''): void => {
    const names = running.size > 0 ? [...running].join(', ') : `what follows ${lastEnded}`
    watcher.postMessage(names, [])
  }
  beforeEach(({ name }) => {
    running.add(name)
    restart()
  })
  afterEach(({ name }) => {
    running.delete(name)
    // What a test cleans up after its end can hang too.
    restart(name)
  })
}

/**
 * A time limit for each test, wherever it is run: a test that hangs ends its file with 1, and is named. Node itself can set one for
 * all tests from Node 24 on; on the lines before, `--test-timeout` and `run({ timeout })` limit a whole file and name no test.
 * The limit is for a test that will never end, so it is far above what a busy machine needs.
 *
 * It cannot end a test that keeps the thread busy for ever. run.ts ends the file of such a test.
 */
import { afterEach, beforeEach } from 'node:test'

const minutes = process.env['PETSTORE_TEST_THOROUGH'] === '1' ? 30 : 5
const limitMs = Number(process.env['PETSTORE_TEST_LIMIT_MS'] ?? minutes * 60_000)

// A test may fake the timers later.
const { clearTimeout, setTimeout } = globalThis

/** The tests that have begun and not ended: several, in a suite that runs them together or around subtests. */
const running = new Set<string>()
let limit: NodeJS.Timeout | undefined

/** Gives those that run the whole time again. */
function restart(lastEnded = ''): void {
  clearTimeout(limit)
  const end = (): void => {
    const names = running.size > 0 ? [...running] : [`what follows ${lastEnded}`]
    process.stderr.write(`Not ended after ${limitMs / 1000} s: ${names.join(', ')}\n`)
    process.exit(1)
  }
  limit = setTimeout(end, limitMs).unref()
}

/** Limits the tests of this file. Call it once, at the top level of a test file, unless that imports support.ts. */
export function limitEachTest(): void {
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

/**
 * The interface as a black-box suite: every sentence of it that a response can keep or break, under its section.
 *
 * `node contract.test.js http://127.0.0.1:4000/v1 my-key` verifies any running implementation, and says at the end what to fix
 * first; `--help` has more. So does `node --test contract.test.js`, with the address (`/v1` is appended
 * when it does not end so) in `PETSTORE_URL` and the key in `PETSTORE_API_KEY`. Within this project, and with neither, it verifies
 * the service of this project. Where the interface is silent, any success and any 4xx is accepted.
 *
 * It needs no data to begin with and removes none. It adds pets: about 140 on the first run, so that a full page can be told from a
 * short one, and 80 on each later one. The interface has no way to delete them; at the end the
 * suite tries DELETE, which some servers offer.
 */
import { EventEmitter, once } from 'node:events'
import { after, describe, test } from 'node:test'
import { styleText } from 'node:util'
import { createSuite, type Suite } from './contract-cases.ts'
import type { Case } from './contract-verdict.ts'
import { PlainError } from './contract-client.ts'
import type { Paint } from './contract-summary.ts'
import { openTarget, readHelp, type Target } from './contract-target.ts'
import { limitEachTest } from './time-limit.ts'

// Set by Node's test runner (Node's documentation of the command line); without isolation, it is an argument.
const isTestRun =
  process.env['NODE_TEST_CONTEXT'] !== undefined || process.execArgv.some((arg) => arg.startsWith('--test'))

/** Whether cases are left out by their names. The last of all may be one, so nothing waits for it, and nothing is summed up. */
const isFiltered = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].some((arg) =>
  /--test-(?:name-pattern|skip-pattern|only)/.test(arg),
)

if (isTestRun) {
  limitEachTest()
  describe('The pet store interface, version 1.0.0', async () => {
    const target = await openTarget(process.argv, process.env).catch((error: unknown) => {
      test('can be verified', () => Promise.reject(error))
      return undefined
    })
    if (target !== undefined) defineTests(target)
  })
} else {
  // Whoever reads the output may stop reading (`| head -5`).
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const help = readHelp(process.argv)
  if (help === undefined) void runAlone()
  else console.log(help)
}

function defineTests(target: Target): void {
  const { words, client, scope, close } = target
  if (words !== undefined) console.log(words)
  const { cases, conclude, cleanUp } = createSuite(client, scope)
  const events = new EventEmitter()
  const ended = once(events, 'end')
  for (const part of groupBySection(cases))
    describe(part[0].section, () => {
      for (const each of part)
        test(each.title, async (t) => {
          try {
            const reason = await each.run()
            if (reason !== undefined) t.skip(reason)
          } finally {
            if (each === cases.at(-1)) events.emit('end')
          }
        })
    })
  // A runner prints failures at the very end, the last one last. It counts tests, of which the cases are all, and no suites.
  describe('Summary', async () => {
    if (isFiltered) return
    await ended
    const { exitCode, text } = conclude()
    if (exitCode === 0) return
    // Node 22 exits with 0 when nothing but a suite has failed.
    if (exitCode === 2 && process.versions.node.startsWith('22.'))
      test('All cases', () => Promise.reject(new PlainError(text)))
    else throw new PlainError(text)
  })
  after(async () => {
    await cleanUp()
    await close()
  })
}

/** Cases that follow each other in one section. A section may have several parts, of which each has its place in the order. */
function groupBySection(cases: readonly Case[]): readonly (readonly [Case, ...Case[]])[] {
  const parts: [Case, ...Case[]][] = []
  for (const each of cases) {
    const part = parts.at(-1)
    if (part?.[0].section === each.section) part.push(each)
    else parts.push([each])
  }
  return parts
}

async function runAlone(): Promise<void> {
  try {
    const { words, client, scope, close } = await openTarget(process.argv, process.env)
    if (words !== undefined) console.log(words)
    const suite = createSuite(client, scope)
    const conclude = (): number => {
      showProgress('')
      const { exitCode, text } = suite.conclude(choosePaint())
      console.log(text)
      return exitCode
    }
    process.once('SIGINT', () => {
      conclude()
      // As a shell has it for a program that Ctrl-C has ended.
      process.exit(130)
    })
    await runCases(suite, scope.isPatient)
    await suite.cleanUp()
    await close()
    process.exitCode = conclude()
  } catch (error) {
    console.error(error instanceof PlainError ? error.message : error)
    process.exitCode = 1
  }
}

async function runCases({ cases }: Suite, isAll: boolean): Promise<void> {
  let failedCount = 0
  for (const [index, { run }] of cases.entries()) {
    showProgress(`${index} of ${cases.length} cases, ${failedCount} failed`)
    try {
      await run()
    } catch (error) {
      failedCount += 1
      showProgress('')
      if (isAll) console.log(`✖ ${error instanceof PlainError ? error.message : String(error)}\n`)
    }
  }
}

/** In the last line of a terminal, which the next one replaces. */
function showProgress(line: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001B[K${line}`)
}

/** Colors on a terminal that has them. `hasColors` respects NO_COLOR (Node's documentation of tty). */
function choosePaint(): Paint {
  const hasColors = process.stdout.isTTY && process.stdout.hasColors()
  return hasColors ? styleText : (_color, text) => text
}

/**
 * The interface as a black-box suite: every sentence of it that a response can keep or break, under its section.
 *
 * `node contract.test.js http://127.0.0.1:4000/v1 my-key` verifies any running implementation, and says at the end what to fix
 * first; with `--all`, it prints each failure in full. So does `node --test contract.test.js`, with the address (`/v1` is appended
 * when it does not end so) in `PETSTORE_URL` and the key in `PETSTORE_API_KEY`. Within this project, and with neither, it verifies
 * the service of this project. Where the interface is silent, any success and any 4xx is accepted.
 *
 * It needs no data to begin with and removes none. It adds pets: about 140 on the first run, so that a full page can be told from a
 * short one, and 60 on each later one. The interface has no way to delete them; at the end the
 * suite tries DELETE, which some servers offer.
 */
import { after, describe, test } from 'node:test'
import { createSuite, type Suite } from './contract-cases.ts'
import { PlainError } from './contract-client.ts'
import { openTarget, type Target } from './contract-target.ts'
import { limitEachTest } from './time-limit.ts'

// Set by Node's test runner (Node's documentation of the command line); without isolation, it is an argument.
const isTestRun =
  process.env['NODE_TEST_CONTEXT'] !== undefined || process.execArgv.some((arg) => arg.startsWith('--test'))

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
  void runAlone()
}

function defineTests(target: Target): void {
  const { words, client, isAll, close } = target
  console.log(words)
  const { cases, conclude, cleanUp } = createSuite(client, isAll)
  for (const section of new Set(cases.map((each) => each.section)))
    describe(section, () => {
      for (const { title, run } of cases.filter((each) => each.section === section))
        test(title, async (t) => {
          const reason = await run()
          if (reason !== undefined) t.skip(reason)
        })
    })
  // A runner prints failures at the very end, the last one last.
  test('Summary', () => {
    const { isGood, text } = conclude()
    if (!isGood) throw new PlainError(text)
  })
  after(async () => {
    await cleanUp()
    await close()
  })
}

async function runAlone(): Promise<void> {
  try {
    const { words, client, isAll, close } = await openTarget(process.argv, process.env)
    console.log(words)
    const suite = createSuite(client, isAll)
    await runCases(suite, isAll)
    await suite.cleanUp()
    await close()
    const { isGood, text } = suite.conclude()
    console.log(text)
    if (!isGood) process.exitCode = 1
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
  showProgress('')
}

/** In the last line of a terminal, which the next one replaces. */
function showProgress(line: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001B[K${line}`)
}

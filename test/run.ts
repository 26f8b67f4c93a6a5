/**
 * `npm test`: builds once, runs the test files side by side, and prints every test on a terminal, as Node's own reporter does.
 * Elsewhere, such as in a pipe or in CI, it prints a line per process when that has run, then the failures in full, each test that was
 * skipped with its reason, and the totals.
 *
 * Arguments: test files, instead of all; `--thorough`, which runs whole what is exhaustive; `--watch` with files, which runs them again
 * whenever they or what they import has changed. Without this script,
 * `node --import tsx --test test/one.test.ts` runs a file, and `node --test 'test/*.test.ts'` all on Node 24 and newer.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'
import { build } from './built.ts'

// More than a small machine has cores, since many tests wait for a disk, a process or a clock.
const concurrency = 10

// The tests try this service, whatever the shell is set up for: PETSTORE_URL would name another one to the contract suite.
for (const name of Object.keys(process.env)) {
  if (/^PETSTORE_(?!TEST_)|^(?:PORT|HOST)$/.test(name)) delete process.env[name]
}
// Node would read the certificates at each start of a process, which takes longer than the rest of the start. Nothing here asks for any.
delete process.env['NODE_EXTRA_CA_CERTS']

const args = process.argv.slice(2)
if (args.includes('--watch')) {
  const watched = args.filter((arg) => !arg.startsWith('--'))
  if (watched.length === 0) throw new Error('--watch: expected test files')
  // From the sources themselves: what test/translated.mjs has translated would stay as it is.
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', '--test', '--watch', ...watched], {
    stdio: 'inherit',
  })
  process.exit(status ?? 1)
}
if (args.includes('--thorough')) process.env['PETSTORE_TEST_THOROUGH'] = '1'
const unknown = args.find((arg) => arg.startsWith('--') && arg !== '--thorough')
if (unknown !== undefined) throw new Error(`${unknown}: expected test files, --watch or --thorough`)
const given = args.filter((arg) => arg !== '--thorough').map((path) => resolve(path))
const all = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.ts'))
// The first takes longest. Each has a process of its own, since it takes long or changes its process: its environment, or what it does at
// a warning.
const [longest, ...alone] = [
  'program.test.ts',
  'load.test.ts',
  'contract-catches.test.ts',
  'window.test.ts',
  'contract-screen.test.ts',
  'doors.test.ts',
  'lost-file.test.ts',
  'unusable-edits.test.ts',
  'hand-edits.test.ts',
  'bundle.test.ts',
  'rewrites.test.ts',
  'disk-faults.test.ts',
  'embedding.test.ts',
  'linear.test.ts',
  'memory.test.ts',
  'storage.test.ts',
  'contract.test.ts',
]
const others = all.filter((name) => name !== longest && !alone.includes(name)).toSorted()

const folder = mkdtempSync(join(tmpdir(), 'petstore-built-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
process.env['PETSTORE_TEST_DIST'] ??= build(folder)

/** What the report calls a file of imports. */
const groupTitles = new Map<string, string>()
/** The others share some processes: to start one takes as long as most of them. */
const groups = Array.from({ length: 6 }, (_, group) => {
  const names = others.filter((__, index) => index % 6 === group)
  const path = join(folder, `group-${group}.mjs`)
  const urls = names.map((name) => new URL(name, import.meta.url).href)
  writeFileSync(path, urls.map((url) => `import '${url}'\n`).join(''))
  groupTitles.set(path, names.map((name) => `test/${name}`).join(', '))
  return path
})
// The groups wait most.
const ordered = [longest, ...groups, ...alone].map((name) => resolve(import.meta.dirname, name))
const files = given.length > 0 ? given : ordered

run({ files, concurrency })
  .on('test:fail', () => {
    process.exitCode = 1
  })
  .compose(process.stdout.isTTY ? new spec() : reportFiles)
  .pipe(process.stdout)

async function* reportFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string, void> {
  const failures: string[] = []
  const skipped: string[] = []
  const totals: string[] = []
  // The titles around a test: each test starts, for a reporter, just before what it contains.
  const titles: string[] = []
  for await (const { type, data } of events) {
    switch (type) {
      case 'test:start':
        titles.splice(data.nesting, Infinity, data.name)
        break
      case 'test:fail': {
        const { error } = data.details
        const isParent = 'failureType' in error && error.failureType === 'subtestsFailed'
        const place =
          data.file === undefined ? '' : `${groupTitles.get(data.file) ?? relative('', data.file)}: `
        const title = [...titles.slice(0, data.nesting), groupTitles.get(data.name) ?? data.name].join(' > ')
        if (!isParent)
          failures.push(`✖ ${place}${title}\n${inspect(error.cause ?? error, { maxStringLength: 1000 })}\n`)
        break
      }
      case 'test:pass':
        if (data.skip !== undefined) {
          const reason = typeof data.skip === 'string' && data.skip !== '' ? data.skip : 'no reason is given'
          skipped.push(`﹣ ${[...titles.slice(0, data.nesting), data.name].join(' > ')}: ${reason}\n`)
        }
        break
      case 'test:complete': {
        // The runner holds each file as a test, which has the file's path as its name.
        const isFile = data.nesting === 0 && data.file !== undefined && resolve(data.name) === data.file
        const { passed, duration_ms: ms } = data.details
        const title = groupTitles.get(data.name) ?? relative('', data.name)
        if (isFile) yield `${passed ? '✔' : '✖'} ${title} (${(ms / 1000).toFixed(1)} s)\n`
        break
      }
      case 'test:diagnostic':
        // Those without a file are the totals of the run.
        if (data.file === undefined) totals.push(`ℹ ${data.message}\n`)
        break
      case 'test:stdout':
      case 'test:stderr':
        yield data.message
        break
      default:
    }
  }
  if (failures.length > 0) yield `\nFailures:\n\n${failures.join('\n')}\n`
  yield* skipped
  yield* totals
}

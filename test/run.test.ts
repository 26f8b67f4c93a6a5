/** The runner of these files: what it prints of failures, and how it ends a test that hangs. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { cleanEnvironment, makeFolder, root } from './support.ts'

function runFiles(
  folder: string,
  files: readonly string[],
  env: NodeJS.ProcessEnv = {},
): { status: number | null; stdout: string } {
  const loader = ['--import', './test/translated.mjs']
  // What is translated already need not be once more.
  const { PETSTORE_TEST_TRANSLATED } = process.env
  return spawnSync(process.execPath, [...loader, 'test/run.ts', ...files], {
    cwd: root,
    // No build: these files have no use for one.
    env: { ...cleanEnvironment(), PETSTORE_TEST_TRANSLATED, PETSTORE_TEST_DIST: folder, ...env },
    encoding: 'utf8',
    timeout: 240_000,
    killSignal: 'SIGKILL',
  })
}

test('prints a line per file, failures in full, a reason for each skip and the totals where there is no terminal, and exits with 1', () => {
  const folder = makeFolder()
  const [good = '', bad = '', broken = ''] = ['good', 'bad', 'broken'].map((name) =>
    join(folder, `${name}.test.mjs`),
  )
  const head = "import { describe, test } from 'node:test'\n"
  writeFileSync(
    good,
    `${head}test('has no settings', () => { if (process.env.PETSTORE_URL) throw new Error() })
    test('is not tried', { skip: 'it needs a disk' }, () => {})`,
  )
  writeFileSync(
    bad,
    `${head}describe('group', () => test('fails', () => { throw new Error('the reason') }))
    test('parent', async (t) => {
      await t.test('child', () => {})
      throw new Error('its own')
    })`,
  )
  writeFileSync(broken, 'an error of syntax')
  const { status, stdout } = runFiles(folder, [good, bad, broken], { PETSTORE_URL: 'http://shop.invalid/v1' })
  assert.equal(status, 1, stdout)
  assert.match(stdout, /^✔ \S+good\.test\.mjs \(\d+\.\d s\)$/m)
  assert.match(stdout, /^✖ \S+bad\.test\.mjs \(\d+\.\d s\)$/m)
  assert.match(stdout, /^✖ \S+broken\.test\.mjs \(\d+\.\d s\)$/m)
  assert.match(stdout, /^SyntaxError: /m)
  assert.match(stdout, /^✖ \S+bad\.test\.mjs: group > fails\nError: the reason\n {4}at .*bad\.test\.mjs/m)
  assert.match(stdout, /^✖ \S+bad\.test\.mjs: parent\nError: its own$/m)
  assert.match(stdout, /^﹣ is not tried: it needs a disk$/m)
  assert.match(stdout, /\nℹ tests 6\nℹ suites 1\nℹ pass 2\nℹ fail 3\nℹ cancelled 0\nℹ skipped 1\n[^]*\n$/)
})

test('ends the file of a test that hangs, names the test, and goes on with the other files', () => {
  const busy = 'for (;;) {}'
  const bodies = {
    'waits for ever': 'await new Promise(() => setInterval(() => {}, 1e6))',
    'has a subtest':
      "await t.test('that waits for ever', () => new Promise(() => setInterval(() => {}, 1e6)))",
    'cleans up for ever': 't.after(() => new Promise(() => setInterval(() => {}, 1e6)))',
    'keeps its thread busy': busy,
    'is good': '',
  }
  const folder = makeFolder()
  const files = Object.entries(bodies).map(([title, body], index) => {
    const file = join(folder, `${index}.test.mjs`)
    // Whoever keeps a thread busy takes it from other tests.
    const limitMs = body === busy ? 100 : 1_000
    writeFileSync(
      file,
      `import { test } from 'node:test'
      process.env.PETSTORE_TEST_LIMIT_MS = '${limitMs}'
      const { limitEachTest } = await import('${pathToFileURL(join(root, 'test/time-limit.ts')).href}')
      limitEachTest()
      test('${title}', async (t) => { ${body} })`,
    )
    return file
  })
  const { status, stdout } = runFiles(folder, files)
  assert.equal(status, 1, stdout)
  assert.match(stdout, /^Not ended after 1 s: waits for ever$/m)
  assert.match(stdout, /^Not ended after 1 s: has a subtest, that waits for ever$/m)
  assert.match(stdout, /^Not ended after 0.1 s: keeps its thread busy$/m)
  assert.match(stdout, /^Not ended after 1 s: what follows cleans up for ever$/m)
  assert.deepEqual(
    [...stdout.matchAll(/^(.) \S+(\d)\.test\.mjs \(/gm)]
      .map(([, mark, index]) => `${mark} ${index}`)
      .toSorted(),
    ['✔ 4', '✖ 0', '✖ 1', '✖ 2', '✖ 3'],
  )
})

function isIncomplete(name: string): boolean {
  const text = readFileSync(join(root, 'test', name), 'utf8')
  return !text.startsWith('/**') || !/ '\.\/(?:support|file-system|time-limit)\.ts'$/m.test(text)
}

test('each test file has the time limit, and begins with what it proves', () => {
  const names = readdirSync(join(root, 'test')).filter((name) => name.endsWith('.test.ts'))
  assert.deepEqual(names.filter(isIncomplete), [])
})

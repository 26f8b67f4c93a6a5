import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { cleanEnvironment, makeFolder, root } from './support.ts'

test('prints a line per file, failures in full and the totals where there is no terminal, and exits with 1', () => {
  const folder = makeFolder()
  const [good = '', bad = '', broken = ''] = ['good', 'bad', 'broken'].map((name) =>
    join(folder, `${name}.test.mjs`),
  )
  const head = "import { describe, test } from 'node:test'\n"
  writeFileSync(
    good,
    `${head}test('has no settings', () => { if (process.env.PETSTORE_URL) throw new Error() })
    test('is not tried', { skip: true }, () => {})`,
  )
  writeFileSync(bad, `${head}describe('group', () => test('fails', () => { throw new Error('the reason') }))`)
  writeFileSync(broken, 'an error of syntax')
  const args = ['--import', 'tsx', join(root, 'test/run.ts'), good, bad, broken]
  const { status, stdout } = spawnSync(process.execPath, args, {
    cwd: root,
    // No build: these files have no use for one.
    env: { ...cleanEnvironment(), PETSTORE_URL: 'http://shop.invalid/v1', PETSTORE_TEST_DIST: folder },
    encoding: 'utf8',
  })
  assert.equal(status, 1, stdout)
  assert.match(stdout, /^✔ \S+good\.test\.mjs \(\d+\.\d s\)$/m)
  assert.match(stdout, /^✖ \S+bad\.test\.mjs \(\d+\.\d s\)$/m)
  assert.match(stdout, /^✖ \S+broken\.test\.mjs \(\d+\.\d s\)$/m)
  assert.match(stdout, /^SyntaxError: /m)
  assert.match(stdout, /^✖ \S+bad\.test\.mjs: group > fails\nError: the reason\n {4}at .*bad\.test\.mjs/m)
  assert.match(stdout, /\nℹ tests 4\nℹ suites 1\nℹ pass 1\nℹ fail 2\nℹ cancelled 0\nℹ skipped 1\n[^]*\n$/)
})

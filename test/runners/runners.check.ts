/** The packed package in test runners: the README's examples, and timers that a test fakes. */
import { copyFileSync } from 'node:fs'
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeProject, readExample, readme, runToEnd } from './tools.ts'

/** For a busy machine: both runners fail a test that takes 5 s. */
const patience = '--testTimeout=120000'
const fakeTimers = join(import.meta.dirname, 'fake-timers')

test("runs the README's test in node:test, and in Vitest with one other import", async (t) => {
  const example = readExample("from 'node:test'")
  const [, names = ''] = /import `(\{[^`]*\})` from `vitest`/.exec(readme) ?? []
  const forVitest = example.replace(/^import .* from 'node:test'$/m, `import ${names} from 'vitest'`)
  assert.notEqual(forVitest, example)
  const folder = makeProject({ 'pets.test.mjs': example, 'vitest.test.mjs': forVitest })
  assert.match(await runToEnd(t, folder, '--test', 'pets.test.mjs'), /pass 1\n/)
  assert.match(
    await runToEnd(t, folder, 'node_modules/.bin/vitest', 'run', patience, 'vitest.test.mjs'),
    /Tests {2}1 passed/,
  )
})

test("runs the README's hook in Jest", async (t) => {
  const [, hook = ''] = /`(beforeAll\([^`]*)`/.exec(readme) ?? []
  const text = `let store
    ${hook}
    afterAll(() => store.close())
    test('is healthy', async () => expect((await fetch(store.url + '/healthz')).status).toBe(200))`
  const folder = makeProject({ 'pets.test.cjs': text, 'package.json': '{}' })
  assert.match(await runToEnd(t, folder, 'node_modules/.bin/jest', patience), /Tests: +1 passed, 1 total/)
})

for (const [runner, ...args] of [['vitest', 'run'], ['jest']]) {
  test(`answers while timers are fake in ${runner}`, async (t) => {
    const folder = makeProject({ 'package.json': '{}' })
    for (const name of [`${runner}.test.${runner === 'jest' ? 'cjs' : 'mjs'}`, 'requests.cjs'])
      copyFileSync(join(fakeTimers, name), join(folder, name))
    const output = await runToEnd(t, folder, `node_modules/.bin/${runner}`, ...args, patience)
    assert.match(output, /Tests:? +\d passed/)
    assert.doesNotMatch(output, /failed|skipped/)
  })
}

/** The packed package: what public checks of packages say about it, and that its README shows nothing that is not in it. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeProject, runToEnd } from './tools.ts'

const archive = 'node_modules/petstore.tgz'

test('publint has nothing to say, suggestions too', async (t) => {
  const output = await runToEnd(t, makeProject({}), 'node_modules/.bin/publint', archive, '--strict')
  assert.match(output, /All good!/)
})

test('the types are right for every module resolution', async (t) => {
  const output = await runToEnd(t, makeProject({}), 'node_modules/.bin/attw', archive, '--format', 'ascii')
  assert.match(output, /No problems found/)
  assert.match(output, /node10/)
})

test('is required and imported, package.json too', async (t) => {
  const folder = makeProject({
    'a.cjs': "console.log(require('petstore/package.json').name, typeof require('petstore').startPetStore)",
    'a.mjs': "import * as all from 'petstore'; console.log(Object.keys(all).join())",
  })
  assert.equal(await runToEnd(t, folder, 'a.cjs'), 'petstore function\n')
  assert.equal(await runToEnd(t, folder, 'a.mjs'), 'createPetStore,startPetStore\n')
})

test('contains every picture that its README shows', () => {
  const installed = join(import.meta.dirname, 'node_modules/petstore')
  const text = readFileSync(join(installed, 'README.md'), 'utf8')
  const pictures = [...text.matchAll(/\bsrc(?:set)?="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)/g)]
  for (const [, src, target] of pictures)
    assert.ok(existsSync(join(installed, src ?? target ?? '')), src ?? target)
})

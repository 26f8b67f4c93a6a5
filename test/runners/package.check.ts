/** The packed package: what public checks of packages say about it. Its documents: test/documents.test.ts. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { makeProject, readExample, runToEnd } from './tools.ts'

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

const compiler = join(dirname(fileURLToPath(import.meta.resolve('typescript/package.json'))), 'bin/tsc')
const template = fileURLToPath(new URL('node_modules/create-vite/template-react-ts', import.meta.url))

for (const [what, settings, file, text] of [
  [
    'a store that ends by itself',
    'tsconfig.app.json',
    'src/pets.ts',
    `import { startPetStore } from 'petstore'
    export async function countPets(): Promise<number> {
      await using store = await startPetStore({ apiKeys: ['k'], pets: [{ name: 'Rex', categoryId: 1 }] })
      return store.countPets()
    }`,
  ],
  ['the plugin', 'tsconfig.node.json', 'vite.config.ts', readExample('configureServer')],
  ['the proxy', 'tsconfig.node.json', 'vite.config.ts', readExample('server: { proxy')],
] as const) {
  test(`compiles in Vite's template as it stands: ${what}`, async (t) => {
    const folder = makeProject({ 'package.json': '{"type":"module"}' })
    cpSync(join(template, settings), join(folder, 'tsconfig.json'))
    mkdirSync(join(folder, 'src'))
    writeFileSync(join(folder, file), text)
    const args = ['-p', '.', '--incremental', 'false', '--tsBuildInfoFile', 'null']
    assert.equal(await runToEnd(t, folder, compiler, ...args), '')
  })
}

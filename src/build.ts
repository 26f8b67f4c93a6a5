/**
 * The build: `dist/server.js`, one file that runs alone; `dist/index.*`, what embedding code imports; and
 * `dist/contract.test.js`, the interface as a test of any server. Takes another folder than `dist` as its argument.
 */
import { spawnSync } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { readPetsSchema, readVersion } from './built-in.ts'
import { buildPage } from './page/build-page.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = process.argv[2] ?? join(root, 'dist')

await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const page = await buildPage()
await Promise.all([
  bundle('src/server.ts', 'server.js', '#!/usr/bin/env node'),
  bundle('src/index.ts', 'index.js'),
  bundle('test/contract.test.ts', 'contract.test.js'),
  // A `.js` file alone is CommonJS to Node 20, and so it must be beside this project's package.json too.
  write('package.json', '{ "type": "commonjs" }\n'),
  write('index.mjs', "export { createPetStore, startPetStore } from './index.js'\n"),
  write('index.d.mts', "export * from './index.js'\n"),
])
await chmod(join(folder, 'server.js'), 0o755)
await declareTypes()

async function bundle(entry: string, name: string, banner = ''): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: [join(root, entry)],
    write: false,
    bundle: true,
    platform: 'node',
    target: 'node20.12',
    format: 'cjs',
    charset: 'utf8',
    banner: { js: banner },
    define: {
      PETSTORE_PAGE_HTML: JSON.stringify(page.html),
      PETSTORE_PAGE_POLICY: JSON.stringify(page.policy),
      PETSTORE_PETS_SCHEMA: JSON.stringify(readPetsSchema()),
      PETSTORE_VERSION: JSON.stringify(readVersion()),
    },
    logLevel: 'warning',
    // Only code that reads files of the repository asks where it is, and none of that runs from a built file.
    logOverride: { 'empty-import-meta': 'silent' },
  })
  await write(name, outputFiles[0]?.text ?? '')
}

async function write(name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), text)
}

/** The declarations of what embedding code sees. They stand alone, and those of all the rest would not. */
async function declareTypes(): Promise<void> {
  const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  const all = await mkdtemp(join(tmpdir(), 'petstore-types-'))
  try {
    const { status } = spawnSync(
      process.execPath,
      [compiler, '-p', join(root, 'src/tsconfig.types.json'), '--outDir', all],
      { stdio: 'inherit' },
    )
    if (status !== 0) process.exitCode = 1
    for (const name of ['index.d.ts', 'pet-store-server.d.ts', 'types.d.ts', 'pets/pet-status.d.ts']) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await copyFile(join(all, name), join(folder, name))
    }
  } finally {
    await rm(all, { recursive: true })
  }
}

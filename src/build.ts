/**
 * The build: `dist/server.js`, one file that runs alone; `dist/index.*`, what embedding code imports; and
 * `dist/contract.test.js`, the interface as a test of any server. Takes another folder than `dist` as its argument.
 */
import { spawnSync } from 'node:child_process'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { buildPage } from './build-page.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = process.argv[2] ?? join(root, 'dist')

await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const page = JSON.stringify(await buildPage())
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
declareTypes()

async function bundle(entry: string, name: string, banner = ''): Promise<void> {
  await build({
    entryPoints: [join(root, entry)],
    outfile: join(folder, name),
    bundle: true,
    platform: 'node',
    target: 'node20.12',
    format: 'cjs',
    charset: 'utf8',
    banner: { js: banner },
    define: { PETSTORE_PAGE: page },
    // Never reached in a bundle, which has its page.
    external: ['./build-page.ts'],
    logLevel: 'warning',
  })
}

async function write(name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), text)
}

function declareTypes(): void {
  const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  const { status } = spawnSync(
    process.execPath,
    [compiler, '-p', join(root, 'src/tsconfig.types.json'), '--outDir', folder],
    { stdio: 'inherit' },
  )
  if (status !== 0) process.exitCode = 1
}

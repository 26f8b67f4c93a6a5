/**
 * The build: `dist/server.js`, one file that runs alone; `dist/index.*`, what embedding code imports; and
 * `dist/contract.test.js`, the interface as a test of any server. Takes another folder than `dist` as its argument.
 */
import { spawnSync } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile } from 'esbuild'
import { readPetsSchema, readVersion } from './built-in.ts'
import { buildPage } from './page/build-page.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = process.argv[2] ?? join(root, 'dist')

/** Runs before anything that an older Node lacks. It is written in what every Node can read. */
const nodeCheck = `(function () {
  var version = process.versions.node.split(".");
  if (version[0] > 20 || (version[0] == 20 && version[1] >= 12)) return;
  console.error("Petstore needs Node 20.12 or newer; this is " + process.versions.node);
  process.exit(1);
})();`

await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const page = await buildPage()
await Promise.all([
  bundle('src/server.ts', 'server.js', { isProgram: true }),
  bundle('src/index.ts', 'index.js', { isProgram: false }),
  bundle('test/contract.test.ts', 'contract.test.js', { isProgram: true }),
  // A `.js` file alone is CommonJS to Node 20, and so it must be beside this project's package.json too.
  write('package.json', '{ "type": "commonjs" }\n'),
  write('index.mjs', "export { createPetStore, startPetStore } from './index.js'\n"),
  write('index.d.mts', "export * from './index.js'\n"),
])
await chmod(join(folder, 'server.js'), 0o755)
await declareTypes()

async function bundle(
  entry: string,
  name: string,
  { isProgram }: { readonly isProgram: boolean },
): Promise<void> {
  const { metafile, outputFiles } = await build({
    entryPoints: [join(root, entry)],
    absWorkingDir: root,
    write: false,
    metafile: true,
    bundle: true,
    platform: 'node',
    // It has to be read whole before its first line runs, which tells an older Node what is wrong.
    target: 'node16.11',
    format: 'cjs',
    charset: 'utf8',
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
  const head = [
    ...(isProgram ? ['#!/usr/bin/env node'] : []),
    await formatLicenses(metafile),
    // A directive counts only before all other statements.
    '"use strict";',
    ...(isProgram ? [nodeCheck] : []),
  ]
  await write(name, `${head.join('\n')}\n${outputFiles[0]?.text ?? ''}`)
}

/** The license of this package, and those of the packages of which the output has a part. */
async function formatLicenses({ outputs }: Metafile): Promise<string> {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs))
  const packages = inputs.flatMap(([path, { bytesInOutput }]) => {
    const [name] = bytesInOutput === 0 ? [] : (/^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [])
    return name === undefined ? [] : [name]
  })
  const notices = await Promise.all(['.', ...new Set(packages.toSorted())].map(readLicense))
  return `/*!\n${notices.join('\n\n')}\n*/`
}

async function readLicense(packageFolder: string): Promise<string> {
  const path = join(root, packageFolder)
  const file = (await readdir(path)).find((name) => /^LICEN[CS]E(?:\.\w+)?$/i.test(name))
  if (file === undefined) throw new Error(`${packageFolder}: has no license file`)
  // Its shape is known: npm installs no package without these members.
  const { name, version } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8')) as {
    name: string
    version: string
  }
  const text = await readFile(join(path, file), 'utf8')
  return `${name} ${version}\n\n${text.trim().replaceAll('*/', '* /')}`
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

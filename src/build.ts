/**
 * `npm run build`. Makes `dist/server.js`, the service in one file; `dist/index.*`, which embedding code imports, with
 * `dist/postgres.*` for a database; and `dist/contract.test.js`, which tests any server against the interface. An argument names another folder than `dist`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile } from 'esbuild'
import { readPetsSchema, readVersion } from './system/bundled-texts.ts'
import { buildPage } from './page/build-page.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = process.argv[2] ?? join(root, 'dist')

const [major, minor] = await readNodeVersion()
const commit = readCommit()

/**
 * Runs before anything that an old Node lacks. Written in ES5, so that every Node can run it. A program prints the message and
 * exits; for whoever imports the package, it is thrown.
 */
const formatNodeCheck = (isProgram: boolean): string => `(function () {
  var version = process.versions.node.split(".");
  if (version[0] > ${major} || (version[0] == ${major} && version[1] >= ${minor})) return;
  var message = "Petstore needs Node ${major}.${minor} or newer; this is " + process.versions.node;
  ${isProgram ? 'console.error(message);\n  process.exit(1);' : 'throw new Error(message);'}
})();`

await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const page = await buildPage()
await Promise.all([
  bundle('src/server.ts', 'server.js'),
  bundle('src/index.ts', 'index.js'),
  bundle('src/postgres.ts', 'postgres.js'),
  bundle('test/contract.test.ts', 'contract.test.js'),
  // Under this project's package.json (`"type": "module"`) a `.js` file is ESM; dist/package.json makes ours CommonJS. A copied
  // server.js without any package.json is CommonJS by default.
  write('package.json', '{ "type": "commonjs" }\n'),
  write('index.mjs', "export { createPetStore, startPetStore } from './index.js'\n"),
  write('index.d.mts', "export * from './index.js'\n"),
  write('index.d.ts', "export * from './types/index.js'\n"),
  write('postgres.mjs', "export { createPostgresStorage, prepareTables } from './postgres.js'\n"),
  write('postgres.d.mts', "export * from './postgres.js'\n"),
  write('postgres.d.ts', "export * from './types/postgres.js'\n"),
])
await chmod(join(folder, 'server.js'), 0o755)
declareTypes()

async function bundle(entry: string, name: string): Promise<void> {
  const isProgram = !['index.js', 'postgres.js'].includes(name)
  const { metafile, outputFiles } = await build({
    entryPoints: [join(root, entry)],
    absWorkingDir: root,
    write: false,
    metafile: true,
    bundle: true,
    platform: 'node',
    // Old syntax, so that an old Node can parse the whole file and then run the version check at its top.
    target: 'node16.11',
    format: 'cjs',
    charset: 'utf8',
    define: {
      PETSTORE_PAGE_HTML: JSON.stringify(page.html),
      PETSTORE_PAGE_POLICY: JSON.stringify(page.policy),
      PETSTORE_PETS_SCHEMA: JSON.stringify(readPetsSchema()),
      PETSTORE_VERSION: JSON.stringify(commit === '' ? readVersion() : `${readVersion()} (${commit})`),
      'process.env.NODE_PG_FORCE_NATIVE': 'undefined',
    },
    // Of pg's, and never loaded: a native library, a file with passwords (open-database.ts gives one), and Cloudflare's sockets.
    external: ['pg-native', 'pgpass', 'pg-cloudflare'],
    logLevel: 'warning',
    // Only code that runs from source uses import.meta.url.
    logOverride: { 'empty-import-meta': 'silent' },
  })
  const head = [
    ...(isProgram ? ['#!/usr/bin/env node'] : []),
    await formatLicenses(metafile),
    // A directive has to come before all other statements.
    '"use strict";',
    formatNodeCheck(isProgram),
  ]
  await write(name, `${head.join('\n')}\n${outputFiles[0]?.text ?? ''}`)
}

/** The Node version that package.json requires: `>=20.12` is [20, 12]. */
async function readNodeVersion(): Promise<readonly [major: number, minor: number]> {
  const manifest = await readFile(join(root, 'package.json'), 'utf8')
  const [, majorText, minorText] = /"node": ">=(\d+)\.(\d+)"/.exec(manifest) ?? []
  if (minorText === undefined) throw new Error('package.json: expected engines.node to be such as ">=20.12"')
  return [Number(majorText), Number(minorText)]
}

/** The commit that is built, and its date, as `6475f35, 2026-11-23`; empty outside of a clone of the repository. */
function readCommit(): string {
  // Without this look, git would take a repository around this folder.
  if (!existsSync(join(root, '.git'))) return ''
  const git = (...args: readonly string[]): string =>
    spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout?.trim() ?? ''
  const name = git('describe', '--always', '--abbrev=7', '--exclude=*', '--dirty')
  return name === '' ? '' : `${name}, ${git('log', '-1', '--format=%cs')}`
}

/** The licenses of this package and of each package whose code is in the output. */
async function formatLicenses({ outputs }: Metafile): Promise<string> {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs))
  const used = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  const packages = used.flatMap(([path]) => path.match(/^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/) ?? [])
  const notices = await Promise.all(['.', ...new Set(packages.toSorted())].map(readLicense))
  return `/*!\n${notices.join('\n\n')}\n*/`
}

async function readLicense(packageFolder: string): Promise<string> {
  const path = join(root, packageFolder)
  const names = await readdir(path)
  const file = names.find((name) => /^LICEN[CS]E(?:\.\w+)?$/i.test(name)) ?? 'README.md'
  // npm installs no package without these members.
  const { name, version } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8')) as {
    name: string
    version: string
  }
  // Some packages have it at the end of their README.
  const text = (await readFile(join(path, file), 'utf8')).replace(/^[^]*\n## license\n/i, '')
  if (!/permission|redistribution/i.test(text)) throw new Error(`${packageFolder}: has no license`)
  return `${name} ${version}\n\n${text.trim().replaceAll('*/', '* /')}`
}

async function write(name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), text)
}

/** Declares everything: TypeScript reads what the index leads to, and that imports no package that users do not have. */
function declareTypes(): void {
  const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  const args = [compiler, '-p', join(root, 'src/tsconfig.types.json'), '--outDir', join(folder, 'types')]
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}

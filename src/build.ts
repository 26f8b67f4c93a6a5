/**
 * `npm run build`. Makes `dist/server.js`, the service in one file; `dist/index.*`, which embedding code
 * imports, with `dist/postgres.*` for a database; and `dist/contract.test.js`, which tests any server against
 * the interface. An argument names another folder than `dist`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runInThisContext } from 'node:vm'
import { build, type Metafile } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = process.argv[2] ?? join(root, 'dist')

const [, major, minor] = /"node": ">=(\d+)\.(\d+)"/.exec(read('package.json')) ?? []
if (minor === undefined) throw new Error('package.json: expected engines.node to be such as ">=20.19"')

/**
 * This is in ES5, so that every Node can run it, before anything that an old one lacks. For whoever imports
 * the package, the message is thrown.
 */
const formatNodeCheck = (isProgram: boolean): string => `(function () {
  var version = process.versions.node.split(".");
  if (version[0] > ${major} || (version[0] == ${major} && version[1] >= ${minor})) return;
  var message = "Petstore needs Node ${major}.${minor} or newer; this is " + process.versions.node;
  ${isProgram ? 'console.error(message);\n  process.exit(1);' : 'throw new Error(message);'}
})();`

// An older Node cannot load these modules either.
runInThisContext(formatNodeCheck(true))
const { builtPage } = await import('./page/build-page.ts')
const { openApiText, packageVersion, petsSchemaText } = await import('./text/bundled-texts.ts')

/** Embedding code imports these, or requires them. */
const libraries = ['index', 'postgres']

/**
 * The bundles have these values instead of the modules, which read files, build the page, or start what only
 * this project has.
 */
const bundledValues = {
  'contract-own-server.ts': { startOwnServer: null },
  'build-page.ts': { builtPage },
  'bundled-texts.ts': { openApiText, petsSchemaText, packageVersion: describeVersion() },
}

/**
 * Without a listener, Node opens its debugger on port 9229 at SIGUSR1
 * (https://nodejs.org/docs/latest-v20.x/api/process.html#signal-events), to whoever is on the machine.
 */
const closeDebugger = 'process.on("SIGUSR1", function () {});'

/**
 * Beside a package.json with `"type": "module"`, Node runs a copied program as an ES module, which has no
 * `require`.
 */
const requireAnywhere = `var require = typeof require === "function" ? require :
  process.getBuiltinModule("module").createRequire(process.argv[1]);`

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
// Under this project's package.json (`"type": "module"`), a `.js` file would be an ES module.
write('package.json', '{ "type": "commonjs" }\n')
write('openapi.json', openApiText)
const compiler = join(dirname(fileURLToPath(import.meta.resolve('typescript/package.json'))), 'bin/tsc')
const types = ['-p', join(root, 'src/tsconfig.types.json'), '--outDir', join(folder, 'types')]
const compiling = once(spawn(process.execPath, [compiler, ...types], { stdio: ['ignore', 2, 2] }), 'exit')
for (const name of libraries) {
  write(`${name}.d.mts`, `export * from './${name}.js'\n`)
  write(`${name}.d.ts`, `export * from './types/${name}.js'\n`)
}
await Promise.all([
  ...libraries.flatMap((name) =>
    ['js', 'mjs'].map((end) => bundle(`src/${name}.ts`, `${name}.${end}`, false)),
  ),
  bundle('src/server.ts', 'server.js', true),
  bundle('test/contract.test.ts', 'contract.test.js', true),
])
chmodSync(join(folder, 'server.js'), 0o755)
const [status] = await compiling
if (status !== 0) throw new Error('the types could not be compiled')

async function bundle(entry: string, name: string, isProgram: boolean): Promise<void> {
  const { metafile, outputFiles } = await build({
    entryPoints: [join(root, entry)],
    absWorkingDir: root,
    write: false,
    metafile: true,
    bundle: true,
    platform: 'node',
    // An old Node has to parse the whole file before it runs the version check at its top.
    target: 'node16.11',
    format: name.endsWith('.mjs') ? 'esm' : 'cjs',
    charset: 'utf8',
    define: { 'process.env.NODE_PG_FORCE_NATIVE': 'undefined' },
    // These are never loaded: pg's native library, its file with passwords (postgres/database.ts gives one),
    // and Cloudflare's sockets.
    external: ['pg-native', 'pgpass', 'pg-cloudflare'],
    logLevel: 'warning',
    plugins: [
      {
        name: 'bundled-values',
        setup({ onLoad }) {
          for (const [file, values] of Object.entries(bundledValues)) {
            const contents = JSON.stringify(values)
            onLoad({ filter: new RegExp(`\\b${file}$`) }, () => ({ contents, loader: 'json' }))
          }
        },
      },
    ],
  })
  const head = [
    ...(isProgram ? ['#!/usr/bin/env node'] : []),
    formatLicenses(metafile),
    // A directive has to come before all other statements.
    '"use strict";',
    formatNodeCheck(isProgram),
    ...(isProgram ? [closeDebugger, requireAnywhere] : []),
  ]
  write(name, `${head.join('\n')}\n${outputFiles[0]?.text ?? ''}`)
}

/**
 * Returns the version; in a clone of the repository, with the commit and its date:
 * `2.0.0 (6475f35, 2026-11-23)`.
 */
function describeVersion(): string {
  // Without this look, git would take a repository around this folder.
  if (!existsSync(join(root, '.git'))) return packageVersion
  const git = (...args: readonly string[]): string =>
    spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout?.trim() ?? ''
  const commit = git('describe', '--always', '--abbrev=7', '--exclude=*', '--dirty')
  return commit === '' ? packageVersion : `${packageVersion} (${commit}, ${git('log', '-1', '--format=%cs')})`
}

/** Returns the licenses of this package and of each package whose code is in the output. */
function formatLicenses({ outputs }: Metafile): string {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs))
  const used = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  const packages = used.flatMap(([path]) => path.match(/^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/) ?? [])
  const notices = ['.', ...new Set(packages.toSorted())].map(readLicense)
  return `/*!\n${notices.join('\n\n')}\n*/`
}

function readLicense(packageFolder: string): string {
  const file = readdirSync(join(root, packageFolder)).find((name) => /^LICEN[CS]E(?:\.\w+)?$/i.test(name))
  // npm installs no package without these members.
  const manifest: { name: string; version: string } = JSON.parse(read(packageFolder, 'package.json'))
  // Some packages have the license at the end of their README.
  const text = read(packageFolder, file ?? 'README.md').replace(/^[^]*\n## license\n/i, '')
  if (!/permission|redistribution/i.test(text)) throw new Error(`${packageFolder}: has no license`)
  return `${manifest.name} ${manifest.version}\n\n${text.trim().replaceAll('*/', '* /')}`
}

function read(...path: readonly string[]): string {
  return readFileSync(join(root, ...path), 'utf8')
}

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text)
}

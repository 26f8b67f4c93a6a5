/**
 * Lets the processes of `npm test` run TypeScript, and starts them in half of the time that tsx takes: the first process translates
 * all files at once, and the others, which inherit the path of the folder, read the results there.
 */
import asyncHooks from 'node:async_hooks'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

const root = fileURLToPath(new URL('..', import.meta.url))

// Node's test runner asks to be told of the end of each promise, to forget which test began it. Node learns that from its garbage
// collector, which takes a tenth of all the time on Node 20. So nothing is forgotten in a quick run.
if (process.env.PETSTORE_TEST_THOROUGH === undefined) {
  const { createHook } = asyncHooks
  asyncHooks.createHook = ({ init }) => createHook({ init })
}

// Before Node 22.15, Node loads this file twice: by `--import`, and in the thread that calls load().
if (isMainThread) {
  const isFirst = process.env.PETSTORE_TEST_TRANSLATED === undefined
  process.env.PETSTORE_TEST_TRANSLATED ??= await translate()
  process.setSourceMapsEnabled(true)
  if (nodeModule.registerHooks) nodeModule.registerHooks({ resolve, load })
  else nodeModule.register(import.meta.url)
  if (isFirst) await keepPage(process.env.PETSTORE_TEST_TRANSLATED)
}

async function translate() {
  const { buildSync } = await import('esbuild')
  const folder = mkdtempSync(join(tmpdir(), 'petstore-translated-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
  // Beside the sources, so that the source maps name them.
  const { outputFiles } = buildSync({
    absWorkingDir: root,
    entryPoints: ['src/**/*.ts', 'test/*.ts', 'test/openapi/*.ts', 'test/postgres/*.ts'],
    outbase: root,
    outdir: root,
    write: false,
    target: 'node20',
    sourcemap: 'inline',
    sourcesContent: false,
  })
  for (const { path, text } of outputFiles) {
    const file = join(folder, relative(root, path))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  return folder
}

/** The page too is built once: a process that builds it takes half as long again to start. */
async function keepPage(folder) {
  const { builtPage } = await import('../src/page/build-page.ts')
  const source = `export const builtPage = ${JSON.stringify(builtPage)}\n`
  writeFileSync(join(folder, 'src/page/build-page.js'), source)
}

/** Saves the search for a file that is there (another hook). */
export function resolve(specifier, context, next) {
  if (!/^\.\.?\/.*\.ts$/.test(specifier)) return next(specifier, context)
  return { url: new URL(specifier, context.parentURL).href, format: 'module', shortCircuit: true }
}

/** A module's source text (a hook of Node's, see `module.registerHooks`). */
export function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  const path = relative(root, fileURLToPath(url)).replace(/ts$/, 'js')
  const source = readFileSync(join(process.env.PETSTORE_TEST_TRANSLATED, path))
  return { format: 'module', source, shortCircuit: true }
}

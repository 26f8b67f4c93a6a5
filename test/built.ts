/** The build that tests look at and run. `npm test` makes one for all test files; a file that runs by itself makes its own. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

/** The folder of the build, as `dist`. Call it once in a test file, at its top level. */
export function buildOnce(): string {
  const shared = process.env['PETSTORE_TEST_DIST']
  if (shared !== undefined) return shared
  const folder = mkdtempSync(join(tmpdir(), 'petstore-built-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return build(folder)
}

/** Builds into this folder, and gives the path of what would be `dist`. */
export function build(folder: string): string {
  const dist = join(folder, 'dist')
  // As if an older build had left it.
  mkdirSync(dist)
  writeFileSync(join(dist, 'left.js'), '')
  const script = fileURLToPath(new URL('../src/build.ts', import.meta.url))
  const { status, stderr } = spawnSync(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--import',
      import.meta.resolve('./translated.mjs'),
      script,
      dist,
    ],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`the build failed:\n${stderr}`)
  return dist
}

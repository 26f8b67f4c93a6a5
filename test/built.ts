/** The build, made once for a test file, in a folder of its own. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { root } from './support.ts'

/** Builds into a new folder, which is gone after the file's tests, and gives its path. */
export function buildOnce(): string {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-built-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--import', import.meta.resolve('tsx'), join(root, 'src/build.ts'), join(folder, 'dist')],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`the build failed:\n${stderr}`)
  return join(folder, 'dist')
}

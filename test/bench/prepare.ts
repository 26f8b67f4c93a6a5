/** Prepares a run: installs the packages of the contenders, and builds our server. */
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'

/** Installs the packages when they are missing or older than the lock file. */
export function installPackages(folder: string): void {
  const installedMs = modifiedMs(join(folder, 'node_modules/.package-lock.json'))
  if (installedMs >= modifiedMs(join(folder, 'package-lock.json'))) return
  runNpm(['ci', '--prefix', folder, '--no-audit', '--no-fund'], folder)
}

export function build(rootFolder: string): void {
  runNpm(['run', '--silent', 'build'], rootFolder)
}

function modifiedMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function runNpm(args: string[], cwd: string): void {
  console.error(`- npm ${args.slice(0, 3).join(' ')}`)
  // npm is a command script on Windows, which only a shell starts. Its output goes to stderr, as it is no part of the report.
  const { status } = spawnSync('npm', args, {
    cwd,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) {
    console.error(`npm ${args.join(' ')} failed`)
    process.exit(1)
  }
}

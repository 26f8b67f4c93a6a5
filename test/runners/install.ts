/** Packs the package as `npm publish` would, and installs it here, without its dependencies: the built files contain them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cleanEnvironment } from '../support.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const modules = fileURLToPath(new URL('node_modules', import.meta.url))
const options = { cwd: root, encoding: 'utf8', env: cleanEnvironment() } as const

const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', modules], options)
const [archive = ''] = packed.trim().split('\n').slice(-1)
// The checks of packages read it under this name, whatever its version is.
renameSync(join(modules, archive), join(modules, 'petstore.tgz'))
const installed = join(modules, 'petstore')
rmSync(installed, { recursive: true, force: true })
mkdirSync(installed)
execFileSync('tar', ['-xzf', join(modules, 'petstore.tgz'), '-C', installed, '--strip-components', '1'])

// As npm does, for `npx petstore`.
chmodSync(join(installed, 'dist/server.js'), 0o755)
rmSync(join(modules, '.bin/petstore'), { force: true })
symlinkSync('../petstore/dist/server.js', join(modules, '.bin/petstore'))

/** `--verify`: runs the contract suite, which the build puts beside the program, against any server. Does not know what it checks. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError } from '../options/settings.ts'

const noSuite =
  '--verify: the contract suite, contract.test.js, is not beside this program; the package petstore has both, and so has dist after a build'
const noKey = '--verify: needs a key of that server too, by --keys or PETSTORE_API_KEY'

/** Uses the first of the comma-separated keys. The suite prints what it finds; returns the exit code. */
export async function verifyServer(address: string, keys = ''): Promise<number> {
  // npx starts the program by a symbolic link in another folder.
  const suite = join(dirname(realpathSync(process.argv[1] ?? '')), 'contract.test.js')
  if (!existsSync(suite)) throw new ConfigError(noSuite)
  const [key] = keys.split(',', 1)
  if (!key) throw new ConfigError(noKey)
  const env = { ...process.env, PETSTORE_URL: address, PETSTORE_API_KEY: key }
  const run = spawn(process.execPath, ['--test-reporter=spec', suite], { env, stdio: 'inherit' })
  const [code]: unknown[] = await once(run, 'exit')
  return typeof code === 'number' ? code : 1
}

/** `--verify`: runs the contract suite, which the build puts beside the program, against any server. Does not know what it checks. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'

const noSuite =
  '--verify: the contract suite, contract.test.js, is not beside this program; the package petstore has both, and so has dist after a build'
const noKey = '--verify: needs a key of that server too, by --keys or PETSTORE_API_KEY'

/** The key may be empty. The suite prints what it finds; returns the exit code. */
export async function verifyServer(
  address: string,
  key: string,
  say: (message: string) => void,
): Promise<number> {
  // npx starts the program by a symbolic link in another folder.
  const suite = join(dirname(realpathSync(process.argv[1] ?? '')), 'contract.test.js')
  const isThere = existsSync(suite)
  if (!isThere || key === '') {
    say(isThere ? noKey : noSuite)
    return 1
  }
  const env = { ...process.env, PETSTORE_URL: address, PETSTORE_API_KEY: key }
  const run = spawn(process.execPath, ['--test-reporter=spec', suite], { env, stdio: 'inherit' })
  const [code]: unknown[] = await once(run, 'exit')
  return typeof code === 'number' ? code : 1
}

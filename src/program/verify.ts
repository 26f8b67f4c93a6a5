/** `--verify`: hands over to the contract suite, which the build puts beside the program and which reads the arguments by itself. */
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError } from '../options/settings.ts'

const noSuite =
  '--verify: the contract suite, contract.test.js, is not beside this program; the package petstore has both, and so has dist after a build'

/** Whether these arguments are the suite's. */
export function isVerification(args: readonly string[]): boolean {
  return args.some((arg) => /^--verify(?:=|$)/.test(arg))
}

/** The suite prints what it finds, and sets the exit code. */
export async function verifyServer(): Promise<void> {
  // npx starts the program by a symbolic link in another folder.
  const suite = join(dirname(realpathSync(process.argv[1] ?? '')), 'contract.test.js')
  if (!existsSync(suite)) throw new ConfigError(noSuite)
  await import(pathToFileURL(suite).href)
}

/**
 * Programs that run in a temporary folder and end with this process, also those that another one started in a session of its own.
 * Each works in the folder that it was started in, or below: so the folder tells which processes are to be ended.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/** Nothing of the shell's: neither PETSTORE_ nor PG variables. */
export const cleanEnvironment = { PATH: `${process.env['PATH']}:/usr/sbin`, LC_ALL: 'C.UTF-8' }

const cleanUps: (() => void)[] = []
process.once('exit', () => {
  for (const cleanUp of cleanUps.toReversed()) cleanUp()
})
// Without a listener, a signal would end this process without an 'exit'.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => process.exit(128 + constants.signals[signal]))

/** Is called when this process ends, also by an error or a signal; the last first. */
export function atExit(cleanUp: () => void): void {
  cleanUps.push(cleanUp)
}

/** Makes a folder. When this process ends, first what runs in it is killed, and then it is removed. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-postgres-'))
  atExit(() => {
    killAll(folder)
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

/** Kills all that works in the folder. When it returns, nothing does. */
export function killAll(folder: string): void {
  // One that starts another before its own turn comes is not seen in the first round.
  while (signalAll(folder, 'SIGKILL') > 0);
}

/** Sends a signal to all that works in the folder, and returns how many there were. */
export function signalAll(folder: string, signal: NodeJS.Signals): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && worksIn(folder, name))
  for (const pid of pids) {
    try {
      process.kill(Number(pid), signal)
    } catch {
      // It has ended by itself meanwhile.
    }
  }
  return pids.length
}

function worksIn(folder: string, pid: string): boolean {
  try {
    return `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${folder}/`)
  } catch {
    // It has ended, or is somebody else's.
    return false
  }
}

/** Asks a program again and again, until it answers with something. */
export async function waitUntil<Answer>(
  what: string,
  question: () => Promise<Answer | undefined>,
): Promise<Answer> {
  // Many times what a busy machine needs.
  const deadline = performance.now() + 300_000
  for (;;) {
    let cause: unknown
    const answer = await question().catch((error: unknown) => void (cause = error))
    if (answer !== undefined) return answer
    if (performance.now() > deadline) throw new Error(`waited five minutes in vain until ${what}`, { cause })
    await pause(100)
  }
}

export async function findFreePort(host: string): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('there is no free port')
  return address.port
}

/** Installs the Debian packages of which a file is missing. */
export function install(packages: Readonly<Record<string, string>>): void {
  const missing = Object.keys(packages).filter((name) => !isThere(packages[name] ?? ''))
  if (missing.length === 0) return
  const env = { ...cleanEnvironment, DEBIAN_FRONTEND: 'noninteractive' }
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...missing]])
    execFileSync('apt-get', ['-qq', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
}

function isThere(path: string): boolean {
  try {
    accessSync(path)
    return true
  } catch {
    return false
  }
}

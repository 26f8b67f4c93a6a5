/** Starts and stops the processes that are measured. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { key } from './data.ts'

export interface Server {
  port: number
  pid: number
  process: ChildProcess
  stop(): Promise<void>
}

/** What a contender needs to know; `contenders/listen.mjs` reads it. */
export interface Setup {
  key: string
  /** In the format of our data file. A contender that stores owns it, and what it puts beside it. */
  petsFile: string
  /** The headers that do not depend on the body, of our response to a list or a creation, and to a single pet. */
  headers: Record<string, string>
  petHeaders: Record<string, string>
  /** Our responses to what the bare server will be asked, for it to repeat. Empty when it is to create pets. */
  responses: { target: string; headers: Record<string, string>; body: string }[]
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts `node <args>` and waits for the first line of its output that matches. */
export async function startNode(
  args: string[],
  line: RegExp,
  options: { env?: Record<string, string>; ipc?: boolean } = {},
) {
  const child = spawn(process.execPath, args, {
    // Nothing of the caller's environment changes what is measured.
    env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...options.env },
    stdio: ['pipe', 'pipe', 'inherit', ...(options.ipc === true ? ['ipc' as const] : [])],
  })
  running.add(child)
  const { stdout, pid } = child
  if (stdout === null || pid === undefined) throw new Error(`cannot start node ${args.join(' ')}`)
  const ended = once(child, 'exit')
  void ended.then(() => running.delete(child))
  let output = ''
  const match = await new Promise<RegExpExecArray>((resolve, reject) => {
    stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const found = line.exec(output)
      if (found === null) return
      // From here on the output is dropped.
      stdout.removeAllListeners('data').resume()
      resolve(found)
    })
    void ended.then(([code]) => reject(new Error(`node ${args.join(' ')} ended with ${code}\n${output}`)))
  })
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return { child, pid, match, stop }
}

async function startServer(
  args: string[],
  options: { env?: Record<string, string>; ipc?: boolean } = {},
): Promise<Server> {
  const { child, pid, match, stop } = await startNode(args, /http:\/\/127\.0\.0\.1:(\d+)/, options)
  return { port: Number(match[1]), pid, process: child, stop }
}

/** Our server as it is shipped, on a free port. */
export async function startOurs(
  serverFile: string,
  dataFile: string,
  options: { nodeArgs?: string[]; ipc?: boolean } = {},
): Promise<Server> {
  const env = { PORT: '0', PETSTORE_API_KEYS: key, PETSTORE_DATA_FILE: dataFile }
  return await startServer([...(options.nodeArgs ?? []), serverFile], { env, ipc: options.ipc ?? false })
}

/**
 * Two stores of ours in one process, which runs the same compiled code for both: two processes compile it a little differently,
 * and that is more than what is to be measured.
 */
export async function startOursTwice(serverFile: string, dataFiles: [string, string]) {
  const index = join(dirname(serverFile), 'index.mjs')
  const ports = /http:\/\/127\.0\.0\.1:(\d+) http:\/\/127\.0\.0\.1:(\d+)/
  const { child, pid, match, stop } = await startNode(
    [contenderPath('two-stores.mjs'), index, key, ...dataFiles],
    ports,
  )
  const server = (port: string | undefined): Server => ({ port: Number(port), pid, process: child, stop })
  return { first: server(match[1]), second: server(match[2]), stop }
}

export function contenderPath(file: string): string {
  return fileURLToPath(new URL(`contenders/${file}`, import.meta.url))
}

/** A contender with its setup, which is written beside its pets. */
export async function startContender(file: string, setup: Setup): Promise<Server> {
  const setupFile = `${setup.petsFile}.setup.json`
  writeFileSync(setupFile, JSON.stringify(setup))
  return await startServer([contenderPath(file), setupFile])
}

/** The shortest node:http script, for the time to a first response. */
export async function startHello(): Promise<Server> {
  return await startServer([contenderPath('hello.cjs')])
}

/** Starts and ends the processes that are measured. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { key } from './data.ts'

export interface Server {
  port: number
  pid: number
  process: ChildProcess
  stop(): Promise<void>
}

/** What a contender is told; `contenders/listen.mjs` reads it. */
export interface Task {
  key: string
  /** In the format of our data file. A contender that stores has it, and what it puts beside it, to itself. */
  petsFile: string
  petCount: number
  /** Headers that our server sends with every answer of the kind. */
  headers: Record<string, string>
  /** Our server's answers, for the bare server to repeat. Empty when it is to create pets. */
  answers: { target: string; headers: Record<string, string>; body: string }[]
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
      // From here on the output is thrown away.
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

async function startServer(args: string[], options: { env?: Record<string, string>; ipc?: boolean } = {}) {
  const { child, pid, match, stop } = await startNode(args, /http:\/\/127\.0\.0\.1:(\d+)/, options)
  const server: Server = { port: Number(match[1]), pid, process: child, stop }
  return server
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

export function contenderPath(file: string): string {
  return fileURLToPath(new URL(`contenders/${file}`, import.meta.url))
}

/** A contender with its task, which is written beside its pets. */
export async function startContender(file: string, task: Task): Promise<Server> {
  const taskFile = `${task.petsFile}.${file}.task.json`
  writeFileSync(taskFile, JSON.stringify(task))
  return await startServer([contenderPath(file), taskFile])
}

/** The bare server that only says hello, for the time to a first answer. */
export async function startHello(): Promise<Server> {
  return await startServer([contenderPath('hello.cjs')])
}

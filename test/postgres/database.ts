/** A PostgreSQL for the tests: installed from Debian if it is missing, and run in a folder of its own. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'

const versionsFolder = '/usr/lib/postgresql'
const schema = readFileSync(new URL('schema.sql', import.meta.url), 'utf8')

/** Nothing of the shell's: neither PETSTORE_ nor PG variables. */
export const cleanEnvironment = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C.UTF-8' }

export interface Database {
  /** Makes an empty database with the schema, and gives its address. */
  createDatabase(name: string): Promise<string>
  /** Starts it again after `stop` or `kill`; resolves when it takes connections. */
  start(): Promise<void>
  /** Stops it in order, without waiting for its clients. */
  stop(): Promise<void>
  /** Kills all its processes at once. */
  kill(): Promise<void>
  remove(): void
}

/** Makes a cluster, and starts it on a free port of 127.0.0.1. */
export async function startDatabase(): Promise<Database> {
  const binaries = findBinaries()
  const user = findUser()
  const folder = mkdtempSync(join(tmpdir(), 'petstore-postgres-'))
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const options = { cwd: folder, env: cleanEnvironment, ...user }
  const data = join(folder, 'data')
  const port = await findFreePort()
  const initialize = ['-D', data, '-U', 'petstore', '-A', 'trust', '-E', 'UTF8', '--no-instructions']
  execFileSync(join(binaries, 'initdb'), initialize, { ...options, stdio: 'ignore' })
  let child: ChildProcess | undefined

  const urlOf = (name: string): string => `postgres://petstore@127.0.0.1:${port}/${name}`

  const start = async (): Promise<void> => {
    // What a killed one left may keep the next from starting for a moment.
    for (;;) {
      const settings = ['-D', data, '-p', String(port), '-k', folder, '-h', '127.0.0.1']
      child = spawn(join(binaries, 'postgres'), settings, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
      const failure = await waitUntilReady(child)
      if (failure === undefined) return
      if (!failure.includes('pre-existing shared memory block')) throw new Error(failure)
    }
  }

  const end = async (signal: (pid: number) => void): Promise<void> => {
    const ending = child
    child = undefined
    if (ending?.pid === undefined || ending.exitCode !== null) return
    const ended = once(ending, 'exit')
    signal(ending.pid)
    await ended
  }

  // Whatever happens to the tests, it does not stay.
  process.once('exit', () => {
    child?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  await start()
  return {
    start,
    stop: () => end((pid) => process.kill(pid, 'SIGINT')),
    kill: () =>
      end((pid) => {
        for (const each of [...childrenOf(pid), pid]) killIfThere(each)
      }),
    async createDatabase(name) {
      await runSql(urlOf('postgres'), `CREATE DATABASE ${name}`)
      await runSql(urlOf(name), schema)
      return urlOf(name)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Runs one statement or several, and gives the rows of a single one. */
export async function runSql(
  url: string,
  sql: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

/** Resolves with undefined when it takes connections, or with what it printed when it ends instead. */
function waitUntilReady(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    let output = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.includes('ready to accept connections')) resolve(undefined)
    })
    child.once('close', () => resolve(output))
  })
}

/** A child may end by itself before its turn comes. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

function findBinaries(): string {
  const find = (): string | undefined => {
    const [newest] = listFolder(versionsFolder).toSorted((a, b) => Number(b) - Number(a))
    return newest === undefined ? undefined : join(versionsFolder, newest, 'bin')
  }
  const found = find()
  if (found !== undefined) return found
  for (const words of ['update -qq', 'install -y -qq postgresql'])
    execFileSync('apt-get', words.split(' '), {
      env: { ...cleanEnvironment, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  const installed = find()
  if (installed === undefined) throw new Error(`there is no PostgreSQL in ${versionsFolder}`)
  return installed
}

function listFolder(path: string): readonly string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

/** The user to run it as: root is refused by PostgreSQL. */
function findUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  return { uid: idOfPostgres('-u'), gid: idOfPostgres('-g') }
}

function idOfPostgres(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('there is no free port')
  return address.port
}

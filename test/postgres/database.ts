/** A PostgreSQL for the tests: installed from Debian if it is missing, and run in a folder of its own. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import {
  cleanEnvironment,
  findFreePort,
  install,
  killAll,
  makeFolder,
  signalAll,
  waitUntil,
} from './processes.ts'

const versionsFolder = '/usr/lib/postgresql'

export interface Database {
  /** What is started in it ends with this process. */
  readonly folder: string
  /** Makes an empty database, and gives its address. The role `locked` needs a password for it; all others need none. */
  createDatabase(name: string, encoding?: string): Promise<string>
  /** Starts it again after `stop` or `kill`; resolves when it takes connections. */
  start(): Promise<void>
  /** Stops it in order, without waiting for its clients. */
  stop(): Promise<void>
  /** Kills all its processes at once. */
  kill(): Promise<void>
  /** Stops all its processes without ending them, or lets them go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Resolves when it writes into its log what the pattern matches. */
  untilLogged(pattern: RegExp): Promise<void>
  /** Starts PgBouncer in transaction mode, and gives the address of a database through it. `settings` are lines of its configuration. */
  startPooler(name: string, settings: string): Promise<string>
}

/** Makes a cluster, and starts it on a free port of 127.0.0.1. With TLS, its certificate is `ca.pem` in the folder, for `localhost`. */
export async function startDatabase({ hasTls = false } = {}): Promise<Database> {
  const binaries = findBinaries()
  const user = findUser()
  const folder = makeFolder()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const options = { cwd: folder, env: cleanEnvironment, ...user }
  const data = join(folder, 'data')
  const port = await findFreePort('127.0.0.1')
  const initialize = ['-D', data, '-U', 'petstore', '-A', 'trust', '-E', 'UTF8', '--no-instructions']
  execFileSync(join(binaries, 'initdb'), initialize, { ...options, stdio: 'ignore' })
  if (hasTls) {
    const [certificate, key] = [join(folder, 'ca.pem'), join(folder, 'key.pem')]
    const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
    const names = ['-addext', 'subjectAltName=DNS:localhost']
    execFileSync('openssl', [...request, ...names, '-out', certificate, '-keyout', key], {
      ...options,
      stdio: 'ignore',
    })
    const lines = ['ssl = on', `ssl_cert_file = '${certificate}'`, `ssl_key_file = '${key}'`]
    writeFileSync(join(data, 'postgresql.auto.conf'), `${lines.join('\n')}\n`)
  }
  const access = join(data, 'pg_hba.conf')
  writeFileSync(access, `host all locked all scram-sha-256\n${readFileSync(access, 'utf8')}`)
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

  const end = async (signal: () => void): Promise<void> => {
    const ending = child
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return
    const ended = once(ending, 'exit')
    signal()
    await ended
  }

  await start()
  return {
    folder,
    start,
    stop: () => end(() => child?.kill('SIGINT')),
    kill: () => end(() => killAll(data)),
    signal: (signal) => void signalAll(data, signal),
    async untilLogged(pattern) {
      let text = ''
      while (!pattern.test(text)) text += String(await once(child?.stderr ?? assert.fail(), 'data'))
    },
    async createDatabase(name, encoding = 'UTF8') {
      const template = `TEMPLATE template0 ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C'`
      await runSql(urlOf('postgres'), `CREATE DATABASE ${name} ${template}`)
      return urlOf(name)
    },
    async startPooler(name, settings) {
      install({ pgbouncer: '/usr/sbin/pgbouncer' })
      const poolerPort = await findFreePort('127.0.0.1')
      const file = `pgbouncer-${name}.ini`
      writeFileSync(join(folder, file), `${formatPoolerSettings(poolerPort, port)}${settings}\n`)
      spawn('pgbouncer', [file], { ...options, stdio: 'ignore' })
      const url = `postgres://petstore@127.0.0.1:${poolerPort}/${name}`
      await waitUntil('PgBouncer answers', () => runSql(url, 'SELECT'))
      return url
    },
  }
}

function formatPoolerSettings(port: number, databasePort: number): string {
  return `[databases]
* = host=127.0.0.1 port=${databasePort} user=petstore
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
`
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

/** The folder of the newest version's programs. */
export function findBinaries(): string {
  install({ postgresql: versionsFolder })
  const [newest = ''] = readdirSync(versionsFolder).toSorted((a, b) => Number(b) - Number(a))
  return join(versionsFolder, newest, 'bin')
}

/** The user to run it as: root is refused by PostgreSQL. */
function findUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  return { uid: idOfPostgres('-u'), gid: idOfPostgres('-g') }
}

function idOfPostgres(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
}

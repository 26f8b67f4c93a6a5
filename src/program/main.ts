/** The program: arguments, environment, console, signals and exit codes. */
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { packageVersion } from '../system/bundled-texts.ts'
import { clock } from '../system/clock.ts'
import { DataFileUnusable } from '../data-file/data-file-errors.ts'
import { defaultTimeouts } from '../http/timeouts.ts'
import { ListenError } from '../http/listen-error.ts'
import { startPetStore } from '../pet-store-server.ts'
import { printEntries } from '../http/request-log.ts'
import { type Arguments, type Config, ConfigError, parseConfig } from '../options/settings.ts'
import { errorCode, isError } from '../system/errors.ts'
import type { PetStoreServerOptions, StorageServer } from '../options/types.ts'
import { formatPetCount } from '../pet/pet.ts'
import { type Database, openDatabase } from '../postgres/open-database.ts'
import { DatabaseUnusable } from '../postgres/pool.ts'
import { exportPets, importPets } from '../postgres/transfer-pets.ts'
import { formatCommand, handleArgs } from './command-line.ts'
import { formatStartText } from './start-text.ts'
import { isVerification, verifyServer } from './verify.ts'

/**
 * After closeMs (5 s) a close cuts off the requests in flight. A process that still runs 0.8 s later is killed, since the
 * README.md beside this file promises that it ends within 6 s.
 */
const maxStopMs = defaultTimeouts.closeMs + 800

/** Serves until a signal stops it, or does what else its arguments ask for. Rejects only for a bug. */
export async function runProgram(): Promise<void> {
  // Whoever reads the output may stop reading (`| head -1`). Without these listeners, the next line would end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  let args: Arguments = {}
  try {
    const given = process.argv.slice(2)
    if (isVerification(given)) return await verifyServer()
    const request = handleArgs(given, formatCommand(process.argv[1] ?? '', process.cwd()), packageVersion)
    if (typeof request === 'string') return console.log(request)
    args = request
    await start(args)
  } catch (error) {
    const message = describeFailure(error)
    if (message === undefined) throw error
    const name = /^(PORT|HOST):/.exec(message)?.[1]?.toLowerCase() ?? ''
    // The sentence about an address begins with the variable.
    console.error(args[name] === undefined ? message : message.replace(/^\w+/, `--${name}`))
    process.exitCode = 1
  }
}

async function start(args: Arguments): Promise<void> {
  const config = parseConfig(process.env, args)
  const { databaseUrl, log } = config
  const say = log === 'silent' ? () => {} : console.log
  const database = databaseUrl === '' ? undefined : await openDatabase(databaseUrl, process.env, say)
  const { import: importPath, export: exportPath } = args
  if (importPath === undefined && exportPath === undefined) return serve(config, database, say)
  if (database === undefined || (importPath !== undefined && exportPath !== undefined))
    throw new ConfigError('--import, --export: expected one of them, and a database')
  if (importPath !== undefined)
    say(`imported ${formatPetCount(await importPets(database, importPath, { onMessage: say }, onPets))}`)
  if (exportPath !== undefined)
    say(`exported ${formatPetCount(await exportPets(database, exportPath, onPets))}`)
}

/** A line of progress, on a terminal. */
function onPets(done: number): void {
  if (process.stdout.isTTY) process.stdout.write(`\r${done} pets\r`)
}

async function serve(config: Config, database: Database | undefined, say: (message: string) => void) {
  const createdKey = config.apiKeys.length === 0 ? randomBytes(24).toString('base64url') : undefined
  const { hints: _hints, log, databaseUrl: _url, dataFile, ...settings } = config
  const options = {
    // The compiler refuses a setting here that embedders do not have. Take it out in the line above, or add it to options/types.ts.
    ...(settings satisfies Record<Exclude<keyof typeof settings, keyof PetStoreServerOptions>, never>),
    ...(createdKey !== undefined && { apiKeys: [createdKey] }),
    onMessage: say,
    onError: console.error,
    ...(log === 'requests' && { onResponse: printEntries(say) }),
  }
  const announce = (server: StorageServer, pets: string): void => {
    stopOnSignals(server, () => say('stopped'))
    say(formatStartText(config, server.url, pets, createdKey))
  }
  if (database === undefined) {
    const server = await startPetStore({ ...options, dataFile })
    announce(server, `Data file: ${resolve(dataFile)}, ${formatPetCount(server.countPets())}`)
  } else {
    const server = await startPetStore({ ...options, storage: database.storage })
    announce(server, `Database: ${database.shown}, ${database.pets}`)
  }
}

/** The first signal stops the service gracefully, with exit code 0; the second ends the process at once. */
function stopOnSignals(server: StorageServer, onStopped: () => void): void {
  // Under `npm start`, one Ctrl-C may arrive twice: from the terminal, which signals all its processes, and from npm, which
  // passes the signal on. So a signal shortly after the first counts as the same one.
  const repeatMs = process.env['npm_lifecycle_event'] === undefined ? 0 : 200
  let stoppingSince: number | undefined
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (stoppingSince === undefined) {
      stoppingSince = clock.performanceNow()
      // A disk may never respond, and closing waits for it. Killing breaks no promise then: a pet whose sync has not returned
      // was not acknowledged.
      clock.setTimeout(endAtOnce, maxStopMs, 'SIGKILL').unref()
      await server.close().catch(() => process.exit(1))
      onStopped()
      process.exit(0)
    } else if (clock.performanceNow() - stoppingSince >= repeatMs) endAtOnce(signal)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
}

/** Ends the process by the signal. `process.exit` would wait for a file system call that is still under way. */
function endAtOnce(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal)
  try {
    process.kill(process.pid, signal)
  } catch {
    // Windows cannot send a SIGHUP (ENOSYS).
  }
  // In a container this may be process 1, which the kernel does not let end itself by a signal.
  process.abort()
}

/** What to print if a person can correct the failure; undefined for anything else, such as a bug. */
function describeFailure(error: unknown): string | undefined {
  if (!isError(error)) return undefined
  const kinds = [ConfigError, DataFileUnusable, ListenError, DatabaseUnusable]
  if (kinds.some((kind) => error instanceof kind)) return error.message
  // Not a system error, so a bug in this program: its stack is to be printed.
  return errorCode(error) === '' ? undefined : `The start failed: ${error.message}`
}

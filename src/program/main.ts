/** The program: arguments, environment, console, signals and exit codes. */
import { randomBytes } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { resolve, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DataFileUnusable } from '../data-file/data-file-errors.ts'
import { inspectDataFile, type InspectedFile } from '../data-file/inspection.ts'
import { ListenError } from '../http/address.ts'
import { defaultTimeouts } from '../http/limits.ts'
import type { PetStoreServerOptions, RequestLog, StorageServer } from '../options/types.ts'
import { startPetStore } from '../pet-store-server.ts'
import { formatPetCount } from '../pet/pet.ts'
import { DatabaseUnusable } from '../postgres/connections.ts'
import { connectDatabase, type Database } from '../postgres/database.ts'
import { exportPets, importPets } from '../postgres/transfer-pets.ts'
import { sayUnkeptMs } from '../store/file-store.ts'
import { clock } from '../system/clock.ts'
import { describeError, isError, isSystemError } from '../system/errors.ts'
import { packageVersion } from '../text/bundled-texts.ts'
import { nameUnseen } from '../text/words.ts'
import { type Arguments, formatCommand, type GivenArguments, parseArguments } from './arguments.ts'
import { type Config, ConfigError, parseConfig } from './config.ts'
import { formatEntry, listSettings, formatStartText, createConsole } from './console.ts'

/**
 * A close cuts off the requests in flight after closeMs (5 s), and says a little later that pets are not kept
 * yet. src/program/README.md promises that the process ends within 6 s.
 */
const maxStopMs = defaultTimeouts.closeMs + sayUnkeptMs + 200

/**
 * Output that nobody reads, or a connection to a database that hangs, keeps the process alive for at most this
 * long after a close.
 */
const maxAfterCloseMs = 200

/**
 * One Ctrl-C may arrive as two signals: the terminal sends it to `npm`, `pnpm exec` and the program alike,
 * and the first two pass it on, or send a SIGTERM. A signal this soon after the first is the same key press.
 */
const sameKeyPressMs = 200

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

type Console = ReturnType<typeof createConsole>

/** Rejects only for a bug. */
export async function runProgram(): Promise<void> {
  const console = createConsole(process.env)
  // This may be process 1 of a container, for which the kernel drops a signal that nobody listens for
  // (https://man7.org/linux/man-pages/man7/pid_namespaces.7.html).
  if (process.pid === 1) {
    for (const signal of stopSignals) process.on(signal, endAtOnce)
  }
  let args: Arguments = {}
  try {
    const given = process.argv.slice(2)
    if (isVerification(given)) return await verifyServer()
    const command = formatCommand(process.argv[1] ?? '', process.cwd())
    const parsed = parseArguments(given, command, packageVersion, process.env)
    if (typeof parsed === 'string') return console.say(parsed)
    args = parsed.given
    if (args['check'] === undefined) await start(parsed, console)
    else await check(parsed, console)
  } catch (error) {
    const message = describeForPerson(error)
    if (message === undefined) throw error
    // A sentence about the address begins with the option of embedding code, but a person gave an argument or
    // a variable.
    const nameOf = (option: string) => (args[option]?.trim() ? `--${option}` : option.toUpperCase())
    const isOfAddress = error instanceof ListenError
    console.sayRefusal(isOfAddress ? message.replace(/^(?:port|host)(?=:)/, nameOf) : message)
    console.exit(1, 1_000)
  }
}

async function start({ given: args, faults }: GivenArguments, console: Console): Promise<void> {
  const { import: importPath, export: exportPath } = args
  const path = importPath ?? exportPath
  const config = parseConfig(process.env, args, faults)
  const { database: address, log } = config
  const say = log === 'silent' ? () => {} : console.say
  if (address === undefined) return serve(config, undefined, { ...console, say })
  if (path === undefined) return serve(config, await connectDatabase(address, say), { ...console, say })
  const verb = importPath === undefined ? 'export' : 'import'
  try {
    const { pool, storage } = await connectDatabase(address, say)
    const count = await (verb === 'export'
      ? exportPets(storage, path)
      : importPets(pool, path, { onMessage: say }))
    say(`${verb}ed ${formatPetCount(count)}`)
  } catch (error) {
    // A DataFileUnusable names the file itself, and a TypeError is a bug.
    if (error instanceof DataFileUnusable || error instanceof TypeError) throw error
    throw new DatabaseUnusable(`${nameUnseen(path)}: the ${verb} failed: ${describeError(error)}`)
  }
}

/**
 * Says what a start would say of settings and file. Prints under `silent`, too, since nothing else is asked
 * for.
 */
async function check(
  { given, faults: argumentFaults }: GivenArguments,
  { say, sayError, exit }: Console,
): Promise<void> {
  const faults: string[] = []
  const lines: string[] = []
  const note = (error: unknown): void => {
    const message = describeForPerson(error)
    if (message === undefined) throw error
    faults.push(message)
  }
  let dataFile: string | undefined
  try {
    const config = parseConfig(process.env, given, argumentFaults)
    lines.push(...listSettings(config))
    const { database } = config
    if (database === undefined) dataFile = config.dataFile
    else lines.push(...database.notes, 'The settings have no fault. The database was not asked.')
  } catch (error) {
    note(error)
    if (error instanceof ConfigError) dataFile = error.dataFile
  }
  if (dataFile !== undefined)
    await inspectDataFile(dataFile, { onMessage: (message) => void lines.push(message) }).then(
      (inspected) => void lines.push(`${nameUnseen(dataFile)}: ${describeInspected(inspected)}`),
      note,
    )
  if (faults.length === 0) return say(lines.join('\n'))
  sayError(faults.join('\n'))
  exit(1, 1_000)
}

/** Returns what `--check` prints of a file that can be used. */
export function describeInspected({ petCount, highestId, missingIdCount, repair }: InspectedFile): string {
  const ids = missingIdCount === 1 ? '1 id' : `${missingIdCount} ids`
  const found = formatPetCount(petCount) + (highestId === 0 ? '' : `, the highest id is ${highestId}`)
  const changes = [
    ...(missingIdCount === 0 ? [] : [`fill in ${ids}`]),
    ...(repair === undefined ? [] : [repair]),
  ]
  return changes.length === 0 ? found : `${found}; a start would ${changes.join(' and ')}`
}

async function serve(config: Config, database: Database | undefined, console: Console): Promise<void> {
  const { say, sayError, addTimes } = console
  const createdKey = config.apiKeys.length === 0 ? randomBytes(24).toString('base64url') : undefined
  // The program alone has these. `settings` has the others.
  const { hints: _hints, log, database: _address, dataFile, ...settings } = config
  const options = {
    // The compiler refuses a setting here that embedders do not have. Name it among those above, or add it to
    // options/types.ts.
    ...(settings satisfies Record<Exclude<keyof typeof settings, keyof PetStoreServerOptions>, never>),
    ...(createdKey !== undefined && { apiKeys: [createdKey] }),
    onMessage: say,
    onError: sayError,
    ...(log === 'requests' && { onResponse: (entry: RequestLog) => say(formatEntry(entry)) }),
  }
  const announce = (server: StorageServer, source: string): void => {
    stopOnSignals(server, console)
    say(formatStartText(config, server.url, source, createdKey, process.stdout.isTTY))
    addTimes()
  }
  if (database === undefined) {
    const server = await startPetStore({ ...options, dataFile })
    announce(server, `Data file: ${nameUnseen(resolve(dataFile))}, ${formatPetCount(server.countPets())}`)
  } else {
    const server = await startPetStore({ ...options, storage: database.storage })
    announce(server, `Database: ${database.shown}`)
  }
}

function stopOnSignals(server: StorageServer, { say, sayError, exit }: Console): void {
  let stoppingSince: number | undefined
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (stoppingSince === undefined) {
      stoppingSince = clock.performanceNow()
      // A disk may never respond, and closing waits for it. A pet whose sync has not returned was not
      // acknowledged.
      clock.setTimeout(endAtOnce, maxStopMs, 'SIGKILL').unref()
      try {
        await server.close()
      } catch (error) {
        sayError(`The stop failed: ${describeError(error)}`)
        return exit(1, maxAfterCloseMs)
      }
      say('stopped')
      exit(0, maxAfterCloseMs)
    } else if (clock.performanceNow() - stoppingSince >= sameKeyPressMs) endAtOnce(signal)
  }
  // A signal may have come since the last turn of the event loop. Node would drop it with the last listener, so
  // the next one is added before.
  for (const signal of stopSignals) process.on(signal, stop).off(signal, endAtOnce)
}

function endAtOnce(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal)
  try {
    process.kill(process.pid, signal)
  } catch {
    // Windows cannot send a SIGHUP (ENOSYS).
  }
  // In a container this may be process 1, which the kernel does not let end itself by a signal
  // (https://man7.org/linux/man-pages/man7/pid_namespaces.7.html). And `process.exit` would wait for a call
  // in the thread pool, to a disk that may never respond (https://github.com/libuv/libuv/issues/364). An abort
  // waits for nothing.
  clock.setInterval(() => {
    if (!/FSReq|GetAddrInfo/.test(process.getActiveResourcesInfo().join())) process.exit(1)
  }, 20)
  clock.setTimeout(() => process.abort(), 1_000)
}

/**
 * Returns what to print if a person can correct the failure; undefined for a bug, whose stack is to be
 * printed.
 */
function describeForPerson(error: unknown): string | undefined {
  if (!isError(error)) return undefined
  const kinds = [ConfigError, DataFileUnusable, ListenError, DatabaseUnusable]
  if (kinds.some((kind) => error instanceof kind)) return error.message
  return isSystemError(error) ? `The start failed: ${error.message}` : undefined
}

const noSuite =
  '--verify: the contract suite, contract.test.js, is not beside this program; the package petstore has both, and so has dist after a build'

/** Returns whether the arguments are for the contract suite, which reads them by itself. */
function isVerification(args: readonly string[]): boolean {
  return args.some((arg) => /^--verify(?:=|$)/.test(arg))
}

/** Hands over to the suite, which prints what it finds and sets the exit code. */
async function verifyServer(): Promise<void> {
  // npx starts the program by a symbolic link in another folder.
  const suite = join(dirname(realpathSync(process.argv[1] ?? '')), 'contract.test.js')
  if (!existsSync(suite)) throw new ConfigError(noSuite)
  await import(pathToFileURL(suite).href)
}

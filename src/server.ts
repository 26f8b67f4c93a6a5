/** The program: arguments, environment, console, signals and exit codes. Nothing else touches them. */
import { randomBytes } from 'node:crypto'
import { readVersion } from './built-in.ts'
import { answerArguments, formatCommand } from './command-line.ts'
import { type Config, ConfigError, parseConfig } from './config.ts'
import { DataFileInvalid } from './data-file/data-file-error.ts'
import { errorCode } from './system-error.ts'
import { startPetStore } from './pet-store-server.ts'
import { formatStartText } from './start-text.ts'
import type { PetStoreServer, RequestLog } from './types.ts'

/** More than the 5 s after which a close cuts off what is in flight, and less than the 6 s that are promised. */
const maxStopMs = 5_800

// The reader of the output may go away (`| head`); the service stays.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

const command = formatCommand(process.argv[1] ?? '', process.cwd())
const answer = answerArguments(process.argv.slice(2), command, readVersion())
if (answer === undefined) {
  void run()
} else {
  if (answer.exitCode === 0) console.log(answer.text)
  else console.error(answer.text)
  process.exitCode = answer.exitCode
}

async function run(): Promise<void> {
  let config: Config | undefined
  try {
    config = parseConfig(process.env)
    const createdKey = config.apiKeys.length === 0 ? randomBytes(24).toString('base64url') : undefined
    const server = await start(config, createdKey)
    stopOnSignals(server)
    if (config.log !== 'silent') {
      console.log(formatStartText(config, { url: server.url, petCount: server.countPets(), createdKey }))
    }
  } catch (error) {
    const lines = describeFailure(error, config)
    if (lines === undefined) throw error
    for (const line of lines) console.error(line)
    process.exitCode = 1
  }
}

function start(config: Config, createdKey: string | undefined): Promise<PetStoreServer> {
  const { apiKeys, corsOrigins, dataFile, delayMs, host, log, port } = config
  return startPetStore({
    apiKeys: createdKey === undefined ? apiKeys : [createdKey],
    corsOrigins,
    dataFile,
    delayMs,
    host,
    port,
    onError: console.error,
    ...(log !== 'silent' && { onMessage: console.log }),
    ...(log === 'requests' && { onResponse: (request) => console.log(formatRequestLog(request)) }),
  })
}

function formatRequestLog({ method, milliseconds, path, status }: RequestLog): string {
  return `${method} ${path} ${status} ${milliseconds.toFixed(1)} ms`
}

/** The first signal stops the service gracefully, with exit code 0; the second ends the process at once. */
function stopOnSignals(server: PetStoreServer): void {
  // Ctrl-C reaches every process of a terminal, and npm passes it on as well: that is still the first signal.
  const echoMs = process.env['npm_lifecycle_event'] === undefined ? 0 : 200
  let stoppingSince: number | undefined
  const stop = (signal: NodeJS.Signals): void => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince >= echoMs) endAtOnce(signal)
      return
    }
    stoppingSince = performance.now()
    // A disk may never answer. A pet whose sync has not returned was not acknowledged, so that no promise is broken.
    setTimeout(endAtOnce, maxStopMs, 'SIGKILL').unref()
    server.close().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
}

/** Ends the process by the signal. `process.exit` would wait for a file system call that is still under way. */
function endAtOnce(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  // Process 1 of a container cannot end itself by a signal.
  process.abort()
}

/** What a person can correct, in plain lines; undefined for anything else. */
function describeFailure(error: unknown, config: Config | undefined): readonly string[] | undefined {
  if (error instanceof ConfigError) return error.lines
  if (error instanceof DataFileInvalid) return [error.message]
  if (config === undefined) return undefined
  const { host, port } = config
  switch (errorCode(error)) {
    case 'EADDRINUSE':
      return [`PORT: ${port} is taken by another program on ${host}`]
    case 'EACCES':
      return [`PORT: ${port} needs a privilege that this user does not have`]
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return [`HOST: ${host} is not an address of this machine`]
    case '':
      // A bug of this program, whose stack is of use.
      return undefined
    default:
      return [`The start failed: ${error instanceof Error ? error.message : String(error)}`]
  }
}

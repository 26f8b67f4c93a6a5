/** The program: environment, console, signals and exit codes. Nothing else touches them. */
import { randomBytes } from 'node:crypto'
import { type Config, ConfigError, parseConfig } from './config.ts'
import { startPetStore } from './pet-store-server.ts'
import { DataFileInvalid } from './data-file/data-file.ts'
import { errorCode } from './data-file/system-error.ts'
import type { PetStoreServer, RequestLog } from './types.ts'

/** Whoever reads the output may go away (`| head`); the service stays. */
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

void run()

async function run(): Promise<void> {
  let config: Config | undefined
  try {
    config = parseConfig(process.env)
    const madeKey = config.apiKeys.length === 0 ? randomBytes(24).toString('base64url') : undefined
    const server = await start(config, madeKey)
    stopOnSignals(server)
    if (config.log !== 'silent') console.log(startText(server, config, madeKey))
  } catch (error) {
    const lines = describeFailure(error, config)
    if (lines === undefined) throw error
    for (const line of lines) console.error(line)
    process.exitCode = 1
  }
}

function start(
  { apiKeys, corsOrigins, dataFile, delayMs, host, log, port }: Config,
  madeKey?: string,
): Promise<PetStoreServer> {
  const say = { onError: console.error, ...(log !== 'silent' && { onMessage: console.log }) }
  const report = log === 'requests' && {
    onResponse: (answer: RequestLog) => console.log(formatAnswer(answer)),
  }
  const keys = madeKey === undefined ? apiKeys : [madeKey]
  return startPetStore({ apiKeys: keys, corsOrigins, dataFile, delayMs, host, port, ...say, ...report })
}

function formatAnswer({ method, milliseconds, path, status }: RequestLog): string {
  return `${method} ${path} ${status} ${milliseconds.toFixed(1)} ms`
}

function startText(server: PetStoreServer, { dataFile }: Config, madeKey?: string): string {
  const count = server.countPets()
  // Keys of the environment are not printed; a shell that has them fills in the first.
  const [key, lines] =
    madeKey === undefined
      ? ['${PETSTORE_API_KEYS%%,*}', ['Try, in a shell that has PETSTORE_API_KEYS:']]
      : [madeKey, [`API key for this run: ${madeKey} (set PETSTORE_API_KEYS to choose your own)`, 'Try:']]
  return [
    `Petstore listens on ${server.url}`,
    `Data file: ${dataFile}, ${count} ${count === 1 ? 'pet' : 'pets'}`,
    ...lines,
    // The quotes keep zsh from reading the brackets of an IPv6 address as a pattern.
    `  curl -H "Authorization: Bearer ${key}" "${server.url}/v1/pets"`,
  ].join('\n')
}

/** The first signal ends the service in order, the second at once. */
function stopOnSignals(server: PetStoreServer): void {
  // Ctrl-C reaches every process of a terminal, and npm hands it on besides: to us that is still the first one.
  const echoMs = process.env['npm_lifecycle_event'] === undefined ? 0 : 200
  let stoppingSince: number | undefined
  const stop = (exitCode: number): void => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince >= echoMs) process.exit(exitCode)
      return
    }
    stoppingSince = performance.now()
    // A disk that never answers must not keep the process: what it has not synced was not acknowledged.
    setTimeout(() => process.exit(1), 6_000).unref()
    server.close().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  process.on('SIGINT', () => stop(130))
  process.on('SIGTERM', () => stop(143))
}

/** What a person can mend, in plain lines; undefined for anything else. */
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
      // A mistake of ours, whose stack is of use.
      return undefined
    default:
      return [`The start failed: ${error instanceof Error ? error.message : String(error)}`]
  }
}

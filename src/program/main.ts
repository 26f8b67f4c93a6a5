/** The program: arguments, environment, console, signals and exit codes. Nothing else touches them. */
import { randomBytes } from 'node:crypto'
import { readVersion } from '../system/bundled-texts.ts'
import { clock } from '../system/clock.ts'
import { DataFileUnusable } from '../data-file/data-file-errors.ts'
import { defaultTimeouts } from '../http/timeouts.ts'
import { ListenError } from '../http/listen-error.ts'
import { startPetStore } from '../pet-store-server.ts'
import { printEntries } from '../http/request-log.ts'
import { ConfigError, parseConfig } from '../options/settings.ts'
import { errorCode, isError } from '../system/errors.ts'
import type { PetStoreServer } from '../options/types.ts'
import { formatCommand, handleArgs } from './command-line.ts'
import { formatStartText } from './start-text.ts'

/**
 * After closeMs (5 s) a close cuts off the requests in flight. A process that still runs 0.8 s later is killed, since the
 * README promises that it ends within 6 s.
 */
const maxStopMs = defaultTimeouts.closeMs + 800

/** Serves until a signal stops it, or prints what its arguments ask for. Rejects only for a bug. */
export async function runProgram(): Promise<void> {
  // Whoever reads the output may stop reading (`| head -1`). Without these listeners, the next line would end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const command = formatCommand(process.argv[1] ?? '', process.cwd())
  const request = handleArgs(process.argv.slice(2), command, readVersion())
  if ('values' in request) return serve(request.values)
  if (request.exitCode === 0) console.log(request.text)
  else console.error(request.text)
  process.exitCode = request.exitCode
}

async function serve(args: Readonly<Record<string, string>>): Promise<void> {
  try {
    const config = parseConfig(process.env, args)
    const createdKey = config.apiKeys.length === 0 ? randomBytes(24).toString('base64url') : undefined
    const { hints: _hints, log, ...options } = config
    const say = log === 'silent' ? () => {} : console.log
    const server = await startPetStore({
      ...options,
      ...(createdKey !== undefined && { apiKeys: [createdKey] }),
      onMessage: say,
      onError: console.error,
      ...(log === 'requests' && { onResponse: printEntries(say) }),
    })
    stopOnSignals(server, () => say('stopped'))
    say(formatStartText(config, { url: server.url, petCount: server.countPets(), createdKey }))
  } catch (error) {
    const message = describeFailure(error)
    if (message === undefined) throw error
    console.error(message)
    process.exitCode = 1
  }
}

/** The first signal stops the service gracefully, with exit code 0; the second ends the process at once. */
function stopOnSignals(server: PetStoreServer, onStopped: () => void): void {
  // Under `npm start`, one Ctrl-C may arrive twice: from the terminal, which signals all its processes, and from npm, which
  // passes the signal on. So a signal shortly after the first counts as the same one.
  const repeatMs = process.env['npm_lifecycle_event'] === undefined ? 0 : 200
  let stoppingSince: number | undefined
  const stop = (signal: NodeJS.Signals): void => {
    if (stoppingSince !== undefined) {
      if (clock.performanceNow() - stoppingSince >= repeatMs) endAtOnce(signal)
      return
    }
    stoppingSince = clock.performanceNow()
    // A disk may never respond, and closing waits for it. Killing breaks no promise then: a pet whose sync has not returned
    // was not acknowledged.
    clock.setTimeout(endAtOnce, maxStopMs, 'SIGKILL').unref()
    server.close().then(
      () => {
        onStopped()
        process.exit(0)
      },
      () => process.exit(1),
    )
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
  if (error instanceof ConfigError) return error.message
  if (error instanceof DataFileUnusable || error instanceof ListenError) return error.message
  // Not a system error, so a bug in this program: its stack is to be printed.
  return isError(error) && errorCode(error) !== '' ? `The start failed: ${error.message}` : undefined
}

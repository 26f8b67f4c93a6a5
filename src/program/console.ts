/**
 * What the program prints: the start text, the request log, and other lines. A stopped terminal (Ctrl-S, a
 * stalled ssh) and a pipe that nobody reads hold up no response and no stop: lines beyond a bound are
 * dropped, and a line says how many.
 */
import { constants, existsSync, fstatSync, openSync, readdirSync, statSync, writeSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { Writable } from 'node:stream'
import { fingerprint } from '../http/bearer-auth.ts'
import { formatUrl } from '../http/address.ts'
import type { RequestLog } from '../http/request-log.ts'
import { isLoopback, type Config } from './config.ts'
import { packageVersion } from '../text/bundled-texts.ts'
import { clock } from '../system/clock.ts'
import { errorCode } from '../system/errors.ts'

const maxWaitingBytes = 2 ** 20
const terminalRetryMs = 10

export function createConsole(env: NodeJS.ProcessEnv) {
  let hasTimes = false
  const open = (standard: NodeJS.WriteStream & { readonly fd: number }) => {
    const stream: Writable = (standard.isTTY && openTerminal(standard.fd)) || standard
    // Without a listener, the next line behind `| head -1` would end the service.
    stream.on('error', () => {})
    // systemd says where the journal adds a time
    // (https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#%24JOURNAL_STREAM). A shell
    // that it has started inherits the variable, but not the stream.
    const journal = env['JOURNAL_STREAM']
    const stats = journal === undefined ? undefined : fstatSync(standard.fd)
    const isJournal = stats !== undefined && journal === `${stats.dev}:${stats.ino}`
    let dropped = 0
    const print = (message: string, isTimed = hasTimes): void => {
      const time = isTimed && !isJournal ? `${new Date(clock.now()).toISOString()} ` : ''
      const lines = message.split('\n')
      if (dropped === 0 && stream.writableLength < maxWaitingBytes)
        return void stream.write(lines.map((line) => `${time}${line}\n`).join(''))
      if (dropped === 0) stream.once('drain', tellDropped)
      dropped += lines.length
    }
    const tellDropped = (): void => {
      const message = `${dropped} lines were dropped here, since nobody read them`
      dropped = 0
      print(message)
    }
    return { print, isTTY: standard.isTTY }
  }
  const [output, errors] = [open(process.stdout), open(process.stderr)]
  return {
    say: output.print,
    sayError: errors.print,
    /** Prints the time, too, unless on a terminal: who finds a refusal in a file asks when that was. */
    sayRefusal: (message: string) => errors.print(message, !errors.isTTY),
    /** Prints the time before each line from now on, unless the journal adds it. */
    addTimes: () => {
      hasTimes = true
    },
    /**
     * In a heap that is almost full, `process.exit` may wait for ever for a thread that compiles
     * (https://github.com/nodejs/node/issues/54918). So the process ends by itself, once all is written and
     * closed. Only what keeps it alive for longer than maxMs is cut off.
     */
    exit: (code: number, maxMs: number): void => {
      process.exitCode = code
      clock.setTimeout(() => process.exit(), maxMs).unref()
    },
  }
}

/**
 * Returns a stream to a terminal that waits without blocking; undefined where that cannot be had, as on
 * Windows.
 */
function openTerminal(fd: number): Writable | undefined {
  try {
    // The terminal is opened anew, because O_NONBLOCK would hold for all who share the descriptor, such as
    // the shell (https://man7.org/linux/man-pages/man2/fcntl.2.html).
    const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY
    return createTerminal(openSync(findTerminal(fd), flags))
  } catch {
    // After `su`, the terminal is another user's, and cannot be opened.
    return undefined
  }
}

/**
 * Returns the path of a terminal. There is no /proc on macOS, and /dev/tty may be another terminal than that
 * of the descriptor.
 */
function findTerminal(fd: number): string {
  const path = `/proc/self/fd/${fd}`
  if (existsSync(path)) return path
  const { rdev } = fstatSync(fd)
  const paths = readdirSync('/dev').map((name) => `/dev/${name}`)
  return paths.find((each) => each.startsWith('/dev/ttys') && statSync(each).rdev === rdev) ?? path
}

function createTerminal(fd: number): Writable {
  return new Writable({
    write: function writeRest(rest: Buffer, encoding, done) {
      try {
        while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest))
        done()
      } catch (error) {
        if (errorCode(error) === 'EAGAIN') clock.setTimeout(writeRest, terminalRetryMs, rest, encoding, done)
        else done(error instanceof Error ? error : null)
      }
    },
  })
}

/**
 * Formats a line of the request log, such as `127.0.0.1 GET /v1/pets?limit=20 200 0.4 ms key=3f2a91`. `poll`
 * comes last, for `grep -v 'poll$'`.
 */
export function formatEntry(entry: RequestLog): string {
  const { client, method, path, query, status, milliseconds, code, key, id } = entry
  const notes = [
    code,
    entry.isOnPurpose && 'on purpose',
    key !== undefined && `key=${key}`,
    id !== undefined && `id=${id}`,
    entry.isGone && 'gone',
    entry.isPoll && 'poll',
  ]
  const request = `${client} ${method} ${path}${query} ${status} ${milliseconds.toFixed(1)} ms`
  return [request, ...notes.filter((note) => typeof note === 'string')].join(' ')
}

/**
 * `pets` says where they are, and for a file how many, as `Data file: /srv/pets.json, 12 pets`. `createdKey`
 * is undefined if keys are set. Those are shown only on a terminal, where no log keeps them, and only if
 * others cannot reach the service.
 */
export function formatStartText(
  config: Config,
  url: string,
  pets: string,
  createdKey: string | undefined,
  isTerminal = false,
): string {
  const { host, apiKeys } = config
  const key = createdKey ?? (isTerminal && isLoopback(host) ? apiKeys[0] : undefined)
  // In PowerShell, `curl` may be a command of its own.
  const curl = process.platform === 'win32' ? 'curl.exe' : 'curl'
  const lines = [
    `Petstore listens on ${url}`,
    // These are `0.0.0.0`, `::`, and other spellings of them.
    /^[0:.]+$/.test(host) && `Other machines can reach it too, ${describeReach(host, new URL(url).port)}`,
    `Version: ${packageVersion}`,
    pets,
    createdKey !== undefined &&
      `API key for this run: ${createdKey} (set PETSTORE_API_KEYS to choose your own)`,
    createdKey === undefined &&
      `API keys, by the first digits of their SHA-256: ${apiKeys.map(fingerprint).join(', ')}`,
    ...listSettings(config),
    // A browser never sends the part after `#`; the page reads the key from it.
    `Page: ${url}/${key === undefined ? '' : `#key=${key}`}`,
    key === undefined ? 'Try, with your API key instead of YOUR_API_KEY:' : 'Try:',
    // Without the quotes, zsh would take the brackets of an IPv6 address for a pattern.
    `  ${curl} -H "Authorization: Bearer ${key ?? 'YOUR_API_KEY'}" "${url}/v1/pets"`,
  ]
  return lines.filter((line) => line !== false).join('\n')
}

/** Formats the settings that are easily left in a file, and likely mistakes. */
export function listSettings({ fail, delayMs, basePath, hints }: Config): readonly string[] {
  const heldMs = [delayMs].flat().join('-')
  return [
    ...(fail === 'none' ? [] : [`Failures on purpose: ${fail}`]),
    ...(/[1-9]/.test(heldMs) ? [`Delay: ${heldMs} ms`] : []),
    ...(basePath === '' ? [] : [`Base path: ${basePath}`]),
    ...hints.map((hint) => `Note: ${hint}`),
  ]
}

/** These are of containers, virtual machines and tunnels: no other device reaches this machine by them. */
const innerInterfaces =
  /^(?:docker|podman|br-|virbr|bridge\d{3}|veth|cni|cali|flannel|lxc|lxd|vmnet|vboxnet|vmware|virtualbox|vethernet \((?:wsl|def)|tun|tap|utun|wg|ppp|zt|tailscale|nordlynx)/i

/** Usual local networks come first. */
function describeReach(host: string, port: string): string {
  const ranks = [/^192\.168\./, /^10\./, /\./, /:/]
  const rankOf = (address: string): number => ranks.findIndex((rank) => rank.test(address))
  let urls: readonly string[] = []
  try {
    urls = Object.entries(networkInterfaces())
      .flatMap(([name, list = []]) => (innerInterfaces.test(name) ? [] : list))
      // A listener on `::` accepts IPv4 connections as well. A link-local address is useless without its
      // zone.
      .filter(({ family, internal }) => !internal && (family === 'IPv4' || host.includes(':')))
      .flatMap(({ address }) => (/^(?:fe80:|169\.254\.)/.test(address) ? [] : address))
      .toSorted((a, b) => rankOf(a) - rankOf(b))
      .map((address) => formatUrl(address, port))
  } catch {
    // Some phones and units of systemd deny the call.
  }
  return urls.length === 0 ? "at any of this machine's addresses" : `probably at ${urls.join(' or ')}`
}

/** The settings of the program, read from environment variables. All errors are reported together. Reads nothing else. */
import { isIPv4 } from 'node:net'
import { keyFault } from '../http/bearer-auth.ts'
import { originFault } from '../http/cors.ts'
import { describe } from '../json/describe.ts'
import { isDelay, isHost, isPath, isPort, maxDelayMs } from '../options.ts'
import type { DelayMs } from '../http/delay.ts'

export interface Config {
  readonly port: number
  readonly host: string
  /** If empty, the host is a loopback address, and a key is to be created for this run. */
  readonly apiKeys: readonly string[]
  readonly dataFile: string
  readonly corsOrigins: '*' | readonly string[]
  /** How long each response is held back. */
  readonly delayMs: DelayMs
  readonly log: LogLevel
  /** Likely mistakes, to be printed at the start. */
  readonly hints: readonly string[]
}

const logLevels = ['silent', 'info', 'requests'] as const
export type LogLevel = (typeof logLevels)[number]

/** All settings, for `--help`. The README lists the same names and defaults. An empty default means that there is none. */
export const settings = {
  PORT: { fallback: '3000', meaning: 'port to listen on; 0 picks a free one' },
  HOST: { fallback: '127.0.0.1', meaning: 'address to listen on; 0.0.0.0 listens on all addresses' },
  PETSTORE_API_KEYS: { fallback: '', meaning: 'bearer keys that clients may use' },
  PETSTORE_DATA_FILE: { fallback: 'data/pets.json', meaning: 'created, with its folder, if it is missing' },
  PETSTORE_CORS_ORIGINS: {
    fallback: '*',
    meaning: 'origins whose pages may read responses, or the word none',
  },
  PETSTORE_DELAY: {
    fallback: '',
    meaning: `delay of /v1 responses in ms: 300 or 200-800, at most ${maxDelayMs}`,
  },
  PETSTORE_LOG: { fallback: 'info', meaning: 'silent, info, or requests (also a line per request)' },
} as const

export type SettingName = keyof typeof settings

const anyValue = /^/

/** PETSTORE_ variables that other tools set. They are ignored. */
const foreignVariables: readonly (readonly [name: RegExp, value: RegExp])[] = [
  // The contract suite reads these, and may run in the same shell.
  [/^PETSTORE_(?:URL|API_KEY)$/, anyValue],
  // Kubernetes tells every container about each service, such as one called petstore or petstore-db.
  [/^PETSTORE_(?:\w+_)?SERVICE_(?:HOST|PORT)(?:_|$)/, anyValue],
  [/^PETSTORE_(?:\w+_)?PORT$/, /^(?:tcp|udp|sctp):\/\//],
  [/^PETSTORE_(?:\w+_)?PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/, anyValue],
  // `docker run --link` adds the name of the link, and the other container's environment.
  [/^PETSTORE_NAME$/, /^\//],
  [/^PETSTORE_ENV_/, anyValue],
]

/** The environment is wrong; one line for each variable says how. */
export class ConfigError extends Error {
  readonly lines: readonly string[]
  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.lines = lines
  }
}

const apiKeyHint = 'PETSTORE_API_KEY is set, but the server reads PETSTORE_API_KEYS, with an S'

type Environment = Readonly<Record<string, string | undefined>>

/** Called by a parser with each error in the setting. If it is called, what the parser returns is ignored. */
type Report = (fault: string) => void

/** A variable that is empty counts as not set. Throws a ConfigError. */
export function parseConfig(env: Environment): Config {
  const lines: string[] = []
  const read = <T>(name: SettingName, parse: (text: string, report: Report) => T): T => {
    const faults: string[] = []
    const value = parse(env[name] || settings[name].fallback, (fault) => faults.push(fault))
    if (faults.length === 0) return value
    lines.push(`${name}: ${faults.join('; ')}`)
    return parse(settings[name].fallback, () => {})
  }
  const port = read('PORT', parsePort)
  const host = read('HOST', parseHost)
  const apiKeys = read('PETSTORE_API_KEYS', parseKeys)
  const dataFile = read('PETSTORE_DATA_FILE', parsePath)
  const corsOrigins = read('PETSTORE_CORS_ORIGINS', parseOrigins)
  const delayMs = read('PETSTORE_DELAY', parseDelay)
  const log = read('PETSTORE_LOG', parseLog)

  const hints: string[] = []
  if (!isSet(env, 'PETSTORE_API_KEYS')) {
    // Probably a typo for PETSTORE_API_KEYS.
    if (isSet(env, 'PETSTORE_API_KEY')) hints.push(apiKeyHint)
    const reason = whyKeysAreRequired(host, log)
    if (reason !== undefined) lines.push([`PETSTORE_API_KEYS: is required ${reason}`, ...hints].join('; '))
  }
  lines.push(...findUnknown(env))
  if (lines.length > 0) throw new ConfigError(lines)
  return { port, host, apiKeys, dataFile, corsOrigins, delayMs, log, hints }
}

function isSet(env: Environment, name: string): boolean {
  return (env[name] ?? '') !== ''
}

function whyKeysAreRequired(host: string, log: LogLevel): string | undefined {
  if (!isLoopback(host)) return `because HOST (${host}) is not a loopback address`
  return log === 'silent'
    ? 'because PETSTORE_LOG is silent: nobody would see a key that is created for the run'
    : undefined
}

/** A line for each variable that is not a setting but is named like one, since it may be misspelled. */
function findUnknown(env: Environment): readonly string[] {
  const names = Object.keys(settings)
  return Object.entries(env)
    .filter(([name]) => name.startsWith('PETSTORE_') && !names.includes(name))
    .filter(([name, value = '']) => !isForeign(name, value))
    .map(([name]) => `${name}: is not a setting; the settings are ${names.join(', ')}`)
}

function isForeign(name: string, value: string): boolean {
  return foreignVariables.some(
    ([namePattern, valuePattern]) => namePattern.test(name) && valuePattern.test(value),
  )
}

/** Whether the host can be reached from this machine only (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3). */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

function parsePort(text: string, report: Report): number {
  const port = /^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
  if (!isPort(port)) report(`expected a port from 0 to 65535, got ${describe(text)}`)
  return port
}

function parseHost(text: string, report: Report): string {
  if (!isHost(text)) report(`expected an address or a name of this machine, got ${describe(text)}`)
  return text
}

/** A key is a secret, so a message gives only its position. */
function parseKeys(text: string, report: Report): readonly string[] {
  if (text === '') return []
  const keys = text.split(',').map((key) => key.trim())
  for (const [index, key] of keys.entries()) {
    const fault = keyFault(key)
    if (fault !== undefined) report(`key ${index + 1} of ${keys.length}: ${fault}`)
  }
  return keys
}

function parsePath(text: string, report: Report): string {
  if (!isPath(text)) report(`expected a path, got ${describe(text)}`)
  // A shell expands `~` only at the start of an unquoted word, and systemd, Docker and --env-file never do.
  if (/^~(?:[/\\]|$)/.test(text)) {
    report(`expected a path, got ${describe(text)}: no shell expanded the "~"; write out your home folder`)
  }
  return text
}

function parseOrigins(text: string, report: Report): '*' | readonly string[] {
  if (text === '*') return '*'
  if (text === 'none') return []
  const origins = text.split(',').map((origin) => origin.trim())
  for (const origin of origins) {
    const fault = originFault(origin)
    if (fault !== undefined) report(fault)
  }
  return origins
}

function parseDelay(text: string, report: Report): DelayMs {
  if (text === '') return 0
  const [, minimum, maximum] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  const delay = maximum === undefined ? Number(minimum) : ([Number(minimum), Number(maximum)] as const)
  if (!isDelay(delay)) {
    report(`expected milliseconds from 0 to ${maxDelayMs}, such as 300 or 200-800, got ${describe(text)}`)
  }
  return delay
}

function parseLog(text: string, report: Report): LogLevel {
  const level = logLevels.find((other) => other === text)
  if (level === undefined) report(`expected one of ${logLevels.join(', ')}, got ${describe(text)}`)
  return level ?? 'info'
}

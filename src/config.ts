/** The settings of the program, read from the environment. All errors are reported together. Reads nothing else. */
import { isIPv4 } from 'node:net'
import { keyFault } from './http/bearer-auth.ts'
import { originFault } from './http/cors.ts'
import { describe } from './json/describe.ts'
import { isDelay, maxDelayMs } from './options.ts'
import type { DelayMs } from './types.ts'

export interface Config {
  readonly port: number
  readonly host: string
  /** Empty: a key is to be created for this run. The host is a loopback address then. */
  readonly apiKeys: readonly string[]
  readonly dataFile: string
  readonly corsOrigins: '*' | readonly string[]
  /** Milliseconds that each response is held back, or the least and the most of a range. */
  readonly delayMs: DelayMs
  readonly log: LogLevel
  /** Likely mistakes, in sentences to print at the start. */
  readonly hints: readonly string[]
}

const logLevels = ['silent', 'info', 'requests'] as const
export type LogLevel = (typeof logLevels)[number]

/** All settings, for `--help` and for the README, which has the same. An empty default stands for none. */
export const settings = {
  PORT: { fallback: '3000', meaning: '0 takes a free one' },
  HOST: { fallback: '127.0.0.1', meaning: 'the address to listen on; 0.0.0.0 stands for all' },
  PETSTORE_API_KEYS: { fallback: '', meaning: 'comma-separated; without any, one is created for the run' },
  PETSTORE_DATA_FILE: { fallback: 'data/pets.json', meaning: 'created, with its folder, if it is missing' },
  PETSTORE_CORS_ORIGINS: { fallback: '*', meaning: 'comma-separated origins whose pages may call, or none' },
  PETSTORE_DELAY: { fallback: '', meaning: 'milliseconds to hold responses back: 300, or 200-800' },
  PETSTORE_LOG: { fallback: 'info', meaning: 'silent, info, or requests (a line for each request)' },
} as const

export type SettingName = keyof typeof settings

/** PETSTORE_ variables that other tools set. They are ignored. */
const foreignVariables: readonly (readonly [name: RegExp, value: RegExp])[] = [
  // The contract suite reads these, and may run in the same shell.
  [/^PETSTORE_(?:URL|API_KEY)$/, /^/],
  // Kubernetes describes each service to every container: here those called petstore, or petstore-something.
  [/^PETSTORE_(?:\w+_)?SERVICE_(?:HOST|PORT)(?:_|$)/, /^/],
  [/^PETSTORE_(?:\w+_)?PORT$/, /^(?:tcp|udp|sctp):\/\//],
  [/^PETSTORE_(?:\w+_)?PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/, /^/],
  // `docker run --link` adds the name of the link, and the environment of the other container.
  [/^PETSTORE_NAME$/, /^\//],
  [/^PETSTORE_ENV_/, /^/],
]

/** What is wrong with the environment, a line for each variable. */
export class ConfigError extends Error {
  readonly lines: readonly string[]
  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.lines = lines
  }
}

const hintOfApiKey = 'PETSTORE_API_KEY is set, but the server reads PETSTORE_API_KEYS, with an S'

type Environment = Readonly<Record<string, string | undefined>>

/** Says what is wrong with the setting that is being parsed. What the parser returns does not count then. */
type Report = (fault: string) => void

/** An empty variable counts as one that is not set. Throws a ConfigError. */
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
    // Whoever sets PETSTORE_API_KEY alone believes that this is the key.
    if (isSet(env, 'PETSTORE_API_KEY')) hints.push(hintOfApiKey)
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
  if (!isLoopback(host)) return `when HOST is not a loopback address, and HOST is ${host}`
  return log === 'silent'
    ? 'when PETSTORE_LOG is silent: nobody would see a key that is created here'
    : undefined
}

/** A line for each variable that looks like a setting and is none: it may be misspelt. */
function findUnknown(env: Environment): readonly string[] {
  const names = Object.keys(settings)
  return Object.entries(env)
    .filter(([name]) => name.startsWith('PETSTORE_') && !names.includes(name))
    .filter(([name, value = '']) => !foreignVariables.some(([n, v]) => n.test(name) && v.test(value)))
    .map(([name]) => `${name}: is not a setting; the settings are ${names.join(', ')}`)
}

/** Whether only this machine reaches the host (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3). */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

function parsePort(text: string, report: Report): number {
  const port = /^(?:0|[1-9]\d{0,4})$/.test(text) ? Number(text) : Infinity
  if (port > 65_535) report(`expected a port from 0 to 65535, got ${describe(text)}`)
  return port
}

/** Only the system knows whether there is such a host, but white space in it is a typo. */
function parseHost(text: string, report: Report): string {
  if (/[\s\p{Cc}]/u.test(text)) report(`expected an address or a name of this machine, got ${describe(text)}`)
  return text
}

/** A key is a secret, so a message shows its position only. */
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
  if (text.trim() === '' || text.includes('\0')) report(`expected a path, got ${describe(text)}`)
  // A shell expands `~` only at the head of a word that is not quoted, and systemd, Docker and --env-file never do.
  if (/^~(?:[/\\]|$)/.test(text)) {
    report(`expected a path, got ${describe(text)}, in which "~" was not expanded by a shell; write it out`)
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

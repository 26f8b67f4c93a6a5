/** The environment's settings (README, Configuration), all faults of it at once. Reads nothing but what it is given. */
import { isIPv4 } from 'node:net'
import { keyFault } from './http/bearer-auth.ts'
import { isOrigin } from './http/cors.ts'

export interface Config {
  readonly port: number
  readonly host: string
  /** Empty: one is to be made for this run. Then the host is a loopback address. */
  readonly apiKeys: readonly string[]
  readonly dataFile: string
  readonly corsOrigins: '*' | readonly string[]
  readonly log: LogLevel
}

const logLevels = ['silent', 'info', 'requests'] as const
export type LogLevel = (typeof logLevels)[number]

const settings = ['API_KEYS', 'DATA_FILE', 'CORS_ORIGINS', 'LOG'].map((name) => `PETSTORE_${name}`)

/** Read by the contract suite, which may run in the same shell. */
const foreignSettings = new Set(['PETSTORE_URL', 'PETSTORE_API_KEY'])

/** What is wrong with the environment, a line each. */
export class ConfigFault extends Error {
  readonly lines: readonly string[]
  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.lines = lines
  }
}

/** An empty variable counts as one that is not set. Throws a ConfigFault. */
export function parseConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const faults: string[] = []
  const read = <T>(
    name: string,
    fallback: T,
    parse: (text: string) => T | undefined,
    expected: string,
  ): T => {
    const text = env[name] ?? ''
    if (text === '') return fallback
    const value = parse(text)
    if (value === undefined) faults.push(`${name}: expected ${expected}`)
    return value ?? fallback
  }

  const port = read('PORT', 3000, parsePort, `a port from 0 to 65535, got ${JSON.stringify(env['PORT'])}`)
  const host = read('HOST', '127.0.0.1', parseHost, 'an address or a name of this machine')
  const keysFormat = 'keys between commas, each of letters, digits and "-._~+/", with "=" at its end only'
  const apiKeys = read('PETSTORE_API_KEYS', [], parseKeys, keysFormat)
  const dataFile = read('PETSTORE_DATA_FILE', 'data/pets.json', parseText, 'a path')
  const originsFormat = 'origins such as https://example.org between commas, or "*", or "none"'
  const corsOrigins = read('PETSTORE_CORS_ORIGINS', '*', parseOrigins, originsFormat)
  const log = read('PETSTORE_LOG', 'info', parseLog, `one of ${logLevels.join(', ')}`)

  if ((env['PETSTORE_API_KEYS'] ?? '') === '') {
    if (!isLoopback(host)) {
      faults.push(`PETSTORE_API_KEYS: is required when HOST is not a loopback address, and HOST is ${host}`)
    } else if (log === 'silent') {
      faults.push(
        'PETSTORE_API_KEYS: is required when PETSTORE_LOG is silent: a key made here would not be told',
      )
    }
  }
  for (const name of Object.keys(env)) {
    if (!name.startsWith('PETSTORE_') || settings.includes(name) || foreignSettings.has(name)) continue
    faults.push(`${name}: is not a setting; the settings are ${settings.join(', ')}, PORT and HOST`)
  }
  if (faults.length > 0) throw new ConfigFault(faults)
  return { port, host, apiKeys, dataFile, corsOrigins, log }
}

/** Whether only this machine reaches the host (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3). */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

function parsePort(text: string): number | undefined {
  const port = /^(?:0|[1-9]\d{0,4})$/.test(text) ? Number(text) : Infinity
  return port <= 65_535 ? port : undefined
}

/** Whether there is such a host is for the system to say; what has white space in it is a slip. */
function parseHost(text: string): string | undefined {
  return /[\s\p{Cc}]/u.test(text) ? undefined : text
}

function parseText(text: string): string | undefined {
  return text.trim() === '' || text.includes('\0') ? undefined : text
}

function parseKeys(text: string): readonly string[] | undefined {
  const keys = text.split(',').map((key) => key.trim())
  return keys.every((key) => keyFault(key) === undefined) ? keys : undefined
}

function parseOrigins(text: string): '*' | readonly string[] | undefined {
  if (text === '*') return '*'
  if (text === 'none') return []
  const origins = text.split(',').map((origin) => origin.trim())
  return origins.every(isOrigin) ? origins : undefined
}

function parseLog(text: string): LogLevel | undefined {
  return logLevels.find((level) => level === text)
}

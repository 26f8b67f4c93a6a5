/**
 * The value of each setting, from the arguments of the program and the variables of the environment, with all
 * that is wrong with them. Prints nothing.
 */
import { isIPv4 } from 'node:net'
import * as v from 'valibot'
import { maskUser, findPathFault, type Setting, settings, type SettingValues } from '../options/settings.ts'
import { type DatabaseAddress, parseDatabaseUrl } from '../postgres/database-url.ts'
import { describe } from '../text/words.ts'
import type { Arguments } from './arguments.ts'

/**
 * The value of each setting, checked. `apiKeys` may be empty, but only where nobody else can reach the
 * service: the program then creates a key for this run.
 */
export interface Config extends Omit<SettingValues, 'database'> {
  /** Undefined if the pets are in a file. */
  readonly database: DatabaseAddress | undefined
  /** Likely mistakes, to be printed at the start. */
  readonly hints: readonly string[]
}

/** The message has a line for each fault. */
export class ConfigError extends Error {
  /** The path, if that setting has no fault, and the pets are in no database. */
  readonly dataFile: string | undefined

  constructor(message: string, dataFile?: string) {
    super(message)
    this.dataFile = dataFile
  }
}

const nullHint = 'has null, which every sandboxed page sends, and every page that was opened as a file'
const apiKeyHint = 'PETSTORE_API_KEY is set, but the server reads PETSTORE_API_KEYS, with an S'

/**
 * What is empty counts as not set. All faults are reported together, in a ConfigError, by the argument or
 * variable that has them, behind `argumentFaults`: what is wrong with the arguments themselves.
 */
export function parseConfig(
  env: NodeJS.ProcessEnv,
  args: Arguments = {},
  argumentFaults: readonly string[] = [],
): Config {
  const sourceOf = ({ argument, variable }: Setting): { name: string; text: string } => {
    const text = args[argument]?.trim() ?? ''
    if (text !== '') return { name: `--${argument}`, text }
    // `set PORT=4000 && node server.js` of Windows gives a space too.
    return { name: variable, text: env[variable]?.trim() ?? '' }
  }
  const lines = [...argumentFaults]
  const faulty: string[] = []
  const entries = Object.entries<Setting>(settings).map(([option, setting]) => {
    const { name, text } = sourceOf(setting)
    const result = parseText(setting, text)
    if (result.success) return [option, result.output]
    faulty.push(option)
    lines.push(`${name}: ${describeFaults(setting, text, result.issues)}`)
    return [option, parseText(setting, '').output]
  })
  // Each value is one that the setting's own schema made.
  const values = Object.fromEntries(entries) as SettingValues

  const hints: string[] = []
  if (values.corsOrigins.includes('null')) hints.push(`${sourceOf(settings.corsOrigins).name} ${nullHint}`)
  const transfers = ['import', 'export'].filter((name) => args[name] !== undefined)
  if (sourceOf(settings.apiKeys).text === '' && transfers.length === 0) {
    if (env['PETSTORE_API_KEY']?.trim()) hints.push(apiKeyHint)
    const need = findKeyNeed(values, (setting) => sourceOf(setting).name)
    if (need !== undefined)
      lines.push([`PETSTORE_API_KEYS: is required because ${need}`, ...hints].join('; '))
  }
  const [file, database] = [sourceOf(settings.dataFile), sourceOf(settings.database)]
  const address = database.text === '' ? undefined : parseDatabaseUrl(database.name, database.text, env)
  lines.push(...(address?.faults ?? []), ...findTransferFaults(transfers, args, database.text !== ''))
  if (file.text !== '' && database.text !== '')
    lines.push(`${database.name}: expected it or ${file.name}, got both`)
  lines.push(...findUnknownVariables(env))
  const isFile = address === undefined && !faulty.includes('dataFile')
  if (lines.length > 0) throw new ConfigError(lines.join('\n'), isFile ? values.dataFile : undefined)
  return { ...values, database: address, hints }
}

/** Returns why a key has to be set, where one that is created for the run would not do. */
function findKeyNeed({ host, log }: SettingValues, nameOf: (setting: Setting) => string): string | undefined {
  if (!isLoopback(host)) return `${nameOf(settings.host)} (${host}) is not a loopback address`
  if (log !== 'silent') return undefined
  return `${nameOf(settings.log)} is silent: nobody would see a key that is created for the run`
}

/** Of `--import` and `--export`, those in `transfers` are given. */
function findTransferFaults(transfers: readonly string[], args: Arguments, hasDatabase: boolean): string[] {
  const faults = transfers.flatMap((name) => {
    const fault = findPathFault(args[name] ?? '')
    return fault === undefined ? [] : [`--${name}: ${fault}`]
  })
  if (transfers.length > 1 || (transfers.length > 0 && !hasDatabase))
    faults.push('--import, --export: expected one of them, and a database')
  if (args['check'] !== undefined && transfers.length > 0)
    faults.push('--check: expected neither --import nor --export with it')
  return faults
}

function parseText({ schema, parse = String, fallback = '' }: Setting, text: string) {
  return v.safeParse(schema, parse(text || fallback))
}

/**
 * A fault quotes the text, which may be the URL of another setting, with a password. So it is looked for anew
 * in the text without its user and password.
 */
function describeFaults(setting: Setting, text: string, issues: readonly v.BaseIssue<unknown>[]): string {
  const masked = maskUser(text)
  if (setting.textWords !== undefined) return `expected ${setting.textWords}, got ${describe(masked)}`
  const again = parseText(setting, masked)
  // Masking may take the fault itself out: the path `"me@home.json"` loses its first quote. Then the faults of
  // the whole text are told. Only a path can lose its fault so, and findPathFault masks what it quotes.
  const told = again.success ? issues : again.issues
  const faults = told.map(({ message, path }) => {
    const item = path?.[0]
    // A key is a secret, so its number is shown.
    const isKey = setting === settings.apiKeys && Array.isArray(item?.input)
    return isKey ? `key ${Number(item.key) + 1} of ${item.input.length}: ${message}` : message
  })
  return faults.join('; ')
}

/**
 * Returns whether the host can be reached from this machine only (RFC 1122 section 3.2.1.3, RFC 4291 section
 * 2.5.3).
 */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/** Other tools set these variables: they are no mistyped settings. */
const foreignAssignments: readonly RegExp[] = [
  // The contract suite, which may run in the same shell, has these.
  /^PETSTORE_(?:URL|API_KEY)=/,
  // Kubernetes tells every container about each service, such as petstore-db, and `docker run --link` too.
  /^PETSTORE_(?:\w+_)?(?:SERVICE_(?:HOST|PORT)|PORT_\d+_(?:TCP|UDP|SCTP))[_=]/,
  /^PETSTORE_(?:\w+_)?PORT=(?:tcp|udp|sctp):\/\//,
  // A link adds its name, and the other container's environment.
  /^PETSTORE_(?:\w+_)?(?:NAME=\/|ENV_)/,
]

/** Returns a line for each variable that may be misspelled. On Windows, case does not count in names. */
export function findUnknownVariables(env: NodeJS.ProcessEnv, isCaseless = process.platform === 'win32') {
  const known = Object.values<Setting>(settings).map(({ variable }) => variable)
  // An editor may save an `--env-file` with a byte order mark, which Node takes for a part of the first name.
  const marked = Object.keys(env).filter((name) => name.startsWith('\uFEFF'))
  const unknown = Object.entries(env)
    .map(([name, value]) => [isCaseless ? name.toUpperCase() : name, value] as const)
    .filter(([name]) => name.startsWith('PETSTORE_') && !known.includes(name))
    .filter((entry) => !foreignAssignments.some((pattern) => pattern.test(entry.join('='))))
    .map(([name]) => `${name}: is not a setting; the settings are ${known.join(', ')}`)
  const markFault = 'its name begins with a byte order mark; save the file that sets it as UTF-8 without one'
  return [...marked.map((name) => `${name.slice(1)}: ${markFault}`), ...unknown]
}

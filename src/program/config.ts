/**
 * The arguments of the program, and the value of each setting from these and from the variables of the
 * environment, with all that is wrong with them. Prints nothing.
 */
import { isIPv4 } from 'node:net'
import { basename, relative } from 'node:path'
import { parseArgs } from 'node:util'
import * as v from 'valibot'
import { describe } from '../text/words.ts'
import { maskUser, findPathFault, type Setting, settings, type SettingValues } from '../options/settings.ts'
import { type DatabaseAddress, parseDatabaseUrl } from '../postgres/database-url.ts'

/** The values of the arguments that are given, by their names without dashes. */
export type Arguments = NodeJS.Dict<string>

export interface GivenArguments {
  readonly given: Arguments
  readonly faults: readonly string[]
}

/**
 * Returns a text to print, or the values of the arguments that are given and a line for each that cannot be
 * understood. A text that is no argument may be a secret, so it is not shown.
 */
export function parseArguments(
  args: readonly string[],
  command: string,
  version: string,
  env: NodeJS.ProcessEnv = {},
): string | GivenArguments {
  const names = ['import', 'export', ...Object.values(settings).map(({ argument }) => argument)]
  const { values, tokens } = splitArgs(args, names)
  if (values['help'] === true) return formatHelp(command)
  if (values['version'] === true) return version
  const taken = findTakenByNpm(args, names, env)
  if (taken !== undefined) return { given: {}, faults: [`${taken}; ${command} --help lists the arguments`] }
  const given: Arguments = {}
  const faults: string[] = []
  /** What comes next may be the value of an option that is unknown. */
  let isAfterUnknown = false
  for (const token of tokens) {
    const fault = isAfterUnknown && token.kind === 'positional' ? undefined : findFault(token, names)
    const isUnknown = token.kind === 'option' && ![...names, 'check'].includes(token.name)
    isAfterUnknown = isUnknown && token.value === undefined
    if (fault !== undefined) faults.push(`${fault}; ${command} --help lists the arguments`)
    else if (token.kind === 'option') given[token.name] = token.value ?? ''
  }
  return { given, faults }
}

/**
 * `npm start --port 4000` tells the name to npm, which sets npm_config_port=true; with `--port=4000`, npm
 * takes the value too.
 */
function findTakenByNpm(
  args: readonly string[],
  names: readonly string[],
  env: NodeJS.ProcessEnv,
): string | undefined {
  if (env['npm_package_name'] !== 'petstore' || env['npm_lifecycle_event'] !== 'start') return undefined
  const variableOf = (name: string): string => env[`npm_config_${name.replaceAll('-', '_')}`] ?? ''
  const [taken, ...others] = names.filter((name) => variableOf(name) !== '')
  if (taken === undefined) return undefined
  const value = variableOf(taken).replace(/^true$/, () => args[0] ?? '…')
  const isHidden = others.length > 0 || /keys|database/.test(taken) || !/^[\w./:@%+~-]+$/.test(value)
  const meant = `npm start -- --${[taken, ...others].join(' … --')} ${isHidden ? '…' : maskUser(value)}`
  return `npm took --${taken}; did you mean \`${meant}\``
}

function splitArgs(args: readonly string[], names: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      check: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
    },
    strict: false,
    tokens: true,
  })
}

type Token = ReturnType<typeof splitArgs>['tokens'][number]

function findFault(token: Token, names: readonly string[]): string | undefined {
  if (token.kind === 'positional') return `argument ${token.index + 1}: expected one that begins with --`
  if (token.kind === 'option-terminator') return undefined
  const { name, rawName, value } = token
  if (name === 'check') return value === undefined ? undefined : `${rawName}: expected no value`
  if (!names.includes(name)) return `${rawName.replace(/[^\w-].*/s, '…')}: unknown`
  if (value === undefined) return `${rawName}: expected a value after it`
  if (token.inlineValue || !value.startsWith('--')) return undefined
  return `${rawName}: expected a value after it; one that begins with -- comes behind a =`
}

/** Returns how a person would start this script from the working directory. */
export function formatCommand(script: string, workingDirectory: string): string {
  if (basename(script) === 'petstore') return 'npx petstore'
  const path = relative(workingDirectory, script)
  return `node ${path.startsWith('..') ? script : path}`
}

function formatHelp(command: string): string {
  const rows = [
    ['Argument', 'Variable', 'Default', 'Meaning'],
    ...Object.values<Setting>(settings).map(({ argument, variable, fallback = '-', meaning }) => [
      `--${argument}`,
      variable,
      fallback,
      meaning,
    ]),
  ]
  const widthOf = (column: number): number => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  const table = rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widthOf(column)))
    return `  ${cells.join('  ').trimEnd()}`
  })
  return `Usage: ${command} [--port 4000] [--file mypets.json] …

A pet store service: JSON over HTTP, with one JSON file or a PostgreSQL as its database.
A setting is an argument or an environment variable; the argument wins:

${table.join('\n')}

Keys and origins are comma-separated. Without keys, one is created for each run and printed.
Keys are required if the host is not a loopback address, or if the log is silent.
Other users of this machine can see a key or a password that is given as an argument.
In the log of requests, those that an open page sends by itself have the word poll at the end.

Options:
  --check        say what a start would say of settings and data file, and change nothing; exit code 0 or 1
  --import FILE  store the pets of a data file in the database, which has none, and exit
  --export FILE  write the pets of the database into a new data file, and exit
  --verify URL   test another server against the interface, with its key by --keys; --verify --help says more
  -h, --help     print this text
  -v, --version  print the version`
}

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
  // In the path `"me@home.json"`, the fault is the first quote. It is taken out with the "user", so that
  // nothing is found in the rest. Then the faults of the whole text are told: only those of a path can be
  // lost so, and findPathFault masks what it quotes.
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

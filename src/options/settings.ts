/** The settings, one entry each, for the variables and arguments of the program, `--help`, and the options that embedding code passes. */
import { isIPv4 } from 'node:net'
import * as v from 'valibot'
import { keyFault } from '../http/bearer-auth.ts'
import { maxDelayMs, type DelayMs, parseFailures } from '../http/disturbance.ts'
import { httpErrors, originFault } from '../http/response.ts'
import { describe } from '../json/json.ts'
import { expected, expectedMessage, expectedValid } from '../pet/pet-rules.ts'
import { type DatabaseAddress, parseDatabaseUrl } from '../postgres/database-url.ts'
import { storeErrorCodes } from '../store/store.ts'

/** The entry's name in the table is that of the option. */
export interface Setting {
  readonly variable: string
  /** Without its dashes. It wins over the variable. */
  readonly argument: string
  readonly fallback?: string
  readonly meaning: string
  readonly schema: v.GenericSchema
  /** Makes the value of a text, or what the schema refuses. Without it, the text is the value. */
  readonly parse?: (text: string) => unknown
  /** What the text has to be, where the schema's words are about the value. */
  readonly expectedText?: string
}

const logLevels = ['silent', 'info', 'requests'] as const

/** All settings. The program alone has `log` and `database`; only startPetStore and the program have `port` and `host`. */
export const settings = {
  port: {
    variable: 'PORT',
    argument: 'port',
    fallback: '3000',
    meaning: 'port to listen on; 0 picks a free one',
    schema: expectedInteger('an integer', 0, 65_535),
    expectedText: 'a port from 0 to 65535',
    parse: (text: string) => (/^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : text),
  },
  host: {
    variable: 'HOST',
    argument: 'host',
    fallback: '127.0.0.1',
    meaning: 'address to listen on; 0.0.0.0 listens on all addresses',
    // White space in it is a typo, and a URL another setting's value.
    schema: expectedText('an address or a name of this machine', /^[^\s\p{Cc}/@]+$/u),
  },
  apiKeys: {
    variable: 'PETSTORE_API_KEYS',
    argument: 'keys',
    meaning: 'bearer keys that clients may use',
    schema: v.array(
      expectedValid('a key', keyFault),
      // A key is a secret.
      ({ input }) =>
        `expected an array of keys, got ${typeof input === 'string' ? 'a string' : describe(input)}`,
    ),
    parse: splitList,
  },
  dataFile: {
    variable: 'PETSTORE_DATA_FILE',
    argument: 'file',
    fallback: 'data/pets.json',
    meaning: 'file with the pets; made if there is none',
    schema: expectedValid('the path of a file', pathFault),
  },
  database: {
    variable: 'PETSTORE_DATABASE_URL',
    argument: 'database',
    meaning: 'postgres://… with the pets, instead of a file',
    // parseConfig reads it, with libpq's variables.
    schema: v.string(),
  },
  corsOrigins: {
    variable: 'PETSTORE_CORS_ORIGINS',
    argument: 'cors',
    fallback: '*',
    meaning: 'origins whose pages may read responses, or the word none',
    schema: v.lazy((input) =>
      input === '*'
        ? v.literal('*')
        : v.array(expectedValid('an origin', originFault), expectedMessage('"*" or an array of origins')),
    ),
    parse: (text: string) => (text === '*' ? text : splitList(text === 'none' ? '' : text)),
  },
  basePath: {
    variable: 'PETSTORE_BASE_PATH',
    argument: 'base-path',
    meaning: 'path under which a proxy shows it, such as /store',
    schema: expectedValid('a path such as /store', basePathFault),
  },
  delayMs: {
    variable: 'PETSTORE_DELAY',
    argument: 'delay',
    meaning: `ms to delay /v1 responses: 300 or 200-800, at most ${maxDelayMs}`,
    schema: expected<DelayMs>(`milliseconds from 0 to ${maxDelayMs}, or [minimum, maximum]`, isDelay),
    parse: parseDelay,
    expectedText: `milliseconds from 0 to ${maxDelayMs}, such as 300 or 200-800`,
  },
  fail: {
    variable: 'PETSTORE_FAIL',
    argument: 'fail',
    fallback: 'none',
    meaning: 'failures under /v1 on purpose: 10%, POST:503, prefer …',
    schema: expectedValid('failures such as 10% or 10%:500,503,drop', failFault),
  },
  log: {
    variable: 'PETSTORE_LOG',
    argument: 'log',
    fallback: 'info',
    meaning: 'silent, info, or requests (also a line per request)',
    schema: v.picklist(logLevels, expectedMessage(`one of ${logLevels.join(', ')}`)),
  },
} satisfies Record<string, Setting>

function expectedText(words: string, pattern: RegExp) {
  return expected<string>(words, (value) => typeof value === 'string' && pattern.test(value))
}

export function expectedInteger(words: string, minimum: number, maximum: number) {
  const isValue = (value: unknown) =>
    Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum
  return expected<number>(`${words} from ${minimum} to ${maximum}`, isValue)
}

function splitList(text: string): string[] {
  return text === '' ? [] : text.split(',').map((item) => item.trim())
}

function pathFault(text: string): string | undefined {
  const fault = `expected the path of a file, got ${describe(maskUser(text))}`
  // It would become folders, with the password in a name.
  if (/^[a-z][\w+.-]+:\/\//i.test(text)) return `${fault}; the URL of a database is for PETSTORE_DATABASE_URL`
  if (text.trim() === '' || text.includes('\0')) return fault
  // `set PETSTORE_DATA_FILE="pets.json"` of Windows, and env files of Docker, keep the quotes.
  if (/^(["']).*\1$/.test(text)) return `${fault}: leave out the quotes around it`
  // A shell expands `~` only at the start of an unquoted word, and systemd, Docker and --env-file never do.
  return /^~(?:[/\\]|$)/.test(text)
    ? `${fault}: no shell expanded the "~"; write out your home folder`
    : undefined
}

/** Segments as a request target spells them (RFC 3986 section 3.3), since it goes into headers unchanged; clients resolve `.` and `..`. */
const basePathPattern = /^(?:\/(?!\.\.?(?:\/|$))(?:[\w.~!$&'()*+,;=:@-]|%[\da-f]{2})+)*$/i

function basePathFault(text: string): string | undefined {
  if (basePathPattern.test(text)) return undefined
  const fault = `expected a path such as /store, got ${describe(text)}`
  const meant = `/${text.split('/').filter(Boolean).join('/')}`
  return basePathPattern.test(meant) && !text.includes('://') ? `${fault}; write ${meant}` : fault
}

/** Without the user and the password of a URL: somebody may give one for another setting. */
export function maskUser(text: string): string {
  return text.replace(/^([^/@]*:\/\/)?.*@/s, '$1…@')
}

/** The error codes that an item of `fail` may name: all but `read_only`, which is of `/healthz` alone. */
export const failureCodes: readonly string[] = [...Object.keys(httpErrors), ...storeErrorCodes]

function failFault(text: string): string | undefined {
  const faults: string[] = []
  parseFailures(text, failureCodes, faults)
  return faults.length === 0 ? undefined : faults.join('; ')
}

function isDelay(value: unknown): boolean {
  const [minimum, maximum, ...others] = Array.isArray(value) ? value : [value, value]
  const isInRange = [minimum, maximum].every((ms) => typeof ms === 'number' && ms >= 0 && ms <= maxDelayMs)
  return isInRange && minimum <= maximum && others.length === 0
}

function parseDelay(text: string): unknown {
  const [, minimum, maximum] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text || '0') ?? []
  return maximum === undefined ? Number(minimum) : [Number(minimum), Number(maximum)]
}

type SettingValues = {
  readonly [Name in keyof typeof settings]: v.InferOutput<(typeof settings)[Name]['schema']>
}

/**
 * The value of each setting, checked. `apiKeys` may be empty, but only where nobody else can reach the service: the program then creates a
 * key for this run.
 */
export interface Config extends Omit<SettingValues, 'database'> {
  /** Undefined if the pets are in a file. */
  readonly database: DatabaseAddress | undefined
  /** Likely mistakes, to be printed at the start. */
  readonly hints: readonly string[]
}

/** The values of the arguments that are given, by their names without dashes. */
export type Arguments = NodeJS.Dict<string>

/** One line of the message for each fault. */
export class ConfigError extends Error {
  /** If that setting has no fault, and the pets are in no database. */
  readonly dataFile: string | undefined

  constructor(message: string, dataFile?: string) {
    super(message)
    this.dataFile = dataFile
  }
}

const nullHint = 'has null, which every sandboxed page sends, and every page that was opened as a file'
const apiKeyHint = 'PETSTORE_API_KEY is set, but the server reads PETSTORE_API_KEYS, with an S'

/**
 * What is empty counts as not set. All faults are reported together, in a ConfigError, by the argument or variable that has them, behind
 * `argumentFaults`: what is wrong with the arguments themselves.
 */
export function parseConfig(
  env: NodeJS.ProcessEnv,
  args: Arguments = {},
  argumentFaults: readonly string[] = [],
): Config {
  const find = ({ argument, variable }: Setting): { name: string; text: string } => {
    const text = args[argument]?.trim() ?? ''
    if (text !== '') return { name: `--${argument}`, text }
    // `set PORT=4000 && node server.js` of Windows gives a space too.
    return { name: variable, text: env[variable]?.trim() ?? '' }
  }
  const lines = [...argumentFaults]
  const entries = Object.entries<Setting>(settings).map(([option, setting]) => {
    const { name, text } = find(setting)
    const result = parseText(setting, text)
    if (result.success) return [option, result.output]
    lines.push(`${name}: ${describeFaults(setting, maskUser(text), result.issues)}`)
    return [option, parseText(setting, '').output]
  })
  // Each value is one that the setting's own schema made.
  const values = Object.fromEntries(entries) as SettingValues

  const hints: string[] = []
  if (values.corsOrigins.includes('null')) hints.push(`${find(settings.corsOrigins).name} ${nullHint}`)
  if (find(settings.apiKeys).text === '') {
    if (env['PETSTORE_API_KEY']?.trim()) hints.push(apiKeyHint)
    const reason = !isLoopback(values.host)
      ? `${find(settings.host).name} (${values.host}) is not a loopback address`
      : values.log === 'silent' &&
        `${find(settings.log).name} is silent: nobody would see a key that is created for the run`
    if (reason) lines.push([`PETSTORE_API_KEYS: is required because ${reason}`, ...hints].join('; '))
  }
  const [file, database] = [find(settings.dataFile), find(settings.database)]
  const address = database.text === '' ? undefined : parseDatabaseUrl(database.name, database.text, env)
  lines.push(...(address?.faults ?? []))
  const transfers = ['import', 'export'].filter((name) => args[name] !== undefined)
  for (const name of transfers) {
    const fault = pathFault(args[name] ?? '')
    if (fault !== undefined) lines.push(`--${name}: ${fault}`)
  }
  if (transfers.length > 1 || (transfers.length > 0 && database.text === ''))
    lines.push('--import, --export: expected one of them, and a database')
  if (args['check'] !== undefined && transfers.length > 0)
    lines.push('--check: expected neither --import nor --export with it')
  if (file.text !== '' && database.text !== '')
    lines.push(`${database.name}: expected it or ${file.name}, got both`)
  lines.push(...findUnknownVariables(env))
  const isFile = address === undefined && parseText(settings.dataFile, file.text).success
  if (lines.length > 0) throw new ConfigError(lines.join('\n'), isFile ? values.dataFile : undefined)
  return { ...values, database: address, hints }
}

function parseText({ schema, parse = String, fallback = '' }: Setting, text: string) {
  return v.safeParse(schema, parse(text || fallback))
}

/** The masked text may have no faults; then the `others`, of the whole text, do not show it. */
function describeFaults(setting: Setting, masked: string, others: readonly v.BaseIssue<unknown>[]): string {
  if (setting.expectedText !== undefined) return `expected ${setting.expectedText}, got ${describe(masked)}`
  const { issues = others } = parseText(setting, masked)
  const faults = issues.map(({ message, path }) => {
    const item = path?.[0]
    // A key is a secret.
    const isKey = setting === settings.apiKeys && Array.isArray(item?.input)
    return isKey ? `key ${Number(item.key) + 1} of ${item.input.length}: ${message}` : message
  })
  return faults.join('; ')
}

/** Whether the host can be reached from this machine only (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3). */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/** Variables that other tools set: they are no mistyped settings. */
const foreignAssignments: readonly RegExp[] = [
  // Of the contract suite, which may run in the same shell.
  /^PETSTORE_(?:URL|API_KEY)=/,
  // Kubernetes tells every container about each service, such as petstore-db, and `docker run --link` too.
  /^PETSTORE_(?:\w+_)?(?:SERVICE_(?:HOST|PORT)|PORT_\d+_(?:TCP|UDP|SCTP))[_=]/,
  /^PETSTORE_(?:\w+_)?PORT=(?:tcp|udp|sctp):\/\//,
  // A link adds its name, and the other container's environment.
  /^PETSTORE_(?:\w+_)?(?:NAME=\/|ENV_)/,
]

/** A line for each variable that may be misspelled. On Windows, case does not count in names. */
export function findUnknownVariables(env: NodeJS.ProcessEnv, isCaseless = process.platform === 'win32') {
  const known = Object.values<Setting>(settings).map(({ variable }) => variable)
  // Of the first line of an `--env-file` that an editor saved with one: Node takes it for a part of the name.
  const marked = Object.keys(env).filter((name) => name.startsWith('\uFEFF'))
  const unknown = Object.entries(env)
    .map(([name, value]) => [isCaseless ? name.toUpperCase() : name, value] as const)
    .filter(([name]) => name.startsWith('PETSTORE_') && !known.includes(name))
    .filter((entry) => !foreignAssignments.some((pattern) => pattern.test(entry.join('='))))
    .map(([name]) => `${name}: is not a setting; the settings are ${known.join(', ')}`)
  const markFault = 'its name begins with a byte order mark; save the file that sets it as UTF-8 without one'
  return [...marked.map((name) => `${name.slice(1)}: ${markFault}`), ...unknown]
}

/**
 * The settings, one entry each, for the variables and arguments of the program, `--help`, and the options
 * that embedding code passes.
 */
import * as v from 'valibot'
import { findKeyFault } from '../http/bearer-auth.ts'
import { maxDelayMs, type DelayMs, findFailuresFault } from '../http/disturbance.ts'
import { httpErrors } from '../http/response.ts'
import { expected, expectedInteger, expectedMessage, expectedValid } from '../text/schemas.ts'
import { describe } from '../text/words.ts'
import { storeErrorCodes } from '../store/store.ts'
import { findOriginFault } from '../http/cors.ts'

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
  readonly textWords?: string
}

const logLevels = ['silent', 'info', 'requests'] as const

/**
 * All settings. The program alone has `log` and `database`; only startPetStore and the program have `port`
 * and `host`.
 */
export const settings = {
  port: {
    variable: 'PORT',
    argument: 'port',
    fallback: '3000',
    meaning: 'port to listen on; 0 picks a free one',
    schema: expectedInteger('an integer', 0, 65_535),
    textWords: 'a port from 0 to 65535',
    parse: (text: string) => (/^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : text),
  },
  host: {
    variable: 'HOST',
    argument: 'host',
    fallback: '127.0.0.1',
    meaning: 'address to listen on; 0.0.0.0 listens on all addresses',
    // White space in a host is a typo, and a URL is another setting's value.
    schema: expected<string>(
      'an address or a name of this machine',
      (value) => typeof value === 'string' && /^[^\s\p{Cc}/@]+$/u.test(value),
    ),
  },
  apiKeys: {
    variable: 'PETSTORE_API_KEYS',
    argument: 'keys',
    meaning: 'bearer keys that clients may use',
    schema: v.array(
      expectedValid('a key', findKeyFault),
      // Somebody may pass a key by itself, which is a secret.
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
    schema: expectedValid('the path of a file', findPathFault),
  },
  database: {
    variable: 'PETSTORE_DATABASE_URL',
    argument: 'database',
    meaning: 'postgres://… with the pets, instead of a file',
    // The program reads the URL, with libpq's variables.
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
        : v.array(expectedValid('an origin', findOriginFault), expectedMessage('"*" or an array of origins')),
    ),
    parse: (text: string) => (text === '*' ? text : splitList(text === 'none' ? '' : text)),
  },
  basePath: {
    variable: 'PETSTORE_BASE_PATH',
    argument: 'base-path',
    meaning: 'path under which a proxy shows it, such as /store',
    schema: expectedValid('a path such as /store', findBasePathFault),
  },
  delayMs: {
    variable: 'PETSTORE_DELAY',
    argument: 'delay',
    meaning: `ms to delay /v1 responses: 300 or 200-800, at most ${maxDelayMs}`,
    schema: expected<DelayMs>(
      `milliseconds from 0 to ${maxDelayMs}, or [minimum, maximum] in this order`,
      isDelay,
    ),
    parse: parseDelay,
    textWords: `milliseconds from 0 to ${maxDelayMs}, such as 300 or 200-800`,
  },
  fail: {
    variable: 'PETSTORE_FAIL',
    argument: 'fail',
    fallback: 'none',
    meaning: 'failures under /v1 on purpose: 10%, POST:503, prefer …',
    schema: expectedValid('failures such as 10% or 10%:500,503,drop', (text) =>
      findFailuresFault(text, failureCodes),
    ),
  },
  log: {
    variable: 'PETSTORE_LOG',
    argument: 'log',
    fallback: 'info',
    meaning: 'silent, info, or requests (also a line per request)',
    schema: v.picklist(logLevels, expectedMessage(`one of ${logLevels.join(', ')}`)),
  },
} satisfies Record<string, Setting>

function splitList(text: string): string[] {
  return text === '' ? [] : text.split(',').map((item) => item.trim())
}

export function findPathFault(text: string): string | undefined {
  const fault = `expected the path of a file, got ${describe(maskUser(text))}`
  // A URL would become folders, with the password in a name.
  if (/^[a-z][\w+.-]+:\/\//i.test(text)) return `${fault}; the URL of a database is for PETSTORE_DATABASE_URL`
  if (text.trim() === '' || text.includes('\0')) return fault
  // `set PETSTORE_DATA_FILE="pets.json"` of Windows, and env files of Docker, keep the quotes.
  if (/^(["']).*\1$/.test(text)) return `${fault}: leave out the quotes around it`
  // A shell expands `~` only at the start of an unquoted word, and systemd, Docker and --env-file never do.
  return /^~(?:[/\\]|$)/.test(text)
    ? `${fault}: no shell expanded the "~"; write out your home folder`
    : undefined
}

/**
 * A base path has segments as a request target spells them (RFC 3986 section 3.3), since it goes into headers
 * unchanged; clients resolve `.` and `..`.
 */
const basePathPattern = /^(?:\/(?!\.\.?(?:\/|$))(?:[\w.~!$&'()*+,;=:@-]|%[\da-f]{2})+)*$/i

function findBasePathFault(text: string): string | undefined {
  if (basePathPattern.test(text)) return undefined
  const fault = `expected a path such as /store, got ${describe(text)}`
  const meant = `/${text.split('/').filter(Boolean).join('/')}`
  return basePathPattern.test(meant) && !text.includes('://') ? `${fault}; write ${meant}` : fault
}

/** Hides the user and the password of a URL, which somebody may give for another setting. */
export function maskUser(text: string): string {
  return text.replace(/^([^/@]*:\/\/)?.*@/s, '$1…@')
}

/** An item of `fail` may name these error codes: all but `read_only`, which is of `/healthz` alone. */
const failureCodes: readonly string[] = [...Object.keys(httpErrors), ...storeErrorCodes]

function isDelay(value: unknown): boolean {
  const [minimum, maximum, ...others] = Array.isArray(value) ? value : [value, value]
  const isInRange = [minimum, maximum].every((ms) => typeof ms === 'number' && ms >= 0 && ms <= maxDelayMs)
  return isInRange && minimum <= maximum && others.length === 0
}

function parseDelay(text: string): unknown {
  const [, minimum, maximum] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text || '0') ?? []
  return maximum === undefined ? Number(minimum) : [Number(minimum), Number(maximum)]
}

export type SettingValues = {
  readonly [Name in keyof typeof settings]: v.InferOutput<(typeof settings)[Name]['schema']>
}

/** Reads the environment variables, whose rules are in settings.ts. All errors are reported together. Reads nothing else. */
import * as v from 'valibot'
import { describe } from '../json/describe.ts'
import { type Setting, settings, type SettingValues, whyKeysAreRequired } from '../settings.ts'

/** A value for each setting. If there is no key, the host is a loopback address, and one is to be created for this run. */
export interface Config extends SettingValues {
  /** Likely mistakes, to be printed at the start. */
  readonly hints: readonly string[]
}

/** Assignments of PETSTORE_ variables by other tools. They are ignored. */
const foreignAssignments: readonly RegExp[] = [
  // The contract suite reads these, and may run in the same shell.
  /^PETSTORE_(?:URL|API_KEY)=/,
  // Kubernetes tells every container about each service, such as one called petstore or petstore-db.
  /^PETSTORE_(?:\w+_)?SERVICE_(?:HOST|PORT)[_=]/,
  /^PETSTORE_(?:\w+_)?PORT=(?:tcp|udp|sctp):\/\//,
  /^PETSTORE_(?:\w+_)?PORT_\d+_(?:TCP|UDP|SCTP)[_=]/,
  // `docker run --link` adds the name of the link, and the other container's environment.
  /^PETSTORE_NAME=\//,
  /^PETSTORE_ENV_/,
]

/** The environment is wrong; a line of the message for each variable says how. */
export class ConfigError extends Error {}

const apiKeyHint = 'PETSTORE_API_KEY is set, but the server reads PETSTORE_API_KEYS, with an S'

type Environment = Readonly<Record<string, string | undefined>>

/** A variable that is empty counts as not set. Throws a ConfigError. */
export function parseConfig(env: Environment): Config {
  const lines: string[] = []
  const read = ({ variable, fallback, schema, parse = (text) => text, expectedText }: Setting): unknown => {
    const text = readVariable(env, variable) || fallback
    const { issues, output, success } = v.safeParse(schema, parse(text))
    if (success) return output
    const faults =
      expectedText === undefined
        ? issues.map((issue) => describeIssue(issue, variable))
        : [`expected ${expectedText}, got ${describe(text)}`]
    lines.push(`${variable}: ${faults.join('; ')}`)
    return v.parse(schema, parse(fallback))
  }
  const entries = Object.entries(settings).map(([name, setting]) => [name, read(setting)])
  // Each value is one that the setting's own schema made.
  const values = Object.fromEntries(entries) as SettingValues

  const hints: string[] = []
  if (readVariable(env, 'PETSTORE_API_KEYS') === '') {
    // Probably a typo for PETSTORE_API_KEYS.
    if (readVariable(env, 'PETSTORE_API_KEY') !== '') hints.push(apiKeyHint)
    const reason = whyKeysAreRequired(values)
    if (reason !== undefined) lines.push([`PETSTORE_API_KEYS: is required ${reason}`, ...hints].join('; '))
  }
  lines.push(...findUnknown(env))
  if (lines.length > 0) throw new ConfigError(lines.join('\n'))
  return { ...values, hints }
}

/** The value without the spaces around it, which `set PORT=4000 && node server.js` gives on Windows; empty if it is not set. */
function readVariable(env: Environment, name: string): string {
  return env[name]?.trim() ?? ''
}

function describeIssue({ message, path }: v.BaseIssue<unknown>, variable: string): string {
  const [item] = path ?? []
  // A key is a secret, so a message gives only its position.
  const isKey = variable === settings.apiKeys.variable && Array.isArray(item?.input)
  return isKey ? `key ${Number(item.key) + 1} of ${item.input.length}: ${message}` : message
}

/** A line for each variable that is not a setting but is named like one, since it may be misspelled. */
function findUnknown(env: Environment): readonly string[] {
  const names: readonly string[] = Object.values(settings).map(({ variable }) => variable)
  return Object.entries(env)
    .filter(([name]) => name.startsWith('PETSTORE_') && !names.includes(name))
    .filter((entry) => !foreignAssignments.some((pattern) => pattern.test(entry.join('='))))
    .map(([name]) => `${name}: is not a setting; the settings are ${names.join(', ')}`)
}

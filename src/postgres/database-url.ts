/**
 * The address of a database: reads `postgres://…`, and the certificate's file that it names. Does not connect,
 * and shows the address without its password.
 */
import { readFileSync } from 'node:fs'
import { unescape } from 'node:querystring'
import { describe } from '../text/words.ts'
import { describeSystemError } from '../system/errors.ts'

const urlPattern =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:/?#@]*)(?::(?<password>[^/?#@]*))?@)?(?<host>\[[\da-f:]+\]|[^:/?#@,]*)(?::(?<port>\d*))?(?:\/(?<database>[^/?#@]*))?(?:\?(?<query>[^#@]*))?$/
/**
 * This shows no part of the URL: an unescaped character would make a part of the password the host or the
 * database.
 */
const expected =
  'expected postgres://user:password@host:5432/database, in which "@", "/", "?", "#" and "%" of the user and the password are %40, %2F, %3F, %23 and %25'

const sessionKinds = 'any|read-write|read-only|primary|standby|prefer-standby'
/**
 * These parameters are taken, libpq's but for the last, which is Prisma's: each has its variable, its
 * default, and a pattern of its values.
 */
const parameters = {
  sslmode: ['PGSSLMODE', 'disable', 'disable|require|verify-ca|verify-full'],
  sslrootcert: ['PGSSLROOTCERT', 'system', '.*'],
  options: ['PGOPTIONS', '', '.*'],
  application_name: ['PGAPPNAME', 'petstore', '.*'],
  connect_timeout: ['PGCONNECT_TIMEOUT', '10', '[0-9]{1,4}'],
  channel_binding: ['PGCHANNELBINDING', 'disable', 'disable|prefer|require'],
  target_session_attrs: ['PGTARGETSESSIONATTRS', 'any', sessionKinds],
  connection_limit: ['', '10', '[1-9][0-9]{0,3}'],
} as const
type ParameterName = keyof typeof parameters
/** These are the values in words, where the pattern is not a list of them. */
const words: { readonly [name in ParameterName]?: string } = {
  connect_timeout: 'seconds from 0 to 9999',
  connection_limit: 'a number from 1 to 9999',
}

/** The meaning of these variables of libpq's is not known here. */
const unreadVariables =
  'PGSERVICE PGSERVICEFILE PGPASSFILE PGHOSTADDR PGREQUIREAUTH PGSSLCERT PGSSLKEY'.split(' ')

export type DatabaseAddress = ReturnType<typeof parseDatabaseUrl>

/**
 * Parses the URL that a setting gives, and reads libpq's variables (PGHOST and its like) for what it leaves out.
 * `faults` are lines; without any, the `address` is as a pool of pg's takes it. `notes` are sentences about
 * what was asked for and is not done.
 */
export function parseDatabaseUrl(setting: string, text: string, env: NodeJS.ProcessEnv) {
  const parts = urlPattern.exec(text)?.groups
  const faults = parts === undefined ? [`${setting}: ${expected}`] : []
  const given = new URLSearchParams(parts?.['query'])
  const names = Object.keys(parameters).join(', ')
  for (const name of new Set(given.keys())) {
    if (Object.hasOwn(parameters, name) && given.getAll(name).length === 1) continue
    // A name without a value may be the rest of a password.
    const shown = given.get(name) ? `${describe(name)}: ` : ''
    faults.push(`${setting}: ${shown}expected no parameters but ${names}, each once`)
  }
  const read = (name: string, variable: string, fallback = ''): string =>
    unescape(parts?.[name] ?? '') || env[variable] || fallback
  const sourceOf = (name: ParameterName): string =>
    given.get(name) ? `${setting}: ${name}` : parameters[name][0]
  const readParameter = (name: ParameterName): string => {
    const [variable, fallback, pattern] = parameters[name]
    const value = given.get(name) || env[variable] || fallback
    const isValid = new RegExp(`^(?:${pattern})$`, 's').test(value)
    if (!isValid) faults.push(`${sourceOf(name)}: expected ${words[name] ?? pattern.replaceAll('|', ', ')}`)
    return value
  }

  const user = read('user', 'PGUSER', env['USER'] || 'postgres')
  const host = read('host', 'PGHOST', 'localhost').replace(/^\[(.*)\]$/, '$1')
  const port = Number(read('port', 'PGPORT', '5432'))
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    faults.push(`${parts?.['port'] ? `${setting}: port` : 'PGPORT'}: expected a port from 1 to 65535`)
  const database = read('database', 'PGDATABASE', user)
  const options = readParameter('options')
  const certificate = readParameter('sslrootcert')
  let ssl: false | { ca?: Buffer } = readParameter('sslmode') !== 'disable' && {}
  try {
    if (ssl !== false && certificate !== 'system') ssl = { ca: readFileSync(certificate) }
  } catch (error) {
    const what = `${describe(certificate)}: cannot be read: ${describeSystemError(error)}`
    faults.push(`${sourceOf('sslrootcert')}: ${what}`)
  }

  const [shownUser, shownHost, shownDatabase] = [user, host, database].map(encodeURIComponent)
  const shownAddress = `${shownUser}@${host.includes(':') ? `[${host}]` : shownHost}:${port}/${shownDatabase}`
  const rest = `${ssl ? '&sslmode=verify-full' : ''}${options && `&options=${encodeURIComponent(options)}`}`
  const binding = readParameter('channel_binding')
  const unread = unreadVariables.filter((variable) => env[variable])
  const notes: string[] = []
  if (unread.length > 0) notes.push(`Set, but not read by this program: ${unread.join(', ')}`)
  if (binding === 'require')
    notes.push('channel_binding=require: used where the database offers it, as with prefer')
  return {
    faults,
    address: {
      user,
      host,
      port,
      database,
      options,
      ssl,
      application_name: readParameter('application_name'),
      connectionTimeoutMillis: Number(readParameter('connect_timeout')) * 1_000,
      enableChannelBinding: binding !== 'disable',
      max: Number(readParameter('connection_limit')),
    },
    password: read('password', 'PGPASSWORD'),
    session: readParameter('target_session_attrs'),
    shown: `postgres://${shownAddress}${rest.replace('&', '?')}`,
    notes,
  }
}

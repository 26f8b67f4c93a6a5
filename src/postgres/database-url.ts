/** The address of a database: reads `postgres://…`, and shows it without its password. Does not connect. */
import { readFileSync } from 'node:fs'
import { unescape } from 'node:querystring'
import { DatabaseUnusable } from './tables.ts'

const pattern =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:/?#@]*)(?::(?<password>[^/?#@]*))?@)?(?<host>\[[\da-f:]+\]|[^:/?#@,]*)(?::(?<port>\d*))?(?:\/(?<database>[^/?#@]*))?(?:\?(?<query>[^#@]*))?$/
/** Does not show the URL: an unescaped character would make a part of the password the host or the database. */
const expected =
  'expected postgres://user:password@host:5432/database, in which "@", "/", "?", "#" and "%" of the user and the password are %40, %2F, %3F, %23 and %25'
const expectedMode =
  'sslmode: expected disable, require, verify-ca or verify-full, of which the last three all check the certificate and the name of the host'
const parameterNames = ['sslmode', 'sslrootcert', 'options']

/**
 * Reads a URL in which databaseUrlFault finds nothing. What it leaves out is taken from libpq's variables (PGHOST and its like). The result
 * is for pg, but for `shown`. Throws a DatabaseUnusable, or the file system's error if the certificate of `sslrootcert` cannot be read.
 */
export function parseDatabaseUrl(text: string, env: NodeJS.ProcessEnv) {
  const parts = pattern.exec(text)?.groups ?? {}
  const parameters = new URLSearchParams(parts['query'])
  if ([...parameters.keys()].some((name) => !parameterNames.includes(name)))
    throw new DatabaseUnusable(`expected no parameters but ${parameterNames.join(', ')}`)
  const read = (name: string, variable: string, fallback = ''): string =>
    parameters.get(name) || unescape(parts[name] ?? '') || env[variable] || fallback

  const user = read('user', 'PGUSER', env['USER'] || 'postgres')
  const host = read('host', 'PGHOST', 'localhost').replace(/^\[(.*)\]$/, '$1')
  const port = Number(read('port', 'PGPORT', '5432'))
  const database = read('database', 'PGDATABASE', user)
  // Settings of the session, as `-c search_path=shop`.
  const options = read('options', 'PGOPTIONS')
  const mode = read('sslmode', 'PGSSLMODE', 'disable')
  if (!/^(?:disable|require|verify-ca|verify-full)$/.test(mode)) throw new DatabaseUnusable(expectedMode)
  const certificate = read('sslrootcert', 'PGSSLROOTCERT', 'system')
  const ssl = mode !== 'disable' && (certificate === 'system' ? {} : { ca: readFileSync(certificate) })

  const [shownUser, shownHost, shownDatabase] = [user, host, database].map(encodeURIComponent)
  const place = `${shownUser}@${host.includes(':') ? `[${host}]` : shownHost}:${port}/${shownDatabase}`
  const rest = `${ssl ? '&sslmode=verify-full' : ''}${options && `&options=${encodeURIComponent(options)}`}`
  const shown = `postgres://${place}${rest.replace('&', '?')}`
  return { user, host, port, database, password: read('password', 'PGPASSWORD'), options, ssl, shown }
}

/** What keeps a text from being the URL of a database, if anything. */
export const databaseUrlFault = (text: string): string | undefined =>
  text === '' || pattern.test(text) ? undefined : expected

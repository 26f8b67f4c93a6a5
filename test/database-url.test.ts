/** The URL of a database: what is made of it and of libpq's variables, and what is said of a wrong one. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseDatabaseUrl } from '../src/postgres/database-url.ts'
import { limitEachTest } from './time-limit.ts'

limitEachTest()

const full = {
  host: 'db.test',
  port: 6000,
  user: 'ann',
  database: 'pets',
  password: 'hush',
  ssl: false,
  options: '',
  application_name: 'petstore',
  connectionTimeoutMillis: 10_000,
  enableChannelBinding: false,
  max: 10,
  faults: [],
  notes: [],
  session: 'any',
  shown: 'postgres://ann@db.test:6000/pets',
} as const

/** All of it in one. */
function parse(url: string, env: NodeJS.ProcessEnv) {
  const { address, ...rest } = parseDatabaseUrl('--database', url, env)
  return { ...address, ...rest }
}

const addresses: readonly (readonly [string, NodeJS.ProcessEnv, Partial<ReturnType<typeof parse>>])[] = [
  ['postgres://ann:hush@db.test:6000/pets', {}, {}],
  ['postgresql://ann:hush@db.test:6000/pets', {}, {}],
  // A URL's own parts win.
  ['postgres://ann:hush@db.test:6000/pets', { PGHOST: 'other', PGPORT: '1', PGUSER: 'bob' }, {}],
  [
    'postgres://',
    { PGHOST: 'db.test', PGPORT: '6000', PGUSER: 'ann', PGDATABASE: 'pets', PGPASSWORD: 'hush' },
    {},
  ],
  ['postgres://ann:hush@db.test:6000', {}, { database: 'ann', shown: 'postgres://ann@db.test:6000/ann' }],
  [
    'postgres://db.test',
    { USER: 'me' },
    { port: 5432, user: 'me', database: 'me', password: '', shown: 'postgres://me@db.test:5432/me' },
  ],
  ...[1, 65_535].map((port) => {
    return [
      `postgres://ann:hush@db.test:${port}/pets`,
      {},
      { port, shown: `postgres://ann@db.test:${port}/pets` },
    ] as const
  }),
  ['postgres://ann:h%40%2F%3F%23%25@db.test:6000/pets', {}, { password: 'h@/?#%' }],
  ['postgres://ann:hush@[2001:db8::5]:6000/pets', {}, { host: '2001:db8::5' }],
  ['postgres://ann:hush@%2Frun%2Fpostgresql:6000/pets', {}, { host: '/run/postgresql' }],
  ['postgres://ann:hush@db.test:6000/p%20s', {}, { database: 'p s' }],
  ['postgres://ann:hush@db.test:6000/pets?sslmode=disable', {}, {}],
  ...['require', 'verify-ca', 'verify-full'].map((mode) => {
    return [`postgres://ann:hush@db.test:6000/pets?sslmode=${mode}`, {}, { ssl: {} }] as const
  }),
  ['postgres://ann:hush@db.test:6000/pets', { PGSSLMODE: 'require' }, { ssl: {} }],
  [
    'postgres://ann:hush@db.test:6000/pets?sslmode=verify-full&sslrootcert=LICENSE',
    {},
    { ssl: { ca: readFileSync('LICENSE') } },
  ],
  ['postgres://ann:hush@db.test:6000/pets?sslmode=verify-full&sslrootcert=system', {}, { ssl: {} }],
  ['postgres://ann:hush@db.test:6000/pets', { PGOPTIONS: '-c a=b' }, { options: '-c a=b' }],
  // What hosts print.
  [
    'postgres://ann:hush@db.test:6000/pets?connect_timeout=0',
    { PGCONNECT_TIMEOUT: '5' },
    { connectionTimeoutMillis: 0 },
  ],
  [
    'postgres://ann:hush@db.test:6000/pets?channel_binding=require',
    {},
    {
      enableChannelBinding: true,
      notes: ['channel_binding=require: used where the database offers it, as with prefer'],
    },
  ],
  ['postgres://ann:hush@db.test:6000/pets?connection_limit=3', {}, { max: 3 }],
  [
    'postgres://ann:hush@db.test:6000/pets',
    { PGSERVICE: 'shop', PGPASSFILE: '', PGSSLKEY: 'hush.pem' },
    { notes: ['Set, but not read by this program: PGSERVICE, PGSSLKEY'] },
  ],
  ['postgres://ann:hush@db.test:6000/pets?application_name=my%20shop', {}, { application_name: 'my shop' }],
  ['postgres://ann:hush@db.test:6000/pets?target_session_attrs=primary', {}, { session: 'primary' }],
  [
    'postgres://ann:hush@db.test:6000/pets',
    {
      PGCONNECT_TIMEOUT: '5',
      PGCHANNELBINDING: 'prefer',
      PGAPPNAME: 'shop',
      PGTARGETSESSIONATTRS: 'standby',
    },
    {
      connectionTimeoutMillis: 5_000,
      enableChannelBinding: true,
      application_name: 'shop',
      session: 'standby',
    },
  ],
]

for (const [url, env, expected] of addresses) {
  test(`reads ${url} with ${JSON.stringify(env)}, and shows all but the password`, () => {
    const { shown, ...address } = parse(url, env)
    const { shown: shownOfFull, ...rest } = full
    const { shown: expectedShown, ...changed } = expected
    assert.deepEqual(address, { ...rest, ...changed })
    if (Object.keys(changed).length === 0) assert.equal(shown, expectedShown ?? shownOfFull)
    else if (expectedShown !== undefined) assert.equal(shown, expectedShown)
    assert.ok(!shown.includes('hush'))
    // What is shown leads to the same place again.
    const { user, host, port, database, options, shown: again, ssl } = parse(shown, {})
    assert.deepEqual({ ...address, user, host, port, database, options }, address)
    assert.deepEqual([again, ssl === false], [shown, address.ssl === false])
  })
}

for (const url of [
  'hush',
  'mysql://ann:hush@db.test/pets',
  'postgres://ann:12/hush@db.test/pets',
  'postgres://ann:hush/x@db.test/pets',
  'postgres://ann:12?hush@db.test/pets',
  'postgres://ann:12#hush@db.test/pets',
  'postgres://ann:hu@sh@db.test/pets',
  'postgres://ann:hush@one.test:1,two.test:2/pets',
  'postgres://ann:hush@db.test:x/pets',
  'postgres://ann:hush@db.test/pets/more',
]) {
  test(`refuses ${url}, and shows nothing of it`, () => {
    const { faults } = parseDatabaseUrl('--database', url, {})
    assert.match(faults.join('\n'), /^--database: expected postgres:.*%40, %2F, %3F, %23 and %25$/)
    assert.doesNotMatch(faults.join(), /hush|ann/)
  })
}

const otherParameters =
  'expected no parameters but sslmode, sslrootcert, options, application_name, connect_timeout, channel_binding, target_session_attrs, connection_limit, each once'

for (const [what, env, expected] of [
  [
    ':6000/pets?sslmode=prefer',
    {},
    ['--database: sslmode: expected disable, require, verify-ca, verify-full'],
  ],
  ['/pets', { PGSSLMODE: 'allow' }, ['PGSSLMODE: expected disable, require, verify-ca, verify-full']],
  ['/pets?connect_timeout=-1', {}, ['--database: connect_timeout: expected seconds from 0 to 9999']],
  ['/pets?connection_limit=0', {}, ['--database: connection_limit: expected a number from 1 to 9999']],
  ['/pets?channel_binding=yes', {}, ['--database: channel_binding: expected disable, prefer, require']],
  ['/pets?pgbouncer=true', {}, [`--database: "pgbouncer": ${otherParameters}`]],
  ['/pets?hush', {}, [`--database: ${otherParameters}`]],
  ['/pets?__proto__=true', {}, [`--database: "__proto__": ${otherParameters}`]],
  ['/pets?sslmode=require&sslmode=disable', {}, [`--database: "sslmode": ${otherParameters}`]],
  [
    '/pets?sslmode=require&sslrootcert=none.pem',
    {},
    ['--database: sslrootcert: "none.pem": cannot be read: no such file or directory (ENOENT)'],
  ],
  [':0/pets', {}, ['--database: port: expected a port from 1 to 65535']],
  [':65536/pets', {}, ['--database: port: expected a port from 1 to 65535']],
  ['/pets', { PGPORT: 'x' }, ['PGPORT: expected a port from 1 to 65535']],
  [
    ':0/pets?foo=1&connect_timeout=abc&connection_limit=x',
    { PGTARGETSESSIONATTRS: 'bogus' },
    [
      `--database: "foo": ${otherParameters}`,
      '--database: port: expected a port from 1 to 65535',
      'PGTARGETSESSIONATTRS: expected any, read-write, read-only, primary, standby, prefer-standby',
      '--database: connect_timeout: expected seconds from 0 to 9999',
      '--database: connection_limit: expected a number from 1 to 9999',
    ],
  ],
] as const) {
  test(`refuses the address with "${what}" and ${JSON.stringify(env)}`, () => {
    const { faults } = parseDatabaseUrl('--database', `postgres://ann:hush@db.test${what}`, env)
    assert.deepEqual(faults.toSorted(), [...expected].toSorted())
  })
}

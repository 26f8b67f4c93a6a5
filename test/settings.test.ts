/** The settings: what their values may be, and what is said of wrong, misspelled and missing ones. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settings } from '../src/options/settings.ts'
import { parseDatabaseUrl } from '../src/postgres/database-url.ts'
import {
  type Config,
  ConfigError,
  findUnknownVariables,
  isLoopback,
  parseConfig,
} from '../src/program/config.ts'
import { limitEachTest } from './time-limit.ts'

limitEachTest()

const defaults: Config = {
  port: 3000,
  host: '127.0.0.1',
  apiKeys: [],
  dataFile: 'data/pets.json',
  database: undefined,
  corsOrigins: '*',
  basePath: '',
  delayMs: 0,
  fail: 'none',
  log: 'info',
  hints: [],
}

/** The errors in the environment, one line each. */
function errorsOf(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  try {
    parseConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

test('uses the defaults for variables that are not set, empty or blank', () => {
  assert.deepEqual(parseConfig({ PATH: '/bin' }), defaults)
  const blank = Object.values(settings).map(({ variable }) => [variable, ' '])
  assert.deepEqual(parseConfig(Object.fromEntries(blank)), defaults)
  assert.deepEqual(
    parseConfig({
      PORT: '',
      HOST: '',
      PETSTORE_API_KEYS: '',
      PETSTORE_DATA_FILE: '',
      PETSTORE_CORS_ORIGINS: '',
      PETSTORE_DELAY: '',
      PETSTORE_LOG: undefined,
    }),
    defaults,
  )
})

const goodSettings: readonly (readonly [string, string, Partial<Config>])[] = [
  ['PORT', '0', { port: 0 }],
  ['PORT', '65535', { port: 65_535 }],
  ['HOST', 'localhost', { host: 'localhost' }],
  ['HOST', '::1', { host: '::1' }],
  ['PETSTORE_API_KEYS', 'a', { apiKeys: ['a'] }],
  ['PETSTORE_API_KEYS', ' a , b-._~+/2== ', { apiKeys: ['a', 'b-._~+/2=='] }],
  ['PETSTORE_DATA_FILE', '/srv/my pets.json', { dataFile: '/srv/my pets.json' }],
  ['PETSTORE_CORS_ORIGINS', '*', { corsOrigins: '*' }],
  ['PETSTORE_CORS_ORIGINS', 'none', { corsOrigins: [] }],
  [
    'PETSTORE_CORS_ORIGINS',
    'https://a.test, http://b.test:8080',
    { corsOrigins: ['https://a.test', 'http://b.test:8080'] },
  ],
  ['PETSTORE_CORS_ORIGINS', 'http://[::1]:5173', { corsOrigins: ['http://[::1]:5173'] }],
  ['PETSTORE_CORS_ORIGINS', 'http://my_box.local.', { corsOrigins: ['http://my_box.local.'] }],
  [
    'PETSTORE_CORS_ORIGINS',
    'capacitor://localhost,tauri://localhost',
    { corsOrigins: ['capacitor://localhost', 'tauri://localhost'] },
  ],
  ['PETSTORE_BASE_PATH', '/store', { basePath: '/store' }],
  ['PETSTORE_BASE_PATH', '/a/b-c/~d%20e', { basePath: '/a/b-c/~d%20e' }],
  ['PETSTORE_DATA_FILE', '~pets.json', { dataFile: '~pets.json' }],
  ['PETSTORE_DATA_FILE', 'me@home/pets.json', { dataFile: 'me@home/pets.json' }],
  ['PETSTORE_DELAY', '0', { delayMs: 0 }],
  ['PETSTORE_DELAY', '300', { delayMs: 300 }],
  ['PETSTORE_DELAY', '200-800', { delayMs: [200, 800] }],
  ['PETSTORE_DELAY', '0-10000', { delayMs: [0, 10_000] }],
  ['PETSTORE_LOG', 'requests', { log: 'requests' }],
  [
    'PETSTORE_DATABASE_URL',
    'postgres://u:p@h/d',
    { database: parseDatabaseUrl('PETSTORE_DATABASE_URL', 'postgres://u:p@h/d', {}) },
  ],
  // What `set PORT=3111 && node server.js` gives on Windows.
  ['PORT', '3111 ', { port: 3111 }],
  ['HOST', ' localhost ', { host: 'localhost' }],
  ['PETSTORE_API_KEYS', ' a ', { apiKeys: ['a'] }],
  ['PETSTORE_DATA_FILE', '/srv/my pets.json ', { dataFile: '/srv/my pets.json' }],
  ['PETSTORE_CORS_ORIGINS', 'none ', { corsOrigins: [] }],
  ['PETSTORE_DELAY', '200-800\r', { delayMs: [200, 800] }],
  ['PETSTORE_LOG', ' requests', { log: 'requests' }],
]

for (const [name, text, expected] of goodSettings) {
  test(`reads ${name}=${JSON.stringify(text)}`, () => {
    assert.deepEqual(parseConfig({ [name]: text }), { ...defaults, ...expected })
  })
}

const badSettings: readonly (readonly [string, readonly string[]])[] = [
  ['PORT', ['abc', '-1', '65536', '1e3', '080', '30 00', '0x10', '１', '99999999999']],
  ['HOST', ['a b', '127.0.0.1\n,', 'a\u0000b', 'http://127.0.0.1', 'u:p@h']],
  ['PETSTORE_API_KEYS', [',', 'a,,b', 'a,', 'a b', 'schlüssel', 'a;b', '=a', '"a"', 'a\nb']],
  ['PETSTORE_API_KEYS', ['k'.repeat(15_361)]],
  ['PETSTORE_DATA_FILE', ['a\u0000b', '~', '~/pets.json']],
  ['PETSTORE_CORS_ORIGINS', ['example.org', 'https://a.test/', 'https://a.test,*', ',', 'null,']],
  [
    'PETSTORE_CORS_ORIGINS',
    ['https://*.a.test', 'https://.a.test', 'ws://a.test', 'capacitor://', 'https://(a|b).test'],
  ],
  [
    'PETSTORE_BASE_PATH',
    ['/', 'store', '/store/', '//store', '/a b', '/a?b', '/%', '/..', '/a/./b', 'https://a.test/store'],
  ],
  [
    'PETSTORE_DELAY',
    ['-1', '10001', '1e3', '0.5', '300ms', '800-200', '200-', '-200', '1-2-3', '200-10001', '5 0'],
  ],
  ['PETSTORE_LOG', ['loud', 'INFO', 'debug']],
  ['PETSTORE_DATABASE_URL', ['mysql://u:p@h/d', 'h/d', 'postgres://u:p/q@h/d', 'postgres://h:99999/d']],
]

for (const [name, texts] of badSettings) {
  for (const text of texts) {
    test(`refuses ${name}=${JSON.stringify(text.slice(0, 20))}`, () => {
      const [line = '', ...others] = errorsOf({ [name]: text })
      assert.match(line, new RegExp(`^${name}: .*expected .+$`))
      assert.deepEqual(others, [])
    })
  }
}

test('notes that null admits more pages than one might think', () => {
  for (const text of ['null', 'https://a.test,null'])
    assert.deepEqual(parseConfig({ PETSTORE_CORS_ORIGINS: text }).hints, [
      'PETSTORE_CORS_ORIGINS has null, which every sandboxed page sends, and every page that was opened as a file',
    ])
  assert.match(parseConfig({}, { cors: 'null' }).hints.join(), /^--cors has null, /)
})

test('reports all errors together, one line each', () => {
  const lines = errorsOf({
    PORT: 'abc',
    HOST: '0.0.0.0',
    PETSTORE_LOG: 'loud',
    PETSTORE_CORS_ORIGINS: 'x',
    PETSTORE_KEY: 'a',
    PETSTORE_DATAFILE: 'b',
  })
  const names = lines.map((line) => line.slice(0, line.indexOf(':')))
  assert.deepEqual(names.toSorted(), [
    'PETSTORE_API_KEYS',
    'PETSTORE_CORS_ORIGINS',
    'PETSTORE_DATAFILE',
    'PETSTORE_KEY',
    'PETSTORE_LOG',
    'PORT',
  ])
  assert.ok(lines.every((line) => !line.includes('\n')))
})

const messages: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
  [{ PORT: 'abc' }, 'PORT: expected a port from 0 to 65535, got "abc"'],
  [{ HOST: 'a b' }, 'HOST: expected an address or a name of this machine, got "a b"'],
  [
    { PETSTORE_API_KEYS: 'good,not good, ' },
    'PETSTORE_API_KEYS: key 2 of 3: expected letters, digits and "-._~+/", with "=" at the end only; ' +
      'key 3 of 3: expected letters, digits and "-._~+/", with "=" at the end only',
  ],
  [
    { PETSTORE_API_KEYS: 'k'.repeat(20_000) },
    'PETSTORE_API_KEYS: key 1 of 1: is too long to be sent in 16 KiB of headers: expected at most 15360 characters, got 20000',
  ],
  [
    { PETSTORE_DATA_FILE: '~/pets.json' },
    'PETSTORE_DATA_FILE: expected the path of a file, got "~/pets.json": no shell expanded the "~"; write out your home folder',
  ],
  [
    { PETSTORE_DATA_FILE: '"my pets.json"' },
    String.raw`PETSTORE_DATA_FILE: expected the path of a file, got "\"my pets.json\"": leave out the quotes around it`,
  ],
  [
    { PETSTORE_DATA_FILE: "'my pets.json'" },
    `PETSTORE_DATA_FILE: expected the path of a file, got "'my pets.json'": leave out the quotes around it`,
  ],
  [
    { PETSTORE_DATA_FILE: '"me@home.json"' },
    String.raw`PETSTORE_DATA_FILE: expected the path of a file, got "…@home.json\"": leave out the quotes around it`,
  ],
  [
    { PETSTORE_CORS_ORIGINS: 'https://a.test,https://b.test/,https://c.test/shop,localhost:5173' },
    'PETSTORE_CORS_ORIGINS: expected an origin such as https://example.org, got "https://b.test/"; write https://b.test; ' +
      'expected an origin such as https://example.org, got "https://c.test/shop"; write https://c.test; ' +
      'expected an origin such as https://example.org, got "localhost:5173"; write http://localhost:5173',
  ],
  [
    { PETSTORE_CORS_ORIGINS: 'https://a.test http://localhost:3000' },
    'PETSTORE_CORS_ORIGINS: expected an origin such as https://example.org, got "https://a.test http://localhost:3000"; give each by itself: https://a.test, http://localhost:3000',
  ],
  [
    { PETSTORE_CORS_ORIGINS: 'a.test; capacitor://localhost' },
    'PETSTORE_CORS_ORIGINS: expected an origin such as https://example.org, got "a.test; capacitor://localhost"; give each by itself: https://a.test, capacitor://localhost',
  ],
  [
    { PETSTORE_CORS_ORIGINS: 'https://*.example.org' },
    'PETSTORE_CORS_ORIGINS: expected an origin such as https://example.org, got "https://*.example.org"; write out each origin, or * alone for all',
  ],
  [
    { PETSTORE_CORS_ORIGINS: 'wss://example.org/live' },
    'PETSTORE_CORS_ORIGINS: expected an origin such as https://example.org, got "wss://example.org/live"; write https://example.org',
  ],
  [
    { PETSTORE_CORS_ORIGINS: 'https://.+\\.example\\.org' },
    String.raw`PETSTORE_CORS_ORIGINS: expected an origin such as https://example.org, got "https://.+\\.example\\.org"`,
  ],
  [
    { PETSTORE_BASE_PATH: '/store/' },
    'PETSTORE_BASE_PATH: expected a path such as /store, got "/store/"; write /store',
  ],
  [
    { PETSTORE_BASE_PATH: 'pet/store' },
    'PETSTORE_BASE_PATH: expected a path such as /store, got "pet/store"; write /pet/store',
  ],
  [
    { PETSTORE_BASE_PATH: 'https://a.test/store' },
    'PETSTORE_BASE_PATH: expected a path such as /store, got "https://a.test/store"',
  ],
  [
    { PETSTORE_DELAY: '0.3' },
    'PETSTORE_DELAY: expected milliseconds from 0 to 10000, such as 300 or 200-800, got "0.3"',
  ],
  [{ PETSTORE_LOG: 'loud' }, 'PETSTORE_LOG: expected one of silent, info, requests, got "loud"'],
]

for (const [env, message] of messages) {
  test(`says ${message.slice(0, 80)}…`, () => {
    assert.deepEqual(errorsOf(env), [message])
  })
}

test('ignores the variables that Kubernetes and docker links set for a service called petstore', () => {
  const env = {
    PETSTORE_SERVICE_HOST: '10.0.0.7',
    PETSTORE_SERVICE_PORT: '3000',
    PETSTORE_SERVICE_PORT_HTTP: '3000',
    PETSTORE_PORT: 'tcp://10.0.0.7:3000',
    PETSTORE_PORT_3000_TCP: 'tcp://10.0.0.7:3000',
    PETSTORE_PORT_3000_TCP_PROTO: 'tcp',
    PETSTORE_PORT_3000_TCP_PORT: '3000',
    PETSTORE_PORT_3000_TCP_ADDR: '10.0.0.7',
    PETSTORE_PORT_53_UDP: 'udp://10.0.0.7:53',
    PETSTORE_NAME: '/web/petstore',
    PETSTORE_ENV_NODE_VERSION: '22.0.0',
    PETSTORE_DB_SERVICE_HOST: '10.0.0.8',
    PETSTORE_DB_PORT: 'tcp://10.0.0.8:5432',
    PETSTORE_DB_PORT_5432_TCP_PROTO: 'tcp',
    PETSTORE_DB_NAME: '/web/petstore-db',
    PETSTORE_DB_ENV_PGDATA: '/var/lib/postgresql',
  }
  assert.deepEqual(parseConfig(env), defaults)
})

test('refuses variables that only resemble those of Kubernetes and docker links', () => {
  const env = {
    PETSTORE_PORT: '4000',
    PETSTORE_NAME: 'shop',
    PETSTORE_SERVICE: 'a',
    PETSTORE_PORTS: 'tcp://a',
  }
  assert.deepEqual(
    errorsOf(env).map((line) => line.slice(0, line.indexOf(':'))),
    Object.keys(env),
  )
})

test('takes a database or a data file, but not both', () => {
  const url = 'postgres://u:hush@h/d'
  assert.deepEqual(errorsOf({ PETSTORE_DATABASE_URL: url, PETSTORE_DATA_FILE: 'a.json' }), [
    'PETSTORE_DATABASE_URL: expected it or PETSTORE_DATA_FILE, got both',
  ])
  assert.throws(() => parseConfig({ PETSTORE_DATA_FILE: 'a.json' }, { database: url }), {
    message: '--database: expected it or PETSTORE_DATA_FILE, got both',
  })
})

test('hints at PETSTORE_API_KEYS when PETSTORE_API_KEY is set instead', () => {
  const hint = 'PETSTORE_API_KEY is set, but the server reads PETSTORE_API_KEYS, with an S'
  const env = { PETSTORE_API_KEY: 'a' }
  assert.deepEqual(parseConfig(env).hints, [hint])
  assert.deepEqual(parseConfig({ ...env, PETSTORE_API_KEYS: 'b' }).hints, [])
  assert.deepEqual(errorsOf({ ...env, HOST: '0.0.0.0' }), [
    `PETSTORE_API_KEYS: is required because HOST (0.0.0.0) is not a loopback address; ${hint}`,
  ])
})

test('lists the settings in the message about an unknown one', () => {
  const [line = ''] = errorsOf({ PETSTORE_APIKEYS: 'a' })
  for (const name of ['API_KEYS', 'DATA_FILE', 'CORS_ORIGINS', 'DELAY', 'LOG']) {
    assert.ok(line.includes(`PETSTORE_${name}`), line)
  }
})

test('ignores the variables of the contract suite', () => {
  assert.deepEqual(parseConfig({ PETSTORE_URL: 'http://a.test', PETSTORE_API_KEY: 'a' }), {
    ...defaults,
    hints: ['PETSTORE_API_KEY is set, but the server reads PETSTORE_API_KEYS, with an S'],
  })
})

test('prints no key in a message', () => {
  const secret = 'hush-hush'
  const lines = errorsOf({
    PORT: 'abc',
    PETSTORE_API_KEYS: `${secret},not a key`,
    PETSTORE_APIKEY: secret,
    PETSTORE_API_KEY: secret,
  })
  assert.equal(lines.length, 3)
  assert.ok(!lines.join('\n').includes('hush'), lines.join('\n'))
  assert.ok(!lines.join('\n').includes('not a key'), lines.join('\n'))
})

test('prints neither user nor password of a URL that is given for another setting', () => {
  const urls = [
    'postgres://b0b:h4sh@h/d',
    `postgres://b0b:${'l0ng'.repeat(30)}@h/d`,
    'postgres://b0b:h4/sh@h4#@h/d',
    'b0b:h4sh@h/d',
    'postgres://b0b:h4sh@h/d,https://a.test',
  ]
  for (const { variable, argument } of Object.values(settings).filter(
    ({ argument: name }) => name !== 'database',
  )) {
    // The path of a file may have an @.
    for (const url of urls.filter((each) => argument !== 'file' || each.includes('://')))
      for (const parse of [
        () => parseConfig({ [variable]: url }),
        () => parseConfig({}, { [argument]: url }),
      ])
        assert.throws(parse, ({ message }: Error) => !/b0b|h4|l0ng/.test(message), `${argument} ${url}`)
  }
  assert.deepEqual(errorsOf({ PORT: 'postgres://ann:hush@h/d' }), [
    'PORT: expected a port from 0 to 65535, got "postgres://…@h/d"',
  ])
  assert.deepEqual(errorsOf({ PETSTORE_DATA_FILE: 'postgres://ann:hush@h/d' }), [
    'PETSTORE_DATA_FILE: expected the path of a file, got "postgres://…@h/d"; the URL of a database is for PETSTORE_DATABASE_URL',
  ])
  for (const name of ['import', 'export'])
    assert.throws(() => parseConfig({}, { [name]: 'postgres://ann:hush@h/d', database: 'postgres://h/d' }), {
      message: `--${name}: expected the path of a file, got "postgres://…@h/d"; the URL of a database is for PETSTORE_DATABASE_URL`,
    })
})

test('refuses an import and an export with an empty path, as of a variable that is not set, and starts nothing', () => {
  for (const name of ['import', 'export'])
    assert.throws(() => parseConfig({ PETSTORE_API_KEYS: 'a' }, { [name]: '' }), {
      message: `--${name}: expected the path of a file, got ""\n--import, --export: expected one of them, and a database`,
    })
})

test('takes a setting whose name is written in other letters for the setting where case does not count, as on Windows', () => {
  const env = { PETSTORE_delay: '300', Petstore_Log: 'info', petstore_dalay: '1' }
  const findUnknown = (isCaseless: boolean): readonly string[] =>
    findUnknownVariables(env, isCaseless).map((line) => line.split(':')[0] ?? '')
  assert.deepEqual(findUnknown(true), ['PETSTORE_DALAY'])
  assert.deepEqual(findUnknown(false), ['PETSTORE_delay'])
  assert.deepEqual(findUnknownVariables(env), findUnknownVariables(env, process.platform === 'win32'))
})

test('refuses a name that begins with the byte order mark of its file, which would leave its setting unset', () => {
  const errors = errorsOf({ '\uFEFFPORT': '4000', '\uFEFFPETSTORE_API_KEYS': 'hush' })
  const fault = 'its name begins with a byte order mark; save the file that sets it as UTF-8 without one'
  assert.deepEqual(errors, [`PORT: ${fault}`, `PETSTORE_API_KEYS: ${fault}`])
})

test('requires keys for a host that others can reach, and for a run that would not print a created key', () => {
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1', 'pets.test']) {
    assert.match(errorsOf({ HOST }).join('\n'), /^PETSTORE_API_KEYS: is required because HOST \(.+\) is not /)
    assert.deepEqual(errorsOf({ HOST, PETSTORE_API_KEYS: 'a' }), [])
  }
  assert.match(errorsOf({ PETSTORE_LOG: 'silent' }).join('\n'), /^PETSTORE_API_KEYS: is required .*silent/)
  assert.deepEqual(errorsOf({ PETSTORE_LOG: 'silent', PETSTORE_API_KEYS: 'a' }), [])
})

test('takes only loopback hosts for loopback', () => {
  for (const host of ['localhost', '127.0.0.1', '127.255.0.9', '::1']) assert.ok(isLoopback(host), host)
  for (const host of [
    '0.0.0.0',
    '::',
    '128.0.0.1',
    '127.0.0.1.test',
    '127.999.0.1',
    '127.1',
    'localhost.test',
  ]) {
    assert.ok(!isLoopback(host), host)
  }
})

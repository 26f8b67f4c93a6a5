import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Config, ConfigFault, isLoopback, parseConfig } from '../src/config.ts'

const defaults: Config = {
  port: 3000,
  host: '127.0.0.1',
  apiKeys: [],
  dataFile: 'data/pets.json',
  corsOrigins: '*',
  log: 'info',
}

/** The faults of the environment, a line each. */
function faultsOf(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  try {
    parseConfig(env)
  } catch (error) {
    if (error instanceof ConfigFault) return error.lines
    throw error
  }
  return []
}

test('takes the defaults from an environment that says nothing, or says it with nothing', () => {
  assert.deepEqual(parseConfig({ PATH: '/bin' }), defaults)
  assert.deepEqual(
    parseConfig({
      PORT: '',
      HOST: '',
      PETSTORE_API_KEYS: '',
      PETSTORE_DATA_FILE: '',
      PETSTORE_CORS_ORIGINS: '',
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
  ['PETSTORE_LOG', 'requests', { log: 'requests' }],
]

for (const [name, text, expected] of goodSettings) {
  test(`reads ${name}=${text}`, () => {
    assert.deepEqual(parseConfig({ [name]: text }), { ...defaults, ...expected })
  })
}

const badSettings: readonly (readonly [string, readonly string[]])[] = [
  ['PORT', ['abc', '-1', '65536', '1e3', '080', '3000 ', '0x10', '１', '99999999999']],
  ['HOST', [' ', 'a b', '127.0.0.1\n', 'a\u0000b']],
  ['PETSTORE_API_KEYS', [',', 'a,,b', 'a,', 'a b', 'schlüssel', 'a;b', '=a', '"a"', 'a\nb']],
  ['PETSTORE_DATA_FILE', [' ', 'a\u0000b']],
  ['PETSTORE_CORS_ORIGINS', ['example.org', 'https://a.test/', 'https://a.test,*', ',', 'null,']],
  ['PETSTORE_LOG', ['loud', 'INFO', 'debug']],
]

for (const [name, texts] of badSettings) {
  for (const text of texts) {
    test(`refuses ${name}=${JSON.stringify(text)}`, () => {
      const [line = '', ...others] = faultsOf({ [name]: text })
      assert.match(line, new RegExp(`^${name}: expected .+$`))
      assert.deepEqual(others, [])
    })
  }
}

test('reports all faults at once, a line each', () => {
  const lines = faultsOf({
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

test('names the settings there are for one that there is not', () => {
  const [line = ''] = faultsOf({ PETSTORE_APIKEYS: 'a' })
  for (const name of ['API_KEYS', 'DATA_FILE', 'CORS_ORIGINS', 'LOG']) {
    assert.ok(line.includes(`PETSTORE_${name}`), line)
  }
})

test('leaves the settings of the contract suite alone', () => {
  assert.deepEqual(parseConfig({ PETSTORE_URL: 'http://a.test', PETSTORE_API_KEY: 'a' }), defaults)
})

test('prints no key in a fault', () => {
  const secret = 'hush-hush'
  const lines = faultsOf({
    PORT: 'abc',
    PETSTORE_API_KEYS: `${secret},not a key`,
    PETSTORE_APIKEY: secret,
    PETSTORE_API_KEY: secret,
  })
  assert.equal(lines.length, 3)
  assert.ok(!lines.join('\n').includes('hush'), lines.join('\n'))
  assert.ok(!lines.join('\n').includes('not a key'), lines.join('\n'))
})

test('wants keys for a host that others reach, and for a run that would not tell the key it made', () => {
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1', 'pets.test']) {
    assert.match(faultsOf({ HOST }).join('\n'), /^PETSTORE_API_KEYS: is required .*HOST is /)
    assert.deepEqual(faultsOf({ HOST, PETSTORE_API_KEYS: 'a' }), [])
  }
  assert.match(faultsOf({ PETSTORE_LOG: 'silent' }).join('\n'), /^PETSTORE_API_KEYS: is required .*silent/)
  assert.deepEqual(faultsOf({ PETSTORE_LOG: 'silent', PETSTORE_API_KEYS: 'a' }), [])
})

test('takes for loopback only what is nothing else', () => {
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

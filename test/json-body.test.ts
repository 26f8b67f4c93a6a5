/** Bodies: their media type, size, encoding and syntax, from the request to the refusal or the stored pet. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertRefusal, connectRaw, formatRequest, type RequestOptions, startApp } from './support.ts'

const pet = { name: 'Rex', categoryId: 1 }
const maxBodyBytes = 65_536

const bytes = (...parts: (string | number[])[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))))

/** A creation of exactly this many bytes. */
const padTo = (size: number): string => JSON.stringify(pet).padEnd(size)
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const deep = (inner: string): string => `${'['.repeat(30_000)}${inner}${']'.repeat(30_000)}`

describe('media types (RFC 9110 8.3, RFC 8259 11)', () => {
  const taken: (string | null)[] = [
    null,
    'application/json',
    'APPLICATION/JSON',
    'application/json;',
    'application/json ; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json; charset=utf8',
    'application/json; profile=x',
  ]
  for (const type of taken)
    test(`takes ${type ?? 'none'}`, async (t) => {
      const app = await startApp(t)
      const body = Buffer.from(JSON.stringify(pet))
      const { status } = await app.send('/v1/pets', { body, headers: { 'content-type': type } })
      assert.equal(status, 201)
    })

  const refused: Record<string, string>[] = [
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-type': 'application/jsonp' },
    { 'content-type': 'application/problem+json' },
    { 'content-type': 'text/json, application/json' },
    { 'content-type': 'application/json; charset=utf-16' },
    { 'content-type': 'application/json; charset=iso-8859-1' },
    { 'content-encoding': 'gzip' },
    { 'content-encoding': 'identity' },
  ]
  for (const headers of refused)
    test(`refuses ${Object.entries(headers).join()}, and says what to send`, async (t) => {
      const app = await startApp(t)
      const message = assertRefusal(
        await app.send('/v1/pets', { body: pet, headers }),
        415,
        'unsupported_media_type',
      )
      assert.match(message, /-H 'Content-Type: application\/json'/)
      const [[name, value] = []] = Object.entries(headers)
      const wanted =
        name === 'content-type'
          ? 'Content-Type: expected application/json'
          : 'Content-Encoding: expected none'
      assert.ok(message.startsWith(`${wanted}, got ${JSON.stringify(value)}; `), message)
      assert.equal((await app.send('/v1/pets')).text, '[]')
    })

  test('quotes what came in short', async (t) => {
    const app = await startApp(t)
    const headers = { 'content-type': `text/${'x'.repeat(9_000)}` }
    const answer = await app.send('/v1/pets', { body: pet, headers })
    assert.ok(assertRefusal(answer, 415, 'unsupported_media_type').length < 300)
  })

  test('refuses two lines of Content-Type, of which Node shows the first', async (t) => {
    const client = await connectRaw(t, (await startApp(t)).url)
    const lines = ['Content-Type: application/json', 'content-type: text/plain']
    client.write(formatRequest('POST /v1/pets', lines, JSON.stringify(pet)))
    assertRefusal(await client.read(), 415, 'unsupported_media_type')
  })

  test('refuses an empty Content-Type', async (t) => {
    const client = await connectRaw(t, (await startApp(t)).url)
    client.write(formatRequest('POST /v1/pets', ['Content-Type: '], JSON.stringify(pet)))
    assertRefusal(await client.read(), 415, 'unsupported_media_type')
  })
})

describe('size (RFC 9110 15.5.14)', () => {
  for (const [size, status] of [
    [maxBodyBytes, 201],
    [maxBodyBytes + 1, 413],
  ] as const) {
    test(`${size} bytes are ${status} when declared`, async (t) => {
      const client = await connectRaw(t, (await startApp(t)).url)
      client.write(formatRequest('POST /v1/pets', [], padTo(size)))
      const answer = await client.read()
      assert.equal(answer.status, status)
      if (status === 413) {
        const message = assertRefusal(answer, 413, 'content_too_large')
        assert.equal(message, `The body is larger than ${maxBodyBytes} bytes.`)
      }
    })
    test(`${size} bytes are ${status} in chunks`, async (t) => {
      const client = await connectRaw(t, (await startApp(t)).url)
      const body = padTo(size)
      const chunks = chunk(body.slice(0, 40_000)) + chunk(body.slice(40_000))
      client.write(formatRequest('POST /v1/pets', ['Transfer-Encoding: chunked'], `${chunks}0\r\n\r\n`))
      assert.equal((await client.read()).status, status)
    })
  }

  test('a pet of the greatest size is created, listed and fetched', async (t) => {
    const app = await startApp(t)
    const name = 'ä'.repeat((maxBodyBytes - '{"name":"","categoryId":1}'.length) / 2)
    const { status, text } = await app.send('/v1/pets', { body: { name, categoryId: 1 } })
    assert.equal(status, 201)
    assert.equal((await app.send('/v1/pets')).text, `[${text}]`)
    assert.equal((await app.send('/v1/pets/1')).text, text)
  })
})

describe('syntax (RFC 8259)', () => {
  const malformed: Record<string, [body: string | Uint8Array, message: RegExp]> = {
    'no body': ['', /^body: is empty; expected a JSON object$/],
    'a mark alone': [bytes([0xef, 0xbb, 0xbf]), /^body: is empty/],
    'white space': ['  \n', /^body: line 2, column 1: expected a value, got the end$/],
    'half an object': ['{"name":"Rex",', /^body: line 1, column 15: expected .* got the end$/],
    'two objects': ['{}{}', /^body: line 1, column 3: expected the end, got "{"$/],
    'single quotes': ["{'name':'Rex'}", /^body: line 1, column 2: expected .* got "'"$/],
    'quotes that a shell took away': [
      '{name:Rex,categoryId:1}',
      /^body: line 1, column 2: expected a member name in double quotes, got "n"; the shell may have taken the quotes away: /,
    ],
    'a form': ['name=Rex&categoryId=1', /^body: line 1, column 1: expected a value, got "n"$/],
    'a trailing comma': ['{"name":"Rex",\n"categoryId":1,\n}', /^body: line 3, column 1: /],
    NaN: ['{"name":"Rex","categoryId":NaN}', /^body: line 1, column 28: /],
    'a leading zero': [
      '{"name":"Rex","categoryId":01}',
      /^body: line 1, column 28: expected a number, got 01$/,
    ],
    'a control character in a string': ['{"name":"a\nb","categoryId":1}', /^body: line 1, column 11: /],
    'two marks': [
      bytes([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf], JSON.stringify(pet)),
      /^body: line 1, column 1: expected a value, got U\+FEFF$/,
    ],
    'a space that does not break': ['{"name":"Rex",\u00a0"categoryId":1}', /column 15: .* got U\+00A0$/],
    'a space without a width': ['{"name":\u200b"Rex"}', /column 9: expected a value, got U\+200B$/],
    'invalid UTF-8': [bytes('{"name":"', [0xff], '","categoryId":1}'), /^body: is not UTF-8$/],
    'a cut UTF-8 sequence': [bytes('{"name":"', [0xc3], '","categoryId":1}'), /^body: is not UTF-8$/],
    'an overlong UTF-8 sequence': [
      bytes('{"name":"', [0xc0, 0xaf], '","categoryId":1}'),
      /^body: is not UTF-8$/,
    ],
    'a surrogate in UTF-8': [
      bytes('{"name":"', [0xed, 0xa0, 0x80], '","categoryId":1}'),
      /^body: is not UTF-8$/,
    ],
    'UTF-16': [Buffer.from(JSON.stringify(pet), 'utf16le'), /^body: /],
    'Latin-1': [Buffer.from('{"name":"Zoë","categoryId":1}', 'latin1'), /^body: is not UTF-8$/],
    'depth without an end': ['['.repeat(60_000), /^body: line 1, column 60001: expected .* got the end$/],
    'a long number that is none': [
      `[${'1'.repeat(50_000)}.]`,
      /^body: line 1, column 2: expected a number, got 1{40}$/,
    ],
  }
  for (const [title, [body, expected]] of Object.entries(malformed))
    test(`${title} is malformed_json, with its place`, async (t) => {
      const app = await startApp(t)
      const message = assertRefusal(await app.send('/v1/pets', { body }), 400, 'malformed_json')
      assert.match(message, expected)
      assert.equal((await app.send('/v1/pets')).text, '[]')
    })

  const wrong: Record<string, [body: string, message: string]> = {
    'an array': ['[]', 'body: expected a JSON object, got an array'],
    'a string': ['"Rex"', 'body: expected a JSON object, got "Rex"'],
    'a number': ['1234567890123456789', 'body: expected a JSON object, got 1234567890123456789'],
    null: ['null', 'body: expected a JSON object, got null'],
    'an empty object': ['{}', 'name: is required; categoryId: is required'],
    'only a prototype': [
      `{"__proto__":${JSON.stringify(pet)}}`,
      'name: is required; categoryId: is required',
    ],
    'inherited names': ['{"constructor":1,"toString":2}', 'name: is required; categoryId: is required'],
    nested: [`{"pet":${JSON.stringify(pet)}}`, 'name: is required; categoryId: is required'],
    'the depth in a member': [
      `{"name":${'['.repeat(30_000)}${']'.repeat(30_000)},"categoryId":1}`,
      'name: expected a string, got an array',
    ],
    'a lone surrogate': [
      '{"name":"\\ud83d","categoryId":1}',
      'name: expected well-formed Unicode, got a lone surrogate',
    ],
    'a surrogate pair the wrong way round': [
      '{"name":"\\udc3e\\ud83d","categoryId":1}',
      'name: expected well-formed Unicode, got a lone surrogate',
    ],
    'a wrong value that looks right': [
      '{"name":"a","categoryId":1,"status":"sold\u200b"}',
      'status: expected available, pending or sold, got "sold<U+200B>"',
    ],
    'a long wrong value': [
      `{"name":"a","categoryId":"${'x'.repeat(60_000)}"}`,
      `categoryId: expected an int64 integer, got "${'x'.repeat(59)}…`,
    ],
    'a wrong value of the greatest length that is shown whole': [
      `{"name":"a","categoryId":"${'x'.repeat(58)}"}`,
      `categoryId: expected an int64 integer, got "${'x'.repeat(58)}"`,
    ],
    'a wrong number of the greatest length that is shown whole': [
      `{"name":"a","categoryId":1${'0'.repeat(59)}}`,
      `categoryId: expected an int64 integer, got 1${'0'.repeat(59)}`,
    ],
    'a wrong value that is longer by one': [
      `{"name":"a","categoryId":"${'x'.repeat(59)}"}`,
      `categoryId: expected an int64 integer, got "${'x'.repeat(59)}…`,
    ],
    'a long wrong number': [
      `{"name":"a","categoryId":1${'0'.repeat(60_000)}}`,
      `categoryId: expected an int64 integer, got 1${'0'.repeat(59)}…`,
    ],
  }
  for (const [title, [body, expected]] of Object.entries(wrong))
    test(`${title} is invalid_body, and all faults are told`, async (t) => {
      const app = await startApp(t)
      assert.equal(assertRefusal(await app.send('/v1/pets', { body }), 400, 'invalid_body'), expected)
      assert.equal((await app.send('/v1/pets')).text, '[]')
    })
})

describe('takes', () => {
  const cases: Record<string, [body: string | Uint8Array, name?: string]> = {
    'a byte order mark (RFC 8259 8.1)': [bytes([0xef, 0xbb, 0xbf], JSON.stringify(pet))],
    'white space around and in it': ['\r\n\t { "name" : "Rex" ,\n "categoryId" : 1 } \n'],
    escapes: ['{"n\\u0061me":"\\u0052ex","categoryId":1}'],
    'an escaped surrogate pair': ['{"name":"\\ud83d\\udc3e","categoryId":1}', '🐾'],
    'a NUL': ['{"name":"\\u0000","categoryId":1}', '\0'],
    'the last of a name given twice (RFC 8259 4)': ['{"name":"Mia","name":"Rex","categoryId":1}'],
    '30,000 levels in an unknown member': [`{"name":"Rex","x":${deep('')},"categoryId":1}`],
    '30,000 levels with a number beyond 2^53': [
      `{"name":"Rex","x":${deep('12345678901234567')},"categoryId":1}`,
    ],
    '30,000 levels with a number beyond any': [`{"name":"Rex","x":${deep('1e999999999')},"categoryId":1}`],
    'a prototype, which it ignores': [
      '{"name":"Rex","categoryId":1,"__proto__":{"name":"Mia","status":"sold"}}',
    ],
    'ten thousand unknown members': [
      `{"name":"Rex","categoryId":1,${Array.from({ length: 5000 }, (_, i) => `"m${i}":1`).join()}}`,
    ],
  }
  for (const [title, [body, name = 'Rex']] of Object.entries(cases))
    test(title, async (t) => {
      const app = await startApp(t)
      const answer = await app.send('/v1/pets', { body } satisfies RequestOptions)
      const expected = `{"id":1,"name":${JSON.stringify(name)},"categoryId":1,"status":"available"}`
      assert.deepEqual([answer.status, answer.text], [201, expected])
      assert.equal((await app.send('/v1/pets')).text, `[${expected}]`)
    })

  test('a character that two packets share', async (t) => {
    const client = await connectRaw(t, (await startApp(t)).url)
    const request = Buffer.from(formatRequest('POST /v1/pets', [], '{"name":"Zoë","categoryId":1}'))
    const middle = request.indexOf('ë') + 1
    client.socket.setNoDelay()
    client.write(request.subarray(0, middle))
    await new Promise(setImmediate)
    client.write(request.subarray(middle))
    assert.match((await client.read()).body, /"name":"Zoë"/)
  })
})

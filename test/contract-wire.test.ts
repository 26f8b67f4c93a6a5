/** What the contract suite reads of responses that are not quite HTTP, or not quite JSON, and what it says of them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { describe, test, type TestContext } from 'node:test'
import { type Call, createClient, NoAnswer } from './contract-client.ts'
import { findHint } from './contract-hints.ts'
import { isObject, readMeantJson } from './contract-json.ts'
import { openTarget } from './contract-target.ts'
import { createHttpTransport, readResponse } from './contract-wire.ts'
import { limitEachTest } from './time-limit.ts'

limitEachTest()

const json = '{"name":"Zoë"}'
const type = 'Content-Type: application/json\r\n'

/** A server that sends these bytes to whatever comes, and then closes the connection or leaves it open. Returns its address. */
async function serve(t: TestContext, bytes: string | Buffer, end: 'close' | 'open'): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => (end === 'close' ? socket.end(bytes) : socket.write(bytes)))
  })
  server.listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  // A server that listens on a port has an address of this form (Node's documentation of server.address).
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}/v1`
}

/** Each with what was expected and received, but for the response itself. */
const httpFaults: Record<
  string,
  [bytes: string | Buffer, end: 'close' | 'open', expected: string, received: string]
> = {
  'a Content-Length of characters': [
    `HTTP/1.1 200 OK\r\n${type}Content-Length: 14\r\n\r\n${json}`,
    'close',
    'Content-Length: 15, the number of bytes in the body, not of characters',
    'Content-Length: 14, a body of 15 bytes',
  ],
  'the same on a connection that stays open': [
    `HTTP/1.1 200 OK\r\n${type}Content-Length: 14\r\n\r\n${json}`,
    'open',
    'Content-Length: 15, the number of bytes in the body, not of characters',
    'Content-Length: 14, a body of 15 bytes',
  ],
  'a Content-Length that is too large': [
    `HTTP/1.1 200 OK\r\n${type}Content-Length: 16\r\n\r\n${json}`,
    'open',
    'Content-Length: 15, the number of bytes in the body',
    'Content-Length: 16, a body of 15 bytes, and a connection that stays open',
  ],
  'a connection that is closed in the middle': [
    `HTTP/1.1 200 OK\r\n${type}Content-Length: 40\r\n\r\n${json}`,
    'close',
    'Content-Length: 15, the number of bytes in the body',
    'Content-Length: 40, a body of 15 bytes, and a connection that was closed',
  ],
  'a Content-Length that is none': [
    `HTTP/1.1 200 OK\r\n${type}Content-Length: many\r\n\r\n${json}`,
    'close',
    'Content-Length: 15',
    'Content-Length: many',
  ],
  'two lengths': [
    `HTTP/1.1 200 OK\r\n${type}Content-Length: 3\r\nContent-Length: 15\r\n\r\n${json}`,
    'close',
    'one Content-Length',
    'Content-Length: 3, and Content-Length: 15',
  ],
  'two media types': [
    `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n${type}Content-Length: 15\r\n\r\n${json}`,
    'close',
    'one Content-Type',
    'Content-Type: text/html, and Content-Type: application/json',
  ],
  'a body without a length on a connection that stays open': [
    `HTTP/1.1 200 OK\r\n${type}\r\n${json}`,
    'open',
    'Content-Length, or a connection that is closed behind the body',
    'no Content-Length, a body of 15 bytes, and a connection that stays open',
  ],
  'no empty line behind the headers': [
    `HTTP/1.1 200 OK\r\n${type}${json}`,
    'close',
    'an empty line between the headers and the body',
    'none',
  ],
  'lines that end with LF': [
    `HTTP/1.1 200 OK\n${type}\n${json}`,
    'close',
    'header lines that end with CR LF',
    'LF alone',
  ],
  'a line that is no header': [
    `HTTP/1.1 200 OK\r\n${type}hello\r\n\r\n${json}`,
    'close',
    'headers such as "Content-Type: application/json"',
    'the line "hello"',
  ],
  'Transfer-Encoding: chunked without chunks': [
    `HTTP/1.1 200 OK\r\n${type}Transfer-Encoding: chunked\r\n\r\n${json}`,
    'open',
    'a body in chunks, as Transfer-Encoding: chunked says',
    'a body that is not in chunks',
  ],
  'no last chunk': [
    `HTTP/1.1 200 OK\r\n${type}Transfer-Encoding: chunked\r\n\r\nf\r\n${json}\r\n`,
    'close',
    'the last chunk, of size 0',
    'no last chunk, and a connection that was closed',
  ],
  'both a length and chunks': [
    `HTTP/1.1 200 OK\r\n${type}Content-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n${json}\r\n0\r\n\r\n`,
    'close',
    'either Transfer-Encoding or Content-Length',
    'both Transfer-Encoding: chunked and Content-Length: 15',
  ],
  'an unknown Transfer-Encoding': [
    `HTTP/1.1 200 OK\r\n${type}Content-Length: 15\r\nTransfer-Encoding: utf-8\r\n\r\n${json}`,
    'close',
    'no Transfer-Encoding, or Transfer-Encoding: chunked',
    'Transfer-Encoding: utf-8',
  ],
  'gzip that nobody asked for': [
    Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${type}\r\n`), gzipSync(json)]),
    'close',
    'a body that is not compressed, for the request does not ask for it',
    'gzip (1F 8B)',
  ],
  'gzip with its length': [
    Buffer.concat([
      Buffer.from(`HTTP/1.1 200 OK\r\n${type}Content-Length: ${gzipSync(json).length}\r\n\r\n`),
      gzipSync(json),
    ]),
    'open',
    'a body that is not compressed, for the request does not ask for it',
    'gzip (1F 8B)',
  ],
  'ISO 8859-1': [
    Buffer.from(`HTTP/1.1 200 OK\r\n${type}Content-Length: 14\r\n\r\n${json}`, 'latin1'),
    'close',
    'a body in UTF-8',
    `bytes that are no UTF-8, but ISO 8859-1 perhaps, in ${json}`,
  ],
}

describe('a response in wrong HTTP', () => {
  for (const [fault, [bytes, end, expected, received]] of Object.entries(httpFaults))
    test(`is read as it was meant, and what was on the wire is said: ${fault}`, async (t) => {
      const client = createClient(
        await serve(t, bytes, end),
        'k',
        createHttpTransport(60_000, end === 'close' ? 30_000 : 20),
      )
      const answer = await client.list()
      assert.deepEqual(
        [answer.status, answer.contentType, answer.json],
        [200, 'application/json', { name: 'Zoë' }],
      )
      const found = client.faults.get('http')
      assert.equal(found?.expected, expected)
      assert.equal(found?.received, `${received}: ${answer.received}`)
    })

  for (const [how, body, expected, received] of [
    [
      'cut off there',
      json.slice(0, -1),
      'Content-Length: the number of bytes in the body, not of characters',
      'Content-Length: 14, and JSON that ends too early behind 14 bytes',
    ],
    [
      'not sent at all',
      '',
      'a body of 14 bytes, as Content-Length says',
      'Content-Length: 14, no body, and a connection that was closed',
    ],
  ] as const)
    test(`is told that its Content-Length counts characters, when the body is ${how}`, async (t) => {
      const client = createClient(
        await serve(t, `HTTP/1.1 200 OK\r\n${type}Content-Length: 14\r\n\r\n${body}`, 'close'),
        'k',
      )
      await client.list()
      const found = client.faults.get('http') ?? assert.fail('no fault')
      assert.equal(found.expected, expected)
      assert.ok(found.received.startsWith(`${received}: `), found.received)
      const hint = findHint(found, 'basic') ?? expected
      assert.match(hint, /bytes/)
      assert.match(hint, /characters/)
    })

  test('is waited for less, once three have left their end open', async (t) => {
    const address = await serve(t, `HTTP/1.1 200 OK\r\n${type}\r\n${json}`, 'open')
    const client = createClient(address, 'k', createHttpTransport(60_000, 500))
    const timesMs: number[] = []
    for (let count = 0; count < 8; count += 1) {
      const startMs = performance.now()
      await client.list()
      timesMs.push(performance.now() - startMs)
    }
    assert.ok(
      timesMs.slice(0, 3).every((timeMs) => timeMs > 490),
      timesMs.join(),
    )
    // One that a busy machine does not hold up is enough.
    assert.ok(
      timesMs.slice(3).some((timeMs) => timeMs < 490),
      timesMs.join(),
    )
    assert.deepEqual(client.timesMs, [], 'the wait counts as the time of a response')
  })

  test('that does not end in time says what came of it', async (t) => {
    const address = await serve(t, `HTTP/1.1 200 OK\r\n${type}Content-Length: 99\r\n\r\n[1,`, 'open')
    const client = createClient(address, 'k', createHttpTransport(2000))
    await assert.rejects(client.list(), {
      isLate: true,
      reason:
        'Content-Length: 99, a body of 3 bytes, and a connection that stays open: the end of the response came not within 2 seconds',
    })
  })
})

const right: Record<string, string> = {
  'a length': `HTTP/1.1 200 OK\r\n${type}content-length:15\r\n\r\n${json}`,
  chunks: `HTTP/1.1 200 OK\r\n${type}Transfer-Encoding: Chunked\r\n\r\n5;a=b\r\n{"nam\r\nA\r\ne":"Zoë"}\r\n0\r\nTrailer: a\r\n\r\n`,
  'an interim response': `HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n${type}Content-Length: 15\r\n\r\n${json}`,
  'HTTP/1.0, and no reason': `HTTP/1.0 200\r\n${type}Content-Length: 15\r\n\r\n${json}`,
}

describe('a response in right HTTP', () => {
  for (const [how, text] of Object.entries(right))
    test(`is read as soon as it is whole, wherever it is cut on its way: ${how}`, () => {
      const bytes = Buffer.from(text)
      for (let length = 0; length < bytes.length; length += 1) {
        const early = readResponse(bytes.subarray(0, length))
        // The trailers of chunks end with an empty line, which says nothing more.
        assert.ok(early === undefined || how === 'chunks', `${length}: ${early?.text}`)
      }
      const response = readResponse(bytes)
      assert.deepEqual(
        [response?.status, response?.contentType, response?.text, response?.fault],
        [200, 'application/json', json, undefined],
      )
    })

  test('is read when it comes byte by byte, and its status line is judged when that has ended', async (t) => {
    const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${type}Content-Length: 15\r\n\r\n${json}`)
    const server = createServer((socket) => {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      const sendFrom = (index: number): void => {
        if (index === bytes.length) socket.end()
        else socket.write(bytes.subarray(index, index + 1), () => setImmediate(sendFrom, index + 1))
      }
      socket.once('data', () => sendFrom(0))
    })
    server.listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    // A server that listens on a port has an address of this form (Node's documentation of server.address).
    const { port } = server.address() as AddressInfo
    const client = createClient(`http://127.0.0.1:${port}/v1`, 'k')
    const answer = await client.list()
    assert.deepEqual([answer.status, answer.json], [200, { name: 'Zoë' }])
    assert.deepEqual(client.faults, new Map())
  })

  for (const begin of [
    'H',
    'HTTP/1.',
    'HTTP/1.1 200 OK\r\nContent-Le',
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n',
  ])
    test(`is waited for beyond a pause within its head: ${JSON.stringify(begin)}`, async (t) => {
      const client = createClient(await serve(t, begin, 'open'), 'k', createHttpTransport(200, 20))
      await assert.rejects(client.list(), { isLate: true })
    })

  test('may have no length when the connection is closed behind it', () => {
    const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${type}\r\n${json}`)
    assert.equal(readResponse(bytes), undefined)
    const { text, fault } = readResponse(bytes, 'closed') ?? {}
    assert.deepEqual([text, fault], [json, undefined])
  })

  test('has no body with 204', () => {
    const { text, fault } = readResponse(Buffer.from('HTTP/1.1 204 No Content\r\n\r\n')) ?? {}
    assert.deepEqual([text, fault], ['', undefined])
  })
})

const open = (address: string) => openTarget(['', '', address, 'k'], {})

describe('what is no pet store at all', () => {
  for (const [what, bytes, begin] of [
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n', String.raw`SSH-2.0-OpenSSH_9.2\n`],
    ['what cannot be seen', '\u0000\u0001', 'U+0000U+0001'],
    ['a body without a status line', '[]', '[]'],
    ['a status line without a number', 'HTTP/1.1 OK\r\n\r\n[]', 'HTTP/1.1 OK'],
  ] as const)
    test(`is named in one line: ${what}`, async (t) => {
      const address = await serve(t, bytes, 'close')
      await assert.rejects(open(address), {
        message: `${new URL(address).origin} does not speak HTTP: what came begins with "${begin}", which is no status line such as "HTTP/1.1 200 OK".`,
      })
    })

  test('is named in one line: a server that closes each connection', async (t) => {
    const address = await serve(t, '', 'close')
    await assert.rejects(open(address), {
      message: `${new URL(address).origin} closed the connection without a response to GET /pets: the window of your server may say why.`,
    })
  })

  test('is named in one line: TLS', async (t) => {
    // Without a certificate it refuses every client in the language of TLS.
    const server = createTlsServer()
    server.on('tlsClientError', () => {})
    server.listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const origin = `http://127.0.0.1:${port}`
    const message = `${origin} speaks TLS. Start your server without TLS, and use http.`
    await assert.rejects(open(origin), { message })
  })

  test('is named in one line: HTTP where TLS was expected', async (t) => {
    const address = await serve(t, 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n', 'close')
    const { origin } = new URL(address.replace('http', 'https'))
    await assert.rejects(open(origin), {
      message: `${origin} does not speak TLS. Is it http:// and not https://?`,
    })
  })

  test('that dies under a request is no response', async (t) => {
    const client = createClient(await serve(t, 'HTTP/1.1 20', 'close'), 'k', createHttpTransport(5000))
    await assert.rejects(client.list(), NoAnswer)
  })
})

const list = [{ id: 1n }]
const jsonFaults: Record<string, [text: string, fault: string]> = {
  'a byte order mark': ['\uFEFF[{"id":1}]', 'a byte order mark (U+FEFF) in front of the JSON'],
  'single quotes': ["[{'id': 1}]", 'single quotes where JSON has double quotes'],
  'an arrow': ['[{"id"=>1}]', '=> where JSON has a colon'],
  'no comma between two pets': [
    '[{"id":1}{"id":1}]',
    'a missing comma (character 10, in [{"id":1}{"id":1}])',
  ],
  'no comma between two members': ['[{"id":1 "a":2}]', 'a missing comma (character 10, in [{"id":1 "a":2}])'],
  'two commas': ['[{"id":1},,{"id":1}]', 'two commas in a row (character 11, in [{"id":1},,{"id":1}])'],
  'a quote in a text': [
    '[{"id":1,"a":"b"c"}]',
    'a quote inside a text, which has to be \\" (character 16, in ":1,"a":"b"c"}])',
  ],
  'a name without quotes': ['[{id:1}]', 'a name without quotes (character 3, in [{id:1}])'],
  'a word of Python': [
    '[{"id":1,"a":None}]',
    'None, True, False, NaN or undefined, which JSON does not have (character 14, in id":1,"a":None}])',
  ],
  'a last comma': ['[{"id":1},]', 'a comma in front of a closing bracket'],
  'a warning': [
    '<b>Warning</b>: key [1] {} in x.php\n[{"id":1}]',
    'text in front of the JSON: <b>Warning</b>: key [1] {} in x.php',
  ],
  'a second body': ['[{"id":1}]{"code":"a"}', 'text behind the JSON: {"code":"a"}'],
  'JSON in a string': [JSON.stringify('[{"id":1}]'), 'JSON inside a string: it was encoded twice'],
}

describe('a body that is not quite JSON', () => {
  for (const [what, [text, fault]] of Object.entries(jsonFaults))
    test(`is read as it was meant, and its fault is named: ${what}`, () => {
      const meant = readMeantJson(text)
      assert.equal(meant.fault, fault)
      assert.ok(Array.isArray(meant.json) && meant.json.every(isObject))
      assert.deepEqual(
        meant.json.map((pet) => pet['id']),
        meant.json.map(() => 1n),
      )
    })

  for (const [text, fault] of [
    ['', 'an empty body'],
    ['[{"id":1},{"id"', 'JSON that ends too early (is Content-Length smaller than the body?)'],
    ['<p>Not found [1]</p>', 'what is no JSON'],
    ['Internal error', 'what is no JSON'],
  ] as const)
    test(`is not guessed when it says nothing of what was meant: ${text}`, () => {
      assert.deepEqual(readMeantJson(text), { json: undefined, fault })
    })

  test('is judged for the rest, and told once, with what cannot be seen', async (t) => {
    const client = createClient(
      await serve(t, `HTTP/1.1 200 OK\r\n${type}\r\n\uFEFF[{"id":1}]`, 'close'),
      'k',
    )
    assert.deepEqual((await client.list()).json, list)
    assert.equal(
      client.faults.get('json')?.received,
      'a byte order mark (U+FEFF) in front of the JSON: 200 OK, application/json, U+FEFF[{"id":1}]',
    )
  })
})

/** What a server reads of a request, in the pieces in which it comes. */
async function receive(
  t: TestContext,
  call: Call & { body?: string | undefined },
): Promise<readonly string[]> {
  const pieces: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.setEncoding('utf8').on('data', (piece: string) => {
      pieces.push(piece)
      const text = pieces.join('')
      const isWhole = text.endsWith(call.body ?? '\r\n\r\n') || text.endsWith('\r\n0\r\n\r\n')
      if (isWhole) socket.end(`HTTP/1.1 201 Created\r\n${type}Content-Length: 15\r\n\r\n${json}`)
    })
  })
  server.listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  // A server that listens on a port has an address of this form (Node's documentation of server.address).
  const { port } = server.address() as AddressInfo
  const { status } = await createClient(`http://127.0.0.1:${port}/v1`, 'k').add(call.body, call)
  assert.equal(status, 201)
  return pieces
}

describe('a request', () => {
  test('comes in small pieces, head and body apart, when that is asked for', async (t) => {
    const pieces = await receive(t, { body: json, delivery: 'pieces' })
    // A busy server may read two of the three at once.
    assert.ok(pieces.length <= 3)
    assert.match(pieces.join(''), /\r\nContent-Length: 15\r\n\r\n\{"name":"Zoë"\}$/)
  })

  test('comes in two chunks and without Content-Length when that is asked for', async (t) => {
    const text = (await receive(t, { body: json, delivery: 'chunks' })).join('')
    assert.match(text, /\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n\{"name"\r\n8\r\n:"Zoë"\}\r\n0\r\n\r\n$/)
    assert.doesNotMatch(text, /content-length/i)
  })

  test('has the names of the headers of its body in small letters when that is asked for', async (t) => {
    const text = (await receive(t, { body: json, isInSmallLetters: true })).join('')
    assert.match(text, /\r\ncontent-type: application\/json\r\ncontent-length: 15\r\n\r\n/)
  })

  test('has neither Content-Length nor Content-Type without a body', async (t) => {
    const text = (await receive(t, {})).join('')
    assert.match(text, /^POST .*\r\n\r\n$/s)
    assert.doesNotMatch(text, /content-/i)
  })
})

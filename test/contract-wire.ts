/**
 * One request and its response, byte for byte. Node's own client gives up on a response that is not quite HTTP, and then nobody
 * sees what was wrong with it. Here it is read as it was meant, and its fault is said. Knows nothing of pets.
 */
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import { readMeantJson } from './contract-json.ts'

/** `pieces`: the head and two halves of the body, a moment apart. `chunks`: with Transfer-Encoding: chunked. */
export type Delivery = 'whole' | 'pieces' | 'chunks'

export interface Request {
  readonly method: string
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly delivery: Delivery
}

export interface Response {
  readonly status: number
  readonly phrase: string
  readonly contentType: string
  readonly text: string
  /** What is wrong with it as HTTP; undefined if nothing is. */
  readonly fault?: { readonly expected: string; readonly received: string } | undefined
}

/** One exchange with the server. Rejects with the error of the connection when no response comes. */
export type Transport = (request: Request) => Promise<Response>

/** The time limit was over. */
export class LateError extends Error {
  constructor(limitMs: number, received = '') {
    super(`${received}not within ${limitMs / 1000} seconds`)
  }
}

/** What came does not begin as an HTTP response does. */
export class NotHttpError extends Error {
  readonly code = 'NOT_HTTP'
  readonly begin: string

  constructor(begin: string) {
    super('what came is no HTTP')
    this.begin = begin
  }
}

const idleMsOfFaultyServer = 50
/** So long that a server on the same machine has read one piece before the next one comes. */
const pauseMs = 100

/**
 * `idleMs` is how long to wait for more bytes of a response that may be whole: only a faulty one makes us wait.
 *
 * Each request has a connection of its own: no server's idle timeout can race with the next one, and none keeps the process alive.
 */
export function createHttpTransport(limitMs: number, idleMs = 2000): Transport {
  let idleCount = 0
  return (request) =>
    new Promise((resolve, reject) => {
      const url = new URL(request.address)
      const isTls = url.protocol === 'https:'
      const host = url.hostname.replaceAll(/[[\]]/g, '')
      const port = Number(url.port) || (isTls ? 443 : 80)
      const servername = isIP(host) === 0 ? { servername: host } : {}
      const socket = isTls ? connectTls({ host, port, ...servername }) : connect({ host, port })
      let bytes = Buffer.alloc(0)
      let idle: NodeJS.Timeout | undefined
      let pause: NodeJS.Timeout | undefined
      const limit = setTimeout(() => {
        const { fault } = (isTls || bytes.length > 0 ? tryRead('open') : undefined) ?? {}
        fail(new LateError(limitMs, fault && `${fault.received}: the end of the response came `))
      }, limitMs)

      const stop = () => {
        clearTimeout(limit)
        clearTimeout(idle)
        clearTimeout(pause)
        socket.destroy()
      }
      const fail = (error: Error) => {
        stop()
        reject(error)
      }
      const tryRead = (end?: End) => {
        try {
          return readResponse(bytes, end)
        } catch (error) {
          // The cast says what readResponse throws.
          fail(error as NotHttpError)
          return undefined
        }
      }
      const settle = (end?: End): boolean => {
        const response = tryRead(end)
        if (response === undefined) return false
        stop()
        resolve(response)
        return true
      }
      socket.on('data', (chunk) => {
        bytes = Buffer.concat([bytes, chunk])
        clearTimeout(idle)
        if (settle()) return
        // A server may send byte by byte. What has come is judged as the whole only when nothing more comes.
        idle = setTimeout(
          () => {
            if (tryRead('open')?.mayBeWhole !== true) return
            idleCount += 1
            settle('open')
          },
          idleCount < 3 ? idleMs : idleMsOfFaultyServer,
        )
      })
      const close = (error: Error) => {
        if (bytes.length === 0 || !settle('closed')) fail(error)
      }
      socket.on('error', close)
      socket.on('end', () => close(Object.assign(new Error('closed'), { code: 'ECONNRESET' })))
      const send = ([piece = '', ...others]: readonly (string | Buffer)[]) => {
        socket.write(piece, () => {
          if (others.length > 0 && !socket.destroyed) pause = setTimeout(send, pauseMs, others)
        })
      }
      socket.setNoDelay(true)
      send(formatRequest(url, request))
    })
}

/** The pieces to send, with a pause between them. */
function formatRequest(
  { host, pathname, search }: URL,
  { method, headers, body = '', delivery }: Request,
): readonly [string | Buffer, ...Buffer[]] {
  const all = { Host: host, Connection: 'close', ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`
  if (delivery === 'whole') return [head + body]
  const bytes = Buffer.from(body)
  const half = bytes.length >> 1
  const halves = [bytes.subarray(0, half), bytes.subarray(half)] as const
  if (delivery === 'pieces') return [head, ...halves]
  const chunks = halves.flatMap((part) => [`${part.length.toString(16)}\r\n`, part, '\r\n'])
  return [Buffer.concat([head, ...chunks, '0\r\n\r\n'].map((part) => Buffer.from(part)))]
}

/** Why nothing more is read: the server has closed the connection, or it sends nothing more, and leaves it open. */
type End = 'closed' | 'open'

/** Clients differ in which of two lines they take. */
const singleHeaders: Record<string, string> = {
  'content-length': 'Content-Length',
  'content-type': 'Content-Type',
}

/** What has come so far. Undefined while it may go on. Throws a NotHttpError. */
export function readResponse(
  bytes: Buffer,
  end?: End,
): (Response & { readonly mayBeWhole: boolean }) | undefined {
  // Latin-1 has a character for each byte, so that an index is the same in both.
  const raw = bytes.toString('latin1')
  // The rest of a status line may come a moment later.
  const isStatusLine = 'HTTP/'.startsWith(raw.slice(0, 5))
  if (!raw.includes('\n') && end !== 'closed' && (isStatusLine || end === undefined)) return undefined
  if (!isStatusLine) throw new NotHttpError(bytes.toString())
  const emptyLine = /\r?\n\r?\n/.exec(raw)
  if (emptyLine === null && end === undefined) return undefined

  let fault: Response['fault']
  const note = (expected: string, received: string) => {
    fault ??= { expected, received }
  }
  if (emptyLine === null) note('an empty line between the headers and the body', 'none')
  // Without an empty line, the body begins with the first line that looks like JSON.
  const headEnd = emptyLine?.index ?? (/(?<=\n)[{[]/.exec(raw)?.index || raw.length)
  const bodyStart = headEnd + (emptyLine?.[0].length ?? 0)
  const head = raw.slice(0, headEnd).trimEnd()
  if (/(?<!\r)\n/.test(raw.slice(0, bodyStart))) note('header lines that end with CR LF', 'LF alone')
  const [first = '', ...lines] = head.split(/\r?\n/)
  const [, digits, phrase = ''] = /^HTTP\/\d(?:\.\d)? (\d{3})(?: (.*))?$/.exec(first) ?? []
  if (digits === undefined) throw new NotHttpError(first)
  const status = Number(digits)
  if (status < 200) return readResponse(bytes.subarray(bodyStart), end)

  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name = '', value = ''] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*?)\s*$/.exec(line) ?? []
    const lowerName = name.toLowerCase()
    const single = singleHeaders[lowerName]
    const before = headers.get(lowerName)
    if (name === '') note('headers such as "Content-Type: application/json"', `the line "${line}"`)
    else if (single !== undefined && before !== undefined && before !== value)
      note(`one ${single}`, `${single}: ${before}, and ${single}: ${value}`)
    headers.set(lowerName, value)
  }

  let body = bytes.subarray(bodyStart)
  const ended = end === 'closed' ? 'was closed' : 'stays open'
  const coding = headers.get('transfer-encoding')
  const length = headers.get('content-length')
  let isBounded = length !== undefined
  if (coding?.toLowerCase() === 'chunked') {
    const chunks = readChunks(body)
    if (chunks.state !== 'whole' && end === undefined) return undefined
    if (length !== undefined)
      note(
        'either Transfer-Encoding or Content-Length',
        `both Transfer-Encoding: chunked and Content-Length: ${length}`,
      )
    if (chunks.state === 'none')
      note('a body in chunks, as Transfer-Encoding: chunked says', 'a body that is not in chunks')
    if (chunks.state === 'cut')
      note('the last chunk, of size 0', `no last chunk, and a connection that ${ended}`)
    body = chunks.body
    isBounded = true
  } else {
    if (coding !== undefined)
      note('no Transfer-Encoding, or Transfer-Encoding: chunked', `Transfer-Encoding: ${coding}`)
    if (status === 204 || status === 304) body = body.subarray(0, 0)
    else if (length === undefined) {
      if (end === undefined) return undefined
      if (end === 'open')
        note(
          'Content-Length, or a connection that is closed behind the body',
          `no Content-Length, a body of ${body.length} bytes, and a connection that stays open`,
        )
    } else if (!/^\d+$/.test(length)) {
      if (end === undefined) return undefined
      note(`Content-Length: ${body.length}`, `Content-Length: ${length}`)
    } else {
      // The rest of a body that is longer than its length may be on its way. Then what is here is no JSON.
      const isCut =
        body.length === Number(length) && body.length > 0 && !isGzip(body) && !isJson(body.toString())
      if (end === undefined && (body.length < Number(length) || isCut)) return undefined
      const isOfCharacters = [body.toString().length, [...body.toString()].length].includes(Number(length))
      // Some servers cut the body off there, and some send none of it.
      const isCutOff = isCut && /[\x80-\xff]/.test(body.toString('latin1')) && endsTooSoon(body.toString())
      if (isCutOff)
        note(
          'Content-Length: the number of bytes in the body, not of characters',
          `Content-Length: ${length}, and JSON that ends too early behind ${body.length} bytes`,
        )
      else if (body.length === 0 && Number(length) > 0)
        note(
          `a body of ${length} bytes, as Content-Length says`,
          `Content-Length: ${length}, no body, and a connection that ${ended}`,
        )
      else if (body.length !== Number(length))
        note(
          `Content-Length: ${body.length}, the number of bytes in the body${isOfCharacters ? ', not of characters' : ''}`,
          `Content-Length: ${length}, a body of ${body.length} bytes${body.length > Number(length) ? '' : `, and a connection that ${ended}`}`,
        )
    }
  }

  if (isGzip(body)) {
    note('a body that is not compressed, for the request does not ask for it', 'gzip (1F 8B)')
    body = tryGunzip(body)
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    text = body.toString('latin1')
    note('a body in UTF-8', `bytes that are no UTF-8, but ISO 8859-1 perhaps, in ${text}`)
  }
  const location = headers.get('location')
  return {
    status,
    phrase: location !== undefined && status >= 300 && status < 400 ? `to ${location}` : phrase,
    contentType: headers.get('content-type') ?? '',
    text,
    fault,
    mayBeWhole: isJson(text) || (emptyLine !== null && (!isBounded || body.length >= Number(length))),
  }
}

/** `none`: it is not in chunks. `cut`: more is to come. */
function readChunks(bytes: Buffer): { body: Buffer; state: 'whole' | 'cut' | 'none' } {
  const chunks: Buffer[] = []
  const give = (state: 'whole' | 'cut') => ({ body: Buffer.concat(chunks), state })
  let at = 0
  for (;;) {
    const rest = bytes.toString('latin1', at, at + 100)
    const [line, digits = ''] = /^([\da-f]+)[^\r\n]*\r\n/i.exec(rest) ?? []
    if (line === undefined) return /^[\da-f]*\r?$/i.test(rest) ? give('cut') : { body: bytes, state: 'none' }
    const size = Number.parseInt(digits, 16)
    if (size === 0) return give(bytes.includes('\r\n', at + line.length) ? 'whole' : 'cut')
    const start = at + line.length
    if (bytes.length < start + size + 2) return give('cut')
    chunks.push(bytes.subarray(start, start + size))
    at = start + size + 2
  }
}

/** Gzip begins with these bytes (RFC 1952, section 2.3.1). */
function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

function tryGunzip(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes)
  } catch {
    return bytes
  }
}

/** Whether the text is JSON as far as it goes: V8 names no place of a fault, or the end. */
function endsTooSoon(text: string): boolean {
  try {
    JSON.parse(text)
    return false
  } catch (error) {
    const [, position = text.length] = /at position (\d+)/.exec(String(error)) ?? []
    return Number(position) === text.length
  }
}

function isJson(text: string): boolean {
  const { json } = readMeantJson(text)
  return json !== undefined
}

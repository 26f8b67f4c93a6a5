/**
 * How the contract suite talks to a pet store: one request at a time over HTTP. Each response comes with words that say what was
 * sent and what came back. Knows the addresses and the key, but not what a response must look like (`contract-cases.ts`).
 */
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isObject, parseExactJson } from './contract-json.ts'

const answerLimitMs = 10_000
const shownBodyChars = 300

export interface Answer {
  /** The request in words: method, address, whether the key was sent, body. Never the key. */
  sent: string
  status: number
  contentType: string
  text: string
  /** The response in words. */
  received: string
  /** The body as JSON with exact integers; undefined when it is no JSON. */
  json: unknown
}

export interface Call {
  method?: string
  body?: string
  /** Another `Authorization` than the good key's: its value (null sends none), and how a message names it. */
  authorization?: { value: string | null; words: string }
  headers?: Record<string, string>
}

/** One exchange with the server. Rejects with the error of the connection when no response comes. */
export type Transport = (request: {
  readonly method: string
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}) => Promise<{ status: number; phrase: string; contentType: string; text: string }>

/** Reporters print its message alone: a stack tells nothing about the server. */
export class PlainError extends Error {
  constructor(message: string) {
    super(message)
    this.stack = message
  }
}

/** What was wrong with an exchange, in words. */
export class Finding extends PlainError {
  readonly expected: string
  readonly received: string

  constructor(sent: string, expected: string, received: string) {
    super(`  sent:     ${sent}\n  expected: ${expected}\n  received: ${received}`)
    this.expected = expected
    this.received = received
  }
}

/** No response came: refused, dropped, or too late. */
export class NoAnswer extends Finding {
  /** Why, in a few words. */
  readonly reason: string
  /** The server cannot be reached, or no longer, so that every other request would fail too. */
  readonly isUnreachable: boolean
  /** The time limit was over. */
  readonly isLate: boolean

  constructor(sent: string, error: Error) {
    const reason = nameFailure(error)
    super(sent, 'a response', `none, ${reason}`)
    this.reason = reason
    this.isUnreachable = codeOf(error) in unreachableCodes
    this.isLate = error instanceof LateError
  }
}

/** For a transport that has waited for its time limit. */
export class LateError extends Error {
  constructor(limitMs: number) {
    super(`not within ${limitMs / 1000} seconds`)
  }
}

export interface Client {
  base: string
  key: string
  send(path: string, call?: Call): Promise<Answer>
  /** The refusals of the operations so far. Each of them must have an Error body. */
  refusals: Answer[]
  /** Ids that creations were answered with so far, in decimal. */
  addedIds: string[]
  list(query?: string, call?: Call): Promise<Answer>
  add(body: string, call?: Call): Promise<Answer>
  get(petId: string, call?: Call): Promise<Answer>
}

export function createClient(
  base: string,
  key: string,
  transport = createHttpTransport(answerLimitMs),
): Client {
  const refusals: Answer[] = []
  const addedIds: string[] = []
  const send = (path: string, call: Call = {}) => sendRequest(base + path, key, call, transport)
  const operate = async (path: string, call: Call) => {
    const answer = await send(path, call)
    if (answer.status >= 400) refusals.push(answer)
    return answer
  }
  return {
    base,
    key,
    send,
    refusals,
    addedIds,
    list: (query = '', call = {}) => operate(`/pets${query}`, call),
    async add(body, call = {}) {
      const answer = await operate('/pets', { ...call, method: 'POST', body })
      const id = isObject(answer.json) ? answer.json['id'] : undefined
      if (answer.status < 300 && id !== undefined) addedIds.push(String(id))
      return answer
    },
    get: (petId, call = {}) => operate(`/pets/${petId}`, call),
  }
}

async function sendRequest(address: string, key: string, call: Call, transport: Transport): Promise<Answer> {
  const { method = 'GET', body, authorization = { value: `Bearer ${key}`, words: 'with the key' } } = call
  const sent = `${method} ${address}, ${authorization.words}${body === undefined ? '' : `, body ${shorten(body) || '(empty)'}`}`
  const headers: Record<string, string> = { Accept: 'application/json', ...call.headers }
  if (authorization.value !== null) headers['Authorization'] = authorization.value
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json'
    headers['Content-Length'] = String(Buffer.byteLength(body))
  }
  try {
    const { status, phrase, contentType, text } = await transport({ method, address, headers, body })
    return {
      sent,
      status,
      contentType,
      text,
      received: `${status} ${phrase}, ${contentType || 'no Content-Type'}, ${shorten(text) || 'an empty body'}`,
      json: parseOrUndefined(text),
    }
  } catch (error) {
    throw error instanceof Error ? new NoAnswer(sent, error) : error
  }
}

/** Over a connection of its own: no server's idle timeout can race with the next request, and none keeps the process alive. */
export const createHttpTransport =
  (limitMs: number): Transport =>
  ({ method, address, headers, body }) =>
    new Promise((resolve, reject) => {
      const start = address.startsWith('https:') ? requestHttps : requestHttp
      const request = start(address, { method, headers, agent: false }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', fail)
        response.on('end', () => {
          clearTimeout(timer)
          const { statusCode: status = 0, statusMessage = '' } = response
          const { location, 'content-type': contentType = '' } = response.headers
          const phrase = location !== undefined && status < 400 ? `to ${location}` : statusMessage
          resolve({ status, phrase, contentType, text: Buffer.concat(chunks).toString('utf8') })
        })
      })
      const timer = setTimeout(() => request.destroy(new LateError(limitMs)), limitMs)
      function fail(error: Error): void {
        clearTimeout(timer)
        reject(error)
      }
      request.on('error', fail)
      request.end(body)
    })

const unreachableCodes: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there (connection refused)',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the host name could not be looked up',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ETIMEDOUT: 'the host does not react',
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}

function nameFailure(error: Error): string {
  const code = codeOf(error)
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return 'the server closed the connection without a response: it may have crashed on this request'
  return unreachableCodes[code] ?? (error.message || code)
}

function parseOrUndefined(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch {
    return undefined
  }
}

/** On one line. */
function shorten(text: string): string {
  const shown = text.slice(0, shownBodyChars).replaceAll(/\s*\n\s*/g, ' ')
  return text.length <= shownBodyChars ? shown : `${shown}… (${text.length} characters)`
}

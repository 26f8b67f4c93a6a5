/**
 * How the contract suite talks to a pet store: one request at a time over HTTP. Each response comes with words that say what was
 * sent and what came back. Knows the addresses and the key, but not what a response must look like (`contract-cases.ts`).
 */
import { isObject, readMeantJson } from './contract-json.ts'
import {
  createHttpTransport,
  type Delivery,
  LateError,
  NotHttpError,
  type Transport,
} from './contract-wire.ts'

const answerLimitMs = 10_000
const shownBodyChars = 200

/** A request, as messages name it. */
export interface Asked {
  /** In words: method, address, whether the key was sent, body. Never the key. */
  sent: string
  /** Such as `GET /pets/{petId}`. */
  operation: string
}

export interface Answer extends Asked {
  status: number
  contentType: string
  text: string
  /** The response in words. */
  received: string
  /** The body as JSON with exact integers, also when it is only meant to be JSON; else undefined. */
  json: unknown
  /** What makes the body no JSON; undefined when it is. */
  jsonFault: string | undefined
}

export interface Call {
  method?: string
  body?: string | undefined
  /** Another `Authorization` than the good key's: its value (null sends none), and how a message names it. */
  authorization?: { value: string | null; words: string }
  headers?: Record<string, string>
  delivery?: Delivery
  /** The names of the headers about the body are in small letters. */
  isInSmallLetters?: boolean
}

const deliveryWords: Record<Delivery, string> = {
  whole: 'body',
  pieces: 'head and body in three pieces, a moment apart, body',
  chunks: 'with Transfer-Encoding: chunked, body',
}

/** What is sent behind the head, in words. */
function nameBody(method: string, { body, delivery = 'whole', isInSmallLetters = false }: Call): string {
  if (body === undefined) return method === 'POST' ? ', without a body and Content-Length' : ''
  const letters = isInSmallLetters ? 'with content-length and content-type in small letters, ' : ''
  return `, ${letters}${deliveryWords[delivery]} ${shorten(body) || '(empty)'}`
}

/** Reporters print its message alone: a stack tells nothing about the server. */
export class PlainError extends Error {
  constructor(message: string) {
    super(message)
    this.stack = message
  }
}

/** What was wrong with an exchange, in words. */
export class Finding extends PlainError {
  readonly sent: string
  readonly operation: string
  readonly expected: string
  readonly received: string

  constructor({ sent, operation }: Asked, expected: string, received: string) {
    const shown = showUnseen(received)
    super(`  sent:     ${sent}\n  expected: ${expected}\n  received: ${shown}`)
    this.sent = sent
    this.operation = operation
    this.expected = expected
    this.received = shown
  }
}

/** No response came: refused, dropped, or too late. */
export class NoAnswer extends Finding {
  override readonly cause: Error
  /** Why, in a few words. */
  readonly reason: string
  /** As Node names it, such as ECONNREFUSED; empty if there is none. */
  readonly code: string
  /** The server cannot be reached, or no longer, so that every other request would fail too. */
  readonly isUnreachable: boolean
  /** The time limit was over. */
  readonly isLate: boolean

  constructor(asked: Asked, error: Error, reason = nameFailure(error)) {
    const isLate = error instanceof LateError
    // The first hang of many beginners: they read a line, or up to an end that never comes, since the connection stays open.
    const hint =
      isLate && asked.operation.startsWith('POST')
        ? ': does it wait for more than the Content-Length bytes of the body?'
        : ''
    super(asked, 'a response', `none, ${reason}${hint}`)
    this.reason = reason
    this.cause = error
    this.code = codeOf(error)
    this.isUnreachable = this.code in unreachableCodes
    this.isLate = isLate
  }

  /** The same, when nothing listens there any more. */
  asEnd(): NoAnswer {
    const asked = { sent: this.sent, operation: this.operation }
    const reason = this.isUnreachable
      ? 'your server has ended, perhaps at the request before: read its window'
      : `your server ended while it handled ${this.operation}: read its window`
    return new NoAnswer(asked, this.cause, reason)
  }
}

/** What may be wrong with every response. It is noted, and the response is judged as it was meant. */
export type FaultKind = 'address' | 'key' | 'http' | 'json'

export interface Client {
  /** The base address, without a slash at its end. */
  base: string
  key: string
  /** The headers that carry the good key. */
  keyHeaders: Record<string, string>
  send(path: string, call?: Call): Promise<Answer>
  list(query?: string, call?: Call): Promise<Answer>
  /** Undefined sends none, and no Content-Length. */
  add(body: string | undefined, call?: Call): Promise<Answer>
  get(petId: string, call?: Call): Promise<Answer>
  /** The refusals of the operations so far. Each of them must have an Error body. */
  refusals: Answer[]
  /** Ids that creations were answered with so far, in decimal. */
  addedIds: string[]
  /** The operations that have succeeded so far, with headers named as in the interface. */
  succeeded: Set<string>
  /** The first of each kind. */
  faults: Map<FaultKind, Finding>
  /** How long each response took that came as it has to. */
  timesMs: number[]
}

export function createClient(
  base: string,
  key: string,
  transport: Transport = createHttpTransport(answerLimitMs),
): Client {
  const operate = async (path: string, call: Call) => {
    const answer = await client.send(path, call)
    if (answer.status >= 400) client.refusals.push(answer)
    else if (answer.status >= 200 && answer.status < 300 && call.isInSmallLetters !== true)
      client.succeeded.add(answer.operation)
    if (answer.json !== undefined && answer.jsonFault !== undefined)
      note('json', answer, 'a body that is JSON, and nothing else', `${answer.jsonFault}: ${answer.received}`)
    return answer
  }
  const note = (kind: FaultKind, asked: Asked, expected: string, received: string) => {
    if (!client.faults.has(kind)) client.faults.set(kind, new Finding(asked, expected, received))
  }
  const client: Client = {
    base,
    key,
    keyHeaders: { Authorization: `Bearer ${key}` },
    refusals: [],
    addedIds: [],
    succeeded: new Set(),
    faults: new Map(),
    timesMs: [],
    async send(path, call = {}) {
      const { method = 'GET', body, authorization, delivery = 'whole', isInSmallLetters = false } = call
      const address = client.base + path
      const asked = {
        sent: `${method} ${address}, ${authorization?.words ?? 'with the key'}${nameBody(method, call)}`,
        operation: `${method} ${path.replace(/\?.*/s, '').replace(/^\/pets\/.+/s, '/pets/{petId}')}`,
      }
      const headers: Record<string, string> = { Accept: 'application/json', ...call.headers }
      if (authorization === undefined) Object.assign(headers, client.keyHeaders)
      else if (authorization.value !== null) headers['Authorization'] = authorization.value
      const ofBody = body === undefined ? {} : headersOf(body, delivery)
      for (const [name, value] of Object.entries(ofBody))
        headers[isInSmallLetters ? name.toLowerCase() : name] = value
      const startMs = performance.now()
      const response = await transport({ method, address, headers, body, delivery }).catch(
        (error: unknown) => {
          throw error instanceof Error ? new NoAnswer(asked, error) : error
        },
      )
      const { status, phrase, contentType, text, fault } = response
      // The end of a faulty one may have been waited for.
      if (fault === undefined) client.timesMs.push(performance.now() - startMs)
      const received = `${status} ${phrase}, ${contentType || 'no Content-Type'}, ${shorten(text) || 'an empty body'}`
      if (fault !== undefined) note('http', asked, fault.expected, `${fault.received}: ${received}`)
      const { json, fault: jsonFault } = readMeantJson(text)
      return { ...asked, status, contentType, text, received, json, jsonFault }
    },
    list: (query = '', call = {}) => operate(`/pets${query}`, call),
    async add(body, call = {}) {
      const answer = await operate('/pets', { ...call, method: 'POST', body })
      const id = isObject(answer.json) ? answer.json['id'] : undefined
      if (answer.status < 300 && id !== undefined) client.addedIds.push(String(id))
      return answer
    },
    get: (petId, call = {}) => operate(`/pets/${petId}`, call),
  }
  return client
}

function headersOf(body: string, delivery: Delivery): Record<string, string> {
  const type = { 'Content-Type': 'application/json' }
  if (delivery === 'chunks') return { ...type, 'Transfer-Encoding': 'chunked' }
  return { ...type, 'Content-Length': String(Buffer.byteLength(body)) }
}

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
  if (error instanceof NotHttpError)
    return `what came begins with "${shorten(error.begin, 40)}", which is no status line such as "HTTP/1.1 200 OK"`
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return 'the server closed the connection without a response: it may have crashed on this request'
  return unreachableCodes[code] ?? (error.message || code)
}

/** On one line, with what cannot be seen written out. */
export function shorten(text: string, maxChars = shownBodyChars): string {
  const shown = showUnseen(text.slice(0, maxChars))
  return text.length <= maxChars ? shown : `${shown}… (${text.length} characters)`
}

/** On one line: a line break, with the blanks around it, as `\n`, a tab as `\t`, and what else cannot be seen as U+FEFF. */
function showUnseen(text: string): string {
  return text
    .replaceAll(/\s*[\r\n]+\s*/g, String.raw`\n`)
    .replaceAll('\t', String.raw`\t`)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\uFFFD]/gu, formatCodePoint)
}

/** Such as U+FEFF. */
export function formatCodePoint(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

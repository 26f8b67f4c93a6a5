/** A reply as a value, for each door to send; the errors of HTTP itself; and CORS, without credentials (Fetch standard). */
import { describe, type Int64 } from '../json/json.ts'
import { clock } from '../system/clock.ts'
import { maxHeadBytes } from './limits.ts'

export interface Reply {
  /** 0: nothing is to be sent that a client could take for a response. */
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** Absent for a 204. */
  readonly body?: string | undefined
  /** Of an error, for the request log. */
  readonly code?: string | undefined
  /** For the request log: the failure is one that the setting for failures asked for. */
  readonly isOnPurpose?: boolean
  /** For the request log: of what a 201 has created. */
  readonly id?: Int64
  /** Nothing that follows on its HTTP/1 connection is answered. */
  readonly closes?: boolean
}

/** `headers`: without Content-Type and Content-Length. */
export function textReply(
  status: number,
  text: string,
  headers: readonly string[] = [],
  type = 'application/json',
): Reply {
  const length = String(Buffer.byteLength(text))
  return { status, headers: [...headers, 'Content-Type', type, 'Content-Length', length], body: text }
}

export function pairHeaders(headers: readonly string[]): [name: string, value: string][] {
  return headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1] ?? '']] : []))
}

/**
 * Browsers send a request again by themselves if its connection was used before and closes without a response (RFC 9110 section 9.2.2), and
 * some take a single byte for a response. So a request that is dropped gets a head with two lengths, which every client has to refuse (RFC
 * 9112 section 6.3).
 */
const unusableHead = 'HTTP/1.1 dropped\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'

/** As a text, for the last response of an HTTP/1 connection. */
export function formatReply({ status, headers, body = '' }: Reply, phrases: NodeJS.Dict<string>): string {
  if (status === 0) return unusableHead
  const list = [...headers, 'Date', new Date(clock.now()).toUTCString(), 'Connection', 'close']
  const lines = pairHeaders(list).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${phrases[status] ?? 'unknown'}\r\n${lines.join('')}\r\n${body}`
}

/** One thing that is wrong with a request, and where: in a member of the body, a query parameter, or `body` for all of it. */
export interface FieldError {
  readonly field: string
  readonly message: string
}

/** What a response with an Error body says. */
export interface Refusal {
  /** Interface section 7.1. */
  readonly code: string
  readonly status: number
  readonly message: string
  /** An extension: what the message says, for programs. */
  readonly errors?: readonly FieldError[]
  /** Names and values in turn. */
  readonly headers?: readonly string[]
  readonly closes?: boolean
}

/** The Error body of interface section 2; its `status` member repeats the response's status. */
export function errorReply({ code, message, status, errors, headers, closes = false }: Refusal): Reply {
  const text = JSON.stringify({ code, message, status, errors })
  return { ...textReply(status, text, headers), code, closes }
}

/** On every response. */
const commonHeaders = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']

/** What HTTP, JSON or the keys are the reason of. What a store is the reason of stands in api/refusals.ts. */
export const httpErrors = {
  malformed_request: { status: 400, message: 'The request is not well-formed HTTP.' },
  invalid_parameter: { status: 400, message: 'A query parameter is not valid.' },
  malformed_json: { status: 400, message: 'The body is not valid JSON.' },
  invalid_body: { status: 400, message: 'The body is not valid.' },
  unauthorized: { status: 401, message: 'Send your API key in a header: "Authorization: Bearer <API_KEY>".' },
  not_found: { status: 404, message: 'There is no such path.' },
  method_not_allowed: { status: 405, message: 'This resource does not take that method.' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  content_too_large: { status: 413, message: 'The body is too large.' },
  unsupported_media_type: {
    status: 415,
    message: 'Send the body as "Content-Type: application/json", without a Content-Encoding.',
  },
  expectation_failed: { status: 417, message: 'The only expectation that can be met is "100-continue".' },
  request_header_fields_too_large: {
    status: 431,
    message: `The request line and headers are larger than ${maxHeadBytes} bytes.`,
  },
  internal_error: { status: 500, message: 'Something went wrong in the service.' },
  failed_on_purpose: { status: 500, message: 'This failed on purpose, as the setting for failures says.' },
  not_implemented: { status: 501, message: 'This operation is not implemented.' },
  shutting_down: { status: 503, message: 'The service is shutting down.' },
} satisfies Record<string, { readonly status: number; readonly message: string }>

export type HttpErrorCode = keyof typeof httpErrors

/** Becomes a response with the Error body of interface section 2. */
export class HttpError extends Error implements Refusal {
  readonly code: HttpErrorCode
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly closes: boolean

  constructor(
    code: HttpErrorCode,
    message: string = httpErrors[code].message,
    headers: readonly string[] = [],
    closes = false,
  ) {
    super(message)
    this.code = code
    this.status = httpErrors[code].status
    this.headers = headers
    this.closes = closes
  }
}

/** Names all that is wrong with the values of a request, in its message for people and in `errors` for programs. */
export class InvalidValues extends HttpError {
  readonly errors: readonly FieldError[]

  constructor(code: 'invalid_body' | 'invalid_parameter', errors: readonly FieldError[]) {
    super(code, errors.map(({ field, message }) => `${field}: ${message}`).join('; '))
    this.errors = errors
  }
}

/** Of the headers that are sent here, those that a page of another origin may read. */
const exposedHere = ['WWW-Authenticate', 'Allow', 'Preference-Applied', 'Retry-After']

/** A host as an origin has it: a name, an address, or the lone dot of Electron's apps; and a port, if it is not the usual one. */
const originPattern = /^[a-z][a-z\d+.-]*:\/\/(?:\[[\da-f:]+\]|[\w-]+(?:\.[\w-]+)*\.?|\.)(?::\d+)?$/

/** What keeps a text from being an origin as a browser sends it (RFC 6454 section 6.2), if anything, and what was probably meant. */
export function originFault(text: string): string | undefined {
  const meant = guessOrigin(text)
  // A page in a sandbox, and one that was opened as a file, have the origin null.
  if (text === 'null' || meant === text) return undefined
  const fault = `expected an origin such as https://example.org, got ${describe(text)}`
  if (meant !== undefined) return `${fault}; write ${meant}`
  const several = text.split(/[\s;,]+/).map(guessOrigin)
  if (several.every((origin) => origin !== undefined))
    return `${fault}; give each by itself: ${several.join(', ')}`
  return text.includes('*') ? `${fault}; write out each origin, or * alone for all` : fault
}

/** The origin of an address, which may lack its scheme if it has a port or a dot; undefined if it has none. */
function guessOrigin(text: string): string | undefined {
  const isLocal = /^(?:localhost|127\.|\[::1\])/.test(text)
  const isBare = /^(?:[\w-]+(?:\.[\w-]+)+|localhost|[\w-]+(?=:\d)|\[[\da-f:]+\])(?::\d+)?$/i.test(text)
  const url = isBare ? `${isLocal ? 'http' : 'https'}://${text}` : text
  // A WebSocket has the origin of its page.
  const address = url.replace(/^ws(?=s?:)/i, 'http')
  if (!URL.canParse(address)) return undefined
  // `origin` is null for schemes that browsers do not know, such as those of apps.
  const { protocol, host } = new URL(address)
  const origin = `${protocol}//${host}`
  return originPattern.test(origin) ? origin : undefined
}

/** `*` for any origin, or the origins themselves, none included. They may read `exposedHeaders`, too. */
export function createCors(origins: '*' | readonly string[], exposedHeaders: readonly string[] = []) {
  const exposed = [...exposedHeaders, ...exposedHere].join(', ')
  const allowOrigin = (origin: string): readonly string[] => [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Expose-Headers',
    exposed,
  ]
  // Also of a response that allows none (RFC 9110 section 12.5.5).
  const vary = origins.length === 0 ? [] : ['Vary', 'Origin']
  const named = origins === '*' ? [] : origins
  const allowed = new Map(
    named.map((origin) => [origin, [...commonHeaders, ...allowOrigin(origin), ...vary]]),
  )
  const unnamed = [...commonHeaders, ...(origins === '*' ? allowOrigin('*') : vary)]
  return {
    /** Of each response to this origin. */
    responseHeaders: (origin = '') => allowed.get(origin) ?? unnamed,
    /** The reply to OPTIONS. A preflight may ask for any method and headers: the page then sees what the real response says of them. */
    optionsReply(allow: string, headers: Readonly<NodeJS.Dict<string>>): Reply {
      const { origin = '', 'access-control-request-method': method } = headers
      const isAsked = origins === '*' || allowed.has(origin)
      if (method === undefined || !isAsked) return { status: 204, headers: ['Allow', allow] }
      const wanted = headers['access-control-request-headers'] ?? 'Authorization, Content-Type'
      const given = ['Access-Control-Allow-Methods', method, 'Access-Control-Allow-Headers', wanted]
      return { status: 204, headers: ['Allow', allow, ...given, 'Access-Control-Max-Age', '600'] }
    },
  }
}

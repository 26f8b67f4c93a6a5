/** Sends requests to the service, and formats requests and responses as text. */
type Headers = readonly (readonly [name: string, value: string])[]

export interface WireRequest {
  readonly method: string
  readonly url: URL
  /** Without the key. */
  readonly headers: Headers
  readonly body?: string
}

export interface WireResponse {
  readonly status: number
  readonly reason: string
  readonly headers: Headers
  readonly body: string
}

export interface Exchange {
  readonly request: WireRequest
  /** The key that the request was sent with; empty without one. */
  readonly key: string
  /** Undefined while it is awaited, and when the request failed without one. */
  readonly response: WireResponse | undefined
  /** Undefined while the response is awaited. */
  readonly milliseconds: number | undefined
}

/**
 * The address of this page, with a slash at the end. All URLs are relative to it: another app may mount the
 * service under a path.
 */
export const base = new URL(location.origin + location.pathname.replace(/\/?$/, '/'))

/** Sends a request. Resolves with undefined when the signal aborted it; never rejects. */
export async function send(
  request: WireRequest,
  key: string,
  signal?: AbortSignal,
): Promise<Exchange | undefined> {
  const start = performance.now()
  let response: WireResponse | undefined
  try {
    const { method, url, body = null } = request
    const headers = withKey(request, key).map(([name, value]): [string, string] => [name, value])
    const init: RequestInit = {
      method,
      headers,
      body,
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
    }
    const received = await fetch(url, signal === undefined ? init : { ...init, signal })
    const { status, statusText: reason } = received
    response = { status, reason, headers: [...received.headers], body: await received.text() }
  } catch {
    // A failed fetch tells a page nothing about why.
  }
  if (signal?.aborted === true) return undefined
  return { request, key, response, milliseconds: performance.now() - start }
}

function withKey({ headers }: WireRequest, key: string): Headers {
  return key === '' ? headers : [['Authorization', `Bearer ${key}`], ...headers]
}

export function findHeader({ headers }: WireResponse, name: string): string | undefined {
  return headers.find(([candidate]) => candidate === name)?.[1]
}

/** The service speaks HTTP/1.1, whatever a proxy in front of it speaks to the browser. */
const version = 'HTTP/1.1'

/** A request or a response as text. */
export interface Message {
  readonly start: string
  /** A line each. */
  readonly headers: readonly string[]
  readonly body: string
}

export function createRequestMessage(request: WireRequest, key: string): Message {
  const { method, url, body = '' } = request
  const headers = formatHeaders([['Host', url.host], ...withKey(request, key)])
  return { start: `${method} ${url.pathname}${url.search} ${version}`, headers, body }
}

export function createResponseMessage({ response, milliseconds }: Exchange): Message {
  if (response === undefined) {
    const start = milliseconds === undefined ? 'Waiting for the response …' : 'No response.'
    return { start, headers: [], body: '' }
  }
  const { status, reason, headers, body } = response
  return { start: `${version} ${status} ${reason}`, headers: formatHeaders(headers), body }
}

function formatHeaders(headers: Headers): readonly string[] {
  return headers.map(([name, value]) => `${name}: ${value}`)
}

export function formatMessage({ start, headers, body }: Message): string {
  return [start, ...headers, '', body].join('\n').trimEnd()
}

/** Formats the request as a command for a POSIX shell; `-i` prints the response headers too. */
export function formatCurl(request: WireRequest, key: string): string {
  const { method, url, body } = request
  const parts = [`curl -i ${quote(url.href)}`]
  for (const [name, value] of withKey(request, key)) parts.push(`-H ${quote(`${name}: ${value}`)}`)
  // With -d, curl sends a POST, and without it a GET.
  if (method !== (body === undefined ? 'GET' : 'POST')) parts.push(`-X ${method}`)
  if (body !== undefined) parts.push(`-d ${quote(body)}`)
  return parts.join(' \\\n  ')
}

/** Between single quotes, a shell gives a meaning only to the single quote itself. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

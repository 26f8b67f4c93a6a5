/** What goes over the wire, as values and as text. */
import { breakLines } from './exact-json.ts'

type Headers = readonly (readonly [name: string, value: string])[]

export interface WireRequest {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  /** Without the key. */
  readonly headers: Headers
  readonly body?: string
}

export interface WireAnswer {
  readonly status: number
  readonly reason: string
  readonly headers: Headers
  readonly body: string
}

export interface Exchange {
  readonly request: WireRequest
  /** The key that it was sent with; empty when with none. */
  readonly key: string
  /** Undefined when none came. */
  readonly answer: WireAnswer | undefined
  readonly milliseconds: number
}

/** Where the page is; the service's paths go on from here, also when it is mounted under a path of another app. */
export const base = new URL(location.origin + location.pathname.replace(/\/?$/, '/'))

/** Undefined when the signal ended it. */
export async function send(
  request: WireRequest,
  key: string,
  signal?: AbortSignal,
): Promise<Exchange | undefined> {
  const start = performance.now()
  let answer: WireAnswer | undefined
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
    const response = await fetch(url, signal === undefined ? init : { ...init, signal })
    const { status, statusText: reason } = response
    answer = { status, reason, headers: [...response.headers], body: await response.text() }
  } catch {
    // fetch does not tell a page more than that it failed.
  }
  if (signal?.aborted === true) return undefined
  return { request, key, answer, milliseconds: performance.now() - start }
}

function withKey({ headers }: WireRequest, key: string): Headers {
  return key === '' ? headers : [['Authorization', `Bearer ${key}`], ...headers]
}

export function findHeader({ headers }: WireAnswer, name: string): string | undefined {
  return headers.find(([candidate]) => candidate === name)?.[1]
}

/** The service speaks HTTP/1.1, whatever a proxy before it does. */
const version = 'HTTP/1.1'

export function formatRequest(request: WireRequest, key: string, isBroken = false): string {
  const { method, url, body } = request
  const head: Headers = [['Host', url.host], ...withKey(request, key)]
  return formatMessage(`${method} ${url.pathname}${url.search} ${version}`, head, body ?? '', isBroken)
}

export function formatAnswer({ status, reason, headers, body }: WireAnswer, isBroken = false): string {
  return formatMessage(`${version} ${status} ${reason}`, headers, body, isBroken)
}

function formatMessage(start: string, headers: Headers, body: string, isBroken: boolean): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}`)
  return [start, ...lines, '', isBroken ? breakLines(body) : body].join('\n').trimEnd()
}

/** The request as a command for a POSIX shell; `-i` shows the head of the answer too. */
export function formatCurl(request: WireRequest, key: string): string {
  const { url, body } = request
  const parts = [`curl -i ${quote(url.href)}`]
  for (const [name, value] of withKey(request, key)) parts.push(`-H ${quote(`${name}: ${value}`)}`)
  // A body makes it a POST.
  if (body !== undefined) parts.push(`-d ${quote(body)}`)
  return parts.join(' \\\n  ')
}

/** Nothing has a meaning between single quotes but the quote itself. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

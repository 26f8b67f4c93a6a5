/**
 * Finds the resource that a request target names (RFC 9112 section 3.2), and its methods. Splits by hand: `new URL` would take
 * the `//evil` of `//evil/v1/pets` for a host, and decode or tidy what it should not. Answers nothing itself: see request-handler.ts.
 */
import { unescape } from 'node:querystring'
import { HttpError } from './error-codes.ts'

export interface Match<Resource> {
  readonly resource: Resource
  /** The path's parameter, decoded; empty when its template has none. */
  readonly parameter: string
  /** What follows the `?`, as sent; empty without one. */
  readonly query: string
}

/**
 * Makes a router of paths such as `/v1/pets`, and of templates such as `/v1/pets/{petId}`, of which one segment is a parameter. Of
 * several that match, the first wins. `basePath` may stand before each: Express and Vite remove it before they call a mounted listener,
 * and node:http does not.
 */
export function createRouter<Resource>(resources: Readonly<Record<string, Resource>>, basePath = '') {
  const routes = Object.entries(resources).map(([path, resource]) => ({ names: path.split('/'), resource }))
  const base = basePath.split('/').map(unescape)

  return (target: string): Match<Resource> | undefined => {
    const { path, query } = splitTarget(target)
    // Split first: a %2F is no `/` between segments (RFC 3986 section 2.2).
    const segments = path.split('/').map(decode)
    const hasBase = base.every((name, index) => name === segments[index])
    const afterBase = hasBase ? ['', ...segments.slice(base.length)] : segments
    for (const { names, resource } of routes) {
      const parameter = matchPath(names, segments) ?? matchPath(names, afterBase)
      if (parameter !== undefined) return { resource, parameter, query }
    }
    return undefined
  }
}

/** The parameter, or an empty text if there is none; undefined if the path does not match. */
function matchPath(names: readonly string[], segments: readonly string[]): string | undefined {
  if (names.length !== segments.length) return undefined
  let parameter = ''
  for (const [index, name] of names.entries()) {
    const segment = segments[index]
    // An empty segment is no value: `/pets/` is neither `/pets` nor a pet.
    if (name.startsWith('{') && segment) parameter = segment
    else if (name !== segment) return undefined
  }
  return parameter
}

/**
 * The path of a request target as it was sent, for a log: an absolute-form target may hold a password (RFC 3986 section
 * 3.2.1), and a query a key. `-` for what has no path.
 */
export function findPath(target: string): string {
  const rest = target.replace(/^[a-z][\w+.-]*:\/\/[^/?#]*/i, '')
  const [path = ''] = rest.split(/[?#]/, 1)
  if (path.startsWith('/') || target === '*') return path
  return path === '' ? '/' : '-'
}

/** The method whose operation responds: HEAD follows GET. */
export function operationMethod(method: string): string {
  return method === 'HEAD' ? 'GET' : method
}

/** The value of an Allow header for these resources, each with its operations by method. HEAD follows GET. */
export function formatAllow(...resources: readonly Readonly<Record<string, unknown>>[]): string {
  const methods = resources.flatMap((operations) => Object.keys(operations))
  const withHead = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return [...new Set([...withHead, 'OPTIONS'])].join(', ')
}

/** The parameters of a query. A `?` in front would otherwise be taken off, also when it is part of the first name. */
export function parseQuery(query: string): URLSearchParams {
  return new URLSearchParams(`?${query}`)
}

function splitTarget(target: string): { path: string; query: string } {
  let rest = target
  if (!target.startsWith('/')) {
    // Absolute-form, as a proxy sends it: scheme, authority, path (RFC 9112 section 3.2.2).
    const absolute = /^https?:\/\/[^/?#]+(.*)$/i.exec(target)
    if (absolute === null) throw malformed('expected a path that begins with "/"')
    rest = absolute[1] ?? ''
    if (!rest.startsWith('/')) rest = `/${rest}`
  }
  if (rest.includes('#')) throw malformed('must not contain a fragment ("#…")')
  const mark = rest.indexOf('?')
  const path = mark === -1 ? rest : rest.slice(0, mark)
  const query = mark === -1 ? '' : rest.slice(mark + 1)
  // URLSearchParams would put up with a bad escape.
  if (query.includes('%')) for (const part of query.split(/[&=]/)) decode(part)
  return { path, query }
}

function decode(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text
    throw malformed(`"${shown}" has an invalid percent escape: expected UTF-8, such as "%C3%A9"`)
  }
}

function malformed(fault: string): HttpError {
  return new HttpError('malformed_request', `request target: ${fault}`)
}

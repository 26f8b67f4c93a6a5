/**
 * Finds the resource that a request target names (RFC 9112 section 3.2), and its methods. Splits by hand: `new URL` would take
 * the `//evil` of `//evil/v1/pets` for a host, and decode or tidy what it should not. Answers nothing itself: see request-handler.ts.
 */
import { HttpError } from './error-codes.ts'

export interface Match<Resource> {
  readonly resource: Resource
  /** The path's parameter, decoded; empty when its template has none. */
  readonly parameter: string
  /** What follows the `?`, as sent; empty without one. */
  readonly query: string
}

/**
 * Makes a router of paths such as `/v1/pets`, and of templates such as `/v1/pets/{petId}`, whose last segment is a
 * parameter. A path that is written out wins. Throws on a template of any other form.
 */
export function createRouter<Resource>(resources: Readonly<Record<string, Resource>>) {
  const fixed = new Map<string, Resource>()
  /** By what stands before the parameter. */
  const templates = new Map<string, Resource>()
  for (const [template, resource] of Object.entries(resources)) {
    const prefix = /^([^{}]*\/)\{\w+\}$/.exec(template)?.[1]
    if (prefix !== undefined) templates.set(prefix, resource)
    else if (/[{}]/.test(template))
      throw new TypeError(`${template}: only the last segment can be a parameter`)
    else fixed.set(template, resource)
  }

  return (target: string): Match<Resource> | undefined => {
    const { path: rawPath, query } = splitTarget(target)
    const path = rawPath.includes('%') ? rawPath.split('/').map(decodeSegment).join('/') : rawPath
    const fixedResource = fixed.get(path)
    if (fixedResource !== undefined) return { resource: fixedResource, parameter: '', query }
    const valueStart = path.lastIndexOf('/') + 1
    const value = path.slice(valueStart)
    const resource = templates.get(path.slice(0, valueStart))
    // An empty segment is no value: `/pets/` is neither `/pets` nor a pet.
    if (resource === undefined || value === '') return undefined
    return { resource, parameter: value.replaceAll(escapedSlash, '/'), query }
  }
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

/** Stands for a `%2F`, which is no `/` between segments (RFC 3986 section 2.2). No escape decodes to it. */
const escapedSlash = '\ud800'

function decodeSegment(segment: string): string {
  return decode(segment).replaceAll('/', escapedSlash)
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

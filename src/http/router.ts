/**
 * Finds the resource that a request target names (RFC 9112 section 3.2). Splits by hand: `new URL` would take the `//evil` of
 * `//evil/v1/pets` for a host, and tidy the rest.
 */
import { unescape } from 'node:querystring'
import { shorten } from '../json/json.ts'
import { HttpError } from './response.ts'

export interface Match<Resource> {
  readonly resource: Resource
  /** The path's parameter, decoded; empty when its template has none. */
  readonly parameter: string
  /** The query with its `?`, as sent; empty without one. */
  readonly search: string
}

/**
 * Makes a router of paths and of templates such as `/v1/pets/{petId}`, with one parameter. Of several that match, one without a
 * parameter wins over a template if the path is sent as it stands here, and otherwise the first. `basePath` may stand before each: Express and Vite take it off, and node:http does not.
 */
export function createRouter<Resource>(resources: Readonly<Record<string, Resource>>, basePath = '') {
  const routes = Object.entries(resources).flatMap(([path, resource]) =>
    [...new Set([path, basePath + path])].map((each) => {
      const names = each.split('/')
      const at = names.findIndex((name) => name.startsWith('{'))
      return { path: each, names: names.map(unescape), at, resource }
    }),
  )

  /** Most requests have a path just as it stands here. To compare its segments takes 2 % of a list. */
  const plain = new Map(routes.flatMap(({ path, at, resource }) => (at === -1 ? [[path, resource]] : [])))

  return (target: string): Match<Resource> | undefined => {
    const { path, search } = splitTarget(target)
    const found = plain.get(path)
    if (found !== undefined) return { resource: found, parameter: '', search }
    // Split first: %2F is no `/` (RFC 3986 section 2.2).
    const segments = path.split('/').map(decode)
    const route = routes.find(
      ({ names, at }) =>
        names.length === segments.length &&
        // `/pets/` is neither `/pets` nor a pet.
        names.every((name, index) => (index === at ? segments[at] !== '' : name === segments[index])),
    )
    return route && { resource: route.resource, parameter: segments[route.at] ?? '', search }
  }
}

/** The path as it was sent, for a log: the rest may hold a password or a key. `-` for what has no path. */
export function findPath(target: string): string {
  const path = target.replaceAll(/^[a-z][\w+.-]*:\/\/[^/?#]*|[?#].*/gis, '')
  if (path.startsWith('/') || target === '*') return path
  return path === '' ? '/' : '-'
}

function splitTarget(target: string): { path: string; search: string } {
  // The other is absolute-form, as a proxy sends it (RFC 9112 section 3.2.2).
  const isOriginForm = target.startsWith('/')
  if (!isOriginForm && !/^https?:\/\/[^/?#]/i.test(target))
    throw malformed('expected a path that begins with "/"')
  if (target.includes('#')) throw malformed('must not contain a fragment ("#…")')
  const mark = target.indexOf('?')
  const end = mark === -1 ? target.length : mark
  const search = target.slice(end)
  // URLSearchParams would put up with a bad escape.
  if (search.includes('%')) for (const part of search.slice(1).split(/[&=]/)) decode(part)
  // findPath would do for both, but costs more.
  return { path: isOriginForm ? target.slice(0, end) : findPath(target), search }
}

function decode(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    throw malformed(`"${shorten(text)}" has an invalid percent escape: expected UTF-8, such as "%C3%A9"`)
  }
}

function malformed(fault: string): HttpError {
  return new HttpError('malformed_request', `request target: ${fault}`)
}

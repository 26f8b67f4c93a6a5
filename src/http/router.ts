/**
 * Finds the resource that a request target names (RFC 9112 section 3.2). Splits by hand: `new URL` would take
 * the `//evil` of `//evil/v1/pets` for a host, and tidy the rest.
 */
import { shorten } from '../text/words.ts'
import { HttpError } from './response.ts'

export interface Match<Resource> {
  readonly resource: Resource
  /** The path's parameter, decoded; empty when its template has none. */
  readonly parameter: string
  /** The query with its `?`, as sent; empty without one. */
  readonly search: string
}

/**
 * Makes a router of paths and of templates such as `/v1/pets/{petId}`, with one parameter. A path wins over a
 * template. `basePath` may stand before each: Express and Vite take it off, and node:http does not.
 */
export function createRouter<Resource>(resources: Readonly<Record<string, Resource>>, basePath = '') {
  const exact = new Map<string, Resource>()
  const templates: { readonly start: string; readonly end: string; readonly resource: Resource }[] = []
  for (const [path, resource] of Object.entries(resources))
    for (const prefix of new Set(['', basePath])) {
      const [start = '', end] = normalize(prefix + path).split(/\{\w+\}/)
      if (end === undefined) exact.set(start, resource)
      else templates.push({ start, end, resource })
    }

  return (target: string): Match<Resource> | undefined => {
    // A client sends a proxy the absolute form (RFC 9112 section 3.2.2).
    const isOriginForm = target.startsWith('/')
    if (!isOriginForm && !/^https?:\/\/[^/?#]/i.test(target))
      throw malformed('expected a path that begins with "/"')
    if (target.includes('#')) throw malformed('must not contain a fragment ("#…")')
    const mark = target.indexOf('?')
    const search = mark === -1 ? '' : target.slice(mark)
    // URLSearchParams would put up with a bad escape.
    if (search.includes('%')) {
      for (const part of search.slice(1).split(/[&=]/)) decode(part)
    }
    // findPath would do for both forms, but costs more.
    const path = normalize(isOriginForm ? target.slice(0, target.length - search.length) : findPath(target))
    const found = exact.get(path)
    if (found !== undefined) return { resource: found, parameter: '', search }
    for (const { start, end, resource } of templates) {
      const parameter = path.slice(start.length, path.length - end.length)
      // `/pets/` is neither `/pets` nor a pet.
      if (/^[^/]+$/.test(parameter) && path === start + parameter + end)
        return { resource, parameter: decode(parameter), search }
    }
    return undefined
  }
}

/**
 * Gives all spellings of a path one form. It is split before it is decoded: `%2F` is no `/` (RFC 3986 section
 * 2.2).
 */
function normalize(path: string): string {
  if (!path.includes('%')) return path
  const segments = path.split('/').map((text) => decode(text).replaceAll(/[%/]/g, encodeURIComponent))
  return segments.join('/')
}

/** Returns the path as it was sent, for a log: the rest may hold a password or a key. `-` stands for none. */
export function findPath(target: string): string {
  const path = target.replaceAll(/^[a-z][\w+.-]*:\/\/[^/?#]*|[?#].*/gis, '')
  if (path.startsWith('/') || target === '*') return path
  return path === '' ? '/' : '-'
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

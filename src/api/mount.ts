/** How an app that mounts the listener changes the target of a request, and which mounts are wrong. */
import type { Arrival } from '../http/request.ts'
import { findPath } from '../http/router.ts'

/**
 * Returns whether an app has made `/` of the path that it mounts the service under: connect and Vite do so of
 * `/store` and of `/store/`.
 */
export function isMountPath({ originalTarget, target }: Arrival, basePath: string): boolean {
  if (basePath === '' || typeof originalTarget !== 'string' || findPath(target) !== '/') return false
  const path = findPath(originalTarget)
  return !path.endsWith('/') && basePath.toLowerCase().endsWith(path.toLowerCase())
}

/**
 * Returns how the listener is mounted if that is wrong: by a wildcard, such as `/store/*`, which leaves it no
 * path, or where `basePath` does not end with the path of the mount. If Express has made `/v1/pets` of
 * `/api/v1/pets`, the mount is `/api`, and `basePath` has to be `/api`, or `/shop/api` behind a proxy that
 * removes `/shop`.
 */
export function findMountFault({ originalTarget, target }: Arrival, basePath: string): string | undefined {
  if (typeof originalTarget !== 'string') return undefined
  if (findPath(target) === '/' && findPath(originalTarget).includes('/v1/'))
    return 'by a wildcard, which takes the whole path off; mount it without one'
  const mount = originalTarget.endsWith(target) ? originalTarget.slice(0, -target.length) : ''
  if (basePath.toLowerCase().endsWith(mount.toLowerCase())) return undefined
  return `under ${mount}; pass this as basePath, or Link, Location and openapi.json name paths that do not exist`
}

/** What is said where there is no operation: 404 for an unknown path, 405 and Allow for another method on a known one. */
import { errorCodes, HttpError } from '../http/error-codes.ts'

/** The path is without the `basePath`. Clients that come close get a hint: `/pets`, `/v1/pets/`, `/v1/pet`, `/api/v1/Pets/1`, `/v1`. */
export function notFound(path: string, basePath: string): HttpError {
  const isNear = /^\/v1\/?$|^(?:\/[^/]+)*\/pets?(?:\/|$)/i.test(path)
  const hint = `${errorCodes.not_found.message} The pets are at ${basePath}/v1/pets.`
  return new HttpError('not_found', isNear ? hint : undefined)
}

const changeHint = ' Pets are changed and removed in the data file, or wherever else they are kept.'

/** Names the methods in its message too, since a plain `curl` shows no headers. */
export function methodNotAllowed(method: string, allow: string, path = ''): HttpError {
  const isChange = path.includes('/v1/pets') && ['DELETE', 'PATCH', 'PUT'].includes(method)
  const message = `${method} is not allowed here, only ${allow}.${isChange ? changeHint : ''}`
  return new HttpError('method_not_allowed', message, ['Allow', allow])
}

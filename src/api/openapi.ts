/**
 * The interface as an OpenAPI 3.1 document, made of the operations under `/v1`. The descriptions are for people; the page at `/` shows
 * them, as other tools do.
 */
import { otherError, unauthorized } from './openapi-parts.ts'
import { schemas } from './openapi-schemas.ts'
import type { OperationDescription } from './operation.ts'
import { operations } from './operations.ts'

/** The version of the interface (section 9), not of this package. */
const interfaceVersion = '1.0.0'

/** The document of a service that is mounted under `basePath`, which is empty at the root of a server. */
export function openApiDocument(basePath: string): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Petstore',
      version: interfaceVersion,
      summary: 'Lists, adds and fetches the pets of a store.',
      description:
        'Clients send and receive JSON in UTF-8. Every operation requires an API key in the header ' +
        '`Authorization: Bearer <API_KEY>`.\n\n' +
        'Integers of format `int64` are in the range from -2^63 to 2^63-1. The service keeps all of them exactly, ' +
        'including those that a double-precision number would round (beyond 2^53).\n\n' +
        'Every error response has an `Error` body. Its message names all errors of the request together.',
      contact: { name: 'The operator of this service' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: `${basePath}/v1`, description: 'This server, relative to this document.' }],
    security: [{ apiKey: [] }],
    tags: [{ name: 'animals', description: 'The pets in the store; the interface also calls them animals.' }],
    'x-tagGroups': [
      { name: 'Store', tags: [] },
      { name: 'Pets', tags: ['animals'] },
    ],
    paths: describePaths(basePath),
    components: {
      schemas,
      responses: { Unauthorized: unauthorized, OtherError: otherError },
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'The API key as a bearer token (RFC 6750).' },
      },
    },
  }
}

function describePaths(basePath: string): Record<string, Record<string, OperationDescription>> {
  const paths: Record<string, Record<string, OperationDescription>> = {}
  for (const { method, path, describe } of operations) {
    if (describe === undefined) continue
    paths[path] = { ...paths[path], [method.toLowerCase()]: { tags: ['animals'], ...describe(basePath) } }
  }
  return paths
}

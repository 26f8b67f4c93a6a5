/** Texts of this repository. The built files have them instead of this module's code (src/build.ts). */
import { readFileSync } from 'node:fs'

/** A built file has the commit, too, if it was built in a clone: `2.0.0 (6475f35, 2026-11-23)`. */
export const { version: packageVersion }: { version: string } = JSON.parse(read('package.json'))

export const petsSchemaText = read('data/pets.schema.json')

/** This is the interface as an OpenAPI 3.1 document, without spaces. Tests hold it to the code. */
export const openApiText = JSON.stringify(JSON.parse(read('src/api/openapi.json')))

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

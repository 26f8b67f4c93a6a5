/** Texts of this repository that the built files carry inside. When run from source, they are read from their files. */
import { readFileSync } from 'node:fs'

/** Filled in by the build. */
declare const PETSTORE_VERSION: string | undefined
declare const PETSTORE_PETS_SCHEMA: string | undefined

/** The version of this package. */
export function readVersion(): string {
  if (typeof PETSTORE_VERSION === 'undefined') {
    const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
    // Its shape is ours to know: it is this repository's package.json.
    return (manifest as { version: string }).version
  }
  return PETSTORE_VERSION
}

/** The JSON Schema of the data file. */
export function readPetsSchema(): string {
  if (typeof PETSTORE_PETS_SCHEMA === 'undefined') {
    return readFileSync(new URL('../data/pets.schema.json', import.meta.url), 'utf8')
  }
  return PETSTORE_PETS_SCHEMA
}

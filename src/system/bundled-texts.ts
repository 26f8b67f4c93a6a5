/**
 * Texts of this repository that the build puts into the built files: the version of the package, and the schema of the
 * data file. Code that runs from source reads them from their files.
 */
import { readFileSync } from 'node:fs'

/** The build replaces these names by their values. */
declare const PETSTORE_VERSION: string | undefined
declare const PETSTORE_PETS_SCHEMA: string | undefined

/** In a built file with the commit, if it was built in a clone: `1.0.0 (6475f35, 2026-11-23)`. */
export function readVersion(): string {
  if (typeof PETSTORE_VERSION !== 'undefined') return PETSTORE_VERSION
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  // The file is this repository's own package.json, which has a version.
  return (manifest as { version: string }).version
}

/** The JSON Schema of the data file. */
export function readPetsSchema(): string {
  if (typeof PETSTORE_PETS_SCHEMA !== 'undefined') return PETSTORE_PETS_SCHEMA
  return readFileSync(new URL('../../data/pets.schema.json', import.meta.url), 'utf8')
}

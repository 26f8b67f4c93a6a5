/** The data file that comes with the service, and its schema for editors: both agree with the code. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import * as v from 'valibot'
import { parseUsableFileText } from '../src/data-file/file-text.ts'
import { SeedPetSchema } from '../src/pet/pet-rules.ts'
import { defaultStatus, petMembers, petStatuses, formatPet } from '../src/pet/pet.ts'
import { root } from './support.ts'

interface PetsJsonSchema {
  readonly properties: Record<string, object>
  readonly definitions: {
    readonly pet: { readonly required: readonly string[]; readonly properties: Record<string, object> }
  }
}

/** The committed version, because a service that was started here may have changed the file. */
const dataFile = readCommitted('data/pets.json')

function readCommitted(name: string): Buffer {
  const { status, stdout } = spawnSync('git', ['show', `HEAD:${name}`], { cwd: root })
  return status === 0 ? stdout : readFileSync(join(root, name))
}

// The cast says what this repository's own file looks like; the tests check its members one by one.
const schema = JSON.parse(readFileSync(join(root, 'data/pets.schema.json'), 'utf8')) as PetsJsonSchema
const members = schema.definitions.pet.properties

test('data/pets.json holds a dozen pets, of every status and of several categories', () => {
  const { pets } = parseUsableFileText('data/pets.json', dataFile)
  assert.deepEqual(
    pets.map(({ id }) => id),
    Array.from({ length: 12 }, (_, index) => index + 1),
  )
  assert.deepEqual(new Set(pets.map(({ status }) => status)), new Set(petStatuses))
  assert.ok(new Set(pets.map(({ categoryId }) => categoryId)).size >= 3)
})

test('data/pets.json has the layout that the server writes, and names its schema', () => {
  const { pets } = parseUsableFileText('data/pets.json', dataFile)
  const lines = pets.map((pet) => `    ${formatPet(pet)}`).join(',\n')
  const head = '{\n  "$schema": "./pets.schema.json",\n  "pets": [\n'
  assert.equal(dataFile.toString(), `${head}${lines}\n  ]\n}\n`)
})

test('data/pets.schema.json has exactly the members of the file and of a pet', () => {
  assert.deepEqual(Object.keys(schema.properties), ['$schema', 'pets'])
  assert.deepEqual(Object.keys(members), petMembers, 'data/pets.schema.json, properties')
  const { pets } = parseUsableFileText('data/pets.json', dataFile)
  const required = petMembers.filter((member) => {
    const withoutIt = { ...pets[0], [member]: undefined }
    return !v.is(SeedPetSchema, JSON.parse(JSON.stringify(withoutIt)))
  })
  assert.deepEqual(schema.definitions.pet.required, required, 'data/pets.schema.json, required')
})

test('data/pets.schema.json offers each status, and names the default one', () => {
  const { status } = members
  assert.ok(status !== undefined && 'enum' in status && 'default' in status)
  assert.deepEqual(status.enum, petStatuses)
  assert.equal(status.default, defaultStatus)
  assert.match(JSON.stringify(schema.definitions), new RegExp(`\\|${petStatuses.join()}\\|`), 'the snippet')
})

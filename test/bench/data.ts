/** The pets that the benchmarks start with, and the requests that list, get and create them. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { createRequest, type HttpRequest } from './http.ts'

export interface Pet {
  id: number
  name: string
  categoryId: number
  status: string
}

export const key = 'bench-key-0123456789abcdef'

const statuses = ['available', 'pending', 'sold']
const names = ['Rex', 'Mia', 'Captain Whiskers', 'Bella', 'Luna', 'Sir Barks-a-Lot', 'Coco', 'Nemo', 'Polly']

/** Pets 1 to `count`, the statuses in turn. */
export function createPets(count: number): Pet[] {
  return Array.from({ length: count }, (_, index) => createPet(index + 1, statuses[index % 3] ?? ''))
}

function createPet(id: number, status: string): Pet {
  return { id, name: `${names[id % names.length]} ${id % 1000}`, categoryId: (id % 12) + 1, status }
}

/** A data file of these pets. */
export function writePetsFile(path: string, pets: Pet[]): void {
  writeLines(path, pets)
}

/** A data file of pets 1 to `count`. Only the last 25 are sold, so that a filter has to find them. */
export function writeManyPets(path: string, count: number): void {
  function* pets() {
    for (let id = 1; id <= count; id += 1) {
      yield createPet(id, id > count - 25 ? 'sold' : (statuses[id % 2] ?? ''))
    }
  }
  writeLines(path, pets())
}

/** One pet a line, in pieces, since a million of them are long. */
function writeLines(path: string, pets: Iterable<Pet>): void {
  const file = openSync(path, 'w')
  let text = '{\n  "pets": ['
  let separator = '\n'
  for (const pet of pets) {
    text += `${separator}    ${JSON.stringify(pet)}`
    separator = ',\n'
    if (text.length > 1 << 20) {
      writeSync(file, text)
      text = ''
    }
  }
  writeSync(file, `${text}\n  ]\n}\n`)
  closeSync(file)
}

export function getRequest(target: string): HttpRequest {
  return createRequest('GET', target, { key })
}

/**
 * Lists that each begin behind another pet, from the first on. Our server keeps the replies of 64 lists at most, by what their queries
 * mean, until a pet changes: asked for one after the other, it has to make each of a few hundred anew.
 */
export function varyPage(target: string, count: number): string[] {
  const separator = target.includes('?') ? '&' : '?'
  return Array.from({ length: count }, (_, after) => `${target}${separator}after=${after}`)
}

/** A hundred different pets to create, and the requests that do. */
export const newPets = Array.from({ length: 100 }, (_, index) => {
  const { name, categoryId, status } = createPet(index, statuses[index % 3] ?? '')
  return { name, categoryId, status }
})

export const creations = newPets.map((newPet) =>
  createRequest('POST', '/v1/pets', { key, body: JSON.stringify(newPet), status: 201 }),
)

/** What every server that does the same work refuses, without closing the connection. */
export const refusals = [
  createRequest('GET', '/v1/pets', { status: 401 }),
  createRequest('GET', '/v1/pets', { key: 'another-key', status: 401 }),
  createRequest('GET', '/v1/pets?limit=0', { key, status: 400 }),
  createRequest('GET', '/v1/pets?status=lost', { key, status: 400 }),
  createRequest('GET', '/v1/pets/9007199254740993', { key, status: 404 }),
  createRequest('GET', '/nowhere', { key, status: 404 }),
  createRequest('POST', '/v1/pets', { key, body: '{"name": ', status: 400 }),
  createRequest('POST', '/v1/pets', { key, body: '{"name":"Rex"}', status: 400 }),
  createRequest('POST', '/v1/pets', { key, body: '{"name":"Rex","categoryId":1.5}', status: 400 }),
]

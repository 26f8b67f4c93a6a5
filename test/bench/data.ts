/** The pets that the benchmarks start with, and the requests that ask for them. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { createRequest, type Request } from './load.ts'

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

/** Writes pets 1 to `count`, one a line; only the last 25 are sold, so that a filter has to find them. */
export function writeManyPets(path: string, count: number): void {
  writePets(path, count, (id) => createPet(id, id > count - 25 ? 'sold' : (statuses[id % 2] ?? '')))
}

export function writePetsFile(path: string, pets: Pet[]): void {
  // Ids count from 1, so a pet is at the place before its id.
  writePets(path, pets.length, (id) => pets[id - 1] as Pet)
}

function createPet(id: number, status: string): Pet {
  return { id, name: `${names[id % names.length]} ${id % 1000}`, categoryId: (id % 12) + 1, status }
}

function writePets(path: string, count: number, petOf: (id: number) => Pet): void {
  const file = openSync(path, 'w')
  let lines = '{\n  "pets": [\n'
  for (let id = 1; id <= count; id += 1) {
    lines += `    ${JSON.stringify(petOf(id))}${id < count ? ',' : ''}\n`
    if (lines.length > 1 << 20) {
      writeSync(file, lines)
      lines = ''
    }
  }
  writeSync(file, `${lines}  ]\n}\n`)
  closeSync(file)
}

export function getRequests(targets: string[]): Request[] {
  return targets.map((target) => createRequest('GET', target, { key }))
}

/**
 * Two hundred queries for the same list, told apart by a parameter that servers ignore. Ours keeps the page of a query
 * until a pet changes, but not of so many: each of these it has to make anew.
 */
export function varyQuery(target: string): string[] {
  const separator = target.includes('?') ? '&' : '?'
  return Array.from({ length: 200 }, (_, index) => `${target}${separator}n=${index}`)
}

/** A hundred different creations, to be sent in turn. */
export const creations: Request[] = Array.from({ length: 100 }, (_, index) => {
  const { name, categoryId, status } = createPet(index, statuses[index % 3] ?? '')
  return createRequest('POST', '/v1/pets', {
    key,
    body: JSON.stringify({ name, categoryId, status }),
    status: 201,
  })
})

/** What the first of the creations sends. */
export const firstCreation = createPet(0, 'available')

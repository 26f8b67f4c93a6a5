/** Lists and single pets: ours against a bare node:http server, Fastify, Express and json-server. */
import { deepStrictEqual } from 'node:assert'
import { checkPets } from './answers.ts'
import type { Bench } from './bench.ts'
import { createPets, getRequests, varyQuery } from './data.ts'
import type { Answer } from './load.ts'
import { compare, race, type Race } from './race.ts'
import { startRivals, stopAll, type Rival } from './rivals.ts'
import { rateRow, type Row } from './table.ts'

const connections = 64
const pets = createPets(100)
const sold = pets.filter((pet) => pet.status === 'sold')

export interface Read {
  what: string
  targets: string[]
  /** The same for json-server, which pages in its own way. */
  jsonServerTargets: string[]
  check(answers: Answer[]): void
  /** Whether no bar hangs on it. */
  isBystander?: boolean
}

export const reads: Read[] = [
  {
    what: 'GET /v1/pets (20 pets)',
    targets: ['/v1/pets'],
    jsonServerTargets: ['/pets?_start=0&_limit=20'],
    check: (answers) => checkPets(answers[0], pets.slice(0, 20), pets.length),
  },
  {
    what: 'GET /v1/pets?limit=100 (100 pets)',
    targets: ['/v1/pets?limit=100'],
    jsonServerTargets: ['/pets?_start=0&_limit=100'],
    check: (answers) => checkPets(answers[0], pets, pets.length),
  },
  {
    what: 'GET /v1/pets?status=sold (20 pets)',
    targets: ['/v1/pets?status=sold'],
    jsonServerTargets: ['/pets?status=sold&_start=0&_limit=20'],
    check: (answers) => checkPets(answers[0], sold.slice(0, 20), sold.length),
  },
  {
    // The lists above are the same one again and again, whose page ours keeps; Fastify makes it anew each time.
    what: 'GET /v1/pets (20 pets, 200 queries in turn)',
    targets: varyQuery('/v1/pets'),
    // It would take the parameter for a filter.
    jsonServerTargets: Array<string>(200).fill('/pets?_start=0&_limit=20'),
    check: (answers) => {
      for (const answer of answers) checkPets(answer, pets.slice(0, 20), pets.length)
    },
    isBystander: true,
  },
  {
    what: 'GET /v1/pets/{petId} (100 in turn)',
    targets: pets.map(({ id }) => `/v1/pets/${id}`),
    jsonServerTargets: pets.map(({ id }) => `/pets/${id}`),
    check: (answers) =>
      deepStrictEqual(
        answers.map(({ body }) => JSON.parse(body)),
        pets,
      ),
  },
]

export async function benchRead(bench: Bench, read: Read): Promise<Row[]> {
  const rivals: Rival[] = [
    { name: 'bare node:http', file: 'bare.mjs', bar: read.isBystander ? null : { least: 0.9 } },
    { name: 'Fastify 5', file: 'fastify.mjs', bar: read.isBystander ? null : { least: 1.2 } },
  ]
  // No bar hangs on these: they are for orientation, and fewer rounds do.
  const bystanders: Rival[] = [
    { name: 'Express 5', file: 'express.mjs', bar: null },
    { name: 'json-server 1', file: 'json-server.mjs', bar: null, ownTargets: read.jsonServerTargets },
  ]
  const task = {
    pets,
    requests: getRequests(read.targets),
    targets: read.targets,
    connections,
    check: read.check,
  }
  const rows = async (against: Rival[], generations: number, rounds: number) => {
    const slices: Race = new Map()
    for (let generation = 0; generation < generations; generation += 1) {
      const entrants = await startRivals(bench, task, against)
      await race(entrants, { ...bench.effort, rounds }, slices)
      await stopAll(entrants)
    }
    return against.map(({ name, bar }) => rateRow(read.what, name, compare(slices, 'ours', name), bar))
  }
  const { generations, rounds } = bench.effort
  return [
    ...(await rows(rivals, generations, rounds)),
    ...(await rows(bystanders, 1, Math.floor(rounds / 3))),
  ]
}

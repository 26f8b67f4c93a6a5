/** Lists and single pets: ours against a bare node:http server, Fastify, Express and json-server. */
import { deepStrictEqual } from 'node:assert'
import type { Bench } from './bench.ts'
import { checkPets } from './checks.ts'
import { startEntrants, type Contender } from './contenders.ts'
import { createPets, getRequest, type Pet, varyPage } from './data.ts'
import type { HttpResponse } from './http.ts'
import { compare, raceGenerations } from './race.ts'
import { rateRow, type Row } from './table.ts'

const pets = createPets(100)
const sold = pets.filter((pet) => pet.status === 'sold')

/** For a list that is another one each time: enough for 980 pages of 20. */
const manyPets = createPets(999)

export interface Read {
  what: string
  /** What every store has. */
  pets: Pet[]
  /** Asked in turn. */
  targets: string[]
  /** The same for json-server, which pages in its own way. */
  jsonServerTargets: string[]
  /** Throws when our responses are not right. */
  check(responses: HttpResponse[]): void
  /** Of the ratio to the bare server's rate. */
  bareBar: number
}

export const reads: Read[] = [
  {
    what: 'GET /v1/pets (20 pets)',
    pets,
    targets: ['/v1/pets'],
    jsonServerTargets: ['/pets?_start=0&_limit=20'],
    check: ([response]) => checkPets(response, pets.slice(0, 20), pets.length),
    bareBar: 0.9,
  },
  {
    what: 'GET /v1/pets?limit=100 (100 pets)',
    pets,
    targets: ['/v1/pets?limit=100'],
    jsonServerTargets: ['/pets?_start=0&_limit=100'],
    check: ([response]) => checkPets(response, pets, pets.length),
    bareBar: 0.9,
  },
  {
    what: 'GET /v1/pets?status=sold (20 pets)',
    pets,
    targets: ['/v1/pets?status=sold'],
    jsonServerTargets: ['/pets?status=sold&_start=0&_limit=20'],
    check: ([response]) => checkPets(response, sold.slice(0, 20), sold.length),
    bareBar: 0.9,
  },
  {
    // Each list above is the same one again and again, which ours keeps as it was sent, and Fastify makes anew.
    what: 'GET /v1/pets?after={0 to 979} (20 pets, another list each time)',
    pets: manyPets,
    targets: varyPage('/v1/pets', 980),
    jsonServerTargets: Array.from({ length: 980 }, (_, start) => `/pets?_start=${start}&_limit=20`),
    check: (responses) => {
      for (const [after, response] of responses.entries())
        checkPets(response, manyPets.slice(after, after + 20), manyPets.length)
    },
    bareBar: 0.9,
  },
  {
    what: 'GET /v1/pets/{petId} (100 in turn)',
    pets,
    targets: pets.map(({ id }) => `/v1/pets/${id}`),
    jsonServerTargets: pets.map(({ id }) => `/pets/${id}`),
    check: (responses) =>
      deepStrictEqual(
        responses.map(({ body }) => JSON.parse(body)),
        pets,
      ),
    bareBar: 0.9,
  },
]

export async function benchRead(bench: Bench, read: Read): Promise<Row[]> {
  const { what, pets: stored, targets, jsonServerTargets, check, bareBar } = read
  const workload = { pets: stored, requests: targets.map(getRequest), connections: 64, check }
  const raceAgainst = async (contenders: Contender[], effort: Bench['effort']) => {
    const race = await raceGenerations(effort, () => startEntrants(bench, workload, contenders))
    return contenders.map(({ name, bar }) => rateRow(what, name, compare(race, 'ours', name), bar))
  }
  const rows = await raceAgainst(
    [
      { name: 'bare node:http', file: 'bare.mjs', bar: { least: bareBar } },
      { name: 'Fastify 5', file: 'fastify.mjs', bar: { least: 1.2 } },
    ],
    bench.effort,
  )
  // These are for orientation, and a few rounds are enough.
  const moreRows = await raceAgainst(
    [
      { name: 'Express 5', file: 'express.mjs', bar: null },
      { name: 'json-server 1', file: 'json-server.mjs', bar: null, ownTargets: jsonServerTargets },
    ],
    { ...bench.effort, generations: 1, rounds: 3 },
  )
  return [...rows, ...moreRows]
}

/** Does an operation cost more when the store is large? Ours with 1,000,000 pets against ours with 100, in one process. */
import { deepStrictEqual } from 'node:assert'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { askAll } from './checks.ts'
import { resetPets } from './contenders.ts'
import { createPets, creations, getRequest, varyQuery, writeManyPets } from './data.ts'
import type { HttpRequest } from './http.ts'
import { compare, type Effort, type Entrant, type Race, runRounds } from './race.ts'
import { startOursTwice } from './servers.ts'
import { formatRate, formatRatio, judge, type Row } from './table.ts'

const fewPets = 100
const manyPets = 1_000_000

interface Operation {
  what: string
  /** What is asked of a store of so many pets. */
  requests(petCount: number): HttpRequest[]
  /** The ids that the response to each read has, by its place in the list; absent for creations. */
  ids?(petCount: number, index: number): number[]
}

// Lists come with many queries, so that the store is measured and not the pages that ours keeps.
const operations: Operation[] = [
  {
    what: 'GET /v1/pets',
    requests: () => varyQuery('/v1/pets').map(getRequest),
    ids: () => countFrom(1, 20),
  },
  {
    what: 'GET /v1/pets?limit=100',
    requests: () => varyQuery('/v1/pets?limit=100').map(getRequest),
    ids: () => countFrom(1, 100),
  },
  {
    // Only the last 25 pets are sold.
    what: 'GET /v1/pets?status=sold',
    requests: () => varyQuery('/v1/pets?status=sold').map(getRequest),
    ids: (petCount) => countFrom(petCount - 24, 20),
  },
  {
    what: 'GET /v1/pets?after={the middle}',
    requests: (petCount) => varyQuery(`/v1/pets?after=${petCount / 2}`).map(getRequest),
    ids: (petCount) => countFrom(petCount / 2 + 1, 20),
  },
  {
    what: 'GET /v1/pets/{petId}',
    requests: (petCount) =>
      Array.from({ length: 1000 }, (_, index) => getRequest(`/v1/pets/${spreadId(petCount, index)}`)),
    ids: (petCount, index) => [spreadId(petCount, index)],
  },
  // Last, since it changes the stores. The small one is put back before each slice, or it would not be small.
  { what: 'POST /v1/pets', requests: () => creations },
]

export async function benchGrowth(bench: Bench): Promise<Row[]> {
  // One process, whose code is compiled once: many short rounds, and no generations.
  const effort: Effort = { ...bench.effort, rounds: bench.isQuick ? 10 : 60, slice: { ms: 150 } }
  const [fewFile, manyFile] = [writeStore(bench, fewPets), writeStore(bench, manyPets)]
  const { first, second, stop } = await startOursTwice(bench.serverFile, [fewFile, manyFile])
  const stores = [
    { petCount: fewPets, file: fewFile, server: first },
    { petCount: manyPets, file: manyFile, server: second },
  ]
  const rows: Row[] = []
  for (const operation of operations) {
    const entrants: Entrant[] = []
    for (const { petCount, file, server } of stores) {
      const requests = operation.requests(petCount)
      const entrant: Entrant = { name: String(petCount), server, requests, connections: 64, created: 0 }
      if (operation.ids !== undefined) await checkIds(operation.ids, petCount, server.port, requests)
      else if (petCount === fewPets) entrant.beforeSlice = () => resetPets(server, file, createPets(fewPets))
      entrants.push(entrant)
    }
    const race: Race = new Map()
    await runRounds(entrants, effort, race)
    rows.push(growthRow(operation.what, race))
  }
  await stop()
  return rows
}

function growthRow(what: string, race: Race): Row {
  // The small store's rate to the large one's is the large one's cost to the small one's.
  const { ours: few, other: many, ...comparison } = compare(race, String(fewPets), String(manyPets))
  return {
    what: `${what}, 1,000,000 pets`,
    against: 'ours with 100 pets',
    ours: formatRate(many),
    other: formatRate(few),
    ratio: `${formatRatio(comparison.ratio)} ×`,
    quartiles: comparison.quartiles.map(formatRatio).join('–'),
    byCpuTime: formatRatio(comparison.cpuRatio),
    ...judge(comparison.ratio, { most: 1.2 }, ' × the cost'),
    isDisturbed: comparison.isDisturbed,
  }
}

function writeStore(bench: Bench, petCount: number): string {
  const file = join(bench.folder, `${petCount}.json`)
  writeManyPets(file, petCount)
  return file
}

async function checkIds(
  ids: NonNullable<Operation['ids']>,
  petCount: number,
  port: number,
  requests: HttpRequest[],
): Promise<void> {
  for (const [index, { body }] of (await askAll(port, requests)).entries()) {
    const pets: { id: number }[] = [JSON.parse(body)].flat()
    deepStrictEqual(
      pets.map(({ id }) => id),
      ids(petCount, index),
    )
  }
}

/** An id of the store; neighbours in the list are far apart in the store. */
function spreadId(petCount: number, index: number): number {
  return ((index * 799_819) % petCount) + 1
}

function countFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

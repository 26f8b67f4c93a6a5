/** Does an operation cost more when the store is large? Ours with 1,000,000 pets against ours with 100, in one process. */
import { deepStrictEqual } from 'node:assert'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { askAll } from './checks.ts'
import { resetPets } from './contenders.ts'
import { createPets, creations, getRequest, writeManyPets } from './data.ts'
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
  /** The ids that the response to each of them has; absent for creations. */
  ids?(petCount: number): number[][]
}

/** Each limit with each `after`. Ours keeps the replies of 64 lists at most, and has to make each of hundreds anew. */
interface Pages {
  limits: number[]
  afters(petCount: number): number[]
}

function listOperation(what: string, { limits, afters }: Pages, status?: 'sold'): Operation {
  const filter = status === undefined ? '' : `&status=${status}`
  const pagesOf = (petCount: number) =>
    afters(petCount).flatMap((after) => limits.map((limit) => ({ after, limit })))
  return {
    what,
    requests: (petCount) =>
      pagesOf(petCount).map(({ after, limit }) =>
        getRequest(`/v1/pets?limit=${limit}${filter}&after=${after}`),
      ),
    ids: (petCount) =>
      pagesOf(petCount).map(({ after, limit }) => {
        // Only the last 25 pets are sold.
        const before = status === undefined ? after : Math.max(after, petCount - 25)
        return countFrom(before + 1, limit)
      }),
  }
}

const operations: Operation[] = [
  listOperation('GET /v1/pets?limit={20 to 29}&after={0 to 69}', {
    limits: countFrom(20, 10),
    afters: () => countFrom(0, 70),
  }),
  listOperation('GET /v1/pets?limit={60 to 69}&after={0 to 29}', {
    limits: countFrom(60, 10),
    afters: () => countFrom(0, 30),
  }),
  listOperation(
    'GET /v1/pets?limit={10 to 15}&status=sold&after={the last 100}',
    { limits: countFrom(10, 6), afters: (petCount) => countFrom(petCount - 100, 85) },
    'sold',
  ),
  listOperation('GET /v1/pets?limit={20 to 29}&after={anywhere}', {
    limits: countFrom(20, 10),
    // As a walk through the whole store asks.
    afters: (petCount) => spreadIds(petCount - 29),
  }),
  {
    what: 'GET /v1/pets/{petId}',
    requests: (petCount) => spreadIds(petCount).map((id) => getRequest(`/v1/pets/${id}`)),
    ids: (petCount) => spreadIds(petCount).map((id) => [id]),
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
      if (operation.ids !== undefined) await checkIds(operation.ids(petCount), server.port, requests)
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

async function checkIds(ids: number[][], port: number, requests: HttpRequest[]): Promise<void> {
  for (const [index, { body }] of (await askAll(port, requests)).entries()) {
    const pets: { id: number }[] = [JSON.parse(body)].flat()
    deepStrictEqual(
      pets.map(({ id }) => id),
      ids[index],
    )
  }
}

/** Ids of the store; neighbours in the list are far apart in the store. */
function spreadIds(petCount: number): number[] {
  return Array.from({ length: 1000 }, (_, index) => ((index * 799_819) % petCount) + 1)
}

function countFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

/** Does anything cost more when the store is large? Ours with 1,000,000 pets against ours with 100. */
import { deepStrictEqual, strictEqual } from 'node:assert'
import { join } from 'node:path'
import { askAll } from './answers.ts'
import type { Bench } from './bench.ts'
import { creations, getRequests, varyQuery, writeManyPets } from './data.ts'
import type { Request } from './load.ts'
import { compare, race, type Effort, type Entrant, type Race } from './race.ts'
import { startOurs, type Server } from './servers.ts'
import { resetPets } from './soak.ts'
import { doubtOf, formatRate, formatRatio, judge, type Row } from './table.ts'

const fewPets = 100
const manyPets = 1_000_000
const connections = 64

interface Operation {
  what: string
  /** What is asked of a store of so many pets. */
  requests(petCount: number): Request[]
  /** The ids that every answer has to name. */
  ids?(petCount: number): number[]
  against?: string
}

// The lists are of many queries, so that the store is measured and not the pages that are kept.
const operations: Operation[] = [
  {
    what: 'GET /v1/pets',
    requests: () => getRequests(varyQuery('/v1/pets')),
    ids: () => countFrom(1, 20),
  },
  {
    what: 'GET /v1/pets?limit=100',
    requests: () => getRequests(varyQuery('/v1/pets?limit=100')),
    ids: () => countFrom(1, 100),
  },
  {
    // The last 25 pets are the only ones sold.
    what: 'GET /v1/pets?status=sold',
    requests: () => getRequests(varyQuery('/v1/pets?status=sold')),
    ids: (petCount) => countFrom(petCount - 24, 20),
  },
  {
    what: 'GET /v1/pets?after={the middle}',
    requests: (petCount) => getRequests(varyQuery(`/v1/pets?after=${petCount / 2}`)),
    ids: (petCount) => countFrom(petCount / 2 + 1, 20),
  },
  {
    what: 'GET /v1/pets/{petId}',
    // Spread over the whole store.
    requests: (petCount) =>
      getRequests(Array.from({ length: 1000 }, (_, n) => `/v1/pets/${((n * 7919 * 101) % petCount) + 1}`)),
  },
  // Last, since it changes the stores. The small one is put back before each slice.
  { what: 'POST /v1/pets', requests: () => creations, against: 'ours with 100, put back each slice' },
]

export async function benchGrowth(bench: Bench): Promise<Row[]> {
  const races = new Map<Operation, Race>(operations.map((operation) => [operation, new Map()]))
  // A large store takes long to fill: more rounds instead of more generations.
  const effort: Effort = { ...bench.effort, rounds: bench.quick ? 4 : bench.effort.rounds * 2 }
  const few = await startStore(bench, fewPets)
  const many = await startStore(bench, manyPets)
  for (const [operation, slices] of races) {
    const entrants = []
    for (const { server, petCount, file } of [few, many]) {
      const requests = operation.requests(petCount)
      await check(operation, server, petCount, requests)
      const entrant: Entrant = { name: String(petCount), server, requests, connections, answered: 0 }
      if (requests === creations && petCount === fewPets) entrant.beforeSlice = () => resetPets(server, file)
      entrants.push(entrant)
    }
    await race(entrants, effort, slices)
  }
  await Promise.all([few, many].map(({ server }) => server.stop()))
  return operations.map((operation) => growthRow(operation, races.get(operation) ?? new Map()))
}

function growthRow(operation: Operation, slices: Race): Row {
  // The small store's rate to the large one's is the large one's cost to the small one's.
  const comparison = compare(slices, String(fewPets), String(manyPets))
  const { ours, other, ratio, quartiles, cpuRatio } = comparison
  return {
    what: `${operation.what}, 1,000,000 pets`,
    against: operation.against ?? 'ours with 100 pets',
    ours: formatRate(other),
    other: formatRate(ours),
    ratio: `${formatRatio(ratio)} ×`,
    spread: quartiles.map(formatRatio).join('–'),
    byCpu: cpuRatio === null ? '-' : formatRatio(cpuRatio),
    ...judge(ratio, { most: 1.2 }, ' × the cost'),
    doubt: doubtOf(comparison),
  }
}

async function startStore(bench: Bench, petCount: number) {
  const file = join(bench.folder, `${petCount}.json`)
  writeManyPets(file, petCount)
  return { petCount, file, server: await startOurs(bench.serverFile, file) }
}

async function check(
  operation: Operation,
  server: Server,
  petCount: number,
  requests: Request[],
): Promise<void> {
  if (operation.ids === undefined) {
    if (requests === creations) return
    for (const request of requests.slice(0, 20)) {
      const [answer] = await askAll(server.port, [request])
      const { id }: { id: number } = JSON.parse(answer?.body ?? '')
      strictEqual(request.bytes.includes(` /v1/pets/${id} `), true)
    }
    return
  }
  for (const { body } of await askAll(server.port, requests)) {
    const pets: { id: number }[] = JSON.parse(body)
    deepStrictEqual(
      pets.map(({ id }) => id),
      operation.ids(petCount),
    )
  }
}

function countFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

/** How long a client waits: p50 and p99 of durable creations, and of lists while pets are created, in milliseconds. */
import type { Bench } from './bench.ts'
import { lowdb, sqlite, startStores } from './creations.ts'
import { getRequest } from './data.ts'
import { applyLoad, type LoadResult } from './load.ts'
import type { Entrant } from './race.ts'
import { quantile } from './statistics.ts'
import { formatTable } from './table.ts'

const contenders = [
  { ...sqlite, bar: null },
  { ...lowdb, bar: null },
]
const names = ['ours', ...contenders.map(({ name }) => name)]

/** The table as text. */
export async function benchLatencies(bench: Bench): Promise<string> {
  const window = { ms: bench.isQuick ? 150 : 500 }
  const create = async ({ server, requests }: Entrant, connections: number) =>
    await applyLoad({ port: server.port, requests, connections, leadMs: 30, window })
  const list = async ({ server }: Entrant, connections: number) =>
    await applyLoad({
      port: server.port,
      requests: [getRequest('/v1/pets')],
      connections,
      leadMs: 30,
      window,
    })
  const lines = [
    ['', ...names.flatMap((name) => [name, ''])],
    ['milliseconds', ...names.flatMap(() => ['p50', 'p99'])],
    await measure(bench, 'POST /v1/pets, 1 connection', (entrant) => create(entrant, 1)),
    await measure(bench, 'POST /v1/pets, 16 connections', (entrant) => create(entrant, 16)),
    await measure(bench, 'POST /v1/pets, 64 connections', (entrant) => create(entrant, 64)),
    await measure(bench, 'GET /v1/pets, 4 connections, while 16 create', async (entrant) => {
      const [lists] = await Promise.all([list(entrant, 4), create(entrant, 16)])
      return lists
    }),
  ]
  return formatTable(lines, 'lrrrrrr')
}

/** One line of the table. */
async function measure(
  bench: Bench,
  what: string,
  run: (entrant: Entrant) => Promise<LoadResult>,
): Promise<string[]> {
  const entrants = await startStores(bench, contenders, 64)
  const latencies = entrants.map((): number[] => [])
  for (const entrant of entrants) await run(entrant)
  for (let round = 0; round < (bench.isQuick ? 2 : 9); round += 1) {
    for (const [index, entrant] of entrants.entries()) {
      const { latenciesMs } = await run(entrant)
      latencies[index] = [...(latencies[index] ?? []), ...latenciesMs]
    }
  }
  await Promise.all(entrants.map(({ server }) => server.stop()))
  return [what, ...latencies.flatMap((all) => [0.5, 0.99].map((share) => quantile(all, share).toFixed(2)))]
}

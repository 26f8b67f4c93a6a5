/** Creations: ours against servers that store less safely or in another way; throughput, and how long one takes. */
import { deepStrictEqual, strictEqual } from 'node:assert'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { askAll, checkPets } from './answers.ts'
import { createPets, creations, firstCreation, getRequests } from './data.ts'
import { applyLoad, headerOf, type Answer, type LoadResult } from './load.ts'
import { compare, quantile, race, type Entrant, type Race } from './race.ts'
import { startRivals, stopAll, type Rival } from './rivals.ts'
import { formatTable, rateRow, type Row } from './table.ts'

const pets = createPets(100)
const firstId = pets.length + 1

const bare = { name: 'bare node:http', file: 'bare.mjs' }
const sqlite = { name: 'Fastify 5 + better-sqlite3', file: 'fastify-sqlite.mjs' }
const lowdb = { name: 'Fastify 5 + stock lowdb', file: 'fastify-lowdb.mjs' }

/** What a 201 of each means. */
export const durability = [
  ['ours', 'in the file and synced (fdatasync); those who wait at the same time share a sync'],
  [bare.name, 'nothing: the body is parsed and forgotten'],
  [sqlite.name, 'in the write-ahead log and synced (WAL, synchronous=FULL), each creation by itself'],
  [lowdb.name, 'in the file, rewritten whole, not synced: a power cut loses it'],
]

export interface CreationRace {
  connections: number
  rivals: Rival[]
}

export const creationRaces: CreationRace[] = [
  {
    connections: 64,
    rivals: [
      { ...bare, bar: { least: 0.75 } },
      { ...sqlite, bar: { least: 6 } },
      { ...lowdb, bar: null },
    ],
  },
  {
    connections: 1,
    rivals: [
      { ...sqlite, bar: null },
      { ...lowdb, bar: null },
    ],
  },
]

export async function benchCreation(bench: Bench, { connections, rivals }: CreationRace): Promise<Row[]> {
  const slices: Race = new Map()
  for (let generation = 0; generation < bench.effort.generations; generation += 1) {
    const entrants = await startStores(bench, rivals, connections)
    // There is more code to warm up than for reads, and it runs less often.
    await race(entrants, { ...bench.effort, warmUpMs: bench.effort.warmUpMs * 3 }, slices)
    await checkStored(bench, entrants)
    await stopAll(entrants)
  }
  const what = `POST /v1/pets, ${atConnections(connections)}`
  return rivals.map(({ name, bar }) => rateRow(what, name, compare(slices, 'ours', name), bar))
}

/** Started, and asked for a first creation: all give the same answer to it. From then on the creations differ. */
async function startStores(bench: Bench, rivals: Rival[], connections: number): Promise<Entrant[]> {
  const pet = { ...firstCreation, id: firstId }
  const check = ([answer]: Answer[]) => {
    deepStrictEqual(JSON.parse(answer?.body ?? ''), pet)
    strictEqual(answer && headerOf(answer, 'Location'), `/v1/pets/${firstId}`)
  }
  const task = { pets, requests: creations.slice(0, 1), targets: [], connections, check }
  const entrants = await startRivals(bench, task, rivals)
  for (const entrant of entrants) entrant.requests = creations
  return entrants
}

/** Those that store hold exactly what they have acknowledged; ours in its file too. */
async function checkStored(bench: Bench, entrants: Entrant[]): Promise<void> {
  for (const { name, server, answered } of entrants) {
    if (name === bare.name) continue
    const stored = pets.length + answered
    const [pet, list] = await askAll(server.port, getRequests([`/v1/pets/${firstId}`, '/v1/pets?limit=2']))
    deepStrictEqual(JSON.parse(pet?.body ?? ''), { ...firstCreation, id: firstId }, name)
    checkPets(list, pets.slice(0, 2), stored)
    if (name !== 'ours') continue
    const file: { pets: unknown[] } = JSON.parse(readFileSync(join(bench.folder, 'ours.json'), 'utf8'))
    strictEqual(file.pets.length, stored, 'pets in our file')
  }
}

/** p50 and p99 of durable creations, and of lists while creations run, in milliseconds. */
export async function benchLatency(bench: Bench): Promise<string> {
  const rivals: Rival[] = [
    { ...sqlite, bar: null },
    { ...lowdb, bar: null },
  ]
  const names = ['ours', ...rivals.map(({ name }) => name)]
  const lines = [
    ['', ...names.flatMap((name) => [name, ''])],
    ['milliseconds', ...names.flatMap(() => ['p50', 'p99'])],
  ]
  const measure = async (
    what: string,
    connections: number,
    run: (entrant: Entrant) => Promise<LoadResult>,
  ) => {
    const entrants = await startStores(bench, rivals, connections)
    const latencies = new Map<string, number[]>()
    for (const entrant of entrants) await run(entrant)
    for (let round = 0; round < (bench.quick ? 2 : 9); round += 1) {
      for (const entrant of entrants) {
        const { latenciesMs } = await run(entrant)
        latencies.set(entrant.name, [...(latencies.get(entrant.name) ?? []), ...latenciesMs])
      }
    }
    await stopAll(entrants)
    const cells = names.flatMap((name) => {
      const all = latencies.get(name) ?? []
      return [quantile(all, 0.5), quantile(all, 0.99)].map((ms) => ms.toFixed(2))
    })
    lines.push([what, ...cells])
  }

  const window = { ms: bench.effort.sliceMs }
  const create = async ({ server, requests }: Entrant, connections: number) =>
    await applyLoad({ port: server.port, requests, connections, leadMs: 30, window })
  for (const connections of [1, 16, 64]) {
    await measure(`POST /v1/pets, ${atConnections(connections)}`, connections, (entrant) =>
      create(entrant, connections),
    )
  }
  await measure('GET /v1/pets, 4 connections, while 16 create', 16, async (entrant) => {
    const requests = getRequests(['/v1/pets'])
    const [lists] = await Promise.all([
      applyLoad({ port: entrant.server.port, requests, connections: 4, leadMs: 30, window }),
      create(entrant, 16),
    ])
    return lists
  })
  return formatTable(lines, 1)
}

function atConnections(count: number): string {
  return `${count} connection${count === 1 ? '' : 's'}`
}

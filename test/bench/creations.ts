/** Creations: ours against servers that store in another way, or not at all. */
import { deepStrictEqual, strictEqual } from 'node:assert'
import type { Bench } from './bench.ts'
import { checkStored, startEntrants, type Contender, type Workload } from './contenders.ts'
import { createPets, creations, newPets } from './data.ts'
import { headerOf } from './http.ts'
import { compare, raceGenerations, type Entrant } from './race.ts'
import { rateRow, type Row } from './table.ts'

const pets = createPets(100)
const firstId = pets.length + 1

const bare = { name: 'bare node:http', file: 'bare.mjs' }
export const sqlite = { name: 'Fastify 5 + better-sqlite3', file: 'fastify-sqlite.mjs' }
export const lowdb = { name: 'Fastify 5 + stock lowdb', file: 'fastify-lowdb.mjs' }

/** What a 201 of each server means. */
export const durability = [
  ['ours', 'in the file and synced (fdatasync); creations that wait at the same time share a sync'],
  [bare.name, 'nothing: the body is parsed and dropped'],
  [sqlite.name, 'in the write-ahead log and synced (WAL, synchronous=FULL), each creation by itself'],
  [lowdb.name, 'in the file, which is rewritten whole and not synced: a power cut loses it'],
]

export interface CreationRace {
  what: string
  connections: number
  contenders: Contender[]
}

export const creationRaces: CreationRace[] = [
  {
    what: 'POST /v1/pets, 64 connections',
    connections: 64,
    contenders: [
      { ...bare, bar: { least: 0.75 } },
      { ...sqlite, bar: { least: 5 } },
      { ...lowdb, bar: null },
    ],
  },
  {
    // Without a bar: to be faster, ours would have to sync on the event loop, which stops everyone's reads meanwhile.
    what: 'POST /v1/pets, 1 connection',
    connections: 1,
    contenders: [
      { ...sqlite, bar: null },
      { ...lowdb, bar: null },
    ],
  },
]

export async function benchCreation(bench: Bench, creationRace: CreationRace): Promise<Row[]> {
  const { what, connections, contenders } = creationRace
  // A creation runs more code than a read, and fewer of them run in the same time.
  const warmUp = { ms: bench.isQuick ? 1000 : 4500 }
  const race = await raceGenerations(
    { ...bench.effort, warmUp },
    () => startStores(bench, contenders, connections),
    async (entrants) => {
      for (const entrant of entrants) if (entrant.name !== bare.name) await checkStored(bench, entrant, pets)
    },
  )
  return contenders.map(({ name, bar }) => rateRow(what, name, compare(race, 'ours', name), bar))
}

/** All have responded alike to a first creation. The race then goes on with a hundred different ones in turn. */
export async function startStores(
  bench: Bench,
  contenders: Contender[],
  connections: number,
): Promise<Entrant[]> {
  const workload: Workload = {
    pets,
    requests: creations.slice(0, 1),
    connections,
    check: ([response]) => {
      deepStrictEqual(JSON.parse(response?.body ?? ''), { id: firstId, ...newPets[0] })
      strictEqual(response && headerOf(response, 'Location'), `/v1/pets/${firstId}`)
    },
  }
  const entrants = await startEntrants(bench, workload, contenders)
  for (const entrant of entrants) entrant.requests = creations
  return entrants
}

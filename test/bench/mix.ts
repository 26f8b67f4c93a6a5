/**
 * A mixed load, as a busy store has it: 90 % reads and 10 % creations. Half of the reads are the same few again and again, as
 * from a page that everyone opens. The other half are lists with a query that was never sent before: `after` makes each
 * another page than those before it, and `n`, which servers ignore, makes it unique. No kept page can answer them, and
 * every creation changes the total of all lists.
 */
import { deepStrictEqual } from 'node:assert'
import type { Bench } from './bench.ts'
import { askAll, checkPets } from './checks.ts'
import { checkStored, startEntrants, type Contender, type Workload } from './contenders.ts'
import { sqlite } from './creations.ts'
import { createPets, creations, getRequest, newPets, refusals } from './data.ts'
import type { HttpRequest } from './http.ts'
import { compare, raceGenerations, type Entrant } from './race.ts'
import { rateRow, type Row } from './table.ts'

export const mixName = 'mix of 90 % reads and 10 % creations, 64 connections'

const connections = 64
const pets = createPets(1000)
const pageSize = 20

const contenders: Contender[] = [
  { ...sqlite, bar: { least: 2.5 } },
  { name: 'plain node:http, in memory', file: 'memory.mjs', bar: { least: 0.8 } },
]

const list = '/v1/pets'
const filteredList = '/v1/pets?status=sold'
const unseenList = '/v1/pets?after={id}&n={number}'
const pet = '/v1/pets/{petId}'
const creation = 'POST /v1/pets'

/** What each connection sends, over and over. Each starts at another place, so that the creations are spread over the time. */
const pattern = [
  [creation, unseenList, list, unseenList, filteredList, unseenList, pet, unseenList, list, unseenList],
  [creation, filteredList, unseenList, pet, unseenList, list, unseenList, filteredList, unseenList, pet],
].flat()

export async function benchMix(bench: Bench): Promise<Row[]> {
  // A number of responses and not a time, so that the stores grow alike however fast they are.
  const slice = { responses: bench.isQuick ? 2000 : 8000 }
  const warmUp = { responses: bench.isQuick ? 4000 : 24_000 }
  const race = await raceGenerations(
    { ...bench.effort, slice, warmUp },
    () => startStores(bench),
    async (entrants) => {
      for (const entrant of entrants) await checkStored(bench, entrant, pets)
    },
  )
  return contenders.map(({ name, bar }) => rateRow(mixName, name, compare(race, 'ours', name), bar))
}

/** All have responded alike to each request of the pattern, and refused what ours refuses. */
async function startStores(bench: Bench): Promise<Entrant[]> {
  const workload: Workload = {
    pets,
    requests: pattern.map((what, step) => createMixedRequest(what, step)),
    connections,
    check: (responses) => {
      // The first one creates a pet; the lists after it have the pets that were there before, and one more in the total.
      const [created, unseen, firstPage] = responses
      deepStrictEqual(JSON.parse(created?.body ?? ''), { id: pets.length + 1, ...newPets[0] })
      checkPets(unseen, pets.slice(unseenAfter(1), unseenAfter(1) + pageSize), pets.length + 1)
      checkPets(firstPage, pets.slice(0, pageSize), pets.length + 1)
    },
  }
  const entrants = await startEntrants(bench, workload, contenders)
  for (const entrant of entrants) {
    await askAll(entrant.server.port, refusals)
    entrant.requests = mixRequests()
  }
  return entrants
}

/** The requests of one server for all of its slices: no query for an unseen list comes twice. */
function mixRequests(): (connection: number) => HttpRequest {
  const steps = Array<number>(connections).fill(0)
  return (connection) => {
    const step = steps[connection] ?? 0
    steps[connection] = step + 1
    // Numbers count on from those of the pattern that all servers were asked at first.
    const number = pattern.length + step * connections + connection
    return createMixedRequest(pattern[(step + connection) % pattern.length], number)
  }
}

function createMixedRequest(what: string | undefined, number: number): HttpRequest {
  switch (what) {
    case creation:
      return creations[number % creations.length] as HttpRequest
    case unseenList:
      return getRequest(`/v1/pets?after=${unseenAfter(number)}&n=${number}`)
    case pet:
      return getRequest(`/v1/pets/${(number % pets.length) + 1}`)
    default:
      return getRequest(what ?? list)
  }
}

/** From 1 on, and so that a whole page comes after it. */
function unseenAfter(number: number): number {
  return (number % (pets.length - pageSize)) + 1
}

/** Starts our server and those that it is compared with, all with the same pets, and checks that they respond alike. */
import { deepStrictEqual, strictEqual } from 'node:assert'
import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { askAll, checkPets, checkSame } from './checks.ts'
import { getRequest, key, writePetsFile, type Pet } from './data.ts'
import { ask, createRequest, headerOf, type HttpRequest, type HttpResponse } from './http.ts'
import type { Entrant } from './race.ts'
import { startContender, startOurs, type Server } from './servers.ts'
import type { Bar } from './table.ts'

/** A server that ours is compared with. */
export interface Contender {
  name: string
  /** Its program in the folder `contenders`. */
  file: string
  bar: Bar | null
  /** What it is asked instead of the workload's requests if its interface is another. It then sends the same pets, and other headers. */
  ownTargets?: string[]
}

export interface Workload {
  /** What every store starts with. */
  pets: Pet[]
  /** What every server is asked first, to see that all respond alike, and then in the race. */
  requests: HttpRequest[]
  connections: number
  /** Throws when our responses to the requests are not right. */
  check(responses: HttpResponse[]): void
}

/** Ours and the contenders, ours first. Every one has given the same responses to the requests as ours. */
export async function startEntrants(
  bench: Bench,
  workload: Workload,
  contenders: Contender[],
): Promise<Entrant[]> {
  const { pets, requests, connections } = workload
  const created = requests.filter(({ method }) => method === 'POST').length

  const ourFile = dataFileOf(bench, 'ours')
  writePetsFile(ourFile, pets)
  const ours = await startOurs(bench.serverFile, ourFile)
  const [list, pet] = await askAll(ours.port, ['/v1/pets', '/v1/pets/1'].map(getRequest))
  const responses = await askAll(ours.port, requests)
  workload.check(responses)
  const noKey = createRequest('GET', '/v1/pets', { status: 401 })
  await askAll(ours.port, [noKey])
  const entrants: Entrant[] = [{ name: 'ours', server: ours, requests, connections, created }]

  for (const { name, file, ownTargets } of contenders) {
    const petsFile = dataFileOf(bench, file)
    writePetsFile(petsFile, pets)
    const server = await startContender(file, {
      key,
      petsFile,
      headers: headersOfKind(list),
      petHeaders: headersOfKind(pet),
      responses: requests.flatMap(({ method, target }, index) =>
        method === 'GET'
          ? [{ target, headers: ownHeaders(responses[index]), body: responses[index]?.body ?? '' }]
          : [],
      ),
    })
    const itsRequests = ownTargets?.map(getRequest) ?? requests
    for (const [index, response] of (await askAll(server.port, itsRequests)).entries()) {
      const right = responses[index]
      if (right === undefined) throw new Error(`${name} is asked more than ours`)
      if (ownTargets === undefined) checkSame(response, right, name)
      else deepStrictEqual(JSON.parse(response.body), withTextIds(right), name)
    }
    entrants.push({ name, server, requests: itsRequests, connections, created })
  }
  return entrants
}

/** Checks that a store holds what it started with and each pet that it has created since; ours in its file too. */
export async function checkStored(
  bench: Bench,
  { name, server, created }: Entrant,
  pets: Pet[],
): Promise<void> {
  const total = pets.length + created
  const [list] = await askAll(server.port, [getRequest('/v1/pets?limit=2')])
  checkPets(list, pets.slice(0, 2), total)
  if (name !== 'ours') return
  const file: { pets: unknown[] } = JSON.parse(readFileSync(dataFileOf(bench, 'ours'), 'utf8'))
  strictEqual(file.pets.length, total, 'pets in our file')
}

/** Puts the pets back by an edit of our server's data file; returns how many pets more it had. */
export async function resetPets(server: Server, dataFile: string, pets: Pet[]): Promise<number> {
  const list = getRequest('/v1/pets?limit=1')
  const countPets = async () => Number(headerOf(await ask(server.port, list), 'X-Total-Count'))
  const before = await countPets()
  writePetsFile(`${dataFile}.new`, pets)
  renameSync(`${dataFile}.new`, dataFile)
  const deadline = performance.now() + 10_000
  while ((await countPets()) !== pets.length) {
    if (performance.now() > deadline) throw new Error('the server does not reload its file')
  }
  return before - pets.length
}

function dataFileOf(bench: Bench, name: string): string {
  return join(bench.folder, `${name}.json`)
}

/** The headers that the program itself sets: without those that Node adds. */
function ownHeaders(response: HttpResponse | undefined): Record<string, string> {
  const entries = response?.headers.map((line) => {
    const colon = line.indexOf(': ')
    return [line.slice(0, colon), line.slice(colon + 2)] as const
  })
  return Object.fromEntries(entries?.filter(([name]) => !/^(date|connection)$/i.test(name)) ?? [])
}

/** Those of them that every response to the same operation has. */
function headersOfKind(response: HttpResponse | undefined): Record<string, string> {
  const varying = /^(content-length|x-total-count|link|location)$/i
  return Object.fromEntries(Object.entries(ownHeaders(response)).filter(([name]) => !varying.test(name)))
}

/** The pets of a response as json-server has them: with ids that are strings. */
function withTextIds({ body }: HttpResponse): unknown {
  return JSON.parse(body.replaceAll(/"id":(\d+)/g, '"id":"$1"'))
}

/**
 * Two builds of the server beside each other: `npx tsx test/bench/builds.ts <server.js> <other server.js>`. Prints what a request costs the
 * second in processor time, as a multiple of what it costs the first. Many short turns, in processes that are started anew, show 2 %,
 * where rates of requests would change by a tenth with the machine.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createPets, getRequest, key, varyPage, writePetsFile } from './data.ts'
import { createRequest, type HttpRequest } from './http.ts'
import { compare, raceGenerations, type Effort } from './race.ts'
import { startOurs } from './servers.ts'

// `node --test` without file names runs every script under `test`.
if (process.env['NODE_TEST_CONTEXT'] !== undefined) process.exit()

const builds = process.argv.slice(2).map((file) => resolve(file))
if (builds.length !== 2)
  throw new Error('expected two built files, such as ../old/dist/server.js dist/server.js')

const effort: Effort = {
  generations: 6,
  rounds: 40,
  slice: { ms: 60 },
  warmUp: { ms: 1_500 },
  repeats: 0,
}
const body = '{"name":"Rex","categoryId":1}'
const requestsOf: Record<string, HttpRequest[]> = {
  'list of 20': [getRequest('/v1/pets')],
  'list of 100': [getRequest('/v1/pets?limit=100')],
  'another list of 20 each time': varyPage('/v1/pets', 980).map(getRequest),
  'one pet': [getRequest('/v1/pets/7')],
  creation: [createRequest('POST', '/v1/pets', { key, body, status: 201 })],
}

const folder = mkdtempSync(join(tmpdir(), 'petstore-builds-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
let started = 0

for (const [what, requests] of Object.entries(requestsOf)) {
  const race = await raceGenerations(effort, () =>
    Promise.all(
      builds.map(async (file, build) => {
        const dataFile = join(folder, `${++started}.json`)
        writePetsFile(dataFile, createPets(1_000))
        const server = await startOurs(file, dataFile)
        return { name: String(build), server, requests, connections: 64, created: 0 }
      }),
    ),
  )
  console.log(what, (1 / compare(race, '1', '0').cpuRatio).toFixed(3))
}
process.exit()

/** `npm run measure`: the service on PostgreSQL beside the service on its file, in one run, with 64 connections. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { prepareTables } from '../../src/postgres/postgres-storage.ts'
import { createPets, creations, getRequest, key, varyQuery, writePetsFile } from '../bench/data.ts'
import { describeMachine } from '../bench/machine.ts'
import { compare, runRounds, type Effort, type Entrant, type Race } from '../bench/race.ts'
import { startNode } from '../bench/servers.ts'
import { runSql, startDatabase } from './database.ts'
import { program } from './service.ts'

const count = 10_000
const effort: Effort = {
  generations: 1,
  rounds: 9,
  slice: { ms: 1_000 },
  warmUp: { ms: 3_000 },
  repeats: 0,
}
const loads = {
  'GET /v1/pets': [getRequest('/v1/pets')],
  'GET /v1/pets, a new query each time': varyQuery('/v1/pets').map(getRequest),
  'GET /v1/pets?limit=100, a new query each time': varyQuery('/v1/pets?limit=100').map(getRequest),
  'POST /v1/pets': creations,
}

const folder = mkdtempSync(join(tmpdir(), 'petstore-measure-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const dataFile = join(folder, 'pets.json')
writePetsFile(dataFile, createPets(count))

const database = await startDatabase()
const databaseUrl = await database.createDatabase('measure')
const pool = new Pool({ connectionString: databaseUrl, allowExitOnIdle: true })
await prepareTables(pool)
// The same pets as in the file.
await runSql(
  databaseUrl,
  `INSERT INTO pets SELECT id, to_json('Pet ' || id % 1000), id % 12 + 1,
     (ARRAY['available', 'pending', 'sold'])[(id - 1) % 3 + 1] FROM generate_series(1, ${count}) AS id;
   UPDATE pet_counter SET last_id = ${count};
   ANALYZE`,
)

async function start(source: Record<string, string>) {
  const env = { PORT: '0', PETSTORE_API_KEYS: key, ...source }
  const { child, pid, match, stop } = await startNode([program], /http:\/\/127\.0\.0\.1:(\d+)/, { env })
  return { port: Number(match[1]), pid, process: child, stop }
}

const servers = {
  file: await start({ PETSTORE_DATA_FILE: dataFile }),
  PostgreSQL: await start({ PETSTORE_DATABASE_URL: databaseUrl }),
}

console.log(describeMachine(folder))
for (const [what, requests] of Object.entries(loads)) {
  const race: Race = new Map()
  const entrants: Entrant[] = Object.entries(servers).map(([name, server]) => {
    return { name, server, requests, connections: 64, created: 0 }
  })
  await runRounds(entrants, effort, race)
  const { ours, other, ratio, quartiles, isDisturbed } = compare(race, 'PostgreSQL', 'file')
  const figures = `${ratio.toFixed(3)} (${quartiles.map((each) => each.toFixed(3)).join(' to ')})`
  const rates = `${ours.toFixed()}/s on PostgreSQL, ${other.toFixed()}/s on the file`
  console.log(`${what}: ${figures}; ${rates}${isDisturbed ? ' (disturbed)' : ''}`)
}
await Promise.all(Object.values(servers).map(({ stop }) => stop()))
await database.stop()

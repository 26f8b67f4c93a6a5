/** `npm run measure`: the service on PostgreSQL beside the service on its file, in one run, with 64 connections. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { prepareTables } from '../../src/postgres/postgres-storage.ts'
import { createPets, creations, getRequest, key, varyPage, writePetsFile } from '../bench/data.ts'
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
  'GET /v1/pets?after={0 to 979}': varyPage('/v1/pets', 980).map(getRequest),
  'GET /v1/pets?limit=100&after={0 to 979}': varyPage('/v1/pets?limit=100', 980).map(getRequest),
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

/** A database as it is in its first minute, however long this runs: without statistics. */
async function createFresh(name: string, sql = ''): Promise<string> {
  const url = await database.createDatabase(name)
  const fresh = new Pool({ connectionString: url })
  await prepareTables(fresh).finally(() => fresh.end())
  const untouched = ['pets', 'pet_counter'].map(
    (table) => `ALTER TABLE ${table} SET (autovacuum_enabled = false)`,
  )
  await runSql(url, `${untouched.join('; ')}; ${sql}`)
  return url
}

async function race(what: string, requests: Entrant['requests'], one: Runner, other: Runner): Promise<void> {
  const times: Race = new Map()
  const entrants: Entrant[] = [one, other].map(({ name, server }) => {
    return { name, server, requests, connections: 64, created: 0 }
  })
  await runRounds(entrants, effort, times)
  const { ours, other: others, ratio, quartiles, isDisturbed } = compare(times, one.name, other.name)
  const figures = `${ratio.toFixed(3)} (${quartiles.map((each) => each.toFixed(3)).join(' to ')})`
  const rates = `${ours.toFixed()}/s on ${one.name}, ${others.toFixed()}/s on ${other.name}`
  console.log(`${what}: ${figures}; ${rates}${isDisturbed ? ' (disturbed)' : ''}`)
}

const onFile = { name: 'the file', server: await start({ PETSTORE_DATA_FILE: dataFile }) }
const onDatabase = { name: 'PostgreSQL', server: await start({ PETSTORE_DATABASE_URL: databaseUrl }) }
type Runner = typeof onFile

console.log(describeMachine(folder))
for (const [what, requests] of Object.entries(loads)) await race(what, requests, onDatabase, onFile)

const asItComes = {
  name: 'PostgreSQL as it comes',
  server: await start({ PETSTORE_DATABASE_URL: await createFresh('fresh') }),
}
const uncompiled = {
  name: 'one with jit=off',
  server: await start({
    PETSTORE_DATABASE_URL: await createFresh('uncompiled', 'ALTER DATABASE uncompiled SET jit = off'),
  }),
}
await race('POST /v1/pets on fresh tables (0.8 at least)', creations, asItComes, uncompiled)
for (const { server } of [onFile, onDatabase, asItComes, uncompiled]) await server.stop()
await database.stop()

/**
 * `npm run bench`: the bars that the table names, measured side by side.
 *
 * --quick            fewer and shorter rounds, within two minutes
 * --only <text>      only the parts whose name has the text in it
 * --strict           exit code 1 when a bar is missed
 * --server <file>    another build of the server than dist/server.js
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Bench } from './bench.ts'
import { benchCreation, benchLatency, creationRaces, durability } from './creations.ts'
import { benchGrowth } from './growth.ts'
import { describeMachine } from './machine.ts'
import { build, installTools } from './prepare.ts'
import { disturbance } from './race.ts'
import { benchRead, reads } from './reads.ts'
import { benchSoak } from './soak.ts'
import { benchFirstAnswer, benchLargeStart } from './start.ts'
import { formatRows, formatTable, type Row } from './table.ts'

// `node --test` without files takes every script under `test` for one.
if (process.env['NODE_TEST_CONTEXT'] !== undefined) process.exit()

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    strict: { type: 'boolean', default: false },
    server: { type: 'string' },
  },
})
const benchFolder = fileURLToPath(new URL('.', import.meta.url))
const rootFolder = resolve(benchFolder, '../..')

interface Part {
  name: string
  run(bench: Bench): Promise<Row[]>
}

const parts: Part[] = [
  ...reads.map((read) => ({ name: read.what, run: (bench: Bench) => benchRead(bench, read) })),
  ...creationRaces.map((creationRace) => ({
    name: `POST /v1/pets, ${creationRace.connections}`,
    run: (bench: Bench) => benchCreation(bench, creationRace),
  })),
  { name: 'growth', run: benchGrowth },
  { name: 'start with 1,000,000 pets', run: benchLargeStart },
  { name: 'first answer', run: benchFirstAnswer },
]

installTools(benchFolder)
if (options.server === undefined) build(rootFolder)

// Not in the system's folder for temporary files, which may be in memory: there a sync costs nothing.
const dataFolder = join(benchFolder, 'node_modules/.data')
mkdirSync(dataFolder, { recursive: true })
const folder = mkdtempSync(join(dataFolder, 'run-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

// A copy, so that a build in the meantime does not change what is measured.
const serverFolder = join(folder, 'server')
const builtFile = resolve(options.server ?? join(rootFolder, 'dist/server.js'))
for (const file of [builtFile, join(dirname(builtFile), 'package.json')]) {
  if (existsSync(file)) cpSync(file, join(serverFolder, basename(file)))
}

const bench: Bench = {
  serverFile: join(serverFolder, basename(builtFile)),
  folder,
  quick: options.quick,
  effort: options.quick
    ? { generations: 1, rounds: 5, sliceMs: 150, warmUpMs: 300, repeats: 0, patience: { leftMs: 0 } }
    : { generations: 3, rounds: 7, sliceMs: 500, warmUpMs: 1500, repeats: 3, patience: { leftMs: 300_000 } },
}
const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(
  readFileSync(join(benchFolder, 'package.json'), 'utf8'),
)

console.log(describeMachine(folder))
console.log(
  Object.entries(dependencies)
    .map((each) => each.join(' '))
    .join(', '),
)

const rows: Row[] = []
for (const part of parts.filter(({ name }) => isWanted(name))) {
  console.error(`- ${part.name}`)
  rows.push(...(await part.run(bench)))
}
if (rows.length > 0) {
  console.log(`\n${formatRows(rows)}`)
}
if (disturbance.slices > 0) {
  console.log(`
ratio: ours to the other in requests/s, the median of the rounds; 64 connections where no number is given
by CPU time: the same for each second of processor time that the server used
*: a server waited for more than a tenth of the time, so that more than its own cost is in the ratio
(disturbed): other work on the machine took more than a quarter of a core in most of the rounds (in all: ${disturbance.disturbed} of
${disturbance.slices} slices of load); by CPU time is then the better witness`)
}

const isLatencyWanted = isWanted('latency')
if (isLatencyWanted) {
  console.error('- latency')
  console.log(`\n${await benchLatency(bench)}`)
}
if (isLatencyWanted || rows.some(({ what }) => what.startsWith('POST') && what.endsWith('connections'))) {
  console.log(`\nWhat a 201 means:\n${formatTable(durability, 2)}`)
}

let isSoakMet = true
if (isWanted('soak')) {
  console.error('- soak')
  const soak = await benchSoak(bench)
  isSoakMet = soak.isMet
  console.log(`\n${soak.text}`)
}

const short = rows.filter(({ verdict }) => verdict === 'short').length + (isSoakMet ? 0 : 1)
const judged = rows.filter(({ verdict }) => verdict !== '').length + (isWanted('soak') ? 1 : 0)
console.log(`\n${judged - short} of ${judged} bars met`)
process.exit(options.strict && short > 0 ? 1 : 0)

function isWanted(name: string): boolean {
  return name.toLowerCase().includes(options.only.toLowerCase())
}

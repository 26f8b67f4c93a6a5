/**
 * `npm run bench`: our server beside others, and which of the bars it meets.
 *
 * --quick            fewer and shorter rounds, in some three minutes
 * --only <text>      only the parts whose name contains the text
 * --strict           exit code 1 when a bar is missed
 * --server <file>    another build of the server than dist/server.js
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Bench } from './bench.ts'
import { benchCreation, creationRaces, durability } from './creations.ts'
import { benchGrowth } from './growth.ts'
import { benchLatencies } from './latencies.ts'
import { describeMachine } from './machine.ts'
import { benchMix, mixName } from './mix.ts'
import { build, installPackages } from './prepare.ts'
import { benchRead, reads } from './reads.ts'
import { benchSoak } from './soak.ts'
import { benchFirstResponse, benchLargeStart } from './start.ts'
import { formatRows, formatTable, type Row } from './table.ts'

// `node --test` without file names runs every script under `test`.
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
  { name: mixName, run: benchMix },
  ...creationRaces.map((creationRace) => ({
    name: creationRace.what,
    run: (bench: Bench) => benchCreation(bench, creationRace),
  })),
  { name: 'growth', run: benchGrowth },
  { name: 'start with 1,000,000 pets', run: benchLargeStart },
  { name: 'first response', run: benchFirstResponse },
  { name: 'soak', run: benchSoak },
]

installPackages(benchFolder)
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
for (const file of [
  builtFile,
  ...['index.js', 'index.mjs', 'package.json'].map((name) => join(dirname(builtFile), name)),
]) {
  if (existsSync(file)) cpSync(file, join(serverFolder, basename(file)))
}

const bench: Bench = {
  serverFile: join(serverFolder, basename(builtFile)),
  folder,
  isQuick: options.quick,
  effort: options.quick
    ? { generations: 1, rounds: 5, slice: { ms: 150 }, warmUp: { ms: 300 }, repeats: 0 }
    : { generations: 3, rounds: 7, slice: { ms: 500 }, warmUp: { ms: 1500 }, repeats: 3 },
}
const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(
  readFileSync(join(benchFolder, 'package.json'), 'utf8'),
)
const versions = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`)
console.log(`${describeMachine(folder)}\n${versions.join(', ')}`)

const rows: Row[] = []
for (const part of parts.filter(({ name }) => isWanted(name))) {
  console.error(`- ${part.name}`)
  rows.push(...(await part.run(bench)))
}
if (rows.length > 0) {
  console.log(`
${formatRows(rows)}

ratio: ours to the other, the median of the rounds; in requests per second with 64 connections unless the row says otherwise
by CPU time: the same for each second of processor time that the server used
(disturbed): other work on the machine used more than a quarter of a core in most of the rounds; the ratio by CPU time is
then the more reliable one`)
}
if (isWanted('latencies')) {
  console.error('- latencies')
  console.log(`\n${await benchLatencies(bench)}`)
}
console.log(`\nWhat a 201 means:\n${formatTable(durability, 'll')}`)

const judged = rows.filter(({ verdict }) => verdict !== '')
const missed = judged.filter(({ verdict }) => verdict === 'missed')
console.log(`\n${judged.length - missed.length} of ${judged.length} bars met`)
process.exit(options.strict && missed.length > 0 ? 1 : 0)

function isWanted(name: string): boolean {
  return name.toLowerCase().includes(options.only.toLowerCase())
}

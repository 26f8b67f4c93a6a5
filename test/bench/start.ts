/** How long our server takes from its start to its first response: with a large data file, and with a small one. */
import { strictEqual } from 'node:assert'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { askAll } from './checks.ts'
import { createPets, getRequest, writeManyPets, writePetsFile } from './data.ts'
import { ask, headerOf } from './http.ts'
import { contenderPath, startHello, startNode, startOurs } from './servers.ts'
import { median, quartiles } from './statistics.ts'
import { formatMegabytes, formatRatio, judge, type Row } from './table.ts'
import { readCpuSeconds, readPeakBytes } from './usage.ts'

interface Start {
  /** From before the process exists. */
  ms: number
  /** Processor time of all threads until then. */
  cpuMs: number
  peakBytes: number
}

/** Ours and what it is compared with, started one after the other. */
interface Pair {
  ours: Start
  other: Start
}

const list = getRequest('/v1/pets?limit=2')

/** With 1,000,000 pets, against a process that only reads and parses the file. */
export async function benchLargeStart(bench: Bench): Promise<Row[]> {
  const file = join(bench.folder, 'large.json')
  const petCount = 1_000_000
  writeManyPets(file, petCount)
  const pairs: Pair[] = []
  for (let run = 0; run < (bench.isQuick ? 3 : 9); run += 1) {
    pairs.push({ ours: await measureOurs(bench, file, petCount), other: await measureParse(file) })
  }

  const walked = await measureWalk(bench, file, petCount)

  const ratios = pairs.map(({ ours, other }) => ours.ms / other.ms)
  const cpuRatios = pairs.map(({ ours, other }) => ours.cpuMs / other.cpuMs)
  const memoryRatios = pairs.map(({ ours, other }) => ours.peakBytes / other.peakBytes)
  return [
    {
      what: 'start with 1,000,000 pets, to the first response',
      against: 'read and JSON.parse',
      ours: formatSeconds(median(pairs.map(({ ours }) => ours.ms))),
      other: formatSeconds(median(pairs.map(({ other }) => other.ms))),
      ratio: formatRatio(median(ratios)),
      quartiles: quartiles(ratios).map(formatRatio).join('–'),
      byCpuTime: formatRatio(median(cpuRatios)),
      ...judge(median(ratios), { most: 1.5 }),
      isDisturbed: false,
    },
    {
      what: 'peak memory of that start',
      against: 'read and JSON.parse',
      ours: formatMegabytes(median(pairs.map(({ ours }) => ours.peakBytes))),
      other: formatMegabytes(median(pairs.map(({ other }) => other.peakBytes))),
      ratio: formatRatio(median(memoryRatios)),
      quartiles: quartiles(memoryRatios).map(formatRatio).join('–'),
      byCpuTime: '',
      ...judge(median(memoryRatios), { most: 1.5 }),
      isDisturbed: false,
    },
    {
      // Each pet keeps its text from when it is first listed.
      what: 'peak memory with 1,000,000 pets, after a walk through all',
      against: 'ours after that start',
      ours: formatMegabytes(walked.afterWalkBytes),
      other: formatMegabytes(walked.afterStartBytes),
      ratio: `${formatRatio(walked.afterWalkBytes / walked.afterStartBytes)} ×`,
      quartiles: '',
      byCpuTime: '',
      ...judge(NaN, null),
      isDisturbed: false,
    },
  ]
}

/** With 100 pets, against the shortest node:http script. */
export async function benchFirstResponse(bench: Bench): Promise<Row[]> {
  const file = join(bench.folder, 'small.json')
  const pets = createPets(100)
  writePetsFile(file, pets)
  const pairs: Pair[] = []
  for (let run = 0; run < (bench.isQuick ? 11 : 41); run += 1) {
    pairs.push({ ours: await measureOurs(bench, file, pets.length), other: await measureHello() })
  }

  const ratios = pairs.map(({ ours, other }) => ours.ms / other.ms)
  const cpuRatios = pairs.map(({ ours, other }) => ours.cpuMs / other.cpuMs)
  return [
    {
      what: 'first response of node dist/server.js',
      against: 'a bare node:http script',
      ours: `${formatMs(median(pairs.map(({ ours }) => ours.ms)))} ms`,
      other: `${formatMs(median(pairs.map(({ other }) => other.ms)))} ms`,
      ratio: `${formatRatio(median(ratios))} ×`,
      quartiles: quartiles(ratios).map(formatRatio).join('–'),
      byCpuTime: `${formatRatio(median(cpuRatios))} ×`,
      ...judge(median(ratios), { most: 2 }, ' × the time'),
      isDisturbed: false,
    },
  ]
}

async function measureOurs(bench: Bench, file: string, petCount: number): Promise<Start> {
  const startedAt = performance.now()
  const server = await startOurs(bench.serverFile, file)
  const response = await ask(server.port, list)
  const start = readStart(server.pid, startedAt)
  await server.stop()
  strictEqual(headerOf(response, 'X-Total-Count'), String(petCount))
  return start
}

/** Lists all pets, page by page. */
async function measureWalk(bench: Bench, file: string, petCount: number) {
  const server = await startOurs(bench.serverFile, file)
  await ask(server.port, list)
  const afterStartBytes = readPeakBytes(server.pid)
  const pages = Array.from({ length: petCount / 100 }, (_, page) =>
    getRequest(`/v1/pets?limit=100&after=${page * 100}`),
  )
  for (let from = 0; from < pages.length; from += 100)
    await askAll(server.port, pages.slice(from, from + 100))
  const afterWalkBytes = readPeakBytes(server.pid)
  await server.stop()
  return { afterStartBytes, afterWalkBytes }
}

async function measureHello(): Promise<Start> {
  const startedAt = performance.now()
  const server = await startHello()
  await ask(server.port, list)
  const start = readStart(server.pid, startedAt)
  await server.stop()
  return start
}

async function measureParse(file: string): Promise<Start> {
  const startedAt = performance.now()
  const { pid, stop } = await startNode([contenderPath('parse-file.cjs'), file], /parsed/)
  const start = readStart(pid, startedAt)
  await stop()
  return start
}

function readStart(pid: number, startedAt: number): Start {
  const ms = performance.now() - startedAt
  return { ms, cpuMs: readCpuSeconds(pid) * 1000, peakBytes: readPeakBytes(pid) }
}

function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`
}

function formatMs(ms: number): string {
  return ms.toFixed(1)
}

/** Starting: with a large file, and with a small one. */
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { checkPets } from './answers.ts'
import { createPets, key, writeManyPets, writePetsFile } from './data.ts'
import { ask, createRequest } from './load.ts'
import { median, quantile } from './race.ts'
import { contenderPath, startHello, startNode, startOurs, type Server } from './servers.ts'
import { formatMegabytes, formatRatio, judge, type Row } from './table.ts'
import { readPeakBytes, readUsage } from './usage.ts'

const list = createRequest('GET', '/v1/pets?limit=2', { key })
const pets = createPets(100)

interface Start {
  ms: number
  /** Processor time until then, of all threads. */
  cpuMs: number
  peakBytes: number | null
}

/** A large file until the first answer, against a process that only reads and parses it. */
export async function benchLargeStart(bench: Bench): Promise<Row[]> {
  const file = join(bench.folder, 'large.json')
  const petCount = 1_000_000
  writeManyPets(file, petCount)
  const ours: Start[] = []
  const parse: Start[] = []
  for (let run = 0; run < (bench.quick ? 3 : 9); run += 1) {
    ours.push(await timeFirstAnswer(() => startOurs(bench.serverFile, file), petCount))
    parse.push(await timeParse(file))
  }

  const ratios = ours.map(({ ms }, run) => ms / (parse[run]?.ms ?? NaN))
  const cpuRatios = ours.map(({ cpuMs }, run) => cpuMs / (parse[run]?.cpuMs ?? NaN))
  const seconds = (starts: Start[]) => `${(median(starts.map(({ ms }) => ms)) / 1000).toFixed(2)} s`
  const startRow: Row = {
    what: 'start with 1,000,000 pets, to the first answer',
    against: 'read and JSON.parse',
    ours: seconds(ours),
    other: seconds(parse),
    ratio: formatRatio(median(ratios)),
    spread: spread(ratios, formatRatio),
    byCpu: formatRatio(median(cpuRatios)),
    ...judge(median(ratios), { most: 1.5 }),
  }

  const peaks = [ours, parse].map((starts) => median(starts.map(({ peakBytes }) => peakBytes ?? NaN)))
  const [ourPeak = NaN, parsePeak = NaN] = peaks
  const memoryRow: Row = {
    what: 'peak memory of that start',
    against: 'read and JSON.parse',
    ours: formatMegabytes(ourPeak),
    other: formatMegabytes(parsePeak),
    ratio: formatRatio(ourPeak / parsePeak),
    spread: '',
    byCpu: '',
    ...judge(ourPeak / parsePeak, { most: 1.5 }),
  }
  return [startRow, memoryRow]
}

/** How much later than the shortest node:http script ours gives its first answer. */
export async function benchFirstAnswer(bench: Bench): Promise<Row[]> {
  const file = join(bench.folder, 'small.json')
  writePetsFile(file, pets)
  const ours: Start[] = []
  const hello: Start[] = []
  for (let run = 0; run < (bench.quick ? 11 : 41); run += 1) {
    ours.push(await timeFirstAnswer(() => startOurs(bench.serverFile, file), pets.length))
    hello.push(await timeFirstAnswer(startHello))
  }
  const later = ours.map(({ ms }, run) => ms - (hello[run]?.ms ?? NaN))
  const laterByCpu = ours.map(({ cpuMs }, run) => cpuMs - (hello[run]?.cpuMs ?? NaN))
  return [
    {
      what: 'first answer of node dist/server.js',
      against: 'a bare node:http script',
      ours: `${formatMs(median(ours.map(({ ms }) => ms)))} ms`,
      other: `${formatMs(median(hello.map(({ ms }) => ms)))} ms`,
      ratio: `+${formatMs(median(later))} ms`,
      spread: spread(later, formatMs),
      byCpu: `+${formatMs(median(laterByCpu))} ms`,
      ...judge(median(later), { most: 30 }, ' ms later'),
    },
  ]
}

/** From before the process is made until the answer is read; the store must hold so many pets. */
async function timeFirstAnswer(start: () => Promise<Server>, petCount?: number): Promise<Start> {
  const startedAt = performance.now()
  const server = await start()
  const answer = await ask(server.port, list)
  const ms = performance.now() - startedAt
  const usage = readProcess(server.pid)
  await server.stop()
  if (petCount !== undefined) checkPets(answer, JSON.parse(answer.body), petCount)
  return { ms, ...usage }
}

async function timeParse(file: string): Promise<Start> {
  const startedAt = performance.now()
  const { pid, stop } = await startNode([contenderPath('parse-file.cjs'), file], /parsed/)
  const ms = performance.now() - startedAt
  const usage = readProcess(pid)
  await stop()
  return { ms, ...usage }
}

function readProcess(pid: number): Omit<Start, 'ms'> {
  return { cpuMs: (readUsage(pid)?.cpuSeconds ?? NaN) * 1000, peakBytes: readPeakBytes(pid) }
}

function spread(values: number[], format: (value: number) => string): string {
  return [0.25, 0.75].map((share) => format(quantile(values, share))).join('–')
}

function formatMs(ms: number): string {
  return ms.toFixed(1)
}

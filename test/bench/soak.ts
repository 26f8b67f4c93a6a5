/** A million requests of every kind: at the end our server uses as much memory as it did after a tenth of them. */
import { once } from 'node:events'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { resetPets } from './contenders.ts'
import { createPets, creations, getRequest, key, refusals, writePetsFile } from './data.ts'
import { ask, createRequest, type HttpRequest } from './http.ts'
import { applyLoad } from './load.ts'
import { contenderPath, startOurs, type Server } from './servers.ts'
import { formatMegabytes, formatRatio, judge, type Bar, type Row } from './table.ts'

/** What `contenders/memory-probe.cjs` sends. */
interface Memory {
  /** After a full collection. */
  heapBytes: number
  /** Of the whole process, which may keep what it once took. */
  residentBytes: number
}

const pets = createPets(100)
const batchResponses = 50_000

/** Of a hundred requests: 40 lists, 40 single pets, 8 creations, and 12 refusals that keep the connection open. */
const mix: HttpRequest[] = spread([
  ...repeat(10, ['/v1/pets', '/v1/pets?limit=100', '/v1/pets?status=sold', '/v1/pets?after=50']).map(
    getRequest,
  ),
  ...repeat(10, ['/v1/pets/1', '/v1/pets/42', '/v1/pets/99', '/v1/pets/100']).map(getRequest),
  ...creations.slice(0, 8),
  ...refusals,
  createRequest('GET', '/v1/pets/abc', { key, status: 404 }),
  createRequest('DELETE', '/v1/pets', { key, status: 405 }),
  createRequest('GET', '/v1/store/orders', { key, status: 501 }),
])

/** Bytes after which the server closes the connection. */
const garbage = { bytes: Buffer.from('GARBAGE\r\n\r\n') }

export async function benchSoak(bench: Bench): Promise<Row[]> {
  const file = join(bench.folder, 'soak.json')
  writePetsFile(file, pets)
  const server = await startOurs(bench.serverFile, file, {
    nodeArgs: ['--expose-gc', '--require', contenderPath('memory-probe.cjs')],
    ipc: true,
  })
  const total = bench.isQuick ? 200_000 : 1_000_000
  const early = await readMemoryAfter(100_000, server, file)
  const late = await readMemoryAfter(total - 100_000, server, file)
  await server.stop()

  const row = (kind: string, earlyBytes: number, lateBytes: number, bar: Bar): Row => ({
    what: `${kind} after ${total.toLocaleString('en-US')} requests of all kinds`,
    against: 'ours after 100,000',
    ours: formatMegabytes(lateBytes),
    other: formatMegabytes(earlyBytes),
    ratio: `${formatRatio(lateBytes / earlyBytes)} ×`,
    quartiles: '',
    byCpuTime: '',
    ...judge(lateBytes / earlyBytes, bar),
    isDisturbed: false,
  })
  return [
    row('heap', early.heapBytes, late.heapBytes, { most: 1.1 }),
    row('resident memory', early.residentBytes, late.residentBytes, { most: 1.25 }),
  ]
}

/** Sends so many requests, puts the first pets back, and reads what is in use then. */
async function readMemoryAfter(requestCount: number, server: Server, file: string): Promise<Memory> {
  for (let sent = 0; sent < requestCount; sent += batchResponses) {
    // New connections for every batch, and some that end badly.
    const { port } = server
    await applyLoad({ port, requests: mix, connections: 32, window: { responses: batchResponses } })
    for (let count = 0; count < 50; count += 1) await ask(port, garbage)
  }
  await resetPets(server, file, pets)
  const reply = once(server.process, 'message')
  server.process.send('read')
  const [memory]: Memory[] = await reply
  if (memory === undefined) throw new Error('the probe did not answer')
  return memory
}

function repeat<T>(times: number, values: T[]): T[] {
  return Array.from({ length: times }, () => values).flat()
}

/** Puts neighbours far apart. There are a hundred, which have no factor in common with the stride, so each comes once. */
function spread<T>(values: T[]): T[] {
  return values.map((_, index) => values[(index * 37) % values.length] as T)
}

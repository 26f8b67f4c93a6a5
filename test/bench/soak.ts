/** A million requests of every kind: memory at the end is where it was after a tenth of them. */
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { createPets, creations, getRequests, key, writePetsFile } from './data.ts'
import { applyLoad, ask, createRequest, headerOf, type Request } from './load.ts'
import { contenderPath, startOurs, type Server } from './servers.ts'
import { formatCount, formatMegabytes, formatTable } from './table.ts'

interface Memory {
  /** After a full collection. */
  heapBytes: number
  externalBytes: number
  /** The process as a whole; what it once took it may keep. */
  residentBytes: number
}

const pets = createPets(100)
const connections = 32
const batchAnswers = 50_000

/** Of a hundred requests: 40 lists, 40 single pets, 8 creations, 12 refusals of all kinds that keep a connection open. */
const mix: Request[] = interleave([
  ...repeat(10, getRequests(['/v1/pets', '/v1/pets?limit=100', '/v1/pets?status=sold', '/v1/pets?after=50'])),
  ...repeat(10, getRequests(['/v1/pets/1', '/v1/pets/42', '/v1/pets/99', '/v1/pets/100'])),
  ...creations.slice(0, 8),
  createRequest('GET', '/v1/pets', { status: 401 }),
  createRequest('GET', '/v1/pets', { key: 'another-key', status: 401 }),
  createRequest('GET', '/v1/pets?limit=0', { key, status: 400 }),
  createRequest('GET', '/v1/pets?status=lost', { key, status: 400 }),
  createRequest('GET', '/v1/pets/abc', { key, status: 404 }),
  createRequest('GET', '/v1/pets/9007199254740993', { key, status: 404 }),
  createRequest('GET', '/nowhere', { key, status: 404 }),
  createRequest('DELETE', '/v1/pets', { key, status: 405 }),
  createRequest('GET', '/v1/store/orders', { key, status: 501 }),
  createRequest('POST', '/v1/pets', { key, body: '{"name": ', status: 400 }),
  createRequest('POST', '/v1/pets', { key, body: '{"name":1,"categoryId":"x"}', status: 400 }),
  createRequest('POST', '/v1/pets', { key, body: '{"name":"Rex","categoryId":1.5}', status: 400 }),
])

/** Bytes after which the server closes the connection. */
const garbage = { bytes: Buffer.from('GARBAGE\r\n\r\n') }

export async function benchSoak(bench: Bench): Promise<{ text: string; isMet: boolean }> {
  const file = join(bench.folder, 'soak.json')
  writePetsFile(file, pets)
  const server = await startOurs(bench.serverFile, file, {
    nodeArgs: ['--expose-gc', '--require', contenderPath('memory-probe.cjs')],
    ipc: true,
  })
  const targets = bench.quick ? [100_000, 200_000] : [100_000, 500_000, 1_000_000]
  const lines = [['answers', 'heap', 'outside of it', 'resident', 'pets created']]
  const readings: Memory[] = []
  let created = 0
  let sent = 0
  const startedAt = performance.now()
  for (const target of targets) {
    while (sent < target) {
      const answers = Math.min(batchAnswers, target - sent)
      // New connections for every batch, and some that end badly.
      const result = await applyLoad({ port: server.port, requests: mix, connections, window: { answers } })
      for (let count = 0; count < 50; count += 1) await ask(server.port, garbage)
      sent += result.allAnswers + 50
    }
    created += await resetPets(server, file)
    const memory = await readMemory(server)
    readings.push(memory)
    lines.push([
      formatCount(sent),
      formatMegabytes(memory.heapBytes),
      formatMegabytes(memory.externalBytes),
      formatMegabytes(memory.residentBytes),
      formatCount(created),
    ])
  }
  const seconds = (performance.now() - startedAt) / 1000
  await server.stop()

  const first = readings[0]
  const last = readings.at(-1)
  if (first === undefined || last === undefined) throw new Error('no readings')
  const heapGrowth = last.heapBytes / first.heapBytes
  const residentGrowth = last.residentBytes / first.residentBytes
  const isMet = heapGrowth <= 1.1 && residentGrowth <= 1.25
  return {
    isMet,
    text: [
      `Soak: ${formatCount(sent)} requests of all kinds in ${seconds.toFixed(0)} s; at each reading the same 100 pets`,
      formatTable(lines, 0),
      `heap × ${heapGrowth.toFixed(3)} (bar ≤ 1.1), resident × ${residentGrowth.toFixed(3)} (bar ≤ 1.25): ${isMet ? 'met' : 'short'}`,
    ].join('\n'),
  }
}

/** Puts the first pets back by an edit of the file, so that every reading is of the same store; returns what it took away. */
export async function resetPets(server: Server, file: string): Promise<number> {
  const list = createRequest('GET', '/v1/pets?limit=1', { key })
  const countPets = async () => Number(headerOf(await ask(server.port, list), 'X-Total-Count'))
  const before = await countPets()
  writePetsFile(`${file}.new`, pets)
  renameSync(`${file}.new`, file)
  const deadline = performance.now() + 10_000
  while ((await countPets()) !== pets.length) {
    if (performance.now() > deadline) throw new Error('the server does not take up an edit of its file')
  }
  return before - pets.length
}

async function readMemory(server: Server): Promise<Memory> {
  const reply = once(server.process, 'message')
  server.process.send('read')
  const [memory]: Memory[] = await reply
  if (memory === undefined) throw new Error('the probe did not answer')
  return memory
}

function repeat<T>(times: number, values: T[]): T[] {
  return Array.from({ length: times }, () => values).flat()
}

/** Spreads neighbours far apart; the stride has no factor in common with the length, so each comes once. */
function interleave<T>(values: T[]): T[] {
  return values.map((_, index) => values[(index * 37) % values.length] as T)
}

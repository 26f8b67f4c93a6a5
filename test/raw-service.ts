/** A service on a data file for tests of raw bytes, and what every refusal owes. */
import assert from 'node:assert/strict'
import { after, type TestContext } from 'node:test'
import type { Timeouts } from '../src/options/types.ts'
import { startPetStore } from '../src/pet-store-server.ts'
import {
  assertRefusal,
  connectRaw,
  formatRequest,
  key,
  makeDataFile,
  type RawAnswer,
  type RawClient,
  send,
  type StartedApp,
  startApp,
  root,
} from './support.ts'

export const pet = '{"name":"Rex","categoryId":1}'
export const stored = '{"id":1,"name":"Rex","categoryId":1,"status":"available"}'
export const list = formatRequest('GET /v1/pets')
export const creation = formatRequest('POST /v1/pets', [], pet)
export const chunked = 'Transfer-Encoding: chunked'

/** A service on a data file: a commit to it takes longer than reading the next request. */
export interface Started extends Pick<StartedApp, 'url' | 'send'> {
  readonly dataFile: string
  connect(): Promise<RawClient>
}

/** For a test that looks at what it stored, or closes the service. */
export async function start(t: TestContext, timeouts: Partial<Timeouts> = {}): Promise<Started & StartedApp> {
  const dataFile = makeDataFile()
  const app = await startApp(t, { dataFile, timeouts })
  return { ...app, dataFile, connect: () => connectRaw(t, app.url) }
}

/** For all others: starts the service before the first, and closes it after the last. */
export function startOnce(
  pets: readonly string[] = [],
  timeouts: Partial<Timeouts> = {},
): (t: TestContext) => Promise<Started> {
  const dataFile = makeDataFile(pets)
  let started: ReturnType<typeof startPetStore> | undefined
  // Node 24 does not come here where no test of a suite has the name that is asked for.
  after(async () => (await started)?.close())
  return async (t) => {
    started ??= startPetStore({ apiKeys: [key], dataFile, timeouts })
    const { url } = await started
    return {
      url,
      dataFile,
      send: (path, options) => send(url, path, options),
      connect: () => connectRaw(t, url),
    }
  }
}

export async function assertAnswersNext(app: Pick<StartedApp, 'send'>): Promise<void> {
  assert.equal((await app.send('/v1/pets')).status, 200)
}

/** What every refusal owes besides its body, and what none may tell. */
export function assertWholeRefusal(answer: RawAnswer, status: number, code: string): void {
  const message = assertRefusal(answer, status, code)
  assert.doesNotMatch(message, /HPE_|ERR_|node|valibot|lowdb|test-key|\.ts|\bat /i)
  assert.equal(message.includes(root), false)
  assert.equal(answer.headers.get('access-control-allow-origin'), '*')
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  const names = answer.headerLines.map((line) => line.split(':')[0]?.toLowerCase())
  assert.equal(new Set(names).size, names.length, 'no header comes twice')
}

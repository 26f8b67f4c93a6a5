/** Clients that create pets until the service dies under them, and what has to be there afterwards. */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'

/** The names of confirmed pets, by id. */
export type Confirmed = Map<number, string>

const clients = 8

/** Creates pets and notes those that are confirmed. Resolves when every client has lost its connection, or after `isEnough`. */
export async function createUntilDeath(
  url: string,
  key: string,
  confirmed: Confirmed,
  onConfirmed: () => void,
  isEnough = (): boolean => false,
): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  const load = Array.from({ length: clients }, async (_, client) => {
    for (let count = 0; !isEnough(); count++) {
      const name = `${confirmed.size}/${client}/${count} ${'x'.repeat(count % 300)}`
      const answer = await exchange(agent, url, key, '/v1/pets', { name, categoryId: client })
      if (answer === undefined) return
      assert.equal(answer.status, 201, answer.text)
      // The suite of the interface holds the form of a pet.
      const { id } = JSON.parse(answer.text) as { readonly id: number }
      assert.equal(confirmed.has(id), false, `the id ${id} was given twice`)
      confirmed.set(id, name)
      onConfirmed()
    }
  })
  await Promise.all(load)
  agent.destroy()
}

/** The ids of confirmed pets that are not listed as they were confirmed. */
export async function findLost(url: string, key: string, confirmed: Confirmed): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: true })
  const listed = new Map<number, string>()
  for (let after = 0, count = 100; count === 100;) {
    const answer = await exchange(agent, url, key, `/v1/pets?limit=100&after=${after}`)
    assert.equal(answer?.status, 200, answer?.text)
    const pets = JSON.parse(answer.text) as readonly { readonly id: number; readonly name: string }[]
    for (const { id, name } of pets) listed.set(id, name)
    count = pets.length
    after = pets.at(-1)?.id ?? 0
  }
  agent.destroy()
  return [...confirmed].flatMap(([id, name]) => (listed.get(id) === name ? [] : [id]))
}

interface Answer {
  readonly status: number | undefined
  readonly text: string
}

/** A response, or undefined where the connection ended before it was whole, or the machine stayed silent: then nothing is promised. */
function exchange(
  agent: Agent,
  url: string,
  key: string,
  path: string,
  body?: unknown,
): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const method = body === undefined ? 'GET' : 'POST'
    const sent = request(url + path, { agent, headers, method, timeout: 5_000 }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('error', () => resolve(undefined))
      response.on('end', () => resolve(response.complete ? { status: response.statusCode, text } : undefined))
    })
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => resolve(undefined))
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Clients that create pets on all servers, and others that walk by `after`, whatever happens to the database. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { assertRefusal, send } from '../support.ts'
import { waitUntil } from './processes.ts'
import { collect, type Pets, type Server } from './service.ts'

/** Begins at once. A response that is not as it has to be, or a connection that is lost, ends the process. */
export class Load {
  readonly acknowledged: Pets = new Map()
  refused = 0
  /** The longest time without an acknowledged creation, in milliseconds; to be set to 0 before what is to be measured. */
  longestGapMs = 0
  readonly #servers: readonly Server[]
  /** When the last creation that was acknowledged began, for each server. */
  readonly #lastStarts = new Map<Server, number>()
  #lastCreatedAt = performance.now()
  #isOver = false
  #areAllCreated = false
  readonly #creators: readonly Promise<void>[]
  readonly #walkers: readonly Promise<Pets>[]

  constructor(servers: readonly Server[]) {
    this.#servers = servers
    this.#creators = servers.flatMap((server) => Array.from({ length: 4 }, () => this.#create(server)))
    this.#walkers = servers.map((server) => this.#walk(server))
  }

  /** Resolves when every server has acknowledged a creation that began after this call. */
  async untilCreated(): Promise<void> {
    const now = performance.now()
    await waitUntil('every server creates', async () => {
      const isCreating = this.#servers.every((server) => (this.#lastStarts.get(server) ?? 0) > now)
      return isCreating || undefined
    })
  }

  /** Resolves with what each walker has seen. */
  async stop(): Promise<readonly Pets[]> {
    this.#isOver = true
    await Promise.all(this.#creators)
    this.#areAllCreated = true
    return Promise.all(this.#walkers)
  }

  async #create(server: Server): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const start = performance.now()
      const answer = await send(server.url, '/v1/pets', { body: { name: `pet ${i}`, categoryId: i } })
      if (answer.status === 201) {
        collect(this.acknowledged, answer.text)
        const now = performance.now()
        this.longestGapMs = Math.max(this.longestGapMs, now - this.#lastCreatedAt)
        this.#lastCreatedAt = now
        this.#lastStarts.set(server, start)
      } else {
        assert.match(
          assertRefusal(answer, 503, 'storage_failed'),
          /(?:not known whether the pet|nothing) was stored/,
        )
        this.refused++
        await pause(100)
      }
    }
  }

  async #walk({ url }: Server): Promise<Pets> {
    const seen: Pets = new Map()
    let last = '0'
    for (;;) {
      // A page that is asked for after the last creation, and has no pets, is the last.
      const areAllCreated = this.#areAllCreated
      const answer = await send(url, `/v1/pets?limit=100&after=${last}`)
      if (answer.status === 200) {
        const newLast = collect(seen, answer.text)
        if (newLast === undefined && areAllCreated) return seen
        last = newLast ?? last
      } else {
        assertRefusal(answer, 503, 'storage_failed')
      }
      if (answer.text === '[]' || answer.status !== 200) await pause(100)
    }
  }
}

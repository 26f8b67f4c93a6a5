/** Clients that create pets on all servers, and others that walk by `after`, whatever happens to the database and to the servers. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { assertRefusal, type ReceivedAnswer, type RequestOptions, send } from '../support.ts'
import { waitUntil } from './processes.ts'
import { collect, type Pets, type Server } from './service.ts'

/** Begins at once. A response that is not as it has to be, or a connection lost to a server that was not killed, ends the process. */
export class Load {
  readonly acknowledged: Pets = new Map()
  refused = 0
  /** Creations whose server was killed. */
  cutOff = 0
  /** The longest time without an acknowledged creation, in milliseconds; to be set to 0 before what is to be measured. */
  longestGapMs = 0
  /** The clients of each go on with the server that takes its place. */
  readonly #servers: Server[]
  /** When the last creation that had this status began, for each server. */
  readonly #lastStarts = { 201: new Map<Server, number>(), 503: new Map<Server, number>() }
  #lastCreatedAt = performance.now()
  #isOver = false
  #areAllCreated = false
  readonly #creators: readonly Promise<void>[]
  readonly #walkers: readonly Promise<Pets>[]
  readonly #ended: Promise<unknown>

  constructor(servers: readonly Server[]) {
    this.#servers = [...servers]
    const places = [...servers.keys()]
    this.#creators = places.flatMap((place) => Array.from({ length: 4 }, () => this.#create(place)))
    this.#walkers = places.map((place) => this.#walk(place))
    this.#ended = Promise.all([...this.#creators, ...this.#walkers])
  }

  /** Another server for the clients of one that was killed. */
  replace(killed: Server, server: Server): void {
    this.#servers[this.#servers.indexOf(killed)] = server
  }

  /** Resolves when each of the servers, or of these, has acknowledged a creation that began after this call. */
  async untilCreated(servers: readonly Server[] = this.#servers): Promise<void> {
    await this.#untilEach(servers, 201)
  }

  /** Resolves when each of the servers has refused a creation that began after this call. */
  async untilRefused(): Promise<void> {
    await this.#untilEach(this.#servers, 503)
  }

  async #untilEach(servers: readonly Server[], status: 201 | 503): Promise<void> {
    const now = performance.now()
    const answering = waitUntil(`every server answers a creation with ${status}`, async () => {
      return servers.every((server) => (this.#lastStarts[status].get(server) ?? 0) > now) || undefined
    })
    // What has failed of the load ends the wait.
    await Promise.race([answering, this.#ended])
  }

  /** Resolves with what each walker has seen. */
  async stop(): Promise<readonly Pets[]> {
    this.#isOver = true
    await Promise.all(this.#creators)
    this.#areAllCreated = true
    return Promise.all(this.#walkers)
  }

  async #create(place: number): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const start = performance.now()
      const { server, answer } = await this.#send(place, '/v1/pets', {
        body: { name: `pet ${i}`, categoryId: i },
      })
      if (answer === undefined) {
        this.cutOff++
      } else if (answer.status === 201) {
        collect(this.acknowledged, answer.text)
        const now = performance.now()
        this.longestGapMs = Math.max(this.longestGapMs, now - this.#lastCreatedAt)
        this.#lastCreatedAt = now
        this.#lastStarts[201].set(server, start)
      } else {
        assert.match(
          assertRefusal(answer, 503, 'storage_failed'),
          /(?:not known whether the pet|nothing) was stored/,
        )
        this.refused++
        this.#lastStarts[503].set(server, start)
        await pause(100)
      }
    }
  }

  async #walk(place: number): Promise<Pets> {
    const seen: Pets = new Map()
    let last = '0'
    for (;;) {
      // A page that is asked for after the last creation, and has no pets, is the last.
      const areAllCreated = this.#areAllCreated
      const { answer } = await this.#send(place, `/v1/pets?limit=100&after=${last}`)
      if (answer?.status === 200) {
        const newLast = collect(seen, answer.text)
        if (newLast === undefined && areAllCreated) return seen
        last = newLast ?? last
      } else if (answer !== undefined) {
        assertRefusal(answer, 503, 'storage_failed')
      } else if (this.#isOver) {
        return seen
      }
      if (answer?.text === '[]' || answer?.status === 503) await pause(100)
    }
  }

  /** Without an answer, the server was killed, and another one has taken its place, or the load is over. */
  async #send(
    place: number,
    path: string,
    options?: RequestOptions,
  ): Promise<{ server: Server; answer?: ReceivedAnswer }> {
    const server = this.#servers[place]
    assert.ok(server !== undefined)
    try {
      return { server, answer: await send(server.url, path, options) }
    } catch (error) {
      assert.ok(server.child.killed, String(error))
      await waitUntil('another server has taken its place', async () => {
        return this.#isOver || this.#servers[place] !== server || undefined
      })
      return { server }
    }
  }
}

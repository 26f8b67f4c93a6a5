/**
 * Group commit: one batch at a time, and what comes in the meantime is the next batch. Each caller is settled by its own
 * batch, so a failing one fails only its own. Everything is done in the order in which it came. Knows neither pets nor files.
 */

interface Waiting<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

type Task = () => Promise<void>

export class CommitQueue<Item, Result> {
  readonly #commit: (items: readonly Item[]) => Promise<readonly (Result | Error)[]>
  readonly #maxBatchItems: number
  #entries: (Waiting<Item, Result> | Task)[] = []
  #isBusy = false

  /** `commit` gives a result or an error for each item, in order; if it throws, the whole batch failed. */
  constructor(
    commit: (items: readonly Item[]) => Promise<readonly (Result | Error)[]>,
    maxBatchItems: number,
  ) {
    this.#commit = commit
    this.#maxBatchItems = maxBatchItems
  }

  /** Puts the item into the next batch; the promise is that batch's. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => this.#enter({ item, resolve, reject }))
  }

  /** Runs the task alone, after what came before it. */
  run<T>(task: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enter(async () => {
        try {
          resolve(await task())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  #enter(entry: Waiting<Item, Result> | Task): void {
    this.#entries.push(entry)
    if (this.#isBusy) return
    this.#isBusy = true
    void this.#work()
  }

  async #work(): Promise<void> {
    for (;;) {
      await restOfTick()
      const batch = this.#takeBatch()
      if (batch.length > 0) await this.#settle(batch)
      const [next] = this.#entries
      if (next === undefined) break
      if (typeof next !== 'function') continue
      this.#entries.shift()
      await next()
    }
    this.#isBusy = false
  }

  /** The items at the head of the queue, up to the next task. */
  #takeBatch(): readonly Waiting<Item, Result>[] {
    const batch: Waiting<Item, Result>[] = []
    for (const entry of this.#entries) {
      if (typeof entry === 'function' || batch.length === this.#maxBatchItems) break
      batch.push(entry)
    }
    this.#entries.splice(0, batch.length)
    return batch
  }

  async #settle(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#commit(batch.map(({ item }) => item))
      for (const [index, { resolve, reject }] of batch.entries()) {
        const result = results[index]
        if (result === undefined || result instanceof Error)
          reject(result ?? new Error('no result for this item'))
        else resolve(result)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

/** Those who add in the same tick share a batch; who comes later is in the next. */
function restOfTick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}

/**
 * Group commit: one batch at a time, and what comes in the meantime is the next batch. Each caller is settled by its own
 * batch, so a failing one fails only its own. Knows neither pets nor files.
 */

/** More than this in one batch gains nothing, and keeps the first of them waiting. */
const maxBatchItems = 128

interface Waiting<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

export class CommitQueue<Item, Result> {
  readonly #commit: (items: readonly Item[]) => Promise<readonly (Result | Error)[]>
  #waiting: Waiting<Item, Result>[] = []
  #tasks: (() => Promise<void>)[] = []
  #isBusy = false

  /** `commit` gives a result or an error for each item, in order; if it throws, the whole batch failed. */
  constructor(commit: (items: readonly Item[]) => Promise<readonly (Result | Error)[]>) {
    this.#commit = commit
  }

  /** Puts the item into the next batch; the promise is that batch's. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#start()
    })
  }

  /** Runs the task alone, between two batches. */
  run<T>(task: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#tasks.push(() => task().then(resolve, reject))
      this.#start()
    })
  }

  #start(): void {
    if (this.#isBusy) return
    this.#isBusy = true
    // After all sockets that are ready now were read: their creations belong in one batch.
    setImmediate(() => this.#work())
  }

  async #work(): Promise<void> {
    while (this.#tasks.length > 0 || this.#waiting.length > 0) {
      await this.#tasks.shift()?.()
      if (this.#waiting.length > 0) await this.#settle(this.#waiting.splice(0, maxBatchItems))
    }
    this.#isBusy = false
  }

  async #settle(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#commit(batch.map(({ item }) => item))
      for (const [index, { resolve, reject }] of batch.entries()) {
        const result = results[index]
        if (result === undefined || result instanceof Error) reject(result)
        else resolve(result)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

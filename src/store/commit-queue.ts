/**
 * Group commit: items that come while a batch is being committed form the next batch. Batches and tasks run one at a time, in the order in
 * which they came; a batch that fails rejects only its own callers.
 */
import { clock } from '../system/clock.ts'

/** Returns a result or an error for each item, in order; if it rejects, the whole batch failed. */
export type Commit<Item, Result> = (items: readonly Item[]) => Promise<readonly (Result | Error)[]>

interface Batch<Item, Result> {
  readonly items: Item[]
  readonly results: Promise<readonly (Result | Error)[]>
}

export class CommitQueue<Item, Result> {
  readonly #commit: Commit<Item, Result>
  readonly #maxBatchItems: number
  /** The one that still takes items. */
  #open: Batch<Item, Result> | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(commit: Commit<Item, Result>, maxBatchItems: number) {
    this.#commit = commit
    this.#maxBatchItems = maxBatchItems
  }

  async add(item: Item): Promise<Result> {
    const batch = (this.#open ??= this.#openBatch())
    const index = batch.items.push(item) - 1
    if (batch.items.length === this.#maxBatchItems) this.#open = undefined
    const result = (await batch.results)[index]
    if (result === undefined) throw new Error('the commit gave no result for this item')
    if (result instanceof Error) throw result
    return result
  }

  run<T>(task: () => Promise<T>): Promise<T> {
    this.#open = undefined
    const done = this.#last.then(task)
    this.#last = done.catch(() => {})
    return done
  }

  #openBatch(): Batch<Item, Result> {
    const items: Item[] = []
    const results = this.run(async () => {
      // In an idle queue this runs while other requests of the same turn of the event loop are still being handled. Their items can join:
      // the next tick comes after all promise callbacks that are due.
      await new Promise<void>((resolve) => clock.nextTick(resolve))
      if (this.#open?.items === items) this.#open = undefined
      return this.#commit(items)
    })
    return { items, results }
  }
}

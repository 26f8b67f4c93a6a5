/**
 * Group commit: items that come while a batch is being committed form the next batch. Batches and tasks run one at a time, in
 * the order in which they came; a batch that fails rejects only its own callers. Does not depend on pets or files.
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
  /** The batch that still takes items; it waits for its turn. */
  #open: Batch<Item, Result> | undefined
  /** Resolves when everything that was queued so far has run. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(commit: Commit<Item, Result>, maxBatchItems: number) {
    this.#commit = commit
    this.#maxBatchItems = maxBatchItems
  }

  /** Puts the item into the next batch. Resolves or rejects with the item's own result. */
  async add(item: Item): Promise<Result> {
    const batch = (this.#open ??= this.#openBatch())
    const index = batch.items.push(item) - 1
    if (batch.items.length === this.#maxBatchItems) this.#open = undefined
    const result = (await batch.results)[index]
    if (result === undefined) throw new Error('the commit gave no result for this item')
    if (result instanceof Error) throw result
    return result
  }

  /** Runs the task alone, after everything that came before it. */
  run<T>(task: () => Promise<T>): Promise<T> {
    // Items added from now on form a new batch, after the task.
    this.#open = undefined
    const done = this.#last.then(task)
    this.#last = done.catch(() => {})
    return done
  }

  #openBatch(): Batch<Item, Result> {
    const items: Item[] = []
    const results = this.run(async () => {
      // In an idle queue this runs right after the first item was added, while the requests of the same turn of the event loop are
      // still being handled. Their items can join: the next tick comes after all promise callbacks that are due.
      await new Promise<void>((resolve) => clock.nextTick(resolve))
      if (this.#open?.items === items) this.#open = undefined
      return this.#commit(items)
    })
    return { items, results }
  }
}

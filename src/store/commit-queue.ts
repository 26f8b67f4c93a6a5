/**
 * Group commit: items that come while a batch is being committed form the next batch. Batches and tasks run
 * one at a time, in the order in which they came; a batch that fails rejects only its own callers.
 */
import { clock } from '../system/clock.ts'

/** A result or an error for each item, in order. */
type Results<Result> = Promise<readonly (Result | Error)[]>

/** If `commit` rejects, the whole batch has failed. */
export function createCommitQueue<Item, Result>(
  commit: (items: readonly Item[]) => Results<Result>,
  maxBatchItems: number,
) {
  /** This batch still takes items. */
  let open: { readonly items: Item[]; readonly results: Results<Result> } | undefined
  let last: Promise<unknown> = Promise.resolve()

  function run<T>(task: () => Promise<T>): Promise<T> {
    open = undefined
    const done = last.then(task)
    last = done.catch(() => {})
    return done
  }

  function startBatch() {
    const items: Item[] = []
    const results = run(async () => {
      // Other requests of this turn of the event loop are still being handled. Their items can join: this is
      // a promise callback, and the next tick comes after all that are due
      // (https://nodejs.org/api/process.html#when-to-use-queuemicrotask-vs-processnexttick).
      await new Promise<void>((resolve) => clock.nextTick(resolve))
      if (open?.items === items) open = undefined
      return commit(items)
    })
    return { items, results }
  }

  async function add(item: Item): Promise<Result> {
    open ??= startBatch()
    const batch = open
    const index = batch.items.length
    batch.items.push(item)
    if (batch.items.length === maxBatchItems) open = undefined
    const result = (await batch.results)[index]
    if (result === undefined) throw new Error('the commit gave no result for this item')
    if (result instanceof Error) throw result
    return result
  }

  return { add, run }
}

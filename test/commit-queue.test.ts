/** Group commit: what shares a batch, who is settled by which, and in what order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCommitQueue } from '../src/store/commit-queue.ts'
import { createGate } from './file-system.ts'

const double = (items: readonly number[]): number[] => items.map((item) => item * 2)

test('puts what comes together into one batch, and what comes meanwhile into the next', async () => {
  const batches: (readonly number[])[] = []
  const gate = createGate()
  const queue = createCommitQueue<number, number>(async (items) => {
    batches.push(items)
    if (batches.length === 1) await gate.pass()
    return double(items)
  }, 100)
  const first = [queue.add(1), queue.add(2)]
  await gate.reached
  const second = [queue.add(3), queue.add(4), queue.add(5)]
  gate.open()
  assert.deepEqual(await Promise.all([...first, ...second]), [2, 4, 6, 8, 10])
  assert.deepEqual(batches, [
    [1, 2],
    [3, 4, 5],
  ])
})

test('splits what is more than a batch may hold', async () => {
  const sizes: number[] = []
  const queue = createCommitQueue<number, number>(async (items) => {
    sizes.push(items.length)
    return double(items)
  }, 4)
  const results = await Promise.all(Array.from({ length: 10 }, (_, index) => queue.add(index)))
  assert.deepEqual(results, double(Array.from({ length: 10 }, (_, index) => index)))
  assert.deepEqual(sizes, [4, 4, 2])
})

test('fails the callers of a failed batch, and nobody else', async () => {
  let count = 0
  const gate = createGate()
  const queue = createCommitQueue<string, string>(async (items) => {
    if (count++ > 0) return items
    await gate.pass()
    throw new Error('disk')
  }, 100)
  const failed = [queue.add('a'), queue.add('b')].map((promise) => assert.rejects(promise, /^Error: disk$/))
  await gate.reached
  const next = queue.add('c')
  gate.open()
  await Promise.all(failed)
  assert.equal(await next, 'c')
})

test('fails one caller of a batch alone when its result is an error', async () => {
  const queue = createCommitQueue<number, number>(
    async (items) => items.map((item) => (item === 2 ? new Error('no') : item)),
    100,
  )
  const [one, two, three] = await Promise.allSettled([queue.add(1), queue.add(2), queue.add(3)])
  assert.deepEqual([one?.status, two?.status, three?.status], ['fulfilled', 'rejected', 'fulfilled'])
})

test('fails the callers for which a commit gives no result', async () => {
  const queue = createCommitQueue<number, number>(async (items) => items.slice(0, 1), 100)
  const [one, two] = [queue.add(1), queue.add(2)]
  assert.equal(await one, 1)
  await assert.rejects(two, /^Error: the commit gave no result for this item$/)
})

test('survives a commit and a task that throw before they return a promise', async () => {
  let isBroken = true
  const queue = createCommitQueue<number, number>((items) => {
    if (isBroken) throw new Error('at once')
    return Promise.resolve(items)
  }, 100)
  await assert.rejects(queue.add(1), /at once/)
  const task = queue.run(() => {
    throw new Error('task')
  })
  await assert.rejects(task, /task/)
  isBroken = false
  assert.equal(await queue.add(2), 2)
})

test('keeps the order of items and tasks, so that a task sees everything before it done', async () => {
  const done: (number | string)[] = []
  const queue = createCommitQueue<number, number>(async (items) => {
    done.push(...items)
    return items
  }, 2)
  const all = [queue.add(1), queue.add(2), queue.add(3)]
  const task = queue.run(async () => done.push('task'))
  await Promise.all([...all, task, queue.add(4)])
  assert.deepEqual(done, [1, 2, 3, 'task', 4])
})

/**
 * The interface as a black-box suite: every sentence of it that a response can keep or break, under its section.
 *
 * With `PETSTORE_URL` (the base address; `/v1` is appended when it does not end so) and `PETSTORE_API_KEY` it verifies any
 * running implementation; without them it starts this one. Where the interface is silent, any success
 * and any 4xx is accepted.
 *
 * It needs no data to begin with and removes none. It adds animals: about 140 on the first run, so that a full page can be told from a
 * short one, and 60 on each later one. The interface has no way to delete them; at the end the
 * suite tries DELETE, which some servers offer.
 */
import { after, describe, test } from 'node:test'
import { defineCases } from './contract-cases.ts'
import { createClient, PlainError } from './contract-client.ts'
import { openTarget, type Target } from './contract-target.ts'
import { limitEachTest } from './time-limit.ts'

limitEachTest()

describe('The pet store interface, version 1.0.0', async () => {
  let target: Target
  try {
    target = await openTarget(process.env)
  } catch (error) {
    test('can be verified', () => Promise.reject(error))
    return
  }
  console.log(target.words)
  const { cleanUp, summarize } = defineCases(createClient(target.base, target.key), { describe, test })
  // A failure, since a runner prints these at the very end, the last one last.
  test('Summary: there is nothing to fix', () => {
    const summary = summarize()
    if (summary !== undefined) throw new PlainError(summary)
  })
  after(async () => {
    await cleanUp()
    await target.close()
  })
})

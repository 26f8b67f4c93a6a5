import { afterEach, expect, test, vi } from 'vitest'
import { startPetStore } from 'petstore'
import { sendRequests } from './requests.cjs'

afterEach(() => vi.useRealTimers())

// Not queueMicrotask: without it, fetch gets no answer from any server.
test.each([undefined, { toFake: ['setImmediate'] }, { toFake: ['performance', 'Date'], now: 0 }])(
  'answers while the timers are fake: %o',
  async (config) => {
    expect(await sendRequests(startPetStore, () => vi.useFakeTimers(config))).toEqual([201, 200, 401])
  },
)

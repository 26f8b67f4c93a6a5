const { startPetStore } = require('petstore')
const { sendRequests } = require('./requests.cjs')

afterEach(() => jest.useRealTimers())

// By default Jest fakes everything, also process.nextTick.
test.each([undefined, { now: 0 }])('answers while the timers are fake: %o', async (config) => {
  expect(await sendRequests(startPetStore, () => jest.useFakeTimers(config))).toEqual([201, 200, 401])
})

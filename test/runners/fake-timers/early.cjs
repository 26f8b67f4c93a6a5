// The timers are fake already: by the configuration, or by a line that stands above these.
const { startPetStore } = require('petstore')
const { sendRequests } = require('./requests.cjs')

test('answers where the timers were fake before it was loaded', async () => {
  expect('clock' in setTimeout).toBe(true)
  expect(await sendRequests(startPetStore, () => {})).toEqual([201, 200, 401])
})

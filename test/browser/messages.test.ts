/** What the page says when something is wrong, where, and for how long. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { petLines } from './fixtures.ts'
import { enterKey, findRow, readTable, startStore, visitStore, waitForPolls, waitForText } from './store.ts'

test('asks for the key again when it is no longer good, and keeps what was typed', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByLabel('name').fill('half a na')
  const body = JSON.stringify({ code: 'unauthorized', message: 'Not any more.', status: 401 })
  await page.route('**/v1/pets*', (route) => route.fulfill({ status: 401, body }), { times: 1 })
  await waitForText(page.locator('#key-error'), 'Not any more.')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'key')
  await enterKey(page)
  await findRow(page, 'Rex').waitFor()
  assert.equal(await page.getByLabel('name').inputValue(), 'half a na')
})

test('says when the server does not answer, and goes on by itself when it does again', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.route('**/v1/pets*', (route) => route.abort('connectionrefused'))
  await waitForText(
    page.locator('#store-error'),
    `No response from ${new URL(url).host}. Is the server running? Retrying automatically.`,
  )
  await waitForText(page.locator('#connection'), 'Not connected')
  await page.getByLabel('name').fill('Rex')
  await page.getByRole('button', { name: 'Add pet' }).click()
  await waitForText(page.locator('#add-error'), 'No response: it is not known whether the pet was added.')
  await page.unroute('**/v1/pets*')
  await waitForText(page.locator('#connection'), 'Watching for changes')
  assert.equal(await page.locator('#store-error').textContent(), '')
})

test('says what the service says when it cannot store, for as long as only another try can tell', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const message = 'There is no room left.'
  const body = JSON.stringify({ code: 'insufficient_storage', message, status: 507 })
  await page.route('**/v1/pets', (route) => route.fulfill({ status: 507, body }))
  await page.getByRole('button', { name: 'Add pet' }).click()
  await waitForText(page.locator('#add-error'), message)
  await waitForPolls(page, 2)
  assert.equal(await page.locator('#add-error').innerText(), message)
})

test('shows that the data file has an error and where, until it is fixed', async (t) => {
  const { url, edit, editText } = await startStore(t)
  const page = await visitStore(t, url)
  const connection = page.locator('#connection')
  assert.equal(await connection.getAttribute('data-state'), 'live')
  await editText(`{"pets":[\n${petLines[0]},\n]}\n`)
  await waitForText(connection, /^Data file error: line 3, column 1(: .+)?\. Showing the last valid data\.$/)
  assert.equal(await connection.getAttribute('data-state'), 'invalid')
  await readTable(page, 10)
  await edit(petLines.slice(0, 2))
  await waitForText(connection, 'Watching for changes')
  assert.equal(await connection.getAttribute('data-state'), 'live')
  await readTable(page, 2)
})

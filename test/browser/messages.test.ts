/** What the page says when something is wrong, where, and for how long. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { startPetStore } from '../../src/index.ts'
import { petLines } from './fixtures.ts'
import {
  enterKey,
  findRow,
  readTable,
  readWire,
  startStore,
  visitStore,
  waitForPolls,
  waitForText,
} from './store.ts'

const expired = 'This key no longer works; the server may have been restarted. Open the link that it printed.'

test('says what to do after a restart with another key, and blames no field', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const pets = petLines.map((line) => JSON.parse(line))
  const restarted = await startPetStore({ apiKeys: ['another-key'], pets })
  t.after(() => restarted.close())
  await page.route('**/v1/pets*', async (route) => {
    const response = await route.fetch({ url: route.request().url().replace(url, restarted.url) })
    await route.fulfill({ response })
  })
  await waitForText(page.locator('#store-error'), expired)
  assert.equal(await page.locator('#key-error').textContent(), '')
  assert.equal(await page.getByLabel('API key').getAttribute('aria-invalid'), null)
  assert.match(await readWire(page, 'response'), /^HTTP\/1\.1 401 Unauthorized\n/)
  await enterKey(page, 'wrong')
  await waitForText(page.locator('#key-error'), 'The API key is not valid.')
  assert.equal(await page.locator('#store-error').textContent(), '')
  await page.goto(`${url}/#key=another-key`)
  await findRow(page, 'Rex').waitFor()
  assert.equal(await page.locator('#key-error').textContent(), '')
  await page.unrouteAll({ behavior: 'ignoreErrors' })
})

test('says so too when the tab is loaded anew with a key that no longer works', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  // Elsewhere first, so that no poll of the old page takes the refusal.
  await page.goto('about:blank')
  await refuseKeyOnce(page)
  await page.goto(url)
  await waitForText(page.locator('#store-error'), expired)
  assert.equal(await page.locator('#key-error').textContent(), '')
})

test('asks for the key again when it is no longer good, and keeps what was typed', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.locator('#add').getByLabel('name').fill('half a na')
  const body = JSON.stringify({ code: 'unauthorized', message: 'Not any more.', status: 401 })
  await page.route('**/v1/pets*', (route) => route.fulfill({ status: 401, body }), { times: 1 })
  await waitForText(page.locator('#store-error'), 'This key no longer works')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'key')
  await enterKey(page)
  await findRow(page, 'Rex').waitFor()
  assert.equal(await page.locator('#add').getByLabel('name').inputValue(), 'half a na')
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
  await page.locator('#add').getByLabel('name').fill('Rex')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#add-error'), 'No response: it is not known whether the pet was added.')
  await page.unroute('**/v1/pets*')
  await waitForText(page.locator('#connection'), 'Watching for changes')
  assert.equal(await page.locator('#store-error').textContent(), '')
  // Whether it was added is as unknown as before.
  assert.match((await page.locator('#add-error').textContent()) ?? '', /^No response: it is not known/)
})

test('says what the service says when it cannot store, for as long as only another try can tell', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const message = 'There is no room left.'
  const body = JSON.stringify({ code: 'insufficient_storage', message, status: 507 })
  await page.route('**/v1/pets', (route) => route.fulfill({ status: 507, body }))
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#add-error'), message)
  await waitForPolls(page, 2)
  assert.equal(await page.locator('#add-error').innerText(), message)
})

test('takes an error back when another key is entered', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#name-error'), 'is required')
  await refuseKeyOnce(page)
  await page.getByLabel('API key').waitFor()
  await enterKey(page)
  await findRow(page, 'Rex').waitFor()
  assert.equal(await page.locator('.error').filter({ hasText: /./ }).count(), 0)
  assert.equal(await page.locator('[aria-invalid]').count(), 0)
})

test('takes the error of a creation back when the data file is valid again', async (t) => {
  const { url, edit, editText } = await startStore(t)
  const page = await visitStore(t, url)
  const error = page.locator('#add-error')
  await editText(`{"pets":[\n${petLines[0]},\n]}\n`)
  await waitForText(page.locator('#connection'), 'Data file error')
  await page.locator('#add').getByLabel('name').fill('Zoe')
  await page.locator('#add').getByLabel('categoryId').fill('1')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(error, /line 3, column 1/)
  await waitForPolls(page, 2)
  assert.match(await error.innerText(), /line 3, column 1/)
  await edit(petLines)
  await waitForText(page.locator('#connection'), 'Watching for changes')
  assert.equal(await error.textContent(), '')
  assert.equal(await page.locator('#add').getByLabel('name').inputValue(), 'Zoe')
})

test('corrects the error of a creation when the data file gets another fault', async (t) => {
  const { url, editText } = await startStore(t)
  const page = await visitStore(t, url)
  const error = page.locator('#add-error')
  await editText(`{"pets":[\n${petLines[0]},\n]}\n`)
  await waitForText(page.locator('#connection'), 'line 3, column 1')
  await page.locator('#add').getByLabel('name').fill('Zoe')
  await page.locator('#add').getByLabel('categoryId').fill('1')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(error, 'The data file is not valid (line 3, column 1')
  await editText(`{"pets":[\n${petLines[0]},\n${petLines[1]},\n]}\n`)
  await waitForText(page.locator('#connection'), 'line 4, column 1')
  await waitForText(error, /^The data file is not valid \(line 4, column 1[^]*\); nothing was stored\.$/)
})

test('says how many more errors the data file has, beside the list and in the form', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const fault = 'line 7, column 3: expected a pet, got "\\u00e9" (and 3 more errors)'
  const shown = 'line 7, column 3: expected a pet, got "é" (and 3 more errors)'
  await page.route('**/v1/pets?*', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, headers: { ...response.headers(), 'x-data-file-error': fault } })
  })
  const connection = page.locator('#connection[data-state=invalid]')
  await waitForText(connection, `Data file error: ${shown}. Showing the last valid data.`)
  const message = `The data file is not valid (${fault}); nothing was stored.`
  const body = JSON.stringify({ code: 'data_file_invalid', message, status: 503 })
  await page.route('**/v1/pets', (route) => route.fulfill({ status: 503, body }))
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForPolls(page, 2)
  await waitForText(page.locator('#add-error'), `The data file is not valid (${shown}); nothing was stored.`)
  await page.unrouteAll({ behavior: 'ignoreErrors' })
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

test('shows the characters for which a header has escapes, but none that would not be seen', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const reason = String.raw`line 7, column 3: expected a pet, got "\u00e9 \ud83d\udc36 \u202e \\u0041"`
  const shown = String.raw`line 7, column 3: expected a pet, got "é 🐶 \u202e \\u0041"`
  await page.route('**/v1/pets?*', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, headers: { ...response.headers(), 'x-data-file-error': reason } })
  })
  const connection = page.locator('#connection[data-state=invalid]')
  await connection.waitFor()
  assert.equal(await connection.innerText(), `Data file error: ${shown}. Showing the last valid data.`)
  const message = `The data file is not valid (${reason}); nothing was stored.`
  const body = JSON.stringify({ code: 'data_file_invalid', message, status: 503 })
  await page.route('**/v1/pets', (route) => route.fulfill({ status: 503, body }))
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await page.locator('#add-error:not(:empty)').waitFor()
  assert.equal(
    await page.locator('#add-error').innerText(),
    `The data file is not valid (${shown}); nothing was stored.`,
  )
  await page.unrouteAll({ behavior: 'ignoreErrors' })
})

async function refuseKeyOnce(page: Page): Promise<void> {
  const body = JSON.stringify({ code: 'unauthorized', message: 'The API key is not valid.', status: 401 })
  await page.route('**/v1/pets?*', (route) => route.fulfill({ status: 401, body }), { times: 1 })
}

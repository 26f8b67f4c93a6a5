/** The reference: what a first visit shows, before any key. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { petStatuses } from '../../src/pet/pet.ts'
import { key, petLines } from './fixtures.ts'
import {
  enterKey,
  findRow,
  readClipboard,
  splitAsShell,
  startStore,
  visit,
  visitStore,
  waitForText,
} from './store.ts'

test('shows each operation on a first visit, without a key', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const titles = page.getByRole('article').getByRole('heading', { level: 3 })
  await titles.first().waitFor()
  const { paths } = JSON.parse(await (await fetch(`${url}/openapi.json`)).text())
  const operations = Object.values<object>(paths).flatMap((methods) => Object.values(methods))
  assert.deepEqual(
    await titles.allInnerTexts(),
    operations.map(({ summary }) => summary),
  )
  assert.equal(await page.getByRole('table').isVisible(), false)
  assert.equal(await page.getByLabel('API key').isVisible(), true)
})

test('describes the parameters and responses of each operation', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const list = page.getByRole('article', { name: 'List pets' })
  await waitForText(list, 'limit optional')
  await waitForText(list, 'integer, 1 to 100, 20 by default, in the query')
  const add = page.getByRole('article', { name: 'Add a pet' })
  await waitForText(add, 'categoryId required')
  const { paths } = JSON.parse(await (await fetch(`${url}/openapi.json`)).text())
  const codes = Object.keys(paths['/pets'].post.responses).map((code) => code.replace('default', 'other'))
  assert.deepEqual(await add.locator('.responses dt').allInnerTexts(), codes)
  await waitForText(add.locator('.responses'), 'The API key is missing or not valid.')
  const values = list.locator('datalist option')
  assert.deepEqual(
    await values.evaluateAll((all) => all.map((one) => one.getAttribute('value'))),
    petStatuses,
  )
})

test('leads to the schemas in openapi.json', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const link = page.getByRole('link', { name: 'Schemas, in openapi.json' })
  const response = await fetch((await link.getAttribute('href')) ?? '')
  assert.ok('NewPet' in JSON.parse(await response.text()).components.schemas)
})

test('says since when getPet is deprecated and when it goes', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const get = page.getByRole('article', { name: 'Get a pet' })
  await waitForText(get, 'Deprecated since 21 November 2026; scheduled for removal on 5 December 2030.')
  assert.deepEqual(
    await get.locator('time').evaluateAll((times) => times.map((time) => time.getAttribute('datetime'))),
    ['2026-11-21', '2030-12-05'],
  )
})

test('gives each operation a curl for this very address, which a shell reads as meant', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url, { permissions: ['clipboard-read'] })
  const copyAndSplit = async (name: string): Promise<readonly string[]> => {
    await page.getByRole('button', { name: `Copy: curl for ${name}` }).click()
    return splitAsShell(await readClipboard(page))
  }
  const placeholder = ['-H', 'Authorization: Bearer <API_KEY>']
  assert.deepEqual(await copyAndSplit('List pets'), ['-i', `${url}/v1/pets`, ...placeholder])
  assert.deepEqual(await copyAndSplit('Get a pet'), ['-i', `${url}/v1/pets/1`, ...placeholder])
  await enterKey(page)
  await page.getByRole('table').waitFor()
  assert.deepEqual(await copyAndSplit('Add a pet'), [
    '-i',
    `${url}/v1/pets`,
    '-H',
    `Authorization: Bearer ${key}`,
    '-H',
    'Content-Type: application/json',
    '-d',
    '{"name":"Pip","categoryId":3}',
  ])
})

test('lists pets from the form of the operation, and shows the response as the wire does', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const list = page.getByRole('article', { name: 'List pets' })
  await list.getByLabel('limit').fill('2')
  await list.getByLabel('status').fill('sold')
  await list.getByLabel('after').fill('2')
  await waitForText(list.getByRole('group', { name: 'curl' }), '/v1/pets?limit=2&status=sold&after=2')
  const { status, body } = await tryOut(page, 'List pets')
  assert.match(status, /^GET \/v1\/pets\?limit=2&status=sold&after=2: 200 OK, \d+ ms$/)
  assert.equal(
    body,
    '[\n{"id":7,"name":"Kiki","categoryId":3,"status":"sold"},\n{"id":12,"name":"Pip","categoryId":5,"status":"sold"}\n]',
  )
  await list.getByText(/^\d+ headers$/).click()
  await waitForText(list.locator('.message'), 'x-total-count: 3')
})

test('shows the refusal of a wrong value as the service words it', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByRole('article', { name: 'List pets' }).getByLabel('limit').fill('0')
  const { status, body } = await tryOut(page, 'List pets')
  assert.match(status, /: 400 Bad Request, /)
  const { text } = await request(`${url}/v1/pets?limit=0`)
  assert.deepEqual(JSON.parse(body), JSON.parse(text))
})

test('adds a pet from the form of the operation, with its numbers to the digit', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const add = page.getByRole('article', { name: 'Add a pet' })
  await add.getByLabel('name').fill('123')
  await add.getByLabel('categoryId').fill('9223372036854775807')
  await add.getByLabel('status').fill('sold')
  const created = await tryOut(page, 'Add a pet')
  assert.match(created.status, /^POST \/v1\/pets: 201 Created, /)
  assert.equal(
    created.body.replaceAll(/\s/g, ''),
    '{"id":13,"name":"123","categoryId":9223372036854775807,"status":"sold"}',
  )
  await page.getByLabel('Per page').selectOption('20')
  await findRow(page, '123').waitFor()
  await add.getByLabel('name').fill('')
  await add.getByLabel('categoryId').fill('x')
  const refused = await tryOut(page, 'Add a pet')
  assert.match(refused.status, /: 400 Bad Request, /)
  const { text } = await request(`${url}/v1/pets`, '{"categoryId":"x","status":"sold"}')
  assert.deepEqual(JSON.parse(refused.body), JSON.parse(text))
})

test('gets a pet by an id that a number of JavaScript would round', async (t) => {
  const line = '{"id":9223372036854775806,"name":"Big","categoryId":-9223372036854775808,"status":"sold"}'
  const { url } = await startStore(t, [petLines[0] ?? '', line])
  const page = await visitStore(t, url)
  const get = page.getByRole('article', { name: 'Get a pet' })
  assert.equal(await get.getByLabel('petId').inputValue(), '1')
  await get.getByLabel('petId').fill('9223372036854775806')
  const { status, body } = await tryOut(page, 'Get a pet')
  assert.match(status, /^GET \/v1\/pets\/9223372036854775806: 200 OK, /)
  assert.equal(body.replaceAll(/\s/g, ''), line)
})

test('shows the 401 of each operation without a key, and no response of a key that is forgotten', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const titles = page.getByRole('article').getByRole('heading', { level: 3 })
  await titles.first().waitFor()
  for (const title of await titles.allInnerTexts()) {
    const { status, body } = await tryOut(page, title)
    assert.match(status, /: 401 Unauthorized, /)
    assert.equal(JSON.parse(body).code, 'unauthorized')
  }
  await enterKey(page)
  await findRow(page, 'Rex').waitFor()
  assert.match((await tryOut(page, 'Get a pet')).body, /Rex/)
  await page.getByRole('button', { name: 'Forget key' }).click()
  await page.getByLabel('API key').waitFor()
  assert.doesNotMatch((await page.locator('main').textContent()) ?? '', /Rex/)
})

test('keeps the key off the screen until it is to be shown', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  await enterKey(page)
  await page.getByRole('table').waitFor()
  assert.equal((await page.locator('body').innerText()).includes(key), false)
  await page.getByRole('button', { name: 'Show key' }).click()
  await waitForText(page.getByRole('group', { name: 'curl: List pets' }), `Bearer ${key}`)
  await waitForText(page.locator('#wire-request'), `Bearer ${key}`)
  await page.getByRole('button', { name: 'Hide key' }).click()
  await page.getByRole('button', { name: 'Show key' }).waitFor()
  assert.equal((await page.locator('body').innerText()).includes(key), false)
})

test('offers to try again when the document cannot be read', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  await page.route('**/openapi.json', (route) => route.fulfill({ body: 'not JSON' }), { times: 1 })
  await page.goto(url)
  await waitForText(page.locator('#reference'), 'openapi.json could not be read')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('article', { name: 'List pets' }).waitFor()
})

/** Presses the button of an operation, and reads what then stands beneath its form. */
async function tryOut(
  page: Page,
  title: string,
): Promise<{ readonly status: string; readonly body: string }> {
  const article = page.getByRole('article', { name: title })
  const button = article.getByRole('button', { name: 'Try it' })
  const answered = page.waitForResponse((response) => !response.request().url().includes('limit=10'))
  await button.click()
  await (await answered).finished()
  await article.locator('.primary:not([aria-disabled=true])').waitFor()
  const status = await article.getByRole('status').innerText()
  return { status, body: (await article.locator('.message .body').textContent()) ?? '' }
}

/** What the service answers outside a browser. */
async function request(url: string, body?: string): Promise<{ readonly text: string }> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(url, body === undefined ? { headers } : { method: 'POST', headers, body })
  return { text: await response.text() }
}

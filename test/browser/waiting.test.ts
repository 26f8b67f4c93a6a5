/** What the page shows while the service takes its time, and which requests it says are its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { key, petLines } from './fixtures.ts'
import {
  enterKey,
  findRow,
  holdRequests,
  readTable,
  readWire,
  startStore,
  visit,
  visitStore,
  waitForPolls,
  waitForText,
} from './store.ts'

const waiting = 'Waiting for the service …'
const firstRequest = 'GET /v1/pets?limit=10: waiting for the response'

for (const way of ['a link', 'the form', 'a reload'] as const) {
  test(`shows that the store opens with the key of ${way}, and asks for no other key`, async (t) => {
    const { url } = await startStore(t)
    const page = await (way === 'a reload' ? visitStore(t, url) : visit(t, 'about:blank'))
    // Elsewhere first, so that no poll of the old page is held.
    await page.goto('about:blank')
    const release = await holdRequests(page, 'GET')
    await page.goto(way === 'a link' ? `${url}/#key=${key}` : url)
    if (way === 'the form') await enterKey(page)
    await waitForText(page.getByRole('status'), waiting)
    assert.equal(await page.getByLabel('API key').isVisible(), false)
    await waitForText(page.locator('#wire-summary'), firstRequest)
    assert.equal(await page.getByText('Nothing has been sent yet.').isVisible(), false)
    assert.match(await readWire(page, 'request'), /^GET \/v1\/pets\?limit=10 HTTP\/1\.1\n/)
    assert.match(await readWire(page, 'response'), /^Waiting for the response …\n/)
    await release()
    await readTable(page, 10)
    await expectNoWaiting(page)
    await waitForText(page.locator('#wire-summary'), /: 200 OK, \d+ ms$/)
  })
}

test('asks for the key again when the awaited response refuses it', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  const release = await holdRequests(page, 'GET')
  await page.goto(`${url}/#key=wrong`)
  await waitForText(page.getByRole('status'), waiting)
  await release()
  await waitForText(page.locator('#key-error'), 'The API key is not valid.')
  assert.equal(await page.getByText(waiting).and(page.locator(':visible')).count(), 0)
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'key')
})

test('waits no longer once the key is forgotten', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  const release = await holdRequests(page, 'GET')
  await page.goto(`${url}/#key=${key}`)
  await waitForText(page.getByRole('status'), waiting)
  await page.getByRole('button', { name: 'Forget key' }).click()
  await page.getByLabel('API key').waitFor()
  assert.equal(await page.getByText(waiting).and(page.locator(':visible')).count(), 0)
  await waitForText(page.getByRole('region', { name: 'On the wire' }), 'Nothing has been sent yet.')
  await release()
})

test('shows that another page of the list is awaited, and asks for it once', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const table = page.getByRole('table')
  const next = page.getByRole('button', { name: 'Next' })
  const release = await holdRequests(page, 'GET')
  const pages: string[] = []
  page.on('request', (request) => {
    // On a busy machine, the page has already looked for changes when these are counted.
    const isPoll = request.headers()['x-petstore-page'] === 'poll'
    if (!isPoll && request.url().includes('after=10')) pages.push(request.url())
  })
  await next.click()
  await waitForText(page.getByRole('status'), waiting)
  assert.equal(await table.getAttribute('aria-busy'), 'true')
  assert.equal(await next.getAttribute('aria-disabled'), 'true')
  await waitForText(page.locator('#wire-summary'), 'GET /v1/pets?limit=10&after=10: waiting for the response')
  await next.click({ force: true })
  await release()
  await readTable(page, 2)
  await expectNoWaiting(page)
  assert.equal(pages.length, 1)
  assert.equal(await table.getAttribute('aria-busy'), 'false')
  const releaseFirst = await holdRequests(page, 'GET')
  await page.getByRole('button', { name: 'Previous' }).click()
  await waitForText(page.getByRole('status'), waiting)
  // Whoever does not want to wait chooses something else.
  await page.getByRole('radio', { name: 'sold' }).check()
  await waitForText(page.locator('#wire-summary'), 'limit=10&status=sold: waiting for the response')
  await releaseFirst()
  await readTable(page, 3)
  await expectNoWaiting(page)
  await page.getByRole('button', { name: 'Earlier', exact: true }).click()
  await waitForText(page.locator('#wire-summary'), 'GET /v1/pets?limit=10&after=10: 200 OK')
})

test('shows that a creation is awaited, sends it once, and says that the pet is there before the list is', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const add = page.getByRole('button', { name: 'Add a pet', exact: true })
  let creations = 0
  page.on('request', (request) => {
    if (request.method() === 'POST') creations++
  })
  const releaseCreation = await holdRequests(page, 'POST')
  await page.locator('#add').getByLabel('name').fill('Zoe')
  await page.locator('#add').getByLabel('categoryId').fill('1')
  await add.click()
  await waitForText(page.locator('#added'), waiting)
  assert.equal(await page.locator('#added').getAttribute('role'), 'status')
  assert.equal(await add.getAttribute('aria-disabled'), 'true')
  assert.equal(await page.locator('#add').getAttribute('aria-busy'), 'true')
  await waitForText(page.locator('#wire-summary'), 'POST /v1/pets: waiting for the response')
  await add.click({ force: true })
  await page.locator('#add').getByLabel('name').press('Enter')
  const releaseList = await holdRequests(page, 'GET')
  await releaseCreation()
  await waitForText(page.locator('#added'), /^Added Zoe with the id 13\.$/)
  assert.equal(await add.getAttribute('aria-disabled'), 'false')
  await releaseList()
  await waitForText(page.locator('#added'), 'It is not on the page shown.')
  assert.equal(creations, 1)
})

test('marks the requests that it makes by itself, and none that a person asked for', async (t) => {
  const { url, edit } = await startStore(t)
  const page = await visit(t, 'about:blank')
  const marks = new Map<string, unknown>()
  page.on('request', (request) => {
    const mark = request.headers()['x-petstore-page']
    marks.set(`${request.method()} ${new URL(request.url()).pathname} ${mark}`, mark)
  })
  await page.goto(url)
  await enterKey(page)
  await readTable(page, 10)
  await page.getByRole('button', { name: 'Next' }).click()
  await page.locator('#add').getByLabel('name').fill('Zoe')
  await page.locator('#add').getByLabel('categoryId').fill('1')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#added'), 'Added Zoe')
  await page.waitForRequest((request) => request.headers()['x-petstore-page'] === 'poll')
  assert.equal([...marks.keys()].filter((line) => line.endsWith(' poll')).join(), 'GET /v1/pets poll')
  await edit([...petLines, '{"id":50,"name":"Rexina","categoryId":1}'])
  await findRow(page, 'Rexina').waitFor()
  assert.match(await readWire(page, 'request'), /\nx-petstore-page: poll\n/i)
})

async function expectNoWaiting(page: Page): Promise<void> {
  await waitForText(page.locator('#connection'), 'Watching for changes')
  assert.equal(await page.getByText(waiting).and(page.locator(':visible')).count(), 0)
}

test('dims the pets of another filter while the chosen one cannot be shown, and watches nothing meanwhile', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const opacity = (): Promise<string> =>
    page.locator('#rows').evaluate((rows) => getComputedStyle(rows).opacity)
  const body = JSON.stringify({ code: 'storage_failed', message: 'The storage failed.', status: 503 })
  await page.route('**/v1/pets*status=sold*', (route) => route.fulfill({ status: 503, body }))
  await page.getByRole('radio', { name: 'sold' }).check()
  await waitForText(page.locator('#connection'), 'Not up to date')
  await waitForText(page.locator('#store-error'), 'The storage failed.')
  await waitForPolls(page, 2)
  assert.equal(await page.locator('#connection').textContent(), 'Not up to date')
  assert.equal(await opacity(), '0.5')
  await page.unroute('**/v1/pets*status=sold*')
  await waitForText(page.locator('#connection'), 'Watching for changes')
  await readTable(page, 3)
  assert.equal(await opacity(), '1')
})

test('does not keep a key that has never worked', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const release = await holdRequests(page, 'GET')
  await enterKey(page, 'mistyped')
  await page.locator('#key-bar').waitFor()
  await page.reload()
  await page.getByLabel('API key').waitFor()
  await release()
  await enterKey(page, 'mistyped')
  await waitForText(page.locator('#key-error'), 'The API key is not valid.')
  assert.equal(await page.locator('#store-error').textContent(), '')
})

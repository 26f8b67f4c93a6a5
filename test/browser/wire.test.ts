/** The panel that shows what went over the wire: which exchanges it shows, in what form, and what it copies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { key, petLines } from './fixtures.ts'
import {
  findRow,
  readClipboard,
  readTable,
  readWire,
  splitAsShell,
  startStore,
  visit,
  visitStore,
  waitForPolls,
  waitForText,
} from './store.ts'

test('shows the response that brought a hand edit, and leaves out polls that changed nothing', async (t) => {
  const { url, edit } = await startStore(t)
  const page = await visitStore(t, url)
  await waitForText(page.getByRole('region', { name: 'On the wire' }), 'Unchanged polls are left out.')
  await edit(petLines.map((line) => line.replace('"Rex"', '"Rexina"')))
  await waitForText(findRow(page, 'Rexina'), 'changed')
  assert.match(await readWire(page, 'response'), /"Rexina"/)
  await waitForPolls(page, 2)
  await press(page, 'Earlier')
  assert.match(await readWire(page, 'response'), /"Rex"/)
  assert.equal(await isOver(page, 'Earlier'), true)
})

test('keeps a creation in view, and the list that then showed the pet one step later', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByLabel('Per page').selectOption('20')
  await readTable(page, 12)
  await page.locator('#add').getByLabel('name').fill('Zoe')
  await page.locator('#add').getByLabel('categoryId').fill('1')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(findRow(page, 'Zoe'), 'new')
  await waitForText(page.locator('#wire-summary'), /^POST \/v1\/pets: 201 Created, \d+ ms$/)
  await press(page, 'Later')
  await waitForText(page.locator('#wire-summary'), /^GET \/v1\/pets\?limit=20: 200 OK, \d+ ms$/)
  assert.match(await readWire(page, 'response'), /"Zoe"/)
  assert.equal(await isOver(page, 'Later'), true)
  await press(page, 'Earlier')
  assert.match(await readWire(page, 'response'), /^HTTP\/1\.1 201 Created\n/)
})

test('shows X-Data-File-Error when a hand edit is not valid', async (t) => {
  const { url, editText } = await startStore(t)
  const page = await visitStore(t, url)
  await editText(`{"pets":[\n${petLines[0]},\n]}\n`)
  await waitForText(page.locator('#connection'), 'Data file error')
  assert.match(await readWire(page, 'response'), /\nx-data-file-error: line 3, column 1/)
})

test('shows once that a server has gone, and once that it is back', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.route('**/v1/pets*', (route) => route.abort('connectionrefused'))
  await waitForText(page.locator('#wire-summary'), /^GET \/v1\/pets\?limit=10: no response/)
  assert.equal(await readWire(page, 'response'), 'No response.\n\n')
  await page.unroute('**/v1/pets*')
  await waitForText(page.locator('#wire-summary'), /^GET \/v1\/pets\?limit=10: 200 OK/)
  await press(page, 'Earlier')
  await waitForText(page.locator('#wire-summary'), 'no response')
  await press(page, 'Earlier')
  await waitForText(page.locator('#wire-summary'), '200 OK')
  assert.equal(await isOver(page, 'Earlier'), true)
})

test('folds the headers, so that the body is seen first, and keeps them unfolded for the next exchange', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url, { viewport: { width: 1280, height: 720 } })
  const header = page.locator('#wire-response').getByText('x-total-count: 12')
  assert.equal(await header.isVisible(), false)
  const { y = 0 } = (await page.locator('#wire-response .body').boundingBox()) ?? {}
  assert.ok(y > 0 && y < 600, `the body begins at ${y} px`)
  await page.locator('#wire-response summary').click()
  await header.waitFor()
  await page.getByRole('radio', { name: 'sold' }).check()
  await page.locator('#wire-response').getByText('x-total-count: 3').waitFor()
})

test('forgets all that it showed with the key', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByRole('button', { name: 'Forget key' }).click()
  const panel = page.getByRole('region', { name: 'On the wire' })
  await waitForText(panel, 'Nothing has been sent yet.')
  assert.equal((await panel.textContent())?.includes('Findus'), false)
  assert.equal(await isOver(page, 'Earlier'), true)
})

function press(page: Page, name: string): Promise<void> {
  return page.getByRole('button', { name, exact: true }).click()
}

async function isOver(page: Page, name: string): Promise<boolean> {
  return (await page.getByRole('button', { name, exact: true }).getAttribute('aria-disabled')) === 'true'
}

test('copies request, answer and curl as they went over the wire', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url, { permissions: ['clipboard-read'] })
  await page.locator('#add').getByLabel('name').fill("Rex's friend")
  await page.locator('#add').getByLabel('categoryId').fill('9007199254740993')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#added'), 'Added')
  const body = '{"name":"Rex\'s friend","categoryId":9007199254740993}'
  const headers = [
    `Authorization: Bearer ${key}`,
    'Accept: application/json',
    'Content-Type: application/json',
  ]
  await page.getByRole('button', { name: 'Copy: request' }).click()
  assert.equal(
    await readClipboard(page),
    ['POST /v1/pets HTTP/1.1', `Host: ${new URL(url).host}`, ...headers, '', body].join('\n'),
  )
  await page.getByRole('button', { name: 'Copy as curl: request' }).click()
  assert.deepEqual(splitAsShell(await readClipboard(page)), [
    '-i',
    `${url}/v1/pets`,
    ...headers.flatMap((header) => ['-H', header]),
    '-d',
    body,
  ])
  await page.getByRole('button', { name: 'Copy: response' }).click()
  assert.match(
    await readClipboard(page),
    /^HTTP\/1\.1 201 Created\n[^]*\n\n\{"id":13,"name":"Rex's friend","categoryId":9007199254740993,"status":"available"\}$/,
  )
})

test('copies without the clipboard interface too, which plain http in a local network lacks', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  await page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }))
  await page.goto(url)
  await page.getByRole('button', { name: 'Copy: base address' }).click()
  await waitForText(page.getByRole('navigation', { name: 'Reference' }), 'Copied')
  await page.getByLabel('API key').focus()
  await page.keyboard.press('Control+V')
  assert.equal(await page.getByLabel('API key').inputValue(), `${url}/v1`)
})

test('indents what a line of a header or of the body goes on with below', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url, { viewport: { width: 1280, height: 900 } })
  for (const fold of await page.locator('#wire summary').all()) await fold.click()
  const indents = await page.locator('#wire-response .line').evaluateAll((lines) =>
    lines.flatMap((line) => {
      const range = document.createRange()
      range.selectNodeContents(line)
      const lefts = [...range.getClientRects()].filter(({ width }) => width > 0)
      const start = lefts[0]
      const below = lefts.filter(({ top }) => start !== undefined && top > start.bottom - 2)
      return below.length === 0 ? [] : [Math.min(...below.map(({ left }) => left)) - (start?.left ?? 0)]
    }),
  )
  assert.ok(indents.length > 0)
  for (const indent of indents) assert.ok(indent > 10, String(indents))
})

/** The reference: what a first visit shows, before any key. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { petStatuses } from '../../src/pet/pet.ts'
import { key } from './fixtures.ts'
import { enterKey, readClipboard, splitAsShell, startStore, visit, waitForText } from './store.ts'

test('shows the three operations on a first visit, without a key', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const titles = page.getByRole('article').getByRole('heading', { level: 3 })
  await titles.nth(2).waitFor()
  assert.deepEqual(await titles.allInnerTexts(), ['List animals', 'Add an animal', 'Get an animal'])
  assert.equal(await page.getByRole('table').isVisible(), false)
  assert.equal(await page.getByLabel('API key').isVisible(), true)
})

test('describes the parameters and responses of each operation', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const list = page.getByRole('article', { name: 'List animals' })
  await waitForText(list, 'limit optional')
  await waitForText(list, 'integer, 1 to 100, 20 by default, in the query')
  const add = page.getByRole('article', { name: 'Add an animal' })
  await waitForText(add, 'categoryId required')
  assert.deepEqual(await add.locator('summary b').allInnerTexts(), [
    '201',
    '400',
    '401',
    '413',
    '415',
    '503',
    '507',
    'other',
  ])
  await add.getByText('The API key is missing or not valid.').click()
  await waitForText(add, '"code":"unauthorized"')
  await waitForText(add, 'WWW-Authenticate: Bearer realm="petstore"')
  await waitForText(page.locator('#schemas'), petStatuses.join(', '))
})

test('says since when getPet is deprecated and when it goes', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const get = page.getByRole('article', { name: 'Get an animal' })
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
  assert.deepEqual(await copyAndSplit('List animals'), [
    '-i',
    `${url}/v1/pets?limit=20&status=sold`,
    ...placeholder,
  ])
  assert.deepEqual(await copyAndSplit('Get an animal'), ['-i', `${url}/v1/pets/1`, ...placeholder])
  await enterKey(page)
  await page.getByRole('table').waitFor()
  assert.deepEqual(await copyAndSplit('Add an animal'), [
    '-i',
    `${url}/v1/pets`,
    '-H',
    `Authorization: Bearer ${key}`,
    '-H',
    'Content-Type: application/json',
    '-d',
    '{"name":"Pip","categoryId":3,"status":"pending"}',
  ])
})

test('shows sold pets only in the example beside a request for sold pets', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const list = page.getByRole('article', { name: 'List animals' })
  await waitForText(list, '?limit=20&status=sold')
  const example = JSON.parse((await list.locator('.examples > pre').last().textContent()) ?? '')
  assert.deepEqual(new Set(example.map(({ status }: { status: string }) => status)), new Set(['sold']))
})

test('keeps the key off the screen until it is to be shown', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  await enterKey(page)
  await page.getByRole('table').waitFor()
  assert.equal((await page.locator('body').innerText()).includes(key), false)
  await page.getByRole('button', { name: 'Show key' }).click()
  await waitForText(page.getByRole('group', { name: 'curl: List animals' }), `Bearer ${key}`)
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
  await page.getByRole('article', { name: 'List animals' }).waitFor()
})

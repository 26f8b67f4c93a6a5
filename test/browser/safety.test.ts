/** What the page may do and load, how big it is, what it waits for, and that the bundle has it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Locator } from 'playwright-core'
import { createPetStore } from '../../src/index.ts'
import { petLines, key } from './fixtures.ts'
import { enterKey, findRow, root, startProgram, startStore, visit, visitStore, waitForText } from './store.ts'

const maxPageBytes = 60 * 1024

test('allows its own script and style by their hashes, and nothing else', async (t) => {
  const { url } = await startStore(t)
  const { headers } = await fetch(url)
  const hash = "'sha256-[\\w+/]{43}='"
  const policy = [
    "default-src 'none'",
    `script-src ${hash}`,
    `style-src ${hash}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
  assert.match(headers.get('content-security-policy') ?? '', new RegExp(`^${policy}$`))
  assert.equal(headers.get('referrer-policy'), 'no-referrer')
})

test('loads nothing but itself, the document and the list', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  const urls = new Set<string>()
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) urls.add(request.url())
  })
  await page.goto(url)
  await enterKey(page)
  await findRow(page, 'Rex').waitFor()
  assert.deepEqual([...urls].toSorted(), [`${url}/`, `${url}/openapi.json`, `${url}/v1/pets?limit=10`])
})

test('shows markup in a name as text', async (t) => {
  const name = '<img src=x onerror=alert(1)>'
  const { url } = await startStore(t, [
    petLines[0] ?? '',
    `{"id":2,"name":"${name}","categoryId":1}`,
    `{"id":3,"name":"</script><script>alert(1)</script>","categoryId":1}`,
  ])
  const page = await visitStore(t, url)
  page.on('dialog', () => assert.fail('A script of the data ran.'))
  await findRow(page, name).waitFor()
  await findRow(page, '</script><script>alert(1)</script>').waitFor()
  await page.locator('#add').getByLabel('name').fill(name)
  await page.locator('#add').getByLabel('categoryId').fill(name)
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#categoryId-error'), name)
  await page.locator('#add').getByLabel('categoryId').fill('1')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#added'), `Added ${name}`)
  assert.equal(await page.locator('img, main script').count(), 0)
})

test('keeps a right-to-left override in a name from turning around what follows it', async (t) => {
  const name = 'abc\u202edef'
  const { url, edit } = await startStore(t)
  const page = await visitStore(t, url)
  await edit([petLines[0] ?? '', `{"id":2,"name":"${name}","categoryId":12345,"status":"sold"}`])
  const row = findRow(page, name)
  await waitForText(row, 'changed')
  await expectLeftToRight(row.locator('td.name'), 'changed')
  for (const isFormatted of [true, false]) {
    await page.getByLabel('One item per line').setChecked(isFormatted)
    await expectLeftToRight(page.locator('#wire-response .body'), '","categoryId":12345,"')
  }
  await page.locator('#add').getByLabel('name').fill(name)
  await page.locator('#add').getByLabel('categoryId').fill('1')
  const body = JSON.stringify({ code: 'x', message: `No room for "${name}" at 12:30.`, status: 507 })
  await page.route('**/v1/pets', (route) => route.fulfill({ status: 507, body }), { times: 1 })
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await expectLeftToRight(page.locator('#add-error'), ' at 12:30.')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await expectLeftToRight(page.locator('#added'), ' with the id 13.')
})

/** Fails when the characters of the text are not drawn one after the other, each line from left to right. */
async function expectLeftToRight(locator: Locator, text: string): Promise<void> {
  await waitForText(locator, text)
  const lefts = await locator.evaluate((element, wanted) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
    const range = document.createRange()
    const characters: { character: string; left: number; top: number }[] = []
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      for (const [i, character] of [...(node.nodeValue ?? '')].entries()) {
        range.setStart(node, i)
        range.setEnd(node, i + 1)
        const { left, top } = range.getBoundingClientRect()
        characters.push({ character, left, top })
      }
    }
    const start = characters
      .map(({ character }) => character)
      .join('')
      .lastIndexOf(wanted)
    return characters.slice(start, start + wanted.length).map(({ left, top }) => [top, left])
  }, text)
  assert.equal(lefts.length, text.length)
  assert.deepEqual(
    lefts,
    lefts.toSorted(
      ([top = 0, left = 0], [otherTop = 0, otherLeft = 0]) => Math.round(top - otherTop) || left - otherLeft,
    ),
    text,
  )
}

test('says nothing about a file while the pets may be in a database', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  assert.doesNotMatch(
    await page.locator('header, .intro, #store, footer').allInnerTexts().then(String),
    /file/i,
  )
})

test('is at most 60 KB with script and style', async (t) => {
  const { url } = await startStore(t)
  const { byteLength } = await (await fetch(url)).arrayBuffer()
  t.diagnostic(`${byteLength} bytes`)
  assert.ok(byteLength <= maxPageBytes, `${byteLength} bytes`)
})

test('paints before anything but the page itself has been received', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  // Never answered: a page that waited for it would stay blank.
  await page.route('**/openapi.json', () => {})
  await page.goto(url)
  const milliseconds = await page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        new PerformanceObserver((list) => {
          for (const { name, startTime } of list.getEntries()) {
            if (name === 'first-contentful-paint') resolve(startTime)
          }
        }).observe({ type: 'paint', buffered: true })
      }),
  )
  t.diagnostic(`first contentful paint after ${Math.round(milliseconds)} ms`)
})

test('is the same from the bundle, which works alone', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-bundle-'))
  t.after(() => rm(folder, { recursive: true }))
  execFileSync(process.execPath, ['--import', 'tsx', 'src/build.ts', folder], {
    cwd: root,
    env: { PATH: process.env['PATH'] },
  })
  const source = await startStore(t)
  const bundleUrl = await startProgram(t, join(folder, 'server.js'))
  const pages = [await fetch(source.url), await fetch(bundleUrl)]
  const [first, second] = await Promise.all(pages.map((page) => page.text()))
  assert.equal(first, second)
  assert.equal(
    pages[0]?.headers.get('content-security-policy'),
    pages[1]?.headers.get('content-security-policy'),
  )
  await visitStore(t, bundleUrl)
})

test('works under a path of another app, with or without the slash', async (t) => {
  const pets = petLines.map((line) => JSON.parse(line))
  const store = await createPetStore({ apiKeys: [key], pets, basePath: '/shop' })
  const server = createServer((request, response) => {
    // As apps do that mount: the listener sees the path below it.
    request.url = (request.url ?? '').replace(/^\/shop\/?/, '/')
    store.listener(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.close()
    server.closeAllConnections()
    await store.close()
  })
  // listen() was given a port, so it is no path.
  const { port } = server.address() as AddressInfo
  for (const path of ['/shop', '/shop/']) {
    const page = await visitStore(t, `http://127.0.0.1:${port}${path}`)
    await page.getByRole('button', { name: 'Next' }).click()
    await findRow(page, 'Shelly').waitFor()
    await waitForText(page.locator('#listPets'), `http://127.0.0.1:${port}/shop/v1/pets`)
    const schemas = page.getByRole('link', { name: 'Schemas' })
    assert.equal(await schemas.getAttribute('href'), `http://127.0.0.1:${port}/shop/openapi.json`)
    await waitForText(page.locator('#getPet .route'), '/shop/v1/pets/{petId}')
    const linked = await visit(t, `http://127.0.0.1:${port}${path}#key=${key}`)
    await findRow(linked, 'Rex').waitFor()
    assert.equal(linked.url(), `http://127.0.0.1:${port}${path}`)
  }
})

/** The store on the page: the key, the list, the form, and the watch over the data file. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultStatus, petStatuses } from '../../src/pet/pet.ts'
import { petLines, key } from './fixtures.ts'
import {
  enterKey,
  findRow,
  readTable,
  readWire,
  startStore,
  visit,
  visitStore,
  waitForText,
} from './store.ts'

test('refuses a wrong key in the words of the service, and opens with the right one', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  await enterKey(page, 'wrong')
  await waitForText(page.locator('#key-error'), 'The API key is not valid.')
  assert.match(await readWire(page, 'response'), /^HTTP\/1\.1 401 Unauthorized\n[^]*www-authenticate: Bearer/)
  assert.equal(await page.getByLabel('API key').getAttribute('aria-invalid'), 'true')
  await enterKey(page)
  await findRow(page, 'Rex').waitFor()
  assert.equal(await page.getByLabel('API key').isVisible(), false)
})

test('says so when a key cannot be sent at all', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  await enterKey(page, 'schlüssel')
  await waitForText(page.locator('#key-error'), 'This cannot be sent')
})

test('takes the word Bearer off a key, typed or in a link', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  await enterKey(page, `Bearer ${key}`)
  await findRow(page, 'Rex').waitFor()
  assert.match(await page.evaluate(() => JSON.stringify(sessionStorage)), new RegExp(`"${key}"`))
  const linked = await visit(t, `${url}/#key=bearer%20${key}`)
  await findRow(linked, 'Rex').waitFor()
})

test('says that a key has a space', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  await enterKey(page, 'demo key')
  await waitForText(page.locator('#key-error'), 'This cannot be sent: it has a space, and a key consists of')
})

test('keeps the key for this tab only, over a reload, until it is forgotten', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.reload()
  await findRow(page, 'Rex').waitFor()
  assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie]), [0, ''])
  const other = await page.context().newPage()
  await other.goto(url)
  await other.getByLabel('API key').waitFor()
  await page.getByRole('button', { name: 'Forget key' }).click()
  await page.getByLabel('API key').waitFor()
  assert.equal(await page.evaluate(() => sessionStorage.length), 0)
  assert.equal((await page.locator('body').innerText()).includes('Findus'), false)
})

test('shows the pets as a table with a chip for each status', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const rows = await readTable(page, 10)
  assert.deepEqual(rows.slice(0, 3), [
    '1 | Rex | 1 | available',
    '2 | Mia | 2 | sold',
    '3 | Coco | 3 | pending',
  ])
  assert.deepEqual(await page.getByRole('columnheader').allInnerTexts(), ['Id', 'Name', 'Category', 'Status'])
  await findRow(page, 'Mia').locator('.chip[data-status=sold]').waitFor()
})

test('filters by status', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByRole('radio', { name: 'sold' }).check()
  assert.deepEqual(await readTable(page, 3), [
    '2 | Mia | 2 | sold',
    '7 | Kiki | 3 | sold',
    '12 | Pip | 5 | sold',
  ])
  await waitForText(page.locator('#count'), '3 pets')
  assert.match(await readWire(page, 'request'), /^GET \/v1\/pets\?limit=10&status=sold HTTP\/1\.1\n/)
})

test('says which filter has no hits', async (t) => {
  const { url } = await startStore(t, petLines.slice(0, 2))
  const page = await visitStore(t, url)
  await page.getByRole('radio', { name: 'pending' }).check()
  await page.getByText('No pets with the status pending.', { exact: true }).waitFor()
})

test('follows the Link header page by page, and finds back', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByLabel('Per page').selectOption('5')
  await waitForText(page.locator('#count'), '1–5 of 12')
  assert.match(await readWire(page, 'response'), /\nlink: <\/v1\/pets\?limit=5&after=5>; rel="next"\n/)
  const next = page.getByRole('button', { name: 'Next' })
  await next.click()
  await findRow(page, 'Nemo').waitFor()
  assert.match(await readWire(page, 'request'), /^GET \/v1\/pets\?limit=5&after=5 HTTP/)
  await next.click()
  await waitForText(page.locator('#count'), '11–12 of 12')
  assert.equal(await next.getAttribute('aria-disabled'), 'true')
  await page.getByRole('button', { name: 'Previous' }).click()
  await waitForText(page.locator('#count'), '6–10 of 12')
  assert.equal((await readTable(page, 5))[0], '6 | Nemo | 4 | available')
})

test('adds a pet and shows it in the list', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByLabel('Per page').selectOption('20')
  await page.locator('#add').getByLabel('name').fill("Rex's friend")
  await page.locator('#add').getByLabel('categoryId').fill('7')
  await page.locator('#add').getByLabel('status').selectOption('pending')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#added'), "Added Rex's friend with the id 13.")
  await waitForText(findRow(page, "Rex's friend"), 'new')
  assert.equal(await page.locator('#add').getByLabel('name').inputValue(), '')
  assert.match(await readWire(page, 'response'), /^HTTP\/1\.1 201 Created\n[^]*\nlocation: \/v1\/pets\/13\n/)
})

test('shows each message of a 400 at the field that it names', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  const categoryId = page.locator('#add').getByLabel('categoryId')
  await categoryId.fill('1.5')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#name-error'), 'is required')
  await waitForText(page.locator('#categoryId-error'), 'expected an int64 integer, got 1.5')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'name')
  assert.equal(await categoryId.getAttribute('aria-invalid'), 'true')
  await page.locator('#add').getByLabel('name').fill('Rex')
  await categoryId.fill('1')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#added'), 'Added Rex')
  assert.equal(await page.locator('.error').filter({ hasText: /./ }).count(), 0)
  assert.equal(await page.locator('[aria-invalid]').count(), 0)
})

for (const typed of ['5; name: "x"', `"${'x'.repeat(80)}`, 'x\\"; status: y']) {
  test(`does not take ${JSON.stringify(typed)} in a message for a message of its own`, async (t) => {
    const { url } = await startStore(t)
    const page = await visitStore(t, url)
    await page.locator('#add').getByLabel('name').fill('Rex')
    await page.locator('#add').getByLabel('categoryId').fill(typed)
    await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
    const text = JSON.stringify(typed)
    const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text
    await page.getByText(`expected an int64 integer, got ${shown}`, { exact: true }).waitFor()
    assert.equal(await page.locator('.error').filter({ hasText: /./ }).count(), 1)
  })
}

test('keeps big integers exact in the table and on the wire', async (t) => {
  const big = '{"id":9007199254740993,"name":"Rex","categoryId":-9223372036854775808,"status":"sold"}'
  const { url } = await startStore(t, [big])
  const page = await visitStore(t, url)
  assert.deepEqual(await readTable(page, 1), ['9007199254740993 | Rex | -9223372036854775808 | sold'])
  assert.ok((await readWire(page, 'response')).endsWith(`\n[\n${big}\n]`))
  await page.locator('#add').getByLabel('name').fill('Big')
  await page.locator('#add').getByLabel('categoryId').fill('9223372036854775807')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#added'), 'Added Big with the id 9007199254740994.')
  assert.equal((await readTable(page, 2))[1], '9007199254740994 | Big new | 9223372036854775807 | available')
  assert.match(await readWire(page, 'request'), /"categoryId":9223372036854775807\n/)
})

test('pages on from an id that no number holds', async (t) => {
  const names = ['Rex', 'Mia', 'Coco', 'Bello', 'Luna', 'Nemo']
  const pets = names.map((name, i) => `{"id":900719925474099${i + 2},"name":"${name}","categoryId":1}`)
  const { url } = await startStore(t, pets)
  const page = await visitStore(t, url)
  await page.getByLabel('Per page').selectOption('5')
  await waitForText(page.locator('#count'), '1–5 of 6')
  await page.getByRole('button', { name: 'Next' }).click()
  assert.deepEqual(await readTable(page, 1), ['9007199254740997 | Nemo | 1 | available'])
  assert.match(await readWire(page, 'request'), /after=9007199254740996 HTTP/)
})

test('folds a name of 1,000 characters, with the whole of it at a click', async (t) => {
  const long = 'A name that goes on. '.repeat(50).slice(0, 1000)
  const { url } = await startStore(t, [
    petLines[0] ?? '',
    `{"id":2,"name":"${long}","categoryId":1}`,
    `{"id":3,"name":"${'line\\n'.repeat(40)}","categoryId":1}`,
  ])
  for (const width of [390, 1280]) {
    const page = await visitStore(t, url, { viewport: { width, height: 844 } })
    for (const row of [page.locator('#rows tr').nth(1), page.locator('#rows tr').nth(2)]) {
      const measure = async (): Promise<number> => (await row.boundingBox())?.height ?? 0
      const folded = await measure()
      assert.ok(folded > 70 && folded < 160, `${folded} px`)
      await row.locator('summary').click()
      assert.ok((await measure()) > 300, 'the whole name')
      await row.locator('summary').click()
      assert.equal(await measure(), folded)
    }
    const message = page.locator('#added')
    await page.locator('#add').getByLabel('name').fill(long)
    await page.locator('#add').getByLabel('categoryId').fill('1')
    await page.locator('#add').getByLabel('categoryId').press('Enter')
    await waitForText(message, 'with the id')
    const { height = 0 } = (await message.boundingBox()) ?? {}
    assert.ok(height > 60 && height < 160, `${height} px`)
  }
})

test('keeps a name unfolded while another pet changes', async (t) => {
  const lines = [petLines[0] ?? '', `{"id":2,"name":"${'long '.repeat(100)}","categoryId":1}`]
  const { url, edit } = await startStore(t, lines)
  const page = await visitStore(t, url)
  await page.locator('#rows summary').click()
  await edit([...lines, '{"id":3,"name":"Zoe","categoryId":1}'])
  await findRow(page, 'Zoe').waitFor()
  await page.locator('#rows details[open]').waitFor()
})

test('shows that a name is of spaces, or of nothing that is seen', async (t) => {
  const { url } = await startStore(t, [
    petLines[0] ?? '',
    '{"id":2,"name":"","categoryId":1}',
    '{"id":3,"name":"   ","categoryId":1}',
    String.raw`{"id":4,"name":"\u00a0\u200b\n","categoryId":1}`,
    '{"id":5,"name":" a ","categoryId":1}',
  ])
  const page = await visitStore(t, url)
  await readTable(page, 5)
  assert.deepEqual(await page.locator('td.name').allInnerTexts(), [
    'Rex',
    'empty name',
    'blank name, length 3',
    'blank name, length 3',
    ' a ',
  ])
})

test('shows hand edits of the data file without a reload, and keeps what is being typed', async (t) => {
  const { url, edit } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByLabel('Per page').selectOption('20')
  await readTable(page, 12)
  await page.locator('#add').getByLabel('name').fill('half a na')
  await edit([
    ...petLines.slice(0, 10).map((line) => line.replace('"Rex"', '"Rexina"')),
    '{"id":14,"name":"Zoe","categoryId":1}',
  ])
  await waitForText(findRow(page, 'Zoe'), 'new')
  await waitForText(findRow(page, 'Rexina'), 'changed')
  await waitForText(page.locator('#count'), '11 pets (1 new, 1 changed, 2 gone)')
  assert.equal(await page.locator('#add').getByLabel('name').inputValue(), 'half a na')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'name')
})

test('does not ask while nobody looks, and asks at once when somebody does', async (t) => {
  const { url, edit } = await startStore(t)
  const page = await visit(t, url)
  await page.clock.install()
  await enterKey(page)
  await findRow(page, 'Rex').waitFor()
  await setHidden(true)
  let requests = 0
  page.on('request', () => requests++)
  await page.clock.runFor(60_000)
  assert.equal(requests, 0)
  await edit(['{"id":1,"name":"Seen","categoryId":1,"status":"sold"}'])
  await setHidden(false)
  await page.waitForResponse((response) => response.ok())
  assert.equal(requests, 1)

  function setHidden(isHidden: boolean): Promise<void> {
    return page.evaluate((value) => {
      Object.defineProperty(document, 'hidden', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, isHidden)
  }
})

test('opens with the key of a link, and leaves no trace of the key in address, history and title', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  await page.goto(`${url}/#key=${key}`)
  await findRow(page, 'Rex').waitFor()
  assert.equal(page.url(), `${url}/`)
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'list-title')
  await page.goBack()
  await page.goForward()
  assert.equal(page.url(), `${url}/`)
  assert.equal(await page.title(), 'Petstore')
  await findRow(page, 'Rex').waitFor()
})

test('opens with the key of a link that is followed in a tab with the page', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  await page.goto(`${url}/#key=wrong`)
  await waitForText(page.locator('#key-error'), 'The API key is not valid.')
  await page.goto(`${url}/#key=${key}`)
  await findRow(page, 'Rex').waitFor()
  assert.equal(page.url(), `${url}/`)
  await page.goBack()
  await page.goBack()
  assert.doesNotMatch(page.url(), /key/)
})

for (const fragment of ['schl%C3%BCssel', 'two%20words', 'schlüssel']) {
  test(`says so when the key of a link cannot be sent: ${fragment}`, async (t) => {
    const { url } = await startStore(t)
    const page = await visit(t, `${url}/#key=${fragment}`)
    await waitForText(page.locator('#key-error'), 'This cannot be sent')
    assert.equal(page.url(), `${url}/`)
  })
}

test('says that an added pet is not on the page shown only while that is so', async (t) => {
  const { url, edit } = await startStore(t)
  const page = await visitStore(t, url)
  const added = page.locator('#added')
  const add = async (name: string): Promise<void> => {
    await page.locator('#add').getByLabel('name').fill(name)
    await page.locator('#add').getByLabel('categoryId').fill('1')
    await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
    await waitForText(added, `Added ${name}`)
  }
  await add('Zoe')
  await waitForText(added, /^Added Zoe with the id 13\. It is not on the page shown\. Go to its page$/)
  await page.getByRole('radio', { name: 'sold' }).check()
  await readTable(page, 3)
  assert.match(await added.innerText(), /It is not on the page shown/)
  await page.getByRole('radio', { name: 'All' }).check()
  await readTable(page, 10)
  await page.getByRole('button', { name: 'Next' }).click()
  await readTable(page, 3)
  await waitForText(added, /^Added Zoe with the id 13\.$/)
  await page.getByRole('radio', { name: 'pending' }).check()
  await readTable(page, 2)
  await add('Bob')
  await edit(petLines)
  await page.locator('#added:empty').waitFor({ state: 'attached' })
})

for (const [status, rows, viewport] of [
  ['All', 10, { width: 1280, height: 720 }],
  ['sold', 3, { width: 390, height: 844 }],
] as const) {
  test(`has a link in view to an added pet that is not on the page shown, ${status} at ${viewport.width} px`, async (t) => {
    const { url } = await startStore(t)
    const page = await visitStore(t, url, { viewport })
    await page.getByRole('radio', { name: status }).check()
    await readTable(page, rows)
    await page.locator('#add').getByLabel('name').fill('Zoe')
    await page.locator('#add').getByLabel('categoryId').fill('1')
    await page.locator('#add').getByLabel('categoryId').press('Enter')
    const link = page.locator('#added').getByRole('link', { name: 'Go to its page' })
    await link.waitFor()
    const { y = 0, height = 0 } = (await link.boundingBox()) ?? {}
    assert.ok(y >= 0 && y + height <= viewport.height, `the link is at ${y} px`)
    await link.click()
    assert.deepEqual(await readTable(page, 1), ['13 | Zoe | 1 | available'])
    await waitForText(page.locator('#count'), /^13 of 13$/)
    await waitForText(page.locator('#added'), /^Added Zoe with the id 13\.$/)
    assert.equal(await page.getByRole('radio', { name: 'All' }).isChecked(), true)
    const { y: rowTop = 0 } = (await findRow(page, 'Zoe').boundingBox()) ?? {}
    assert.ok(rowTop >= 0 && rowTop < viewport.height, `the row is at ${rowTop} px`)
    await page.getByRole('button', { name: 'Previous' }).click()
    await waitForText(page.locator('#count'), '1–10 of 13')
  })
}

test('has the statuses of the service to filter by and to choose from, one more as well', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  const document = JSON.parse(await (await fetch(`${url}/openapi.json`)).text())
  document.components.schemas.PetStatus.enum.push('another')
  await page.route('**/openapi.json', (route) => route.fulfill({ json: document }))
  const pet = { id: 1, name: 'Rex', categoryId: 1, status: 'another' }
  await page.route('**/v1/pets?*', (route) => route.fulfill({ json: [pet] }))
  await page.goto(url)
  await enterKey(page)
  await findRow(page, 'Rex').locator('.chip[data-status=another]').waitFor()
  assert.deepEqual(await page.locator('#filter label:has([type=radio])').allInnerTexts(), [
    'All',
    ...petStatuses,
    'another',
  ])
  assert.deepEqual(await page.locator('#status option').allInnerTexts(), [
    `(none: ${defaultStatus})`,
    ...petStatuses,
    'another',
  ])
  const [request] = await Promise.all([
    page.waitForRequest('**/v1/pets?*status=another'),
    page.getByRole('radio', { name: 'another' }).check(),
  ])
  assert.equal(new URL(request.url()).search, '?limit=10&status=another')
})

test('lists and adds without the document', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, 'about:blank')
  let answer: (() => Promise<void>) | undefined
  await page.route('**/openapi.json', (route) => {
    answer = () => route.continue()
  })
  await page.goto(url)
  await enterKey(page)
  await readTable(page, 10)
  assert.equal(await page.getByRole('radio').count(), 1)
  await page.locator('#add').getByLabel('name').fill('Zoe')
  await page.locator('#add').getByLabel('categoryId').fill('1')
  await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
  await waitForText(page.locator('#added'), 'Added Zoe')
  await answer?.()
  await page.getByRole('radio', { name: 'sold' }).check()
  await readTable(page, 3)
})

test('shows the beginning of the next page when the end of a long one was in view', async (t) => {
  const { url } = await startStore(t, [...petLines, ...many(100)])
  const page = await visitStore(t, url, { viewport: { width: 1280, height: 500 } })
  await page.getByLabel('Per page').selectOption('100')
  await readTable(page, 100)
  await page.getByRole('button', { name: 'Next' }).click()
  await readTable(page, 12)
  await page.waitForFunction(() => {
    const { top, bottom } = document.getElementById('list-title')?.getBoundingClientRect() ?? new DOMRect()
    return top >= 0 && bottom <= innerHeight
  })
})

test('tells a page beyond the end from an empty store', async (t) => {
  const { url, edit } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByRole('button', { name: 'Next' }).click()
  await readTable(page, 2)
  await edit(petLines.slice(0, 10))
  await page.getByText('No pets on this page.').waitFor()
  await edit([])
  await page.getByText('No pets.', { exact: true }).waitFor()
})

test('goes back in one step from a page beyond the end, over the empty ones before it', async (t) => {
  const { url, edit } = await startStore(t, [...petLines, ...many(20)])
  const page = await visitStore(t, url)
  await page.getByLabel('Per page').selectOption('5')
  for (const count of ['6–10', '11–15', '16–20', '21–25']) {
    await page.getByRole('button', { name: 'Next' }).click()
    await waitForText(page.locator('#count'), `${count} of 32`)
  }
  await edit(petLines.slice(0, 7))
  await page.getByText('No pets on this page.').waitFor()
  const previous = page.getByRole('button', { name: 'Previous' })
  await previous.click()
  await waitForText(page.locator('#count'), '6–7 of 7')
  await edit([])
  await page.getByText('No pets.', { exact: true }).waitFor()
  await previous.click()
  await page.locator('#previous[aria-disabled="true"]').waitFor()
})

test('puts the label of a number beside it at 390 px', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url, { viewport: { width: 390, height: 844 } })
  const gaps = await page.locator('td.id, td.category').evaluateAll((cells) =>
    cells.map((cell) => {
      const { marginRight } = getComputedStyle(cell, '::before')
      return Number.parseFloat(marginRight) + Number.parseFloat(getComputedStyle(cell).columnGap)
    }),
  )
  assert.equal(gaps.length, 20)
  for (const gap of gaps) assert.ok(gap > 0 && gap < 16, String(gaps))
})

/** So many pets more than there are at first. */
function many(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `{"id":${13 + i},"name":"Pet","categoryId":1}`)
}

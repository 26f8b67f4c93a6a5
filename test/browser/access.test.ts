/** Whether everybody can use the page: both themes, both widths, without a mouse, with a screen reader. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import axe from 'axe-core'
import type { Locator, Page } from 'playwright-core'
import { petLines, key } from './fixtures.ts'
import { enterKey, findRow, readTable, startStore, visit, visitStore, waitForText } from './store.ts'

for (const colorScheme of ['light', 'dark'] as const) {
  for (const width of [360, 1440]) {
    const options = { colorScheme, viewport: { width, height: 800 } }

    test(`has no violation that axe finds, ${colorScheme} at ${width} px`, async (t) => {
      const { url } = await startStore(t)
      const first = await visit(t, url, options)
      await unfoldReference(first)
      assert.deepEqual(await findViolations(first), [])
      const page = await visitStore(t, url, options)
      await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
      await waitForText(page.locator('#name-error'), 'is required')
      await page.locator('details').evaluateAll((all) => all.forEach((one) => one.setAttribute('open', '')))
      await page.getByRole('button', { name: 'Next' }).hover()
      assert.deepEqual(await findViolations(page), [])
    })

    test(`fits the width, whatever the data, ${colorScheme} at ${width} px`, async (t) => {
      const long = `{"id":9223372036854775806,"name":"${'W'.repeat(200)}","categoryId":-9223372036854775808}`
      const { url } = await startStore(t, [petLines[0] ?? '', long])
      const page = await visitStore(t, url, options)
      await page.locator('details').evaluateAll((all) => all.forEach((one) => one.setAttribute('open', '')))
      await page.locator('#add').getByLabel('categoryId').fill('w'.repeat(60))
      await page.getByRole('button', { name: 'Add a pet', exact: true }).click()
      await waitForText(page.locator('#categoryId-error'), 'expected')
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width)
    })
  }
}

test('needs no scrolling sideways at any width from 320 px', async (t) => {
  const { url } = await startStore(t, [
    petLines[0] ?? '',
    '{"id":9223372036854775806,"name":"Long","categoryId":-9223372036854775808}',
  ])
  const page = await visitStore(t, url)
  await page.getByRole('article', { name: 'List pets' }).waitFor()
  for (const width of [320, 480, 639, 640, 768, 1024, 1087, 1088, 1279, 1280, 1920]) {
    await page.setViewportSize({ width, height: 800 })
    const parts = await page.evaluate(() => {
      const wide = [document.documentElement, ...document.querySelectorAll('.card, pre, table, td')]
      return wide
        .filter((one) => one.scrollWidth > one.clientWidth + 1)
        .map((one) => one.outerHTML.slice(0, 80))
    })
    assert.deepEqual(parts, [], `${width} px`)
  }
})

test('has targets of 44 px for fingers at 360 px', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url, { viewport: { width: 360, height: 740 } })
  await unfoldReference(page)
  const small = await page
    .locator('button, input:not([type=checkbox]), select, summary, .check, nav a')
    .evaluateAll((all) =>
      all
        .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 43.9)
        .map((one) => one.outerHTML),
    )
  assert.deepEqual(small, [])
})

test('leads to what went over the wire where that is out of sight, and nowhere else', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url, { viewport: { width: 360, height: 740 } })
  const link = page.getByRole('link', { name: 'GET /v1/pets?limit=10: 200 OK' })
  await link.click()
  await page.locator('#wire-request').waitFor()
  assert.equal(new URL(page.url()).hash, '#wire-title')
  await page.setViewportSize({ width: 1440, height: 900 })
  assert.equal(await link.isVisible(), false)
})

test('begins with the pets on a phone, and folds the reference until somebody asks for it', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url, { viewport: { width: 390, height: 844 } })
  const { y = Infinity } = (await findRow(page, 'Rex').boundingBox()) ?? {}
  assert.ok(y < 520, `the first pet begins at ${y} px`)
  const article = page.locator('#listPets')
  await article.waitFor({ state: 'attached' })
  assert.equal(await article.isVisible(), false)
  await page.getByRole('link', { name: 'Reference' }).click()
  await article.waitFor()
  await page.getByRole('heading', { name: 'Reference' }).click()
  await article.waitFor({ state: 'hidden' })
  await page.getByRole('link', { name: 'Reference' }).click()
  await article.waitFor()
})

test('breaks no label in two at 390 px, however long the number beside it', async (t) => {
  const { url } = await startStore(t, [
    petLines[0] ?? '',
    '{"id":9007199254740993,"name":"Long","categoryId":-9223372036854775808}',
  ])
  const page = await visitStore(t, url, { viewport: { width: 390, height: 844 } })
  // A label that does not shrink is as wide as it is alone.
  const widths = await page
    .locator('td.category')
    .evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, '::before').width))
  assert.equal(widths.length, 2)
  assert.equal(widths[0], widths[1])
})

for (const width of [320, 390]) {
  test(`breaks no number of 16 digits at ${width} px`, async (t) => {
    const { url } = await startStore(t, [
      petLines[0] ?? '',
      '{"id":9007199254740991,"name":"Long","categoryId":9007199254740993}',
    ])
    const page = await visitStore(t, url, { viewport: { width, height: 844 } })
    const lines = await page.locator('td.id, td.category').evaluateAll((cells) =>
      cells.map((cell) => {
        const range = document.createRange()
        range.selectNodeContents(cell)
        return range.getClientRects().length
      }),
    )
    assert.deepEqual(lines, [1, 1, 1, 1])
  })
}

for (const width of [390, 1280]) {
  test(`has the numbers in columns, aligned on the right, at ${width} px`, async (t) => {
    const { url } = await startStore(t, [
      petLines[0] ?? '',
      '{"id":1234,"name":"Coco","categoryId":56789}',
      '{"id":9007199254740993,"name":"A long name that takes its room","categoryId":-3}',
    ])
    const page = await visitStore(t, url, { viewport: { width, height: 844 } })
    for (const column of ['id', 'category']) {
      const edges = await page.locator(`td.${column}`).evaluateAll((cells) =>
        cells.map((cell) => {
          const range = document.createRange()
          range.selectNodeContents(cell)
          return Math.round(range.getBoundingClientRect().right)
        }),
      )
      assert.equal(edges.length, 3)
      assert.equal(new Set(edges).size, 1, `${column}: ${edges}`)
    }
  })

  test(`follows a root font of twice the size, at ${width} px`, async (t) => {
    const { url } = await startStore(t)
    const page = await visitStore(t, url, { viewport: { width, height: 844 }, bypassCSP: true })
    const measure = (): Promise<readonly number[]> =>
      page
        .locator('.brand svg, #page-size, #status')
        .evaluateAll((all) =>
          all.flatMap((one) => [
            one.getBoundingClientRect().height,
            Number.parseFloat(getComputedStyle(one).fontSize),
          ]),
        )
    const before = await measure()
    await page.addStyleTag({ content: 'html { font-size: 200% }' })
    assert.deepEqual(
      (await measure()).map(Math.round),
      before.map((size) => Math.round(2 * size)),
    )
    // No name is broken within a word, and nothing is wider than the window.
    const line = await findRow(page, 'Hopper')
      .locator('td.name')
      .evaluate((cell) => {
        const range = document.createRange()
        range.selectNodeContents(cell)
        return new Set(Array.from(range.getClientRects(), ({ top }) => Math.round(top))).size
      })
    assert.equal(line, 1)
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width)
  })
}

for (const width of [360, 1280]) {
  for (const place of ['store', 'reference', 'createPet', 'getPet']) {
    test(`a link to #${place} leads there once the page is complete, at ${width} px`, async (t) => {
      const { url } = await startStore(t)
      const page = await visitStore(t, url, { viewport: { width, height: 740 } })
      await page.goto('about:blank')
      await page.goto(`${url}/#${place}`)
      await findRow(page, 'Rex').waitFor()
      // The last place may be too near the end of the page to reach the top of the window.
      await page.waitForFunction((id) => {
        const { top = -1 } = document.getElementById(id)?.getBoundingClientRect() ?? {}
        const isAtEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 1
        return top >= 0 && (top < 40 || (isAtEnd && top < innerHeight))
      }, place)
    })
  }
}

test('nothing covers a control at 360 px, wherever the page is scrolled to', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url, { viewport: { width: 360, height: 740 } })
  await page.getByRole('radio', { name: 'sold' }).waitFor()
  const covered = await page.evaluate(() => {
    const found = new Set<string>()
    for (const control of document.querySelectorAll('#store button, #store input, #store select')) {
      if (!control.checkVisibility()) continue
      for (const place of ['start', 'center', 'end'] as const) {
        control.scrollIntoView({ block: place, behavior: 'instant' })
        const { left, top, width, height } = control.getBoundingClientRect()
        const hit = document.elementFromPoint(left + width / 2, top + height / 2)
        if (hit !== control) found.add(control.outerHTML)
      }
    }
    return [...found]
  })
  assert.deepEqual(covered, [])
})

test('begins no line of JSON with a comma or a closing mark, at any width, and copies it as it is', async (t) => {
  const names = ['a', '"', 'W'.repeat(200), `${'x'.repeat(50)},${'y'.repeat(50)}`, '}]"'.repeat(30)]
  const pets = names.map(
    (name, i) => `{"id":${i + 1},"name":${JSON.stringify(name)},"categoryId":-9223372036854775808}`,
  )
  const { url } = await startStore(t, [petLines[11] ?? '', ...pets])
  const page = await visit(t, url)
  await enterKey(page)
  const response = page.locator('#wire-response .body')
  await waitForText(response, 'Pip')
  for (const isFormatted of [true, false]) {
    await page.getByLabel('One item per line').setChecked(isFormatted)
    for (const width of [320, 360, 411, 600, 768, 1024, 1280]) {
      await page.setViewportSize({ width, height: 800 })
      assert.deepEqual(await findBadLines(response), [], `${width} px`)
    }
  }
  const selected = await response.evaluate((element) => {
    getSelection()?.selectAllChildren(element)
    return [String(getSelection()), element.textContent]
  })
  assert.equal(selected[0], selected[1])
})

/** The beginnings of lines with a closing mark where the text has no line break. */
function findBadLines(locator: Locator): Promise<readonly string[]> {
  return locator.evaluate((element) => {
    const bad: string[] = []
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
    const range = document.createRange()
    let before = { bottom: 0, character: '\n' }
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      for (const [i, character] of [...(node.nodeValue ?? '')].entries()) {
        range.setStart(node, i)
        range.setEnd(node, i + 1)
        const { top, bottom } = range.getBoundingClientRect()
        const isWrapped = top >= before.bottom - 1 && before.character !== '\n'
        if (isWrapped && /[,}\]]/.test(character)) bad.push(String(node.nodeValue))
        before = { bottom, character }
      }
    }
    return bad
  })
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(`prints the form in one piece and the chosen filter in dark letters, ${colorScheme}`, async (t) => {
    const { url } = await startStore(t)
    const page = await visitStore(t, url, { colorScheme, viewport: { width: 720, height: 1000 } })
    await page.emulateMedia({ media: 'print' })
    const form = page.getByRole('region', { name: 'Add a pet' })
    assert.equal(await form.evaluate((element) => getComputedStyle(element).breakInside), 'avoid')
    // A printer leaves out backgrounds: what is light would not be seen on the paper.
    const colors = await page
      .locator('.segments span, #add button, td.name')
      .evaluateAll((all) => all.map((element) => getComputedStyle(element).color))
    assert.equal(colors.length, 15)
    for (const color of colors) {
      const channels = (color.match(/\d+/g) ?? []).map(Number)
      assert.ok(
        channels.every((channel) => channel < 120),
        color,
      )
    }
  })
}

test('marks what has changed without a motion for those who want none', async (t) => {
  const { url, edit } = await startStore(t)
  const page = await visitStore(t, url, { reducedMotion: 'reduce' })
  await edit(['{"id":99,"name":"Zoe","categoryId":1}'])
  await waitForText(findRow(page, 'Zoe'), 'new')
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0)
})

test('can be used with the keyboard alone', async (t) => {
  const { url } = await startStore(t)
  const page = await visit(t, url)
  const focused = (): Promise<string> =>
    page.evaluate(() => document.activeElement?.id || (document.activeElement?.textContent ?? '').trim())
  const press = async (...names: readonly string[]): Promise<string> => {
    for (const name of names) await page.keyboard.press(name)
    return focused()
  }
  assert.equal(await press('Tab'), 'Skip to the content')
  assert.equal(await press('Enter'), 'main')
  assert.equal(await press('Tab'), 'key')
  await page.keyboard.type(key)
  await page.keyboard.press('Enter')
  await page.locator('#list-title:focus').waitFor()
  await press('Tab', 'ArrowRight', 'ArrowRight')
  await readTable(page, 2)
  await press('ArrowLeft', 'ArrowLeft')
  await readTable(page, 10)
  await press('Tab')
  // The last page keeps the focus where it is, so that one can go back from there.
  assert.equal(await press('Tab', 'Tab'), 'next')
  await page.keyboard.press('Enter')
  await readTable(page, 2)
  assert.equal(await press('Enter'), 'next')
  assert.equal(await press('Shift+Tab'), 'previous')
  await page.keyboard.press('Space')
  await readTable(page, 10)
  assert.equal(await press('Tab', 'Tab'), 'name')
  await page.keyboard.press('Enter')
  await waitForText(page.locator('#name-error'), 'is required')
  assert.equal(await focused(), 'name')
  await page.keyboard.type('Zoe')
  assert.equal(await press('Tab'), 'categoryId')
  await page.keyboard.type('1')
  assert.equal(await press('Tab'), 'status')
  assert.equal(await press('Tab'), 'add-button')
  await page.keyboard.press('Enter')
  await waitForText(page.locator('#added'), 'Added Zoe with the id 13. It is not on the page shown.')
  assert.equal(await focused(), 'name')
})

test('shows where the focus is on everything that takes it', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByRole('article', { name: 'List pets' }).waitFor()
  await page.evaluate(() => document.body.focus())
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press('Tab')
    const [name, isMarked] = await page.evaluate(() => {
      const element = document.activeElement
      if (element === null || element === document.body) return ['', true]
      // A radio button is drawn by what follows it.
      const drawn = element.matches('[type=radio]') ? element.nextElementSibling : element
      return [element.outerHTML, drawn !== null && getComputedStyle(drawn).outlineStyle === 'solid']
    })
    assert.ok(isMarked, String(name))
  }
})

test('has its landmarks and headings in order for a screen reader', async (t) => {
  const { url } = await startStore(t)
  const page = await visitStore(t, url)
  await page.getByRole('article', { name: 'List pets' }).waitFor()
  for (const role of ['banner', 'main', 'contentinfo'] as const) {
    assert.equal(await page.getByRole(role).count(), 1, role)
  }
  for (const name of ['Store', 'Pets', 'Add a pet', 'On the wire', 'Reference']) {
    await page.getByRole('region', { name, exact: true }).first().waitFor()
  }
  const levels = await page
    .getByRole('heading')
    .evaluateAll((all) => all.map((one) => Number(one.tagName[1])))
  assert.equal(levels.filter((level) => level === 1).length, 1)
  levels.forEach((level, i) => assert.ok(level <= (levels[i - 1] ?? 0) + 1, `heading ${i}`))
})

test('says the number of pets to a screen reader when it changes', async (t) => {
  const { url, edit } = await startStore(t)
  const page = await visitStore(t, url)
  const status = page.getByRole('status').filter({ hasText: 'pet' })
  await edit(petLines.slice(0, 3))
  await waitForText(status, '3 pets (7 gone)')
})

/** On a wide screen it is unfolded from the beginning. */
async function unfoldReference(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Reference' }).click()
  await page.getByRole('article', { name: 'List pets' }).waitFor()
}

/** What axe finds, a line a place. */
async function findViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => {
    // Defined by the line above, in the page.
    const { axe: injected } = globalThis as unknown as { axe: typeof axe }
    return injected.run({ resultTypes: ['violations'] })
  })
  return violations.flatMap(({ help, id, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html}`))
}

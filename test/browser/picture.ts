/**
 * Takes the README's pictures of the page, in the light and in the dark theme: `npm run picture`. They are the same on each
 * run with the same browser and fonts: the pets, the address, the date and the durations are fixed, and the key is masked.
 */
import { writeFile } from 'node:fs/promises'
import type { BrowserContext } from 'playwright-core'
import { startPetStore } from '../../src/index.ts'
import { petLines, key, launchBrowser } from './fixtures.ts'

/** The address that the README shows. Requests to it are sent on to the free port of the service. */
const address = 'http://127.0.0.1:3000'
const date = 'Sat, 21 Nov 2026 12:00:00 GMT'
const viewport = { width: 1140, height: 920 }

const pets = petLines.slice(0, 6).map((line) => JSON.parse(line))
const service = await startPetStore({ apiKeys: [key], pets })
const browser = await launchBrowser()
try {
  for (const colorScheme of ['light', 'dark'] as const) {
    await service.reset()
    // The page's policy allows no other style, but the fonts are set by one.
    const options = { viewport, colorScheme, bypassCSP: true, reducedMotion: 'reduce' as const }
    const context = await browser.newContext(options)
    await fixWhatVaries(context)
    const picture = await takePicture(context)
    await writeFile(new URL(`picture-${colorScheme}.webp`, import.meta.url), picture)
    console.log(`picture-${colorScheme}.webp: ${picture.length} bytes`)
    await context.unrouteAll({ behavior: 'ignoreErrors' })
    await context.close()
  }
} finally {
  await browser.close()
  await service.close()
}

async function fixWhatVaries(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    let milliseconds = 0
    performance.now = () => (milliseconds += 2)
  })
  await context.route(`${address}/**`, async (route) => {
    const response = await route.fetch({ url: route.request().url().replace(address, service.url) })
    const headers = { ...response.headers(), date }
    await route.fulfill({ response, headers })
  })
}

async function takePicture(context: BrowserContext): Promise<Buffer> {
  const page = await context.newPage()
  await page.goto(`${address}/#key=${key}`)
  // Like the system fonts of most readers, which this machine may not have (Debian: fonts-inter, fonts-jetbrains-mono).
  const content = 'body { font-family: Inter, system-ui } :root { --mono: "JetBrains Mono", monospace }'
  await page.addStyleTag({ content })
  await page.locator('#add').getByLabel('name').fill('Milo')
  await page.locator('#add').getByLabel('categoryId').fill('9007199254740993')
  await page.getByRole('button', { name: 'Add a pet' }).click()
  await page.locator('#added', { hasText: 'Added' }).waitFor()
  await page.locator('#rows [data-mark]').waitFor()
  await page.getByRole('article').nth(2).waitFor()
  await page.evaluate(() => {
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur()
    document.getElementById('store')?.scrollIntoView()
  })
  // Playwright itself has no WebP, which is less than half the size of a PNG.
  const devTools = await context.newCDPSession(page)
  const { data } = await devTools.send('Page.captureScreenshot', {
    format: 'webp',
    quality: 85,
    clip: { x: 0, y: await page.evaluate(() => scrollY), ...viewport, scale: 2 },
  })
  return Buffer.from(data, 'base64')
}

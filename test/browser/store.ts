/** What the tests of the page share: the service on a data file of its own, and a browser. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Locator, Page, Route } from 'playwright-core'
import { startPetStore } from '../../src/index.ts'
import { petLines, key, launchBrowser } from './fixtures.ts'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export interface Store {
  readonly url: string
  /** Replaces the pets of the data file with these, as an editor would that renames. */
  edit(pets: readonly string[]): Promise<void>
  /** Replaces the whole text of the data file. */
  editText(text: string): Promise<void>
}

/** The service in this process, on a free port, with a data file in a temporary folder. */
export async function startStore(t: TestContext, pets: readonly string[] = petLines): Promise<Store> {
  const { folder, dataFile, ...edits } = await createDataFile(pets)
  const server = await startPetStore({ apiKeys: [key], dataFile })
  t.after(async () => {
    // In this order: a new folder may get the inode of a removed one, whose file would still be locked.
    await server.close()
    await rm(folder, { recursive: true })
  })
  return { url: server.url, ...edits }
}

/** The built program in a process of its own, with nothing of this one's environment but its PATH. */
export async function startProgram(t: TestContext, program: string): Promise<string> {
  const { folder, dataFile } = await createDataFile(petLines)
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env['PATH'], PORT: '0', PETSTORE_API_KEYS: key, PETSTORE_DATA_FILE: dataFile },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(async () => {
    if (child.exitCode === null && child.kill()) await once(child, 'exit')
    await rm(folder, { recursive: true })
  })
  // All its output is read: a full pipe would stop the program.
  return new Promise((resolve, reject) => {
    createInterface(child.stdout)
      .on('line', (line) => {
        const url = /^Petstore listens on (http:\S+)/.exec(line)?.[1]
        if (url !== undefined) resolve(url)
      })
      .on('close', () => reject(new Error('The program ended without printing its address.')))
  })
}

interface DataFile extends Pick<Store, 'edit' | 'editText'> {
  readonly folder: string
  readonly dataFile: string
}

async function createDataFile(pets: readonly string[]): Promise<DataFile> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-browser-'))
  const dataFile = join(folder, 'pets.json')
  const editText = async (text: string): Promise<void> => {
    await writeFile(`${dataFile}~`, text)
    await rename(`${dataFile}~`, dataFile)
  }
  const edit = (now: readonly string[]): Promise<void> => editText(`{"pets":[\n${now.join(',\n')}\n]}\n`)
  await edit(pets)
  return { folder, dataFile, edit, editText }
}

/** One for a test file, launched by its first visit. */
let browser: Promise<Browser> | undefined
after(async () => (await browser)?.close())

/**
 * A visit with storage of its own. After the test, the console must have been silent, but for the browser's own lines
 * about the service's refusals, which no page can keep it from.
 */
export async function visit(t: TestContext, url: string, options: BrowserContextOptions = {}): Promise<Page> {
  browser ??= launchBrowser()
  const context = await (await browser).newContext({ viewport: { width: 1440, height: 900 }, ...options })
  const complaints: string[] = []
  t.after(async () => {
    await context.close()
    assert.deepEqual(complaints, [])
  })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  page.on('console', (message) => {
    const isRefusal =
      message.text().startsWith('Failed to load resource') && message.location().url.includes('/v1/pets')
    if (['error', 'warning'].includes(message.type()) && !isRefusal) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(url)
  return page
}

export async function enterKey(page: Page, text: string = key): Promise<void> {
  await page.getByLabel('API key').fill(text)
  await page.getByRole('button', { name: 'Open the store' }).click()
}

/** A visit with the store open. */
export async function visitStore(
  t: TestContext,
  url: string,
  options?: BrowserContextOptions,
): Promise<Page> {
  const page = await visit(t, url, options)
  await enterKey(page)
  await findRow(page, 'Rex').waitFor()
  return page
}

export function findRow(page: Page, name: string): Locator {
  return page.getByRole('row').filter({ has: page.getByRole('cell', { name }) })
}

/** The table as text, a line a row, once it has this many rows. */
export async function readTable(page: Page, rows: number): Promise<readonly string[]> {
  await page.locator(`#rows:has(tr:nth-child(${rows})):not(:has(tr:nth-child(${rows + 1})))`).waitFor()
  return page
    .locator('#rows tr')
    .evaluateAll((lines) =>
      lines.map((line) => [...line.children].map((cell) => cell.textContent?.trim()).join(' | ')),
    )
}

/** Waits until an element's text is so, and says what it was if it never is. */
export async function waitForText(locator: Locator, text: string | RegExp): Promise<void> {
  try {
    await locator.filter({ hasText: text }).first().waitFor()
  } catch {
    assert.match(await locator.innerText(), new RegExp(text))
  }
}

/** The request or the response that the panel shows, with its headers, which are folded at first. */
export function readWire(page: Page, part: 'request' | 'response'): Promise<string> {
  return page
    .locator(`#wire-${part} pre`)
    .evaluateAll((parts) => parts.map((each) => each.textContent).join('\n'))
}

/** Waits until the list has been requested anew so many times. */
export async function waitForPolls(page: Page, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const response = await page.waitForResponse('**/v1/pets?*')
    await response.finished()
  }
}

/** Keeps requests of pets from the service until the returned function is called. */
export async function holdRequests(page: Page, method: 'GET' | 'POST'): Promise<() => Promise<void>> {
  let release: (() => void) | undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const hold = async (route: Route): Promise<void> => {
    if (route.request().method() !== method) return route.fallback()
    await released
    // The page may have aborted it meanwhile.
    await route.continue().catch(() => {})
  }
  await page.route('**/v1/pets*', hold)
  return async () => {
    await page.unroute('**/v1/pets*', hold)
    release?.()
  }
}

export function readClipboard(page: Page): Promise<string> {
  return page.evaluate(() => navigator.clipboard.readText())
}

/** The words that a POSIX shell makes of a curl command, without the first. */
export function splitAsShell(command: string): readonly string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1)
}

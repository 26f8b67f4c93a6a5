/** The key of this visit: entered once, kept by this tab only, gone with it. */

const storageName = 'petstore-key'
const mask = '•'.repeat(8)

export class Session {
  readonly #watchers: (() => void)[] = []
  #key = read()
  #isShown = false

  get key(): string {
    return this.#key
  }

  /** A key as it may stand on the screen. */
  veil(key: string): string {
    return this.#isShown || key === '' ? key : mask
  }

  get isShown(): boolean {
    return this.#isShown
  }

  set isShown(isShown: boolean) {
    this.#isShown = isShown
    this.#tell()
  }

  enter(key: string): void {
    this.#key = key
    write(key)
    this.#tell()
  }

  forget(): void {
    this.#isShown = false
    this.enter('')
  }

  /** Called now, and whenever the key or its visibility changes. */
  watch(watcher: () => void): void {
    this.#watchers.push(watcher)
    watcher()
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher()
  }
}

// A browser that is told to keep nothing throws here; then the key lasts as long as the page.
function read(): string {
  try {
    return sessionStorage.getItem(storageName) ?? ''
  } catch {
    return ''
  }
}

function write(key: string): void {
  try {
    if (key === '') sessionStorage.removeItem(storageName)
    else sessionStorage.setItem(storageName, key)
  } catch {}
}

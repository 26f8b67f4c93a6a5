/**
 * The API key of this visit. Once it has worked, it is kept in this tab's session storage only, and is gone
 * when the tab is closed.
 */

const storageName = 'petstore-key'
const dots = '•'.repeat(8)

export class ApiKey {
  readonly #listeners: (() => void)[] = []
  #key = readStorage()
  #hasWorked = this.#key !== ''
  #isVisible = false

  /** The key; empty while none is set. */
  get value(): string {
    return this.#key
  }

  set(key: string): void {
    this.#key = key
    this.#hasWorked = false
    writeStorage('')
    this.#notify()
  }

  /** Whether it has opened the store before, in this tab. */
  get hasWorked(): boolean {
    return this.#hasWorked
  }

  keep(): void {
    if (!this.#hasWorked) writeStorage(this.#key)
    this.#hasWorked = true
  }

  /** Forgets the key. The next one is hidden again. */
  forget(): void {
    this.#isVisible = false
    this.set('')
  }

  get isVisible(): boolean {
    return this.#isVisible
  }

  toggleVisibility(): void {
    this.#isVisible = !this.#isVisible
    this.#notify()
  }

  /** Returns a key as the page may show it now: dots, unless the user chose to see keys. */
  mask(key: string): string {
    return this.#isVisible || key === '' ? key : dots
  }

  /** Calls the listener now, and whenever the key or its visibility changes. */
  subscribe(listener: () => void): void {
    this.#listeners.push(listener)
    listener()
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}

// Where a browser is set to block storage, access to it throws. The key then lasts until the page is left.
function readStorage(): string {
  try {
    return sessionStorage.getItem(storageName) ?? ''
  } catch {
    return ''
  }
}

function writeStorage(key: string): void {
  try {
    if (key === '') sessionStorage.removeItem(storageName)
    else sessionStorage.setItem(storageName, key)
  } catch {}
}

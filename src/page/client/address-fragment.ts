/**
 * The fragment of the page's address: a key to open the store with, or the place on the page to scroll to.
 */

/**
 * Returns the key of an address such as `http://127.0.0.1:3000/#key=abc`, which the server prints when it
 * starts; undefined without one. Removes it from the address bar and from the history, so that it is not
 * shared, bookmarked or seen.
 */
export function extractKeyFromAddress(): string | undefined {
  const key = /^#key=(.*)$/.exec(location.hash)?.[1]
  if (key === undefined) return undefined
  history.replaceState(null, '', location.pathname + location.search)
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

/** Scrolls to the element that the address names. The browser did so before the page was complete. */
export function scrollToFragment(): void {
  unfold(location.hash)
  document.getElementById(location.hash.slice(1))?.scrollIntoView()
}

/** Unfolds what hides the element that a fragment such as `#createPet` names, or what it consists of. */
export function unfold(fragment: string): void {
  const target = document.getElementById(fragment.slice(1))
  const fold = target?.closest('details') ?? target?.querySelector(':scope > details')
  if (fold instanceof HTMLDetailsElement) fold.open = true
}

/** The page's script: creates its parts and connects them. */
import { extractKeyFromAddress, scrollToFragment, unfold } from './address-fragment.ts'
import { loadDocument } from './openapi-document.ts'
import { createReferenceView } from './reference-view.ts'
import { ApiKey } from './api-key.ts'
import { createStoreView } from './store-view.ts'
import { createWireView } from './wire-view.ts'

// The key is taken out of the address before anything else can see or keep it.
const key = extractKeyFromAddress()

const apiKey = new ApiKey()
const store = createStoreView(apiKey, createWireView(apiKey))
const reference = createReferenceView(apiKey)

const isStoreReady = key === undefined ? store.openWithStoredKey() : store.openWithKey(key)
// A link with a key that is opened in a tab with this page changes only the fragment: nothing is loaded
// again.
addEventListener('hashchange', () => {
  const newKey = extractKeyFromAddress()
  if (newKey === undefined) scrollToFragment()
  else void store.openWithKey(newKey)
})
// A link may lead to where the address points already, to what the reader has folded since. Then the address
// does not change.
addEventListener('click', ({ target }) => {
  const link = target instanceof Element ? target.closest('a') : null
  if (link !== null) unfold(link.hash)
})

async function showDocument(): Promise<void> {
  try {
    const document = await loadDocument()
    store.setStatuses(document.components.schemas['PetStatus']?.enum ?? [])
    reference.show(document)
  } catch (error) {
    reference.showError(error, showDocument)
  }
}

// What the address names may be part of the reference, or stand below the list, which takes up room once it
// is there.
void Promise.all([showDocument(), isStoreReady]).then(scrollToFragment)

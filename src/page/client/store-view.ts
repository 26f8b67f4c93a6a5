/** The store: a key opens it, and the list is polled for changes. The form beside it is in add-form.ts. */
import { createAddForm } from './add-form.ts'
import { getElement, isEnabled, setDisabled, setText, waiting } from './dom.ts'
import { createKeyForm, findKeyFault, parseKey } from './key-form.ts'
import { createListFilter } from './list-filter.ts'
import { clearPets, showPets } from './pet-table.ts'
import { listRequest, pageUrlOf, type Pet, type PetPage, readError, readListResponse } from './pets.ts'
import type { ApiKey } from './api-key.ts'
import type { WireView } from './wire-view.ts'
import { base, type Exchange, send, type WireResponse } from './wire.ts'

/** How long after a response the list is requested again. */
const pollAfterMs = 1500

/** The list that is shown is not called up to date for longer, if a response does not come. */
const maxPollMs = 10_000

/** What caused a request of the list. */
type Trigger = 'user' | 'creation' | 'poll'

/** A page of the list. The service links to the next page only, so each page remembers the one before it. */
interface Place {
  readonly url: URL
  /** How many pets were on the pages before; undefined when the place was not reached page by page. */
  readonly start: number | undefined
  readonly previous?: Place
}

export function createStoreView(apiKey: ApiKey, wire: WireView) {
  const storeError = getElement('store-error', HTMLElement)
  const content = getElement('store-content', HTMLElement)
  const previous = getElement('previous', HTMLElement)
  const next = getElement('next', HTMLElement)
  const keyForm = createKeyForm(apiKey, openWithKey, forgetKey)
  const filter = createListFilter(loadFirstPage)
  const addForm = createAddForm(apiKey, wire, { isAccepted, reload, showPageOf, reloadLater })

  let requested: Place = firstPage()
  let shown: { readonly place: Place; readonly page: PetPage } | undefined
  /** Aborts the list request in flight when a newer one replaces it. */
  let awaited = new AbortController()
  let pollTimer: number | undefined

  /** Does what a key that is typed into the form does. Resolves once the response is shown. */
  async function openWithKey(text: string): Promise<void> {
    const key = parseKey(text)
    const keyFault = findKeyFault(key)
    if (keyFault !== undefined) return closeStore(keyFault)
    keyForm.showError('')
    setText(storeError, '')
    addForm.clearMessages()
    apiKey.set(key)
    keyForm.showKey()
    await loadFirstPage()
    if (shown !== undefined) getElement('list-title', HTMLElement).focus()
  }

  function forgetKey(): void {
    addForm.clear()
    wire.clear()
    closeStore('')
  }

  /** Forgets the key and asks for another one. What was typed into the other form stays there. */
  function closeStore(keyProblem: string, problem = ''): void {
    awaited.abort()
    clearTimeout(pollTimer)
    apiKey.forget()
    shown = undefined
    clearPets()
    setText(storeError, problem)
    content.hidden = true
    setWaiting(false)
    keyForm.ask()
    keyForm.showError(keyProblem)
    keyForm.focus()
  }

  function firstPage(): Place {
    return { url: filter.firstPageUrl(), start: 0 }
  }

  function loadFirstPage(): Promise<void> {
    return loadList(firstPage(), 'user')
  }

  /** Shows another page, from its beginning, which may be out of view: the buttons are below the table. */
  async function turnTo(place: Place): Promise<void> {
    await loadList(place, 'user')
    getElement('list-title', HTMLElement).scrollIntoView({ block: 'nearest' })
  }

  async function loadList(place: Place, trigger: Trigger): Promise<void> {
    awaited.abort()
    clearTimeout(pollTimer)
    awaited = new AbortController()
    const { signal } = awaited
    requested = place
    const isPoll = trigger === 'poll'
    const request = listRequest(place.url, isPoll)
    // The pet's own exchange stays in view when the list is requested for it.
    const endWaiting = isPoll ? undefined : wire.begin(request, trigger === 'creation')
    if (!isPoll) setWaiting(true)
    const lateTimer = setTimeout(() => showConnection('lost', 'Not up to date'), maxPollMs)
    signal.addEventListener('abort', () => clearTimeout(lateTimer))
    const exchange = await send(request, apiKey.value, signal)
    clearTimeout(lateTimer)
    endWaiting?.(exchange)
    if (exchange === undefined) return
    const before = readStore()
    if (isAccepted(exchange)) showResponse(exchange.response, place, trigger)
    setWaiting(false)
    // What is still shown after a failure may be of another filter or another page.
    getElement('pets', HTMLElement).toggleAttribute('data-stale', shown?.place !== requested)
    if (isPoll && readStore() !== before) wire.add(exchange)
    schedulePoll()
  }

  /**
   * Says that the user waits, and that Next and Previous do too. What is said afterwards comes with the
   * response.
   */
  function setWaiting(isWaiting: boolean): void {
    // A screen reader hears what changes in a region that is there already: while the store opens, the list
    // is not.
    setText(getElement('opening', HTMLElement), isWaiting && content.hidden ? waiting : '')
    if (isWaiting) showConnection('waiting', waiting)
    getElement('pets', HTMLElement).setAttribute('aria-busy', String(isWaiting))
    setDisabled(previous, isWaiting || shown?.place.previous === undefined)
    setDisabled(next, isWaiting || shown?.page.next === undefined)
  }

  /** Returns false when there is no response, or the key was rejected; both are shown to the user. */
  function isAccepted(exchange: Exchange): exchange is Exchange & { readonly response: WireResponse } {
    const { response } = exchange
    if (response === undefined) {
      showConnection('lost', 'Not connected')
      const problem = `No response from ${base.host}. Is the server running?`
      setText(storeError, `${problem} Retrying automatically.`)
      return false
    }
    if (response.status === 401) {
      if (apiKey.hasWorked) closeStore('', expiredKey)
      else closeStore(readError(response).message)
      return false
    }
    return true
  }

  function showResponse(response: WireResponse, place: Place, trigger: Trigger): void {
    if (response.status !== 200) {
      showConnection('lost', 'Not up to date')
      return setText(storeError, readError(response).message)
    }
    const page = readListResponse(response, place.url)
    if (page.dataFileError === undefined) showConnection('live', 'Watching for changes')
    else showConnection('invalid', `Data file error: ${page.dataFileError}. Showing the last valid data.`)
    const isSamePage = trigger !== 'user' && shown?.place === place
    const status = place.url.searchParams.get('status') ?? ''
    showPets(page, place.start, status, isSamePage ? shown?.page : undefined)
    shown = { place, page }
    setText(storeError, '')
    apiKey.keep()
    content.hidden = false
    addForm.correctMessages(page)
  }

  function schedulePoll(): void {
    clearTimeout(pollTimer)
    if (apiKey.value !== '' && !document.hidden) {
      pollTimer = setTimeout(() => loadList(requested, 'poll'), pollAfterMs)
    }
  }

  async function reload(): Promise<PetPage | undefined> {
    await loadList(requested, 'creation')
    return shown?.page
  }

  /** Shows the page of a pet, of all statuses: under another one than its own, it would not be listed. */
  function showPageOf(pet: Pet): void {
    filter.chooseAll()
    const first = firstPage()
    void loadList({ url: pageUrlOf(pet, first.url), start: undefined, previous: first }, 'user')
  }

  /** Drops a response in flight. */
  function reloadLater(): void {
    awaited.abort()
    schedulePoll()
  }

  previous.addEventListener('click', () => {
    if (!isEnabled(previous) || shown === undefined) return
    const { total = Infinity } = shown.page
    let place = shown.place.previous
    // Pets were removed, and the pages from there on may be empty.
    while (place?.previous !== undefined && (place.start ?? 0) >= total) place = place.previous
    if (place !== undefined) void turnTo(place)
  })
  next.addEventListener('click', () => {
    if (!isEnabled(next) || shown === undefined) return
    const { place, page } = shown
    if (page.next === undefined) return
    const start = place.start === undefined ? undefined : place.start + page.pets.length
    void turnTo({ url: page.next, start, previous: place })
  })
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(pollTimer)
    else if (apiKey.value !== '') void loadList(requested, 'poll')
  })

  return {
    openWithKey,
    /**
     * Opens the store with the key that this tab has stored; without one, asks for it. Resolves once the
     * response is shown.
     */
    async openWithStoredKey(): Promise<void> {
      if (apiKey.value === '') return keyForm.ask()
      keyForm.showKey()
      await loadList(requested, 'user')
    },
    /**
     * Sets the statuses to filter by and to choose from. Until then, the list can only be shown unfiltered.
     */
    setStatuses(statuses: readonly string[]): void {
      addForm.setStatuses(statuses)
      filter.setStatuses(statuses)
    },
  }
}

const expiredKey =
  'This key no longer works; the server may have been restarted. Open the link that it printed.'

/** Returns all that the store shows, to tell whether a response has changed it. */
function readStore(): string {
  return getElement('counter', HTMLElement).textContent ?? ''
}

function showConnection(state: 'waiting' | 'live' | 'invalid' | 'lost', text: string): void {
  const connection = getElement('connection', HTMLElement)
  connection.dataset['state'] = state
  setText(connection, text)
}

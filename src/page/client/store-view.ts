/** The store: a key opens it, the list is polled for changes, and the form adds to it. */
import { createAddForm } from './add-form.ts'
import { getElement, setDisabled, setText } from './dom.ts'
import { createKeyForm, isSendable } from './key-form.ts'
import { createListFilter } from './list-filter.ts'
import { clearPets, showPets } from './pet-table.ts'
import { type Pet, type PetPage, readError, readListResponse, readPetResponse } from './pets.ts'
import type { ApiKey } from './api-key.ts'
import type { WireView } from './wire-view.ts'
import { base, type Exchange, send, type WireRequest, type WireResponse } from './wire.ts'

/** How long after a response the list is requested again. */
const pollAfterMs = 1500

/** What caused a request of the list. */
type Trigger = 'user' | 'creation' | 'poll'

/** A page of the list. The service links to the next page only, so each page remembers the one before it. */
interface Place {
  readonly url: URL
  /** How many pets were on the pages before. */
  readonly start: number
  readonly previous?: Place
}

/** What must change until an error under the form is over; undefined for what only another try can tell. */
type Cause = 'data file' | 'server' | undefined

export interface StoreView {
  /** As if the key had been typed into the form. Resolves once the response is shown. */
  openWithKey(key: string): Promise<void>
  /** With the key that this tab has stored, if there is one. Resolves once the response is shown. */
  openWithStoredKey(): Promise<void>
  /** The statuses to filter by and to choose from. Until it is called, the list can only be shown unfiltered. */
  setStatuses(statuses: readonly string[]): void
}

export function createStoreView(apiKey: ApiKey, wire: WireView): StoreView {
  const storeError = getElement('store-error', HTMLElement)
  const previous = getElement('previous', HTMLElement)
  const next = getElement('next', HTMLElement)
  const keyForm = createKeyForm(apiKey, openWithKey, forgetKey)
  const filter = createListFilter(loadFirstPage)
  const addForm = createAddForm(add)

  let requested: Place = firstPage()
  let shown: { readonly place: Place; readonly page: PetPage } | undefined
  /** The last added pet, while the page says that it is not listed. */
  let unlisted: Pet | undefined
  let addErrorCause: Cause
  /** Whether the key has opened the store before, in this tab. */
  let hasKeyWorked = apiKey.value !== ''
  /** Aborts the list request in flight when a newer one replaces it. */
  let listRequest = new AbortController()
  let pollTimer: number | undefined

  async function openWithKey(key: string): Promise<void> {
    if (!isSendable(key)) {
      return closeStore('This cannot be sent: a key consists of ASCII letters, digits and punctuation.')
    }
    keyForm.showError('')
    setText(storeError, '')
    addForm.clearMessages()
    unlisted = undefined
    hasKeyWorked = false
    apiKey.set(key)
    await loadFirstPage()
    if (shown !== undefined) getElement('list-title', HTMLElement).focus()
  }

  function showStore(): void {
    keyForm.showKey()
    getElement('store-content', HTMLElement).hidden = false
  }

  function forgetKey(): void {
    unlisted = undefined
    addForm.clear()
    wire.clear()
    closeStore('')
  }

  /** Forgets the key and asks for another one. What was typed into the other form stays there. */
  function closeStore(keyProblem: string, problem = ''): void {
    listRequest.abort()
    clearTimeout(pollTimer)
    apiKey.forget()
    shown = undefined
    clearPets()
    setText(storeError, problem)
    getElement('store-content', HTMLElement).hidden = true
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

  async function loadList(place: Place, trigger: Trigger): Promise<void> {
    listRequest.abort()
    clearTimeout(pollTimer)
    listRequest = new AbortController()
    const { signal } = listRequest
    requested = place
    const exchange = await send(listRequestFor(place.url), apiKey.value, signal)
    if (exchange === undefined) return
    const before = readStore()
    if (isAccepted(exchange)) showResponse(exchange.response, place, trigger)
    // The pet's own exchange stays in view when the list is requested for it.
    if (trigger === 'user' || readStore() !== before) wire.add(exchange, trigger === 'creation')
    schedulePoll()
  }

  /** False when there is no response, or the key was rejected; both are shown to the user. */
  function isAccepted(exchange: Exchange): exchange is Exchange & { readonly response: WireResponse } {
    const { response } = exchange
    if (response === undefined) {
      showConnection('lost', 'Not connected')
      const problem = `No response from ${base.host}. Is the server running?`
      setText(storeError, `${problem} Retrying automatically.`)
      return false
    }
    if (response.status === 401) {
      if (hasKeyWorked) closeStore('', expiredKey)
      else closeStore(readError(response).message)
      return false
    }
    return true
  }

  function showResponse(response: WireResponse, place: Place, trigger: Trigger): void {
    if (response.status !== 200) {
      showConnection('live', 'Watching for changes')
      return setText(storeError, readError(response).message)
    }
    const page = readListResponse(response, place.url)
    if (page.dataFileError === undefined) showConnection('live', 'Watching for changes')
    else showConnection('invalid', `Data file error: ${page.dataFileError}. Showing the last valid data.`)
    const isSamePage = trigger !== 'user' && shown?.place === place
    showPets(page, place.start, isSamePage ? shown?.page : undefined)
    shown = { place, page }
    setDisabled(previous, place.previous === undefined)
    setDisabled(next, page.next === undefined)
    setText(storeError, '')
    hasKeyWorked = true
    if (addErrorCause === 'server' || (addErrorCause === 'data file' && page.dataFileError === undefined)) {
      addForm.clearMessages()
      addErrorCause = undefined
    }
    showStore()
    void updateAddedMessage(page)
  }

  function schedulePoll(): void {
    clearTimeout(pollTimer)
    if (apiKey.value !== '' && !document.hidden) {
      pollTimer = setTimeout(() => loadList(requested, 'poll'), pollAfterMs)
    }
  }

  async function add(body: string): Promise<void> {
    const url = new URL('v1/pets', base)
    const headers = [accept, ['Content-Type', 'application/json']] as const
    const exchange = await send({ method: 'POST', url, headers, body }, apiKey.value)
    // The user may have forgotten the key meanwhile, and then expects to see nothing that belongs to it.
    if (exchange === undefined || exchange.key !== apiKey.value) return
    wire.add(exchange)
    unlisted = undefined
    addErrorCause = undefined
    const { response } = exchange
    if (!isAccepted(exchange) || response?.status !== 201) {
      if (apiKey.value !== '') showAddError(response)
      return
    }
    const pet = readPetResponse(response)
    addForm.clear()
    getElement('name', HTMLElement).focus()
    await loadList(requested, 'creation')
    const isListed = shown !== undefined && isOnPage(pet, shown.page)
    unlisted = isListed ? undefined : pet
    addForm.showSuccess(isListed ? addedMessage(pet) : `${addedMessage(pet)} It is not on the page shown.`)
  }

  function showAddError(response: WireResponse | undefined): void {
    const { code, message } =
      response === undefined
        ? { code: '', message: 'No response: it is not known whether the pet was added.' }
        : readError(response)
    if (response?.status === 400) return addForm.showFieldErrors(message)
    addForm.showError(message)
    // A proxy's error has no code: it could not reach the service.
    if (code === '' || code === 'shutting_down') addErrorCause = 'server'
    else if (code === 'data_file_invalid') addErrorCause = 'data file'
    // A response in flight may be older than the error, and say that all is well.
    listRequest.abort()
    schedulePoll()
  }

  /** Corrects the message about an added pet that was not listed, once it is listed or was removed. */
  async function updateAddedMessage(page: PetPage): Promise<void> {
    const pet = unlisted
    if (pet === undefined) return
    if (isOnPage(pet, page)) {
      unlisted = undefined
      addForm.showSuccess(addedMessage(pet))
      return
    }
    const url = new URL('v1/pets?limit=1', base)
    url.searchParams.set('after', String(BigInt(pet.id) - 1n))
    const exchange = await send(listRequestFor(url), apiKey.value)
    if (exchange?.response?.status !== 200 || unlisted !== pet) return
    if (isOnPage(pet, readListResponse(exchange.response, url))) return
    unlisted = undefined
    addForm.showSuccess('')
    wire.add(exchange)
  }

  previous.addEventListener('click', () => {
    if (shown?.place.previous !== undefined) void loadList(shown.place.previous, 'user')
  })
  next.addEventListener('click', () => {
    if (shown === undefined) return
    const { place, page } = shown
    if (page.next === undefined) return
    void loadList({ url: page.next, start: place.start + page.pets.length, previous: place }, 'user')
  })
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(pollTimer)
    else if (apiKey.value !== '') void loadList(requested, 'poll')
  })

  return {
    openWithKey,
    async openWithStoredKey() {
      if (apiKey.value === '') return
      showStore()
      await loadList(requested, 'user')
    },
    setStatuses(statuses) {
      addForm.setStatuses(statuses)
      filter.setStatuses(statuses)
    },
  }
}

const expiredKey =
  'This key no longer works; the server may have been restarted. Open the link that it printed.'

/** All that the store shows, to tell whether a response has changed it. */
function readStore(): string {
  return getElement('counter', HTMLElement).textContent ?? ''
}

function showConnection(state: 'live' | 'invalid' | 'lost', text: string): void {
  const connection = getElement('connection', HTMLElement)
  connection.dataset['state'] = state
  setText(connection, text)
}

const accept = ['Accept', 'application/json'] as const

function listRequestFor(url: URL): WireRequest {
  return { method: 'GET', url, headers: [accept] }
}

function isOnPage(pet: Pet, { pets }: PetPage): boolean {
  return pets.some(({ id }) => id === pet.id)
}

function addedMessage({ id, name }: Pet): string {
  return `Added ${name} with the id ${id}.`
}

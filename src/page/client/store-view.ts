/** The store itself: the key opens it, the list is watched, the form adds to it. */
import { createAddForm, markInvalid } from './add-form.ts'
import { find, tell } from './dom.ts'
import { clearPets, showPets } from './pet-table.ts'
import { type PetPage, readCreated, readMessage, readPage } from './pets.ts'
import type { Session } from './session.ts'
import type { WireView } from './wire-view.ts'
import { base, type Exchange, send, type WireAnswer } from './wire.ts'

/** How long after an answer the list that is shown is asked for again. */
const lookAgainMs = 1500

/** Who asked: the page by itself, to see what has changed, shows nothing on the wire panel. */
type Asker = 'person' | 'watch'

/** A page of the list, and the one that led to it: the service's links go forward only. */
interface Place {
  readonly url: URL
  readonly number: number
  readonly previous?: Place
}

export function createStoreView(session: Session, wire: WireView): void {
  const trouble = find('trouble', HTMLElement)
  const keyForm = find('key-form', HTMLFormElement)
  const keyInput = find('key', HTMLInputElement)
  const keyFault = find('key-fault', HTMLElement)
  const filter = find('filter', HTMLFormElement)
  const previous = find('previous', HTMLElement)
  const next = find('next', HTMLElement)
  const addForm = createAddForm(add)

  let wanted: Place = firstPage(filter)
  let shown: { readonly place: Place; readonly page: PetPage } | undefined
  /** Ends the list request under way when a newer one makes it pointless. */
  let turn = new AbortController()
  let timer: number | undefined

  function setOpen(isOpen: boolean): void {
    keyForm.hidden = isOpen
    find('shop', HTMLElement).hidden = !isOpen
    find('key-bar', HTMLElement).hidden = !isOpen
    if (isOpen) keyInput.value = ''
  }

  /** Asks for the key again. What was typed into the other form stays there. */
  function askKey(fault: string): void {
    turn.abort()
    clearTimeout(timer)
    session.forget()
    shown = undefined
    clearPets()
    tell(trouble, '')
    setOpen(false)
    showKeyFault(fault)
    keyInput.focus()
  }

  function showKeyFault(fault: string): void {
    tell(keyFault, fault)
    markInvalid(keyInput, fault !== '')
  }

  /** Deals with what may be wrong with any request. */
  function isWelcome(exchange: Exchange): exchange is Exchange & { readonly answer: WireAnswer } {
    const { answer } = exchange
    const live = find('live', HTMLElement)
    live.dataset['state'] = answer === undefined ? 'lost' : 'on'
    tell(live, answer === undefined ? 'Not connected' : 'Watching for changes')
    if (answer === undefined) {
      tell(
        trouble,
        `No answer from ${base.host}. Is the server running? This page keeps asking for the list.`,
      )
    } else if (answer.status === 401) {
      askKey(readMessage(answer))
    }
    return answer !== undefined && answer.status !== 401
  }

  async function list(place: Place, asker: Asker): Promise<void> {
    turn.abort()
    clearTimeout(timer)
    turn = new AbortController()
    const { signal } = turn
    wanted = place
    const request = { method: 'GET', url: place.url, headers: [accept] } as const
    const exchange = await send(request, session.key, signal)
    if (exchange === undefined) return
    if (asker === 'person') wire.show(exchange)
    if (isWelcome(exchange)) show(exchange.answer, place, asker)
    lookAgain()
  }

  function show(answer: WireAnswer, place: Place, asker: Asker): void {
    if (answer.status !== 200) return tell(trouble, readMessage(answer))
    const page = readPage(answer, place.url)
    const isSame = asker === 'watch' && shown?.place === place
    showPets(page, place.number, isSame ? shown?.page : undefined)
    shown = { place, page }
    setOff(previous, place.previous === undefined)
    setOff(next, page.next === undefined)
    tell(trouble, '')
    setOpen(true)
  }

  function lookAgain(): void {
    clearTimeout(timer)
    if (session.key !== '' && !document.hidden) timer = setTimeout(list, lookAgainMs, wanted, 'watch')
  }

  async function add(body: string): Promise<void> {
    const headers = [accept, ['Content-Type', 'application/json']] as const
    const exchange = await send({ method: 'POST', url: new URL('v1/pets', base), headers, body }, session.key)
    // Whoever has forgotten the key meanwhile wants to see nothing of it.
    if (exchange === undefined || exchange.key !== session.key) return
    wire.show(exchange)
    if (exchange.answer === undefined) addForm.showTrouble('No answer came, so nobody knows if it was added.')
    if (!isWelcome(exchange)) return
    const { answer } = exchange
    if (answer.status === 400) return addForm.showFaults(readMessage(answer))
    if (answer.status !== 201) return addForm.showTrouble(readMessage(answer))
    const { id, name } = readCreated(answer)
    addForm.clear()
    find('name', HTMLElement).focus()
    await list(wanted, 'watch')
    const isListed = shown?.page.pets.some((pet) => pet.id === id) === true
    addForm.showAdded(`Added ${name} with the id ${id}${isListed ? '' : ', which is not on the page shown'}.`)
  }

  keyForm.addEventListener('submit', async (event) => {
    event.preventDefault()
    const key = keyInput.value.trim()
    if (!isSendable(key))
      return showKeyFault('This cannot be sent: a key is made of plain letters, digits and signs.')
    showKeyFault('')
    session.enter(key)
    await list(firstPage(filter), 'person')
    if (shown !== undefined) find('list-title', HTMLElement).focus()
  })
  find('key-forget', HTMLElement).addEventListener('click', () => {
    addForm.clear()
    wire.clear()
    askKey('')
  })
  find('key-show', HTMLElement).addEventListener('click', () => (session.isShown = !session.isShown))
  session.watch(() => {
    find('key-shown', HTMLElement).textContent = session.veil(session.key)
    find('key-show', HTMLElement).setAttribute('aria-pressed', String(session.isShown))
  })
  filter.addEventListener('change', () => list(firstPage(filter), 'person'))
  filter.addEventListener('submit', (event) => event.preventDefault())
  previous.addEventListener('click', () => {
    if (shown?.place.previous !== undefined) void list(shown.place.previous, 'person')
  })
  next.addEventListener('click', () => {
    if (shown === undefined) return
    const { page, place } = shown
    if (page.next !== undefined)
      void list({ url: page.next, number: place.number + 1, previous: place }, 'person')
  })
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(timer)
    else if (session.key !== '') void list(wanted, 'watch')
  })

  if (session.key !== '') {
    setOpen(true)
    void list(wanted, 'person')
  }
}

const accept = ['Accept', 'application/json'] as const

function firstPage(filter: HTMLFormElement): Place {
  const choice = new FormData(filter)
  const url = new URL('v1/pets', base)
  url.searchParams.set('limit', String(choice.get('limit')))
  const status = String(choice.get('status'))
  if (status !== '') url.searchParams.set('status', status)
  return { url, number: 1 }
}

/** A header's value is Latin-1 to a browser, and no key needs more than ASCII (RFC 6750 section 2.1). */
function isSendable(key: string): boolean {
  return /^[\u0021-\u007e]*$/.test(key)
}

/** Not `disabled`, which would take the focus from whoever pages with the keyboard. */
function setOff(button: HTMLElement, isOff: boolean): void {
  button.setAttribute('aria-disabled', String(isOff))
}

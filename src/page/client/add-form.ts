/**
 * The form that adds a pet: sends it, and says what has become of it. It validates nothing itself, so that
 * the service's own messages can be seen.
 */
import type { ApiKey } from './api-key.ts'
import { createElement, getElement, isEnabled, markInvalid, setDisabled, setText, waiting } from './dom.ts'
import { formatMembers } from './exact-json.ts'
import { createName } from './pet-table.ts'
import {
  creationRequest,
  type FieldError,
  listRequest,
  pageUrlOf,
  type Pet,
  type PetPage,
  readError,
  readListResponse,
  readPetResponse,
} from './pets.ts'
import type { WireView } from './wire-view.ts'
import { base, type Exchange, send, type WireResponse } from './wire.ts'

const fields = ['name', 'categoryId', 'status']

/** What must change until an error under the form is over; undefined for what only another try can tell. */
type Cause = 'data file' | 'server' | undefined

/** What the form needs of the list beside it. */
interface List {
  /** Returns false when there is no response, or the key was rejected; both are shown to the user. */
  isAccepted(exchange: Exchange): boolean
  /** Requests the shown page again, since a pet was added. Resolves with what is then shown, if anything. */
  reload(): Promise<PetPage | undefined>
  /** Shows the page that begins with this pet. */
  showPageOf(pet: Pet): void
  /** Drops the response that is awaited, and requests the page again after a while. */
  reloadLater(): void
}

export function createAddForm(apiKey: ApiKey, wire: WireView, list: List) {
  const form = getElement('add', HTMLFormElement)
  const error = getElement('add-error', HTMLElement)
  const success = getElement('added', HTMLElement)
  const button = getElement('add-button', HTMLElement)
  let errorCause: Cause
  /** The pet that the form says was added. */
  let added: Pet | undefined
  /** Whether it also says that the pet is not listed. */
  let isUnlisted = false

  function clearMessages(): void {
    added = undefined
    errorCause = undefined
    showFieldErrors([])
    setText(success, '')
  }

  function clear(): void {
    form.reset()
    clearMessages()
  }

  async function add(body: string): Promise<void> {
    const request = creationRequest(body)
    const endWaiting = wire.begin(request)
    setAdding(true)
    const exchange = await send(request, apiKey.value)
    setAdding(false)
    // The user may have forgotten the key meanwhile, and then expects to see nothing that belongs to it.
    const isForgotten = exchange === undefined || exchange.key !== apiKey.value
    endWaiting(isForgotten ? undefined : exchange)
    if (isForgotten) return
    const { response } = exchange
    if (!list.isAccepted(exchange) || response?.status !== 201) {
      if (apiKey.value !== '') showError(response)
      return
    }
    const pet = readPetResponse(response)
    clear()
    getElement('name', HTMLElement).focus()
    showAdded(pet, true)
    const page = await list.reload()
    // Another one may have been added meanwhile, or the key forgotten.
    if (added === pet) showAdded(pet, page !== undefined && isOnPage(pet, page))
  }

  function setAdding(isAdding: boolean): void {
    setDisabled(button, isAdding)
    form.setAttribute('aria-busy', String(isAdding))
    success.dataset['outcome'] = isAdding ? 'awaited' : 'good'
    setText(success, isAdding ? waiting : '')
  }

  function showAdded(pet: Pet, isListed: boolean): void {
    added = pet
    isUnlisted = !isListed
    success.replaceChildren('Added ', createName(pet.name), ` with the id ${pet.id}.`)
    if (!isListed) success.append(' It is not on the page shown. ', createPageLink(pet))
    // On a low screen it is below the form and out of sight.
    success.scrollIntoView({ block: 'nearest' })
  }

  function showError(response: WireResponse | undefined): void {
    const { code, message, errors } =
      response === undefined
        ? { code: '', message: 'No response: it is not known whether the pet was added.', errors: [] }
        : readError(response)
    if (errors.length > 0) return showFieldErrors(errors)
    setText(error, message)
    // No other state of the service makes this request a good one.
    if (response?.status === 400) return
    // A proxy's error has no code: it could not reach the service. Without any response, no list tells what
    // became of the pet.
    if (response !== undefined && (code === '' || code === 'shutting_down')) errorCause = 'server'
    else if (code === 'data_file_invalid') errorCause = 'data file'
    // A response in flight may be older than the error, and say that all is well.
    list.reloadLater()
  }

  /**
   * Puts the fault that the data file has now in the place of the one that the service named, in parentheses.
   */
  function updateFault(fault = ''): void {
    const corrected = error.textContent?.replace(/\(.*\)/s, () => `(${fault})`)
    setText(error, corrected ?? '')
  }

  /** Shows each error at the field that it names. */
  function showFieldErrors(errors: readonly FieldError[]): void {
    for (const field of fields) {
      const message = errors.find((each) => each.field === field)?.message ?? ''
      setText(getElement(`${field}-error`, HTMLElement), message)
      markInvalid(getElement(field, HTMLElement), message !== '')
    }
    const others = errors.filter((each) => !fields.includes(each.field))
    setText(error, others.map((each) => `${each.field}: ${each.message}`).join('; '))
    form.querySelector<HTMLElement>('[aria-invalid]')?.focus()
  }

  function createPageLink(pet: Pet): HTMLElement {
    const link = createElement('a', { href: '#list-title' }, 'Go to its page')
    link.addEventListener('click', () => list.showPageOf(pet))
    return link
  }

  /** Corrects the message about an added pet that was not listed, once it is listed or was removed. */
  async function correctSuccess(page: PetPage): Promise<void> {
    const pet = added
    if (pet === undefined || !isUnlisted) return
    if (isOnPage(pet, page)) return showAdded(pet, true)
    const url = pageUrlOf(pet, new URL('v1/pets?limit=1', base))
    const exchange = await send(listRequest(url, true), apiKey.value)
    if (exchange?.response?.status !== 200 || added !== pet) return
    if (isOnPage(pet, readListResponse(exchange.response, url))) return
    added = undefined
    setText(success, '')
    wire.add(exchange)
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (!isEnabled(button)) return
    clearMessages()
    void add(formatBody())
  })

  return {
    /** Corrects what the form says by a page of the list that has just come. */
    correctMessages(page: PetPage): void {
      const isOver =
        errorCause === 'server' || (errorCause === 'data file' && page.dataFileError === undefined)
      if (isOver) clearMessages()
      else if (errorCause === 'data file') updateFault(page.dataFileError)
      void correctSuccess(page)
    },
    /** Sets the statuses to choose from. */
    setStatuses(statuses: readonly string[]): void {
      const options = statuses.map((status) => createElement('option', {}, status))
      getElement('status', HTMLSelectElement).append(...options)
    },
    clearMessages,
    clear,
  }
}

function formatBody(): string {
  return formatMembers([
    ['name', getElement('name', HTMLInputElement).value, true],
    ['categoryId', getElement('categoryId', HTMLInputElement).value, false],
    ['status', getElement('status', HTMLSelectElement).value, true],
  ])
}

function isOnPage(pet: Pet, { pets }: PetPage): boolean {
  return pets.some(({ id }) => id === pet.id)
}

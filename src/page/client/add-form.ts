/** The form that adds a pet. It validates nothing itself, so that the service's own messages can be seen. */
import { createElement, getElement, markInvalid, setText } from './dom.ts'
import { formatTyped } from './exact-json.ts'
import { type FieldError, splitMessage } from './pets.ts'

const fields = ['name', 'categoryId', 'status']

export interface AddForm {
  /** Shows each error of a 400 response at the field that it names. */
  showFieldErrors(message: string): void
  /** Shows an error that concerns no field in particular. */
  showError(message: string): void
  showSuccess(message: string): void
  /** The statuses to choose from. */
  setStatuses(statuses: readonly string[]): void
  /** Leaves what was typed. */
  clearMessages(): void
  clear(): void
}

/** `add` is called with the body of the request, and not again until its promise has settled. */
export function createAddForm(add: (body: string) => Promise<void>): AddForm {
  const form = getElement('add', HTMLFormElement)
  const error = getElement('add-error', HTMLElement)
  const success = getElement('added', HTMLElement)
  let isAdding = false

  function showErrors(errors: readonly FieldError[]): void {
    for (const field of fields) {
      const messages = messagesFor(errors, field)
      setText(getElement(`${field}-error`, HTMLElement), messages.join('; '))
      markInvalid(getElement(field, HTMLElement), messages.length > 0)
    }
    setText(error, messagesFor(errors, undefined).join('; '))
    form.querySelector<HTMLElement>('[aria-invalid]')?.focus()
  }

  function clearMessages(): void {
    showErrors([])
    setText(success, '')
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (isAdding) return
    isAdding = true
    clearMessages()
    try {
      await add(formatBody())
    } finally {
      isAdding = false
    }
  })

  return {
    showFieldErrors: (message) => showErrors(splitMessage(message, fields)),
    showError: (message) => setText(error, message),
    showSuccess: (message) => setText(success, message),
    setStatuses(statuses) {
      const options = statuses.map((status) => createElement('option', {}, status))
      getElement('status', HTMLSelectElement).append(...options)
    },
    clearMessages,
    clear() {
      form.reset()
      clearMessages()
    },
  }
}

function messagesFor(errors: readonly FieldError[], field: string | undefined): readonly string[] {
  return errors.filter((error) => error.field === field).map(({ message }) => message)
}

/** The fields as they were typed; empty ones are left out. */
function formatBody(): string {
  const name = getElement('name', HTMLInputElement).value
  const categoryId = getElement('categoryId', HTMLInputElement).value.trim()
  const status = getElement('status', HTMLSelectElement).value
  const members: string[] = []
  if (name !== '') members.push(`"name":${JSON.stringify(name)}`)
  if (categoryId !== '') members.push(`"categoryId":${formatTyped(categoryId)}`)
  if (status !== '') members.push(`"status":${JSON.stringify(status)}`)
  return `{${members.join()}}`
}

/** The form that adds an animal. It checks nothing itself: what is wrong is the service's to say. */
import { find, tell } from './dom.ts'
import { formatTyped } from './exact-json.ts'
import { type Fault, splitFaults } from './pets.ts'

const fields = ['name', 'categoryId', 'status']

export interface AddForm {
  /** Shows each fault of a 400 at the field that it names. */
  showFaults(message: string): void
  /** Shows what is wrong with no field in particular. */
  showTrouble(message: string): void
  showAdded(message: string): void
  clear(): void
}

/** `add` gets the body of the request, and is not called again until it is done. */
export function createAddForm(add: (body: string) => Promise<void>): AddForm {
  const form = find('add', HTMLFormElement)
  const trouble = find('add-fault', HTMLElement)
  const added = find('added', HTMLElement)
  let isAdding = false

  function show(faults: readonly Fault[]): void {
    for (const field of fields) {
      const messages = faults.filter((fault) => fault.field === field).map(({ message }) => message)
      tell(find(`${field}-fault`, HTMLElement), messages.join('; '))
      markInvalid(find(field, HTMLElement), messages.length > 0)
    }
    const others = faults.filter(({ field }) => field === undefined).map(({ message }) => message)
    tell(trouble, others.join('; '))
    form.querySelector<HTMLElement>('[aria-invalid]')?.focus()
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (isAdding) return
    isAdding = true
    show([])
    tell(added, '')
    try {
      await add(formatBody())
    } finally {
      isAdding = false
    }
  })

  return {
    showFaults: (message) => show(splitFaults(message, fields)),
    showTrouble: (message) => tell(trouble, message),
    showAdded: (message) => tell(added, message),
    clear() {
      form.reset()
      show([])
      tell(added, '')
    },
  }
}

/** As typed; an empty field is left out. */
function formatBody(): string {
  const name = find('name', HTMLInputElement).value
  const categoryId = find('categoryId', HTMLInputElement).value.trim()
  const status = find('status', HTMLSelectElement).value
  const members: string[] = []
  if (name !== '') members.push(`"name":${JSON.stringify(name)}`)
  if (categoryId !== '') members.push(`"categoryId":${formatTyped(categoryId)}`)
  if (status !== '') members.push(`"status":${JSON.stringify(status)}`)
  return `{${members.join()}}`
}

export function markInvalid(input: HTMLElement, isInvalid: boolean): void {
  if (isInvalid) input.setAttribute('aria-invalid', 'true')
  else input.removeAttribute('aria-invalid')
}

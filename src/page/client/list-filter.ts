/** The choices for the list: a status to filter by, and how many pets a page shows. */
import { createElement, getElement } from './dom.ts'
import { base } from './wire.ts'

/** How many pets a page may show, and how many it shows at first. */
const pageSizes = [5, 10, 20, 50, 100]
const firstPageSize = 10

/** `onChange` is called after each choice. */
export function createListFilter(onChange: () => void) {
  const form = getElement('filter', HTMLFormElement)
  const pageSize = getElement('page-size', HTMLSelectElement)
  pageSize.append(...pageSizes.map((size) => createElement('option', {}, String(size))))
  pageSize.value = String(firstPageSize)
  for (const control of [form, pageSize]) control.addEventListener('change', onChange)
  form.addEventListener('submit', (event) => event.preventDefault())

  return {
    /** Returns the address of the first page of what is chosen. */
    firstPageUrl(): URL {
      const choice = new FormData(form)
      const url = new URL('v1/pets', base)
      url.searchParams.set('limit', String(choice.get('limit')))
      const status = String(choice.get('status'))
      if (status !== '') url.searchParams.set('status', status)
      return url
    },
    chooseAll(): void {
      getElement('all-statuses', HTMLInputElement).checked = true
    },
    /** Sets the statuses to filter by. Until then, the list can only be shown unfiltered. */
    setStatuses(statuses: readonly string[]): void {
      const choices = statuses.map((status) => {
        const input = createElement('input', { type: 'radio', name: 'status', value: status })
        return createElement('label', {}, input, createElement('span', {}, status))
      })
      getElement('status-filter', HTMLElement).append(...choices)
    },
  }
}

/**
 * The form that asks for the API key while there is none, and the bar that shows the key and lets the user
 * forget it.
 */
import type { ApiKey } from './api-key.ts'
import { getElement, markInvalid, setText } from './dom.ts'

/** `onKey` is called with each key that is typed, `onForget` when the user wants it forgotten. */
export function createKeyForm(apiKey: ApiKey, onKey: (key: string) => void, onForget: () => void) {
  const form = getElement('key-form', HTMLFormElement)
  const input = getElement('key', HTMLInputElement)
  const bar = getElement('key-bar', HTMLElement)
  const showButton = getElement('key-show', HTMLElement)

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    onKey(input.value)
  })
  getElement('key-forget', HTMLElement).addEventListener('click', onForget)
  showButton.addEventListener('click', () => apiKey.toggleVisibility())
  apiKey.subscribe(() => {
    getElement('key-shown', HTMLElement).textContent = apiKey.mask(apiKey.value)
    showButton.textContent = apiKey.isVisible ? 'Hide key' : 'Show key'
  })

  return {
    /** Shows the form. */
    ask(): void {
      form.hidden = false
      bar.hidden = true
    },
    /** Shows the bar instead of the form. */
    showKey(): void {
      form.hidden = true
      bar.hidden = false
      input.value = ''
    },
    showError(error: string): void {
      setText(getElement('key-error', HTMLElement), error)
      markInvalid(input, error !== '')
    },
    focus: () => input.focus(),
  }
}

/** Returns the key in what somebody copied, perhaps with the word before it from an Authorization header. */
export function parseKey(text: string): string {
  return text.trim().replace(/^Bearer\s+/i, '')
}

/**
 * Returns why the key cannot be sent, if it cannot. Browsers send header values as Latin-1; a bearer key
 * needs ASCII only (RFC 6750 section 2.1).
 */
export function findKeyFault(key: string): string | undefined {
  if (/^[\u0021-\u007e]*$/.test(key)) return undefined
  const space = /\s/.test(key) ? 'it has a space, and ' : ''
  return `This cannot be sent: ${space}a key consists of ASCII letters, digits and punctuation.`
}

/** Buttons that copy a text to the clipboard. */
import { getElement, createElement } from './dom.ts'

/**
 * Creates a button that copies what `text` returns when it is pressed. `what` tells screen readers which of
 * several such buttons this is.
 */
export function createCopyButton(label: string, what: string, text: () => string): HTMLButtonElement {
  const attributes = { type: 'button', class: 'secondary', 'aria-label': `${label}: ${what}` }
  const button = createElement('button', attributes, label)
  let timer: number | undefined
  button.addEventListener('click', async () => {
    const isCopied = await copy(text())
    button.textContent = isCopied ? 'Copied' : 'Not copied'
    getElement('announcement', HTMLElement).textContent = isCopied
      ? `Copied: ${what}.`
      : 'The browser did not allow copying.'
    clearTimeout(timer)
    timer = setTimeout(() => (button.textContent = label), 2000)
  })
  return button
}

async function copy(text: string): Promise<boolean> {
  try {
    // Browsers have it on https and on loopback only, not for a workshop's http address in the local network.
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement
  const attributes = { class: 'visually-hidden', 'aria-hidden': 'true', tabindex: '-1' }
  const textarea = createElement('textarea', attributes, text)
  document.body.append(textarea)
  textarea.select()
  const isCopied = document.execCommand('copy')
  textarea.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isCopied
}

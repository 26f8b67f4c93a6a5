/** Buttons that copy. */
import { find, make } from './dom.ts'

/** The text is asked for when the button is pressed. `what` names it where there are several such buttons. */
export function createCopyButton(label: string, what: string, text: () => string): HTMLButtonElement {
  const button = make('button', { type: 'button', class: 'quiet', 'aria-label': `${label}: ${what}` }, label)
  let timer: number | undefined
  button.addEventListener('click', async () => {
    const isCopied = await copy(text())
    button.textContent = isCopied ? 'Copied' : 'Not copied'
    find('said', HTMLElement).textContent = isCopied
      ? `Copied: ${what}.`
      : 'The browser did not let it be copied.'
    clearTimeout(timer)
    timer = setTimeout(() => (button.textContent = label), 2000)
  })
  return button
}

async function copy(text: string): Promise<boolean> {
  try {
    // Only there on https and on loopback; a workshop's address in the local network is neither.
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

function copyBySelection(text: string): boolean {
  const before = document.activeElement
  const area = make('textarea', { class: 'unseen', 'aria-hidden': 'true', tabindex: '-1' }, text)
  document.body.append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  if (before instanceof HTMLElement) before.focus()
  return isCopied
}

/** The panel that shows the request and the response of the user's last action, as they were sent. */
import { createCopyButton } from './copy.ts'
import { createBreakableText, getElement } from './dom.ts'
import type { Session } from './session.ts'
import { type Exchange, formatCurl, formatRequest, formatResponse } from './wire.ts'

export interface WireView {
  show(exchange: Exchange): void
  clear(): void
}

export function createWireView(session: Session): WireView {
  const panel = getElement('wire', HTMLElement)
  const placeholder = getElement('wire-empty', HTMLElement)
  const summary = getElement('wire-summary', HTMLElement)
  const link = getElement('wire-link', HTMLElement)
  const request = getElement('wire-request', HTMLElement)
  const response = getElement('wire-response', HTMLElement)
  const lineBreaks = getElement('wire-line-breaks', HTMLInputElement)
  let last: Exchange | undefined

  function render(): void {
    panel.hidden = last === undefined
    placeholder.hidden = last !== undefined
    link.hidden = last === undefined
    if (last === undefined) {
      // The key and the pets must not remain in the document, hidden or not.
      for (const element of [summary, link, request, response]) element.textContent = ''
      return
    }
    const { status, reason } = last.response ?? { status: 0, reason: '' }
    const outcome = last.response === undefined ? 'no response' : `${status} ${reason}`
    summary.dataset['outcome'] = status >= 200 && status < 300 ? 'good' : 'bad'
    const { method, url } = last.request
    const text = `${method} ${url.pathname}: ${outcome}, ${Math.ceil(last.milliseconds)} ms`
    summary.textContent = text
    link.textContent = text
    const key = session.maskKey(last.key)
    request.replaceChildren(...createBreakableText(formatRequest(last.request, key, lineBreaks.checked)))
    response.replaceChildren(...createBreakableText(getResponseText(lineBreaks.checked)))
  }

  function getResponseText(withLineBreaks: boolean): string {
    if (last === undefined) return ''
    return last.response === undefined ? 'No response.' : formatResponse(last.response, withLineBreaks)
  }

  getElement('wire-request-copies', HTMLElement).append(
    createCopyButton('Copy', 'request', () => (last ? formatRequest(last.request, last.key) : '')),
    createCopyButton('Copy as curl', 'request', () => (last ? formatCurl(last.request, last.key) : '')),
  )
  getElement('wire-response-copies', HTMLElement).append(
    createCopyButton('Copy', 'response', () => getResponseText(false)),
  )
  lineBreaks.addEventListener('change', render)
  session.subscribe(render)

  return {
    show(exchange) {
      last = exchange
      render()
    },
    clear() {
      last = undefined
      render()
    },
  }
}

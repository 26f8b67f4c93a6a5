/** The panel with the last action's request and answer, as they went over the wire. */
import { createCopyButton } from './copy.ts'
import { find } from './dom.ts'
import type { Session } from './session.ts'
import { type Exchange, formatAnswer, formatCurl, formatRequest } from './wire.ts'

export interface WireView {
  show(exchange: Exchange): void
  clear(): void
}

export function createWireView(session: Session): WireView {
  const panel = find('wire', HTMLElement)
  const none = find('wire-none', HTMLElement)
  const summary = find('wire-summary', HTMLElement)
  const link = find('wire-link', HTMLElement)
  const request = find('wire-request', HTMLElement)
  const answer = find('wire-answer', HTMLElement)
  const breaks = find('wire-breaks', HTMLInputElement)
  let last: Exchange | undefined

  const answerText = (isBroken: boolean): string => {
    if (last === undefined) return ''
    return last.answer === undefined ? 'No answer came.' : formatAnswer(last.answer, isBroken)
  }

  function render(): void {
    panel.hidden = last === undefined
    none.hidden = last !== undefined
    link.hidden = last === undefined
    if (last === undefined) {
      // Gone is gone: what was on the wire has no business in a hidden element.
      for (const element of [summary, link, request, answer]) element.textContent = ''
      return
    }
    const { status, reason } = last.answer ?? { status: 0, reason: '' }
    const outcome = last.answer === undefined ? 'no answer' : `${status} ${reason}`
    summary.dataset['outcome'] = status >= 200 && status < 300 ? 'good' : 'bad'
    const { method, url } = last.request
    const text = `${method} ${url.pathname}: ${outcome}, ${Math.ceil(last.milliseconds)} ms`
    summary.textContent = text
    link.textContent = text
    request.textContent = formatRequest(last.request, session.veil(last.key), breaks.checked)
    answer.textContent = answerText(breaks.checked)
  }

  find('wire-request-copies', HTMLElement).append(
    createCopyButton('Copy', 'request', () => (last ? formatRequest(last.request, last.key) : '')),
    createCopyButton('Copy as curl', 'request', () => (last ? formatCurl(last.request, last.key) : '')),
  )
  find('wire-answer-copies', HTMLElement).append(createCopyButton('Copy', 'answer', () => answerText(false)))
  breaks.addEventListener('change', render)
  session.watch(render)

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

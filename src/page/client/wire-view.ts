/** The panel that shows requests and responses as they were sent, one exchange at a time. */
import { createCopyButton } from './copy.ts'
import {
  createBreakableText,
  createElement,
  createJsonText,
  createLines,
  getElement,
  setDisabled,
} from './dom.ts'
import { breakLines } from './exact-json.ts'
import type { ApiKey } from './api-key.ts'
import {
  createRequestMessage,
  createResponseMessage,
  type Exchange,
  formatCurl,
  formatMessage,
  type Message,
  type WireRequest,
} from './wire.ts'

/** How many exchanges one can go back. */
const maxExchanges = 50

export type WireView = ReturnType<typeof createWireView>

export function createWireView(apiKey: ApiKey) {
  const panel = getElement('wire', HTMLElement)
  const placeholder = getElement('wire-empty', HTMLElement)
  const summary = getElement('wire-summary', HTMLElement)
  const link = getElement('wire-link', HTMLElement)
  const earlier = getElement('wire-earlier', HTMLElement)
  const later = getElement('wire-later', HTMLElement)
  const lineBreaks = getElement('wire-line-breaks', HTMLInputElement)
  const hint = 'The browser adds headers of its own, such as User-Agent.'
  const showRequest = createMessageView(getElement('wire-request', HTMLElement), hint)
  const showResponse = createMessageView(getElement('wire-response', HTMLElement))
  /** The oldest first. */
  let exchanges: Exchange[] = []
  /** The index of the one that is shown. */
  let current = 0

  function render(): void {
    const exchange = exchanges[current]
    panel.hidden = exchange === undefined
    placeholder.hidden = exchange !== undefined
    link.hidden = exchange === undefined
    setDisabled(earlier, current === 0)
    setDisabled(later, current >= exchanges.length - 1)
    const text = exchange === undefined ? '' : summarize(exchange)
    summary.textContent = text
    link.textContent = text
    summary.dataset['outcome'] = outcomeOf(exchange)
    panel.setAttribute('aria-busy', String(outcomeOf(exchange) === 'awaited'))
    // This is done without an exchange, too: the key and the pets must not remain in the document, hidden or
    // not.
    showRequest(
      exchange && createRequestMessage(exchange.request, apiKey.mask(exchange.key)),
      lineBreaks.checked,
    )
    showResponse(exchange && createResponseMessage(exchange), lineBreaks.checked)
  }

  function go(steps: number): void {
    current = Math.min(Math.max(current + steps, 0), Math.max(exchanges.length - 1, 0))
    render()
  }

  function createCopy(label: string, what: string, format: (exchange: Exchange) => string): HTMLElement {
    return createCopyButton(label, what, () => {
      const exchange = exchanges[current]
      return exchange === undefined ? '' : format(exchange)
    })
  }

  getElement('wire-request-copies', HTMLElement).append(
    createCopy('Copy', 'request', ({ request, key }) => formatMessage(createRequestMessage(request, key))),
    createCopy('Copy as curl', 'request', ({ request, key }) => formatCurl(request, key)),
  )
  getElement('wire-response-copies', HTMLElement).append(
    createCopy('Copy', 'response', (exchange) => formatMessage(createResponseMessage(exchange))),
  )
  earlier.addEventListener('click', () => go(-1))
  later.addEventListener('click', () => go(1))
  lineBreaks.addEventListener('change', render)
  apiKey.subscribe(render)

  /** Adds an exchange, and shows it unless `isBehind`. */
  function add(exchange: Exchange, isBehind = false): void {
    exchanges.push(exchange)
    const dropped = Math.max(exchanges.length - maxExchanges, 0)
    exchanges.splice(0, dropped)
    go(isBehind ? -dropped : exchanges.length)
  }

  return {
    add,
    /**
     * Shows a request whose response is awaited, unless `isBehind`: then it can be reached with the button
     * Later. The function that it returns puts the exchange in its place, or nothing when the request was
     * aborted.
     */
    begin(request: WireRequest, isBehind = false): (exchange: Exchange | undefined) => void {
      const awaited: Exchange = { request, key: apiKey.value, response: undefined, milliseconds: undefined }
      add(awaited, isBehind)
      return (exchange) => {
        const index = exchanges.indexOf(awaited)
        // All were cleared meanwhile, since the key was forgotten.
        if (index === -1) return
        exchanges.splice(index, 1)
        go(index < current ? -1 : 0)
        if (exchange !== undefined) add(exchange, isBehind)
      }
    },
    clear(): void {
      exchanges = []
      go(0)
    },
  }
}

/** Returns what a summary's colour says. */
export function outcomeOf(exchange: Exchange | undefined): 'awaited' | 'good' | 'bad' {
  if (exchange !== undefined && exchange.milliseconds === undefined) return 'awaited'
  return exchange?.response?.status.toString().startsWith('2') ? 'good' : 'bad'
}

export function summarize({ request: { method, url }, response, milliseconds }: Exchange): string {
  const start = `${method} ${url.pathname}${url.search}: `
  if (milliseconds === undefined) return `${start}waiting for the response`
  const outcome = response === undefined ? 'no response' : `${response.status} ${response.reason}`
  return `${start}${outcome}, ${Math.ceil(milliseconds)} ms`
}

/** Shows a message in three parts, of which the headers are folded, so that the body is seen first. */
export function createMessageView(
  element: HTMLElement,
  hint = 'Browsers report header names in lower case, sorted.',
): (message: Message | undefined, withLineBreaks: boolean) => void {
  const start = createElement('pre', { class: 'start' })
  const count = createElement('summary', {})
  const headers = createElement('pre', {})
  const fold = createElement('details', {}, count, headers, createElement('p', { class: 'hint' }, hint))
  const body = createElement('pre', { class: 'body' })
  element.append(start, fold, body)
  return (message = { start: '', headers: [], body: '' }, withLineBreaks) => {
    start.replaceChildren(...createLines(message.start, createBreakableText))
    fold.hidden = message.headers.length === 0
    count.textContent = message.headers.length === 1 ? '1 header' : `${message.headers.length} headers`
    headers.replaceChildren(...createLines(message.headers.join('\n'), createBreakableText))
    const text = withLineBreaks ? breakLines(message.body) : message.body
    body.replaceChildren(...createLines(text, createJsonText))
  }
}

/** The reference: the service's own OpenAPI document as text for people, and each operation as a form. */
import type { ApiKey } from './api-key.ts'
import { createCopyButton } from './copy.ts'
import {
  type Child,
  cloneTemplate,
  createElement,
  fill,
  getDescendant,
  getElement,
  createCodeSpans,
} from './dom.ts'
import type { Document, Entry, Response } from './openapi-document.ts'
import { connectTryForm } from './try-form.ts'
import { base } from './wire.ts'

export function createReferenceView(apiKey: ApiKey) {
  const body = getElement('reference-body', HTMLElement)
  // On a phone, the reference would be many screens below the store.
  getElement('reference-fold', HTMLDetailsElement).open = !matchMedia('(max-width: 40rem)').matches
  return {
    show({ info, paths }: Document): void {
      const entries = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]): Entry => [method.toUpperCase(), path, operation]),
      )
      const cards = entries.map((entry) => createCard(apiKey, entry))
      body.replaceChildren(createOverview(info.description, entries), ...cards)
    },
    showError(error: unknown, retry: () => void): void {
      const reason = error instanceof Error ? error.message : String(error)
      const button = createElement('button', { type: 'button' }, 'Try again')
      button.addEventListener('click', retry)
      const notice = `openapi.json could not be read: ${reason} `
      body.replaceChildren(createElement('p', { class: 'notice bad' }, notice, button))
    },
  }
}

function createOverview(description: string, entries: readonly Entry[]): Node {
  const overview = cloneTemplate('overview-template')
  const address = new URL('v1', base).href
  fill(overview, '.prose', ...paragraphs(description))
  fill(overview, '.bar code', address)
  getDescendant(overview, 'a', HTMLAnchorElement).href = new URL('openapi.json', base).href
  const copy = createCopyButton('Copy', 'base address', () => address)
  fill(overview, '.bar', copy)
  fill(overview, 'ul').prepend(
    ...entries.map(([method, path, { operationId, deprecated }]) => {
      const code = createElement('code', {}, path)
      const link = createElement('a', { href: `#${operationId}` }, createMethod(method), ' ', code)
      return createElement('li', {}, link, deprecated && createChip('deprecated'))
    }),
  )
  return overview
}

function createCard(apiKey: ApiKey, entry: Entry): Node {
  const [method, path, operation] = entry
  const { operationId, summary, deprecated, responses } = operation
  const card = cloneTemplate('operation-template')
  const titleId = `${operationId}-title`
  const article = fill(card, 'article')
  article.id = operationId
  article.setAttribute('aria-labelledby', titleId)
  fill(card, 'h3', summary).id = titleId
  const route = createElement('code', {}, `${base.pathname}v1${path}`)
  fill(card, '.route', createMethod(method), ' ', route)
  fill(card, '.operation-id', operationId)
  const chips = [deprecated && 'deprecated', operation['x-stability']]
  fill(card, 'header', ...chips.map((chip) => chip && createChip(chip)))
  const texts = [deprecated && createDeprecation(responses['200']), ...paragraphs(operation.description)]
  fill(card, '.prose', ...texts)
  fill(card, '.responses', ...Object.entries(responses).flatMap(createResponse))
  connectTryForm(card, apiKey, entry)
  return card
}

function createMethod(method: string): HTMLElement {
  return createElement('b', { 'data-method': method }, method)
}

function createChip(text: string): HTMLElement {
  return createElement('span', { class: 'chip', 'data-status': text }, text)
}

/**
 * Creates the notice of an operation that ends. The dates are those of the headers in the response (RFC 9745,
 * RFC 8594).
 */
function createDeprecation(response: Response | undefined): HTMLElement {
  const readHeader = (name: string): string => response?.headers?.[name]?.schema.const ?? ''
  const since = createDate(new Date(Number(readHeader('Deprecation').slice(1)) * 1000))
  const until = createDate(new Date(readHeader('Sunset')))
  const text = ['Deprecated since ', since, '; scheduled for removal on ', until, '.']
  return createElement('p', { class: 'notice warning' }, ...text)
}

function createDate(date: Date): HTMLElement {
  const parts = { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' } as const
  const text = date.toLocaleDateString('en-GB', parts)
  return createElement('time', { datetime: date.toISOString().slice(0, 10) }, text)
}

function createResponse([status, { description }]: readonly [string, Response]): readonly Node[] {
  const outcome = status.startsWith('2') ? 'good' : 'bad'
  const term = createElement('dt', { 'data-outcome': outcome }, status === 'default' ? 'other' : status)
  return [term, createElement('dd', {}, ...createCodeSpans(description))]
}

function paragraphs(text: string): readonly Child[] {
  return text.split('\n\n').map((paragraph) => createElement('p', {}, ...createCodeSpans(paragraph)))
}

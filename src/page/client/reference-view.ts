/** The reference: the service's own OpenAPI document as text for people. */
import { createCopyButton } from './copy.ts'
import { type Child, createBreakableText, createElement, getElement } from './dom.ts'
import { breakLines } from './exact-json.ts'
import type { Body, Document, Header, Operation, Response, Schema } from './openapi-document.ts'
import {
  describeType,
  follow,
  inline,
  createFields,
  createSchema,
  createSchemaFields,
  paragraphs,
} from './schema-view.ts'
import type { ApiKey } from './api-key.ts'
import { base, formatCurl, type WireRequest } from './wire.ts'

/** An operation with its place in the document. */
interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export interface ReferenceView {
  show(document: Document): void
  showError(error: unknown, retry: () => void): void
}

export function createReferenceView(apiKey: ApiKey): ReferenceView {
  const body = getElement('reference-body', HTMLElement)
  // On a phone, the reference would be many screens below the store.
  getElement('reference-fold', HTMLDetailsElement).open = !matchMedia('(max-width: 40rem)').matches
  return {
    show(document) {
      body.replaceChildren(...createReference(document, apiKey))
    },
    showError(error, retry) {
      const reason = error instanceof Error ? error.message : String(error)
      const button = createElement('button', { type: 'button' }, 'Try again')
      button.addEventListener('click', retry)
      const notice = `openapi.json could not be read: ${reason} `
      body.replaceChildren(createElement('p', { class: 'notice bad' }, notice, button))
    },
  }
}

function createReference(document: Document, apiKey: ApiKey): readonly Node[] {
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Entry => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
  const schemas = Object.entries(document.components.schemas)
  return [
    createElement(
      'div',
      { class: 'overview' },
      createElement('div', { class: 'prose' }, ...paragraphs(document.info.description)),
      createElement(
        'nav',
        { class: 'card', 'aria-label': 'Reference' },
        createElement(
          'p',
          { class: 'bar' },
          createElement('code', {}, apiUrl('').href),
          createCopyButton('Copy', 'base address', () => apiUrl('').href),
        ),
        createElement(
          'ul',
          { class: 'operation-links' },
          ...entries.map(createOperationLink),
          createElement('li', {}, createElement('a', { href: '#schemas' }, 'Schemas')),
        ),
      ),
    ),
    ...entries.map((entry) => createOperation(document, apiKey, entry)),
    createElement(
      'section',
      { id: 'schemas', class: 'card', 'aria-labelledby': 'schemas-title' },
      createElement('h3', { id: 'schemas-title' }, 'Schemas'),
      createElement(
        'div',
        { class: 'schemas' },
        ...schemas.map(([name, schema]) => createSchema(name, schema)),
      ),
    ),
  ]
}

function createOperationLink({ method, path, operation }: Entry): HTMLElement {
  const { deprecated = false, operationId } = operation
  const link = createElement(
    'a',
    { href: `#${operationId}` },
    createMethod(method),
    ' ',
    createElement('code', {}, path),
  )
  return createElement('li', {}, link, deprecated ? createChip('deprecated') : undefined)
}

function createOperation(
  document: Document,
  apiKey: ApiKey,
  { method, path, operation }: Entry,
): HTMLElement {
  const {
    operationId,
    summary,
    parameters = [],
    requestBody,
    deprecated = false,
    'x-stability': stability,
  } = operation
  const responses = Object.entries(operation.responses).map(
    ([status, response]) => [status, follow(document, response)] as const,
  )
  const [good] = responses
  const titleId = `${operationId}-title`
  return createElement(
    'article',
    { id: operationId, class: 'card operation', 'aria-labelledby': titleId },
    createElement(
      'header',
      {},
      createElement('h3', { id: titleId }, summary),
      createElement(
        'p',
        { class: 'route' },
        createMethod(method),
        ' ',
        createElement('code', {}, `${base.pathname}v1${path}`),
      ),
      createElement('code', { class: 'operation-id' }, operationId),
      deprecated ? createChip('deprecated') : undefined,
      stability && createChip(stability),
    ),
    createElement(
      'div',
      { class: 'description' },
      deprecated ? createDeprecation(responses.map(([, response]) => response)) : undefined,
      ...paragraphs(operation.description),
      ...(parameters.length === 0
        ? []
        : [
            createElement('h4', {}, 'Parameters'),
            createFields(parameters.map((field) => [field.name, field])),
          ]),
      ...(requestBody === undefined ? [] : createBody(document, requestBody)),
      createElement('h4', {}, 'Responses'),
      createElement(
        'div',
        { class: 'responses' },
        ...responses.map(([status, response]) => createResponse(status, response)),
      ),
    ),
    createElement(
      'div',
      { class: 'examples' },
      ...createCurl(apiKey, exampleRequest(method, path, operation), summary),
      ...(good === undefined ? [] : createExample(`Response ${good[0]}`, examplesOf(good[1])[0])),
    ),
  )
}

function createMethod(method: string): HTMLElement {
  return createElement('b', { 'data-method': method }, method)
}

function createChip(text: string): HTMLElement {
  return createElement('span', { class: 'chip', 'data-status': text }, text)
}

/** The dates are those of the headers in each response (RFC 9745, RFC 8594). */
function createDeprecation(responses: readonly Response[]): HTMLElement {
  const readDate = (name: string): string => {
    const values = responses.map(({ headers }) => headers?.[name]?.schema?.const)
    return values.find((value) => value !== undefined) ?? ''
  }
  const since = new Date(Number(readDate('Deprecation').slice(1)) * 1000)
  const until = new Date(readDate('Sunset'))
  const text = ['Deprecated since ', createDate(since), '; scheduled for removal on ', createDate(until), '.']
  return createElement('p', { class: 'notice warning' }, ...text)
}

function createDate(date: Date): HTMLElement {
  const parts = { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' } as const
  return createElement(
    'time',
    { datetime: date.toISOString().slice(0, 10) },
    date.toLocaleDateString('en-GB', parts),
  )
}

function createBody(document: Document, body: NonNullable<Operation['requestBody']>): readonly Node[] {
  const schema = schemaOf(body)
  if (schema === undefined) return []
  return [
    createElement('h4', {}, 'Body'),
    createElement('p', {}, ...describeType(schema), ' as JSON. ', ...inline(body.description)),
    createSchemaFields(follow(document, schema)),
  ]
}

/** A response as one line that opens to show its headers and examples. */
function createResponse(status: string, response: Response): HTMLElement {
  const schema = schemaOf(response)
  const name = status === 'default' ? 'other' : status
  return createElement(
    'details',
    {},
    createElement(
      'summary',
      {},
      createElement('b', { class: 'code', 'data-outcome': status.startsWith('2') ? 'good' : 'bad' }, name),
      createElement('span', {}, ...inline(response.description)),
    ),
    createHeaders(response.headers ?? {}),
    schema && createElement('p', {}, 'Body: ', ...describeType(schema)),
    ...examplesOf(response).flatMap((example) => createExample(example[0], example)),
  )
}

function createHeaders(headers: Readonly<Record<string, Header>>): HTMLElement | undefined {
  const items = Object.entries(headers).flatMap(([name, { description, example, schema }]) => {
    const value = example ?? schema?.const
    return [
      createElement('dt', {}, createElement('code', {}, value === undefined ? name : `${name}: ${value}`)),
      createElement('dd', {}, ...inline(description)),
    ]
  })
  return items.length === 0 ? undefined : createElement('dl', { class: 'headers' }, ...items)
}

function createCurl(apiKey: ApiKey, request: WireRequest, summary: string): readonly Child[] {
  const code = createElement('pre', { 'aria-label': `curl: ${summary}`, role: 'group', tabindex: '0' })
  apiKey.subscribe(() => {
    const command = formatCurl(request, apiKey.mask(apiKey.value) || placeholder)
    code.replaceChildren(...createBreakableText(command))
  })
  const copy = createCopyButton('Copy', `curl for ${summary}`, () =>
    formatCurl(request, apiKey.value || placeholder),
  )
  return [createElement('div', { class: 'bar' }, createElement('h4', {}, 'curl'), copy), code]
}

/** Stands in for the key until one is entered; the form that the interface uses. */
const placeholder = '<API_KEY>'

/** A request for the operation, with the document's example values. */
function exampleRequest(
  method: string,
  path: string,
  { parameters = [], requestBody = {} }: Operation,
): WireRequest {
  const query = new URLSearchParams()
  let filled = path
  for (const { name, in: place, example, 'x-extension': isExtension = false } of parameters) {
    if (place === 'path') filled = filled.replace(`{${name}}`, String(example))
    else if (example !== undefined && !isExtension) query.set(name, String(example))
  }
  const url = apiUrl(filled)
  url.search = query.toString()
  const [example] = examplesOf(requestBody)
  if (method !== 'POST' || example === undefined) return { method: 'GET', url, headers: [] }
  return { method, url, headers: [['Content-Type', 'application/json']], body: JSON.stringify(example[1]) }
}

function apiUrl(path: string): URL {
  return new URL(`v1${path}`, base)
}

function schemaOf({ content }: Body): Schema | undefined {
  return content?.['application/json']?.schema
}

function examplesOf({ content }: Body): readonly (readonly [name: string, value: unknown])[] {
  return Object.entries(content?.['application/json']?.examples ?? {}).map(([name, { value }]) => [
    name,
    value,
  ])
}

function createExample(title: string, example?: readonly [string, unknown]): readonly Node[] {
  if (example === undefined) return []
  return [
    createElement('h4', {}, title),
    createElement('pre', {}, ...createBreakableText(breakLines(JSON.stringify(example[1])))),
  ]
}

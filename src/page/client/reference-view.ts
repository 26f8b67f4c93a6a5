/** The reference, made from the service's own OpenAPI document. */
import { createCopyButton } from './copy.ts'
import { type Child, find, make } from './dom.ts'
import { breakLines } from './exact-json.ts'
import type { Body, Document, Header, Operation, Response, Schema } from './openapi-document.ts'
import {
  describeType,
  follow,
  inline,
  makeFields,
  makeSchema,
  makeSchemaFields,
  paragraphs,
} from './schema-view.ts'
import type { Session } from './session.ts'
import { base, formatCurl, type WireRequest } from './wire.ts'

/** An operation with where it is. */
interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export async function showReference(session: Session): Promise<void> {
  const body = find('reference-body', HTMLElement)
  try {
    const response = await fetch(new URL('openapi.json', base))
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`)
    // The document is the service's own and comes with this page; openapi-document.ts says what is read of it.
    const document = (await response.json()) as Document
    body.replaceChildren(...makeReference(document, session))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const retry = make('button', { type: 'button' }, 'Try again')
    retry.addEventListener('click', () => showReference(session))
    body.replaceChildren(
      make('p', { class: 'notice bad' }, `openapi.json could not be read: ${reason} `, retry),
    )
  }
}

function makeReference(document: Document, session: Session): readonly Node[] {
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Entry => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
  const schemas = Object.entries(document.components.schemas)
  return [
    make(
      'div',
      { class: 'overview' },
      make('div', { class: 'prose' }, ...paragraphs(document.info.description)),
      make(
        'nav',
        { class: 'card', 'aria-label': 'Reference' },
        make(
          'p',
          { class: 'bar' },
          make('code', {}, apiUrl('').href),
          createCopyButton('Copy', 'base address', () => apiUrl('').href),
        ),
        make(
          'ul',
          { class: 'jumps' },
          ...entries.map(makeJump),
          make('li', {}, make('a', { href: '#fields' }, 'Fields of the bodies')),
        ),
      ),
    ),
    ...entries.map((entry) => makeOperation(document, session, entry)),
    make(
      'section',
      { id: 'fields', class: 'card', 'aria-labelledby': 'fields-title' },
      make('h3', { id: 'fields-title' }, 'Fields of the bodies'),
      make('div', { class: 'schemas' }, ...schemas.map(([name, schema]) => makeSchema(name, schema))),
    ),
  ]
}

function makeJump({ method, path, operation }: Entry): HTMLElement {
  const { deprecated = false, operationId } = operation
  const link = make('a', { href: `#${operationId}` }, makeMethod(method), ' ', make('code', {}, path))
  return make('li', {}, link, deprecated ? makeChip('deprecated') : undefined)
}

function makeOperation(
  document: Document,
  session: Session,
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
  const answers = Object.entries(operation.responses).map(
    ([status, response]) => [status, follow(document, response)] as const,
  )
  const [good] = answers
  const titleId = `${operationId}-title`
  return make(
    'article',
    { id: operationId, class: 'card operation', 'aria-labelledby': titleId },
    make(
      'header',
      {},
      make('h3', { id: titleId }, summary),
      make('p', { class: 'route' }, makeMethod(method), ' ', make('code', {}, `${base.pathname}v1${path}`)),
      make('code', { class: 'operation-id' }, operationId),
      deprecated ? makeChip('deprecated') : undefined,
      stability && makeChip(stability),
    ),
    make(
      'div',
      { class: 'words' },
      deprecated ? makeDeprecation(answers.map(([, response]) => response)) : undefined,
      ...paragraphs(operation.description),
      ...(parameters.length === 0
        ? []
        : [make('h4', {}, 'Parameters'), makeFields(parameters.map((field) => [field.name, field]))]),
      ...(requestBody === undefined ? [] : makeBody(document, requestBody)),
      make('h4', {}, 'Answers'),
      make('div', { class: 'answers' }, ...answers.map(([status, response]) => makeAnswer(status, response))),
    ),
    make(
      'div',
      { class: 'examples' },
      ...makeCurl(session, exampleRequest(method, path, operation), summary),
      ...(good === undefined ? [] : makeExample(`Answer ${good[0]}`, examplesOf(good[1])[0])),
    ),
  )
}

function makeMethod(method: string): HTMLElement {
  return make('b', { 'data-method': method }, method)
}

function makeChip(text: string): HTMLElement {
  return make('span', { class: 'chip', 'data-status': text }, text)
}

/** The dates are those of the headers that each answer carries (RFC 9745, RFC 8594). */
function makeDeprecation(responses: readonly Response[]): HTMLElement {
  const read = (name: string): string => {
    const values = responses.map(({ headers }) => headers?.[name]?.schema?.const)
    return values.find((value) => value !== undefined) ?? ''
  }
  const since = new Date(Number(read('Deprecation').slice(1)) * 1000)
  const until = new Date(read('Sunset'))
  const words = ['Deprecated since ', makeDate(since), ', to be removed on ', makeDate(until), '.']
  return make('p', { class: 'notice old' }, ...words)
}

function makeDate(date: Date): HTMLElement {
  const parts = { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' } as const
  return make('time', { datetime: date.toISOString().slice(0, 10) }, date.toLocaleDateString('en-GB', parts))
}

function makeBody(document: Document, body: NonNullable<Operation['requestBody']>): readonly Node[] {
  const schema = schemaOf(body)
  if (schema === undefined) return []
  return [
    make('h4', {}, 'Body'),
    make('p', {}, ...describeType(schema), ' as JSON. ', ...inline(body.description)),
    makeSchemaFields(follow(document, schema)),
  ]
}

/** One answer in a line, with its headers and bodies a click away. */
function makeAnswer(status: string, response: Response): HTMLElement {
  const schema = schemaOf(response)
  const name = status === 'default' ? 'other' : status
  return make(
    'details',
    {},
    make(
      'summary',
      {},
      make('b', { class: 'code', 'data-outcome': status.startsWith('2') ? 'good' : 'bad' }, name),
      make('span', {}, ...inline(response.description)),
    ),
    makeHeaders(response.headers ?? {}),
    schema && make('p', {}, 'Body: ', ...describeType(schema)),
    ...examplesOf(response).flatMap((example) => makeExample(example[0], example)),
  )
}

function makeHeaders(headers: Readonly<Record<string, Header>>): HTMLElement | undefined {
  const items = Object.entries(headers).flatMap(([name, { description, example, schema }]) => {
    const value = example ?? schema?.const
    return [
      make('dt', {}, make('code', {}, value === undefined ? name : `${name}: ${value}`)),
      make('dd', {}, ...inline(description)),
    ]
  })
  return items.length === 0 ? undefined : make('dl', { class: 'headers' }, ...items)
}

function makeCurl(session: Session, request: WireRequest, summary: string): readonly Child[] {
  const code = make('pre', { 'aria-label': `curl: ${summary}`, role: 'group', tabindex: '0' })
  session.watch(() => (code.textContent = formatCurl(request, session.veil(session.key) || placeholder)))
  const copy = createCopyButton('Copy', `curl for ${summary}`, () =>
    formatCurl(request, session.key || placeholder),
  )
  return [make('div', { class: 'bar' }, make('h4', {}, 'curl'), copy), code]
}

/** Stands for the key while none is entered, in the form that the interface uses. */
const placeholder = '<API_KEY>'

/** A request that shows the operation, with the examples of the document. */
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

function makeExample(title: string, example?: readonly [string, unknown]): readonly Node[] {
  if (example === undefined) return []
  return [make('h4', {}, title), make('pre', {}, breakLines(JSON.stringify(example[1])))]
}

/**
 * A form for each operation, made from what its request may carry: the same request as curl, and the response
 * beneath.
 */
import type { ApiKey } from './api-key.ts'
import { createCopyButton } from './copy.ts'
import {
  cloneTemplate,
  createBreakableText,
  createElement,
  createLines,
  fill,
  getDescendant,
  createCodeSpans,
  isEnabled,
  setDisabled,
  setText,
} from './dom.ts'
import { formatMembers, type Typed } from './exact-json.ts'
import type { Entry, Field, Operation, Schema } from './openapi-document.ts'
import { createMessageView, outcomeOf, summarize } from './wire-view.ts'
import { base, createResponseMessage, type Exchange, formatCurl, send, type WireRequest } from './wire.ts'

/** Stands in for the key until one is entered; the form that the interface uses. */
const placeholder = '<API_KEY>'

/** Connects the form of the card with its curl and its response. */
export function connectTryForm(card: ParentNode, apiKey: ApiKey, [method, path, operation]: Entry): void {
  const { operationId, summary: title } = operation
  const fields = fieldsOf(operation)
  const form = getDescendant(card, 'form', HTMLFormElement)
  const button = fill(card, '.primary')
  const summary = fill(card, '.summary')
  const response = fill(card, '.message')
  const curl = fill(card, '.curl')
  let exchange: Exchange | undefined

  function readRequest(): WireRequest {
    return createRequest(method, path, fields, new FormData(form))
  }

  function render(): void {
    // The pets that a key has shown must not remain in the document once it is forgotten.
    if (exchange?.key !== apiKey.value) exchange = undefined
    const command = formatCurl(readRequest(), apiKey.mask(apiKey.value) || placeholder)
    curl.replaceChildren(...createLines(command, createBreakableText))
    summary.dataset['outcome'] = outcomeOf(exchange)
    setText(summary, exchange === undefined ? '' : summarize(exchange))
    response.hidden = exchange?.milliseconds === undefined
    showResponse(exchange && createResponseMessage(exchange), true)
  }

  form.prepend(...fields.map((field) => createField(operationId, field)))
  const showResponse = createMessageView(response)
  const copyText = (): string => formatCurl(readRequest(), apiKey.value || placeholder)
  fill(card, '.examples .bar', createCopyButton('Copy', `curl for ${title}`, copyText))
  button.setAttribute('aria-label', `Try it: ${title}`)
  response.setAttribute('aria-label', `Response: ${title}`)
  curl.setAttribute('aria-label', `curl: ${title}`)
  apiKey.subscribe(render)
  form.addEventListener('input', render)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (!isEnabled(button)) return
    setDisabled(button, true)
    const request = readRequest()
    exchange = { request, key: apiKey.value, response: undefined, milliseconds: undefined }
    render()
    exchange = await send(request, apiKey.value)
    setDisabled(button, false)
    render()
  })
}

/** Returns all that a request may carry: the parameters, then the members of its JSON body. */
function fieldsOf({ parameters = [], requestBody }: Operation): readonly Field[] {
  if (requestBody === undefined) return parameters
  const { schema, examples } = requestBody.content['application/json']
  const [example] = Object.values(examples)
  const members = Object.entries(schema.properties ?? {}).map(([name, member]): Field => {
    const { description } = member
    const required = schema.required?.includes(name) === true
    return { name, in: 'body', description, required, schema: member, example: example?.value[name] }
  })
  return [...parameters, ...members]
}

/** Creates the request of what was typed, to the digit; an empty field is left out. */
function createRequest(method: string, path: string, fields: readonly Field[], typed: FormData): WireRequest {
  const readFields = (place: string): readonly Typed[] => {
    const chosen = fields.filter((field) => field.in === place)
    return chosen.map(({ name, schema }) => [name, String(typed.get(name)), schema.type === 'string'])
  }
  let filled = path
  for (const [name, text] of readFields('path'))
    filled = filled.replace(`{${name}}`, encodeURIComponent(text))
  const url = new URL(`v1${filled}`, base)
  for (const [name, text] of readFields('query')) if (text !== '') url.searchParams.set(name, text)
  const members = readFields('body')
  if (members.length === 0) return { method, url, headers: [] }
  return { method, url, headers: [['Content-Type', 'application/json']], body: formatMembers(members) }
}

/** Creates a field. What a request needs is filled in with the document's example. */
function createField(operationId: string, field: Field): Node {
  const { name, in: place, description, required = false, schema, example } = field
  const id = `${operationId}-${name}`
  const part = cloneTemplate('field-template')
  const need = required ? 'required' : 'optional'
  getDescendant(part, 'label', HTMLLabelElement).htmlFor = id
  fill(part, 'label code', name)
  fill(part, 'label span', need).className = need
  fill(part, 'p', `${describeType(schema)}, in the ${place}. `, ...createCodeSpans(description)).id =
    `${id}-hint`
  const input = getDescendant(part, 'input', HTMLInputElement)
  Object.assign(input, { id, name, value: required ? String(example) : '' })
  input.setAttribute('aria-describedby', `${id}-hint`)
  if (schema.type === 'integer') input.inputMode = 'numeric'
  if (schema.enum !== undefined) {
    input.setAttribute('list', `${id}-values`)
    const options = schema.enum.map((value) => createElement('option', { value }))
    fill(part, 'datalist', ...options).id = `${id}-values`
  }
  return part
}

/** Describes a schema in a few words, such as `integer, 1 to 100, 20 by default`. */
function describeType({ type, format, minimum, maximum, default: standard, enum: values }: Schema): string {
  let text = values?.join(', ') ?? (format === undefined ? type : `${type} (${format})`)
  if (minimum !== undefined)
    text += maximum === undefined ? `, at least ${minimum}` : `, ${minimum} to ${maximum}`
  return standard === undefined ? text : `${text}, ${standard} by default`
}

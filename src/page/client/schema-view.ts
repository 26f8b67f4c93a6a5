/** The parts of the reference that say what a value looks like. */
import { type Child, make } from './dom.ts'
import type { Document, Field, Reference, Schema } from './openapi-document.ts'

/** What a reference stands for, or the node itself when it is none. */
export function follow<T extends object>(document: Document, node: T | Reference): T {
  if (!isReference(node)) return node
  let target: unknown = document
  for (const step of node.$ref.split('/').slice(1)) {
    target = Object.getOwnPropertyDescriptor(target, step)?.value
  }
  // A reference stands only where what it names may stand (OpenAPI 3.1 section 4.8.23).
  return target as T
}

function isReference(node: object): node is Reference {
  return '$ref' in node
}

export function makeSchema(name: string, schema: Schema): HTMLElement {
  const title = make('h4', { id: `field-${name}` }, make('code', {}, name))
  if (schema.properties === undefined) {
    const type = make('span', { class: 'type' }, ...describeType(schema))
    return make('div', {}, title, make('p', {}, type, ...inline(schema.description)))
  }
  return make('div', {}, title, make('p', {}, ...inline(schema.description)), makeSchemaFields(schema))
}

export function makeSchemaFields({ properties = {}, required = [] }: Schema): HTMLElement {
  return makeFields(
    Object.entries(properties).map(([name, schema]) => {
      return [name, { schema, description: schema.description, required: required.includes(name) }]
    }),
  )
}

/** Parameters, or the members of an object. */
export function makeFields(fields: readonly (readonly [name: string, field: Field])[]): HTMLElement {
  const items = fields.flatMap(([name, { description, in: place, required = false, schema }]) => {
    const type = [...describeType(schema), place && `, in the ${place}`]
    const need = required
      ? make('span', { class: 'must' }, 'required')
      : make('span', { class: 'may' }, 'optional')
    return [
      make('dt', {}, make('code', {}, name), ' ', need),
      make('dd', {}, make('span', { class: 'type' }, ...type), ...inline(description)),
    ]
  })
  return make('dl', { class: 'fields' }, ...items)
}

/** A schema in a few words. */
export function describeType(schema: Schema): readonly Child[] {
  const { $ref, items, type = 'any', format, minimum, maximum, default: standard, enum: values } = schema
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1) ?? ''
    return [make('a', { href: `#field-${name}` }, name)]
  }
  if (items !== undefined) return ['array of ', ...describeType(items)]
  let text = format === undefined ? type : `${type} (${format})`
  if (minimum !== undefined)
    text += maximum === undefined ? `, at least ${minimum}` : `, ${minimum} to ${maximum}`
  if (standard !== undefined) text += `, ${standard} by default`
  if (values === undefined) return [text]
  return [`${text}: `, ...values.flatMap((value, i) => [i === 0 ? '' : ', ', make('code', {}, value)])]
}

export function paragraphs(text: string): readonly Node[] {
  return text.split('\n\n').map((paragraph) => make('p', {}, ...inline(paragraph)))
}

/** Of Markdown, the document's descriptions use code spans and paragraphs. */
export function inline(text = ''): readonly Child[] {
  return text.split('`').map((part, i) => (i % 2 === 1 ? make('code', {}, part) : part))
}

/** The parts of the reference that describe schemas. */
import { type Child, createElement } from './dom.ts'
import type { Document, Field, Reference, Schema } from './openapi-document.ts'

/** What a `$ref` points to, or the node itself without one. */
export function follow<T extends object>(document: Document, node: T | Reference): T {
  if (!isReference(node)) return node
  let target: unknown = document
  for (const step of node.$ref.split('/').slice(1)) {
    target = Object.getOwnPropertyDescriptor(target, step)?.value
  }
  // A reference may only point to what could stand in its place (OpenAPI 3.1 section 4.8.23).
  return target as T
}

function isReference(node: object): node is Reference {
  return '$ref' in node
}

export function createSchema(name: string, schema: Schema): HTMLElement {
  const title = createElement('h4', { id: `schema-${name}` }, createElement('code', {}, name))
  if (schema.properties === undefined) {
    const type = createElement('span', { class: 'type' }, ...describeType(schema))
    return createElement('div', {}, title, createElement('p', {}, type, ...inline(schema.description)))
  }
  return createElement(
    'div',
    {},
    title,
    createElement('p', {}, ...inline(schema.description)),
    createSchemaFields(schema),
  )
}

export function createSchemaFields({ properties = {}, required = [] }: Schema): HTMLElement {
  return createFields(
    Object.entries(properties).map(([name, schema]) => {
      return [name, { schema, description: schema.description, required: required.includes(name) }]
    }),
  )
}

/** A list of parameters, or of the members of an object. */
export function createFields(fields: readonly (readonly [name: string, field: Field])[]): HTMLElement {
  const items = fields.flatMap(([name, { description, in: place, required = false, schema }]) => {
    const type = [...describeType(schema), place && `, in the ${place}`]
    const need = required
      ? createElement('span', { class: 'required' }, 'required')
      : createElement('span', { class: 'optional' }, 'optional')
    return [
      createElement('dt', {}, createElement('code', {}, name), ' ', need),
      createElement('dd', {}, createElement('span', { class: 'type' }, ...type), ...inline(description)),
    ]
  })
  return createElement('dl', { class: 'fields' }, ...items)
}

/** A schema in a few words, such as `integer, 1 to 100, 20 by default`. */
export function describeType(schema: Schema): readonly Child[] {
  const { $ref, items, type = 'any', format, minimum, maximum, default: standard, enum: values } = schema
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1) ?? ''
    return [createElement('a', { href: `#schema-${name}` }, name)]
  }
  if (items !== undefined) return ['array of ', ...describeType(items)]
  let text = format === undefined ? type : `${type} (${format})`
  if (minimum !== undefined)
    text += maximum === undefined ? `, at least ${minimum}` : `, ${minimum} to ${maximum}`
  if (standard !== undefined) text += `, ${standard} by default`
  if (values === undefined) return [text]
  return [
    `${text}: `,
    ...values.flatMap((value, i) => [i === 0 ? '' : ', ', createElement('code', {}, value)]),
  ]
}

export function paragraphs(text: string): readonly Node[] {
  return text.split('\n\n').map((paragraph) => createElement('p', {}, ...inline(paragraph)))
}

/** The only Markdown in the document's descriptions is code spans and paragraphs. */
export function inline(text = ''): readonly Child[] {
  return text.split('`').map((part, i) => (i % 2 === 1 ? createElement('code', {}, part) : part))
}

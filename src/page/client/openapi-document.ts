/** The service's own OpenAPI 3.1 document, as far as this page reads it. */
import { base } from './wire.ts'

/**
 * Returns the document without references: what they lead to stands in their place. Throws when it cannot be
 * fetched or is not JSON.
 */
export async function loadDocument(): Promise<Document> {
  const response = await fetch(new URL('openapi.json', base))
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`)
  const document: unknown = await response.json()
  // The service that sent this page sent the document too, so its shape is known.
  return follow(document, document) as Document
}

/** Puts what references lead to in their place. What stands beside a `$ref` counts too, and wins. */
function follow(node: unknown, document: unknown): unknown {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map((item) => follow(item, document))
  const { $ref, ...own }: { $ref?: string } = node
  const steps = $ref?.split('/').slice(1)
  const target = steps?.reduce((at, step) => Object.getOwnPropertyDescriptor(at, step)?.value, document)
  const members = Object.entries(Object.assign({}, target, own))
  return Object.fromEntries(members.map(([name, value]) => [name, follow(value, document)]))
}

export interface Document {
  readonly info: { readonly description: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly deprecated?: boolean
  readonly 'x-stability'?: string
  readonly parameters?: readonly Field[]
  readonly requestBody?: { readonly content: { readonly 'application/json': MediaType } }
  readonly responses: Readonly<Record<string, Response>>
}

/** An operation with its place in the document. */
export type Entry = readonly [method: string, path: string, operation: Operation]

interface MediaType {
  readonly schema: Schema
  readonly examples: Readonly<Record<string, { readonly value: Readonly<Record<string, unknown>> }>>
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly schema: Schema }>>
}

/** A parameter, or a member of the body. */
export interface Field {
  readonly name: string
  readonly in: string
  readonly description?: string | undefined
  readonly required?: boolean
  readonly schema: Schema
  readonly example: unknown
}

export interface Schema {
  readonly type: string
  readonly format?: string
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly const?: string
  readonly enum?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

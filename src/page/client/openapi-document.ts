/** The service's own OpenAPI 3.1 document, as far as this page reads it. */
import { base } from './wire.ts'

/** Throws when it cannot be fetched or is not JSON. */
export async function loadDocument(): Promise<Document> {
  const response = await fetch(new URL('openapi.json', base))
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`)
  // The service that sent this page sent the document too, so its shape is known.
  return (await response.json()) as Document
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
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Body & { readonly description?: string }
  readonly responses: Readonly<Record<string, Response | Reference>>
}

/** What a parameter and a member of an object have in common. */
export interface Field {
  readonly in?: string
  readonly description?: string | undefined
  readonly required?: boolean
  readonly schema: Schema
}

export interface Parameter extends Field {
  readonly name: string
  readonly in: string
  readonly example?: unknown
  /** True for what this service adds to the interface. */
  readonly 'x-extension'?: boolean
}

/** What a request and a response have in common. */
export interface Body {
  readonly content?: Readonly<Record<string, MediaType>>
}

export interface Response extends Body {
  readonly description: string
  readonly headers?: Readonly<Record<string, Header>>
}

export interface Header {
  readonly description?: string
  readonly example?: unknown
  readonly schema?: Schema
}

export interface MediaType {
  readonly schema?: Schema
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

export interface Reference {
  readonly $ref: string
}

export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly const?: string
  readonly enum?: readonly string[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

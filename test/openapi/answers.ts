/** Holds answers against the document: each one's status, headers and body, as the operation that it belongs to says. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { openApiText } from '../../src/text/bundled-texts.ts'

export interface ReceivedAnswer {
  /** Unknown for the answer to what is no readable request. */
  readonly request: { readonly method: string; readonly target: string } | undefined
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body: string | undefined
}

/** `label` names the answer as the document has it, such as `listPets 200`, or says that it is of no operation. */
export interface Verdict {
  readonly label: string
  readonly faults: readonly string[]
}

interface Example {
  readonly value: { readonly code?: string }
}

interface Response {
  readonly headers?: Readonly<Record<string, { readonly required: boolean; readonly schema: object }>>
  readonly content: Readonly<
    Record<string, { readonly schema: object; readonly examples: Readonly<Record<string, Example>> }>
  >
}

interface OpenApi {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { operationId: string; responses: Record<string, unknown> }>>>
  >
  readonly components: { readonly schemas: object; readonly responses: Readonly<Record<string, Response>> }
}

// What it is made of is checked by a public validator; this names the parts that are read here.
const document = JSON.parse(openApiText) as OpenApi

/** What any answer may carry: framing, caching, CORS. */
const commonHeaders = new Set([
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'access-control-max-age',
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'vary',
  'x-content-type-options',
])

const errorSchema = { $ref: '#/components/schemas/Error' }

/** Reads numbers in text, as they are in a header. */
const headerAjv = new Ajv2020({ strict: false, allErrors: true, coerceTypes: true })
formats.default(headerAjv)
const bodyAjv = new Ajv2020({ strict: false, allErrors: true })
formats.default(bodyAjv)
const validators = new Map<object, ValidateFunction>()

export function judge(answer: ReceivedAnswer): Verdict {
  const { status } = answer
  const operation = findOperation(answer.request)
  if (operation === undefined) return { label: `no operation ${status}`, faults: judgeOther(answer) }
  const { operationId, responses } = operation
  // A failure on purpose has whatever status was asked for.
  if (answer.body?.startsWith('{"code":"failed_on_purpose"')) return { label: 'on purpose', faults: [] }
  const name = String(status) in responses ? String(status) : 'default'
  const label = `${operationId} ${name}`
  if (name === 'default' && status < 400) return { label, faults: [`status ${status} is not described`] }
  return { label, faults: judgeResponse(answer, resolve(responses[name])) }
}

/** The labels of all answers that the document describes. */
export function describedLabels(): readonly string[] {
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item))
  return operations.flatMap(({ operationId, responses }) =>
    Object.keys(responses).map((status) => `${operationId} ${status}`),
  )
}

function judgeResponse(answer: ReceivedAnswer, response: Response): readonly string[] {
  const { status, headers, body } = answer
  const faults: string[] = []
  const given = readHeaders(headers)
  const described = Object.entries(response.headers ?? {}).map(
    ([name, header]) => [name.toLowerCase(), header] as const,
  )
  for (const [name, { required, schema }] of described) {
    const value = given.get(name)
    if (value !== undefined) faults.push(...validate(headerAjv, schema, { value }, name))
    else if (required) faults.push(`${name}: is missing`)
  }
  const known = new Set([...commonHeaders, ...described.map(([name]) => name)])
  for (const name of given.keys()) if (!known.has(name)) faults.push(`${name}: is not described`)
  const type = given.get('content-type') ?? ''
  const content = response.content[type]
  if (content === undefined) return [...faults, `content-type: ${type} is not described`]
  if (isToHead(answer)) return [...faults, ...judgeNoBody(answer)]
  const json = parse(body)
  faults.push(...validate(bodyAjv, content.schema, { value: json }, 'body'))
  const codes = Object.values(content.examples).map(({ value }) => value.code)
  if (status >= 400) faults.push(...judgeError(json, status, codes))
  return faults
}

/** An answer outside the operations: to a path or a method that the document does not have, or to no readable request. */
function judgeOther(answer: ReceivedAnswer): readonly string[] {
  const { status, headers, body } = answer
  if (status < 400) return []
  const given = readHeaders(headers)
  const faults =
    given.get('content-type') === 'application/json' ? [] : ['content-type: is not application/json']
  if (status === 405 && !given.has('allow')) faults.push('allow: is missing')
  if (isToHead(answer)) return [...faults, ...judgeNoBody(answer)]
  const json = parse(body)
  faults.push(...validate(bodyAjv, errorSchema, { value: json }, 'body'))
  return [...faults, ...judgeError(json, status)]
}

function isToHead({ request }: ReceivedAnswer): boolean {
  return request?.method === 'HEAD'
}

/** The answer to HEAD has the headers of the one to GET, and no body (RFC 9110 section 9.3.2). */
function judgeNoBody({ body }: ReceivedAnswer): readonly string[] {
  return body === undefined ? [] : ['body: there is one']
}

function judgeError(
  error: unknown,
  status: number,
  codes?: readonly (string | undefined)[],
): readonly string[] {
  if (typeof error !== 'object' || error === null || !('code' in error) || !('status' in error)) return []
  const faults = error.status === status ? [] : [`body: its status is ${String(error.status)}`]
  if (codes !== undefined && !codes.includes(String(error.code))) {
    faults.push(`body: the code ${String(error.code)} is not described`)
  }
  return faults
}

/** The operation of a request; HEAD has none of its own, and is GET's. */
function findOperation(request: ReceivedAnswer['request']) {
  if (request === undefined) return undefined
  const method = request.method === 'HEAD' ? 'get' : request.method.toLowerCase()
  const path = findPath(request.target)
  if (path === undefined) return undefined
  const pattern = Object.keys(document.paths).find(
    (template) => template.split('/').length === path.split('/').length,
  )
  return document.paths[pattern ?? '']?.[method]
}

/**
 * The part below `/v1` of a target that is, decoded, `/pets` or `/pets/{petId}`. A service may be mounted under a path, but none of the
 * tests mounts it under `/api`: that is a path which clients try in vain.
 */
function findPath(target: string): string | undefined {
  const [path = ''] = target.replace(/^https?:\/\/[^/?]+/i, '').split('?')
  const segments = path.split('/').map((segment) => {
    try {
      return decodeURIComponent(segment).replaceAll('/', '%2F')
    } catch {
      return segment
    }
  })
  return /^(?!\/api\/)(?:\/[\w-]+)*?\/v1(\/pets(?:\/[^/]+)?)$/.exec(segments.join('/'))?.[1]
}

function resolve(response: unknown): Response {
  const reference = response as { $ref?: string } & Response // one of the two, as OpenAPI has it
  if (reference.$ref === undefined) return reference
  const name = reference.$ref.slice('#/components/responses/'.length)
  const found = document.components.responses[name]
  if (found === undefined) throw new Error(`no response ${name}`)
  return found
}

/** Wrapped in an object, so that a header, which is text, can be read as what its schema says. */
function validate(
  validator: Ajv2020,
  schema: object,
  holder: { value: unknown },
  name: string,
): readonly string[] {
  let check = validators.get(schema)
  if (check === undefined) {
    check = validator.compile({
      properties: { value: schema },
      required: ['value'],
      components: { schemas: document.components.schemas },
    })
    validators.set(schema, check)
  }
  if (check(holder)) return []
  return (check.errors ?? []).map(
    ({ instancePath, message }) =>
      `${name}${instancePath.slice('/value'.length)}: ${message ?? 'is not valid'}`,
  )
}

function readHeaders(list: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (let i = 0; i < list.length; i += 2) headers.set(String(list[i]).toLowerCase(), String(list[i + 1]))
  return headers
}

function parse(body: string | undefined): unknown {
  try {
    return JSON.parse(body ?? '')
  } catch {
    return undefined
  }
}

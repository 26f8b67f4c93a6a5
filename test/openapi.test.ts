/**
 * The OpenAPI document says what the code does: its routes, limits, names, codes and examples. What public tools say of it is held
 * by `test/openapi/`, which has its own package.json.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as v from 'valibot'
import { deprecation, sunset, pageSizes } from '../src/api/operations.ts'
import { openApiText } from '../src/text/bundled-texts.ts'
import { maxBodyBytes } from '../src/http/limits.ts'
import { errorCodes } from '../src/api/refusals.ts'
import { NewPetSchema, PetSchema } from '../src/pet/pet-rules.ts'
import { defaultStatus, petMembers, petStatuses, type SeedPet } from '../src/pet/pet.ts'
import { createPetStore } from '../src/index.ts'
import { assertRefusal, listen, send, startApp } from './support.ts'
import { wholePet } from './whole-pet.ts'

test('GET /openapi.json answers the document without a key', async (t) => {
  const { send: ask } = await startApp(t)
  const answer = await ask('/openapi.json', { headers: { authorization: null } })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.text, openApiText)
})

test('has the routes of the service, and no others', async (t) => {
  const { send: ask } = await startApp(t)
  for (const [path, item] of Object.entries(resolve(at('paths')))) {
    const described = Object.keys(resolve(item)).map((method) => method.toUpperCase())
    const { headers } = await ask(`/v1${path.replace(/\{\w+\}/, '1')}`, { method: 'OPTIONS' })
    const routed = (headers.get('allow') ?? '').split(', ')
    assert.deepEqual(
      routed.filter((method) => method !== 'HEAD' && method !== 'OPTIONS').toSorted(),
      described.toSorted(),
      path,
    )
  }
})

test('has the parameters, the bodies and the headers of the interface and of its extensions', () => {
  const lines: string[] = []
  for (const { operation } of operations()) {
    const { operationId, parameters = [], requestBody, responses } = operation
    lines.push(String(operationId))
    for (const parameter of Object.values(resolve(parameters))) {
      const { type, minimum } = resolve(member(parameter, 'schema'))
      const place = `${String(member(parameter, 'in'))} ${String(member(parameter, 'name'))}`
      lines.push(`  ${place}${markOf(parameter)} ${String(type)} ${String(minimum)}`)
    }
    if (requestBody !== undefined) lines.push(`  body${markOf(requestBody)} ${mediaOf(requestBody)}`)
    for (const [status, response] of Object.entries(resolve(responses))) {
      const names = headersOf(response).map(([name, header]) => {
        const { const: constant, minimum, type = typeof constant } = resolve(member(header, 'schema'))
        assert.equal(type, name === 'X-Total-Count' ? 'integer' : 'string', name)
        return ` ${name}${markOf(header)}${minimum === undefined ? '' : `>=${String(minimum)}`}`
      })
      const codes = Number(status) < 400 ? [] : [...codesOf(response)].toSorted().map((code) => ` ${code}`)
      lines.push(`  ${status} ${mediaOf(response)}${names.join('')}${codes.join('')}`)
    }
  }
  const error = 'application/json Error'
  const others = Object.entries(errorCodes)
    .filter(
      ([code, { status }]) =>
        [405, 408, 417, 431, 500, 501, 503, 507].includes(status) && code !== 'data_file_invalid',
    )
    .map(([code]) => code)
    .toSorted()
    .join(' ')
  assert.deepEqual(lines, [
    'listPets',
    '  query limit? integer 1',
    '  query status? string undefined',
    '  query after? integer 0',
    '  200 application/json Pets X-Total-Count?>=0 Link? X-Data-File-Error?',
    `  400 ${error} invalid_parameter malformed_request`,
    `  401 ${error} WWW-Authenticate! unauthorized`,
    `  default ${error} Allow? ${others}`,
    'createPet',
    '  body! application/json NewPet',
    '  201 application/json Pet Location!',
    `  400 ${error} invalid_body malformed_json malformed_request`,
    `  401 ${error} WWW-Authenticate! unauthorized`,
    `  413 ${error} content_too_large`,
    `  415 ${error} Accept-Encoding? unsupported_media_type`,
    `  503 ${error} data_file_invalid shutting_down storage_failed`,
    `  507 ${error} insufficient_storage`,
    `  default ${error} Allow? ${others}`,
    'getPet',
    '  path petId! integer 1',
    '  200 application/json Pet Deprecation! Sunset!',
    `  400 ${error} malformed_request`,
    `  401 ${error} WWW-Authenticate! Deprecation! Sunset! unauthorized`,
    `  404 ${error} Deprecation! Sunset! not_found`,
    `  default ${error} Allow? Deprecation? Sunset? ${others}`,
  ])
})

test('names its version and that of the interface', () => {
  const versions = [at('openapi'), at('info', 'title'), at('info', 'version')]
  assert.deepEqual(versions, ['3.1.0', 'Petstore', '1.0.0'])
  assert.deepEqual(
    list('tags').map((tag) => member(tag, 'name')),
    ['animals'],
  )
})

test('names the path that the service is mounted under', async (t) => {
  const store = await createPetStore({ apiKeys: ['k'], pets: [], basePath: '/store' })
  const { text: mounted } = await send(await listen(t, store.listener), '/openapi.json')
  assert.equal(at('servers', 0, 'url'), '/v1')
  assert.match(mounted, /"servers":\[\{"url":"\/store\/v1"/)
  assert.equal(mounted.replaceAll('/store/v1', '/v1'), JSON.stringify(document()))
})

test('has the members of a pet, and says which are required', () => {
  const pet = { id: 1, ...wholePet }
  for (const [name, schema, members] of [
    ['Pet', PetSchema, petMembers],
    ['NewPet', NewPetSchema, petMembers.filter((each) => each !== 'id')],
  ] as const) {
    const place = `src/api/openapi.json, components.schemas.${name}`
    const described = at('components', 'schemas', name)
    assert.deepEqual(Object.keys(resolve(member(described, 'properties'))), members, place)
    const required = members.filter((each) => !v.is(schema, { ...pet, [each]: undefined }))
    assert.deepEqual(member(described, 'required'), required, place)
  }
})

test('has the limits, the statuses and the dates of the code', () => {
  const [limit, status, after] = list('paths', '/pets', 'get', 'parameters')
  assert.deepEqual(member(limit, 'schema'), { type: 'integer', ...pageSizes })
  assert.deepEqual(resolve(member(status, 'schema')), at('components', 'schemas', 'PetStatus'))
  assert.deepEqual(at('components', 'schemas', 'PetStatus', 'enum'), petStatuses)
  assert.equal(member(after, 'x-extension'), true)
  const newPet = at('components', 'schemas', 'NewPet')
  assert.match(
    String(member(newPet, 'properties', 'status', 'description')),
    new RegExp(`\`${defaultStatus}\``),
  )
  const createPet = at('paths', '/pets', 'post')
  assert.match(String(member(createPet, 'requestBody', 'description')), new RegExp(`\\b${maxBodyBytes}\\b`))
  const getPet = at('paths', '/pets/{petId}', 'get')
  assert.equal(member(getPet, 'deprecated'), true)
  assert.equal(member(getPet, 'x-sunset'), '2030-12-05')
  const headers = member(getPet, 'responses', '200', 'headers')
  assert.equal(member(headers, 'Deprecation', 'schema', 'const'), deprecation)
  assert.equal(member(headers, 'Sunset', 'schema', 'const'), sunset)
})

test('has each of the error codes, as an example of an answer with its status', () => {
  const seen = new Set<string>()
  for (const { operation } of operations()) {
    for (const [status, response] of Object.entries(resolve(operation['responses']))) {
      if (Number(status) < 400) continue
      for (const [name, example] of Object.entries(examplesOf(response))) {
        const { code, status: exampleStatus } = resolve(member(example, 'value'))
        assert.equal(name, code)
        assert.equal(exampleStatus, Object.entries(errorCodes).find(([known]) => known === code)?.[1].status)
        if (status !== 'default') assert.equal(String(exampleStatus), status)
        seen.add(String(code))
      }
    }
  }
  assert.deepEqual(
    [...seen].toSorted(),
    Object.keys(errorCodes).toSorted(),
    'src/api/openapi.json has other error codes than src/api/refusals.ts',
  )
  const causes: Readonly<Record<string, RegExp>> = {
    data_file_invalid: /^The data file is not valid \(line \d+, column \d+: expected .+\); /,
    storage_failed: /^The storage failed; /,
    insufficient_storage: /^There is no room left; /,
  }
  // A creation that fails says whether the pet may be stored.
  for (const status of [503, 507]) {
    // No creation has the code of /healthz.
    const codes = Object.entries(errorCodes).filter(
      ([code, entry]) => entry.status === status && code !== 'read_only',
    )
    const examples = Object.entries(examplesOf(at('paths', '/pets', 'post', 'responses', String(status))))
    assert.deepEqual(
      examples.map(([name]) => name).toSorted(),
      codes.map(([code]) => code).toSorted(),
      `src/api/openapi.json, createPet, ${status}`,
    )
    for (const [name, example] of examples.filter(([code]) => code !== 'shutting_down')) {
      const outcome =
        name === 'storage_failed'
          ? /; it is not known whether the pet was stored\.$/
          : /; nothing was stored\.$/
      const message = String(member(example, 'value', 'message'))
      assert.match(message, outcome)
      assert.match(message, causes[name] ?? /^$/)
    }
  }
  const listed = Object.values(resolve(at('components', 'schemas', 'Error', 'properties', 'code', 'enum')))
  assert.deepEqual(listed.toSorted(), Object.keys(errorCodes).toSorted())
})

test('the examples of refusals are what the service answers', async (t) => {
  const { send: ask } = await startApp(t)
  const requests = {
    malformed_request: ['get', '/pets', '/v1/pets?status=%zz'],
    invalid_parameter: ['get', '/pets', '/v1/pets?limit=0'],
    malformed_json: ['post', '/pets', '/v1/pets', ''],
    invalid_body: ['post', '/pets', '/v1/pets', '{"categoryId":"x"}'],
    content_too_large: ['post', '/pets', '/v1/pets', ' '.repeat(maxBodyBytes + 1)],
    not_found: ['get', '/pets/{petId}', '/v1/pets/99'],
  } as const
  for (const [code, [method, path, target, body]] of Object.entries(requests)) {
    const answer = await ask(target, { body, method: method.toUpperCase() })
    const response = at('paths', path, method, 'responses', String(answer.status))
    const example = resolve(member(examplesOf(response)[code], 'value'))
    assert.equal(assertRefusal(answer, answer.status, code), example['message'])
  }
  const { headers } = await ask('/v1/pets', { headers: { authorization: null } })
  const header = at('components', 'responses', 'Unauthorized', 'headers', 'WWW-Authenticate', 'example')
  assert.equal(headers.get('www-authenticate'), header)
})

test('the examples of parameters are what the service takes', async (t) => {
  const { send: ask } = await startApp(t, { pets: [{ name: 'Rex', categoryId: 1 }] })
  for (const { path, operation } of operations()) {
    for (const parameter of Object.values(resolve(operation['parameters'] ?? []))) {
      const { name, in: place, example } = resolve(parameter)
      const query = place === 'query' ? `?${String(name)}=${String(example)}` : ''
      const { status, text } = await ask(`/v1${path.replace(/\{\w+\}/, String(example))}${query}`)
      // A path names a pet, which need not exist.
      assert.ok(status === 200 || (place === 'path' && status === 404), `${String(name)}: ${text}`)
    }
  }
})

test('marks its extensions, and nothing else, as such', () => {
  const marked: string[] = []
  const described: string[] = []
  const visit = (part: unknown, path: string): void => {
    if (typeof part !== 'object' || part === null) return
    if ('x-extension' in part) marked.push(path)
    if ('description' in part && String(part.description).endsWith('An extension of this service.'))
      described.push(path)
    for (const [name, child] of Object.entries(part)) visit(child, `${path}/${name}`)
  }
  visit(document(), '')
  assert.equal(marked.length, 5)
  assert.deepEqual(marked, described)
})

test('the examples of a list are what the service answers', async (t) => {
  const listed = at('paths', '/pets', 'get', 'responses', '200')
  const { empty, page } = examplesOf(listed)
  assert.deepEqual(member(empty, 'value'), [])
  const pets = Object.values(resolve(member(page, 'value')))
  assert.equal(pets.length, 1)
  const sold = Array.from({ length: 2 }, () => ({ name: 'Rex', categoryId: 1, status: 'sold' }))
  const { send: ask } = await startApp(t, { pets: [...sold, ...pets] as SeedPet[] })
  const { headers } = await ask('/v1/pets?limit=1&status=sold')
  assert.equal(mask(member(listed, 'headers', 'Link', 'example')), mask(headers.get('link')))
  assert.equal(typeof member(listed, 'headers', 'X-Total-Count', 'example'), 'number')
  assert.match(
    String(member(listed, 'headers', 'X-Data-File-Error', 'example')),
    /^line \d+, column \d+: expected .+, got .+$/,
  )
  const added = examplesOf(at('paths', '/pets', 'post', 'requestBody'))
  assert.deepEqual(Object.keys(resolve(member(added['shortest'], 'value'))), ['name', 'categoryId'])
})

test('the examples of animals are what the service takes and answers', async (t) => {
  const { send: ask } = await startApp(t)
  const body = at('paths', '/pets', 'post', 'requestBody')
  for (const example of Object.values(examplesOf(body))) {
    const given = resolve(member(example, 'value'))
    const answer = await ask('/v1/pets', { body: given })
    assert.equal(answer.status, 201)
    const { id, ...pet }: Record<string, unknown> = JSON.parse(answer.text)
    assert.deepEqual(pet, { status: defaultStatus, ...given })
    assert.equal(answer.headers.get('location'), `/v1/pets/${String(id)}`)
  }
  const added = at('paths', '/pets', 'post', 'responses', '201')
  const { id, ...pet } = resolve(member(examplesOf(added)['added'], 'value'))
  assert.deepEqual(pet, member(examplesOf(body)['complete'], 'value'))
  assert.equal(member(added, 'headers', 'Location', 'example'), `/v1/pets/${String(id)}`)
  const found = at('paths', '/pets/{petId}', 'get', 'responses', '200')
  assert.deepEqual(
    member(examplesOf(found)['found'], 'value'),
    at('components', 'schemas', 'Pet', 'examples', 0),
  )
  assert.deepEqual(
    member(examplesOf(body)['complete'], 'value'),
    at('components', 'schemas', 'NewPet', 'examples', 0),
  )
})

/** The document as a client reads it. */
function document(): unknown {
  return JSON.parse(openApiText)
}

function at(...path: readonly (string | number)[]): unknown {
  return member(document(), ...path)
}

/** What is at the path, below each reference on the way; undefined when nothing is. */
function member(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((parent, name) => resolve(parent)[name], value)
}

/** Whether it is required. */
function markOf(part: unknown): string {
  return member(part, 'required') === true ? '!' : '?'
}

/** The media type of a body, and the name of its schema. A response such as 204 has no body. */
function mediaOf(body: unknown): string {
  const content = member(body, 'content')
  if (content === undefined) return 'without a body'
  return Object.entries(resolve(content))
    .map(([type, media]) => `${type} ${nameOf(member(media, 'schema'))}`)
    .join()
}

function headersOf(response: unknown): readonly (readonly [name: string, header: unknown])[] {
  return Object.entries(resolve(member(response, 'headers') ?? {}))
}

/** The name of the component that a reference leads to. */
function nameOf(reference: unknown): string {
  return /\/(\w+)"\}$/.exec(JSON.stringify(reference))?.[1] ?? ''
}

/** The object, with what it refers to; what stands beside a reference counts (OpenAPI 3.1, as JSON Schema has it). */
function resolve(value: unknown): Record<string, unknown> {
  assert.ok(typeof value === 'object' && value !== null, `not an object: ${JSON.stringify(value)}`)
  const { $ref, ...rest }: { $ref?: unknown } = value
  const referred = $ref === undefined ? {} : resolve(at(...String($ref).slice('#/'.length).split('/')))
  return { ...referred, ...rest }
}

function list(...path: readonly (string | number)[]): readonly unknown[] {
  return Object.values(resolve(at(...path)))
}

/** A link without its numbers. */
function mask(link: unknown): string {
  return String(link).replaceAll(/=\d+/g, '=…')
}

/** The error codes of a response's examples, each once. */
function codesOf(response: unknown): ReadonlySet<string> {
  return new Set(
    Object.values(examplesOf(response)).map((example) => String(member(example, 'value', 'code'))),
  )
}

function examplesOf(body: unknown): Record<string, unknown> {
  return member(body, 'content') === undefined
    ? {}
    : resolve(member(body, 'content', 'application/json', 'examples'))
}

function operations(): readonly { method: string; path: string; operation: Record<string, unknown> }[] {
  return Object.entries(resolve(at('paths'))).flatMap(([path, item]) =>
    Object.entries(resolve(item)).map(([method, operation]) => ({
      method,
      path,
      operation: resolve(operation),
    })),
  )
}

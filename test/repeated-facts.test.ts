/**
 * Facts that stand in more than one file, because code cannot derive them there: documents, style sheets, other languages, and
 * the contract suite, which must not believe the server. A failure names the file to change.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { test } from 'node:test'
import { Pool } from 'pg'
import { openApiText } from '../src/text/bundled-texts.ts'
import { operations as allOperations } from '../src/api/operations.ts'
import { errorCodes } from '../src/api/refusals.ts'
import { defaultTimeouts } from '../src/http/limits.ts'
import { createRouter } from '../src/http/router.ts'
import { createPetStore } from '../src/index.ts'
import { petStoreSchemas, petStoreServerSchemas } from '../src/options/embedding-options.ts'
import { type Setting, settings } from '../src/options/settings.ts'
import { petMembers, petStatuses } from '../src/pet/pet.ts'
import { createPostgresStorage } from '../src/postgres.ts'
import { statuses as contractStatuses } from './contract-expect.ts'
import { root } from './support.ts'

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** All matches of the pattern's first group. */
function findAll(text: string, pattern: RegExp): readonly string[] {
  return Array.from(text.matchAll(pattern), ([, group = '']) => group)
}

const statusPlaces: Readonly<Record<string, () => readonly string[]>> = {
  'src/api/interface.md': () => {
    const [definition = ''] = findAll(read('src/api/interface.md'), /^\*\*PetStatus\*\*([^.]+)\./gm)
    return findAll(definition, /`(\w+)`/g)
  },
  'src/page/client/page.css': () => {
    const colors = findAll(read('src/page/client/page.css'), /\[data-status='(\w+)'\]/g)
    return [...new Set(colors)].filter((name) => name !== 'deprecated')
  },
  'test/contract-expect.ts': () => contractStatuses,
}

for (const [file, findStatuses] of Object.entries(statusPlaces)) {
  test(`${file} has the statuses of src/pet/pet.ts`, () => {
    assert.deepEqual(findStatuses().toSorted(), petStatuses.toSorted(), file)
  })
}

test('src/api/interface.md has each member of a pet', () => {
  const [, list = ''] = /^\*\*NewPet\*\* .*:\n\n((?:- .*\n)+)/m.exec(read('src/api/interface.md')) ?? []
  const members = ['id', ...findAll(list, /^- `(\w+)`/gm)]
  assert.deepEqual(members, petMembers, 'src/api/interface.md, section 2')
})

test('src/api/operations.ts has each operation of src/api, and none ahead of it takes its path', () => {
  const [, list = ''] =
    /operations: readonly Operation\[\] = \[(.*?)\]/s.exec(read('src/api/operations.ts')) ?? []
  for (const file of readdirSync(join(root, 'src/api')).filter((name) => name.endsWith('.ts'))) {
    for (const name of findAll(read(`src/api/${file}`), /^export const (\w+): Operation =/gm))
      assert.ok(list.split(', ').includes(name), `src/api/operations.ts lacks ${name}`)
  }
  const find = createRouter(Object.fromEntries(allOperations.map(({ path }) => [path, path])))
  for (const { path } of allOperations)
    assert.equal(find(path)?.resource, path, `src/api/operations.ts has ${path} behind one that takes it`)
})

/** The files of src whose text has it. */
function findInSources(pattern: RegExp): readonly string[] {
  return readdirSync(join(root, 'src'), { encoding: 'utf8', recursive: true })
    .filter((name) => name.endsWith('.ts') && pattern.test(read(`src/${name}`)))
    .map((name) => name.replaceAll(sep, '/'))
    .toSorted()
}

test('src knows node:http in its doors and types alone, and src/pet-store-server.ts alone knows the doors', () => {
  assert.deepEqual(findInSources(/['"]node:http2?['"]/), [
    'http/doors.ts',
    'http/server.ts',
    'options/types.ts',
  ])
  assert.deepEqual(findInSources(/['"].*http\/(?:doors|server)\.ts['"]/), ['pet-store-server.ts'])
})

test('src/http knows no pets, no data file and no operation', () => {
  const words =
    /data.file|['"`](?:Sunset|Deprecation|X-Total-Count)|storage_failed|from '\.\.\/(?:api|pet)\//i
  const files = findInSources(words)
  assert.ok(files.includes('api/operations.ts'))
  assert.deepEqual(
    files.filter((file) => file.startsWith('http/')),
    [],
  )
})

test('src/api/openapi.json describes each operation, but for what the interface names without a contract', () => {
  const { paths } = JSON.parse(openApiText) as { paths: Record<string, Record<string, unknown>> }
  for (const { method, path } of allOperations.filter((each) => each.path !== '/store/orders'))
    assert.ok(paths[path]?.[method.toLowerCase()], `src/api/openapi.json lacks ${method} ${path}`)
})

test('src/api/interface.md and the README have each operation, with its method and path', () => {
  // The cast says what the operations in it look like.
  const { paths } = JSON.parse(openApiText) as {
    paths: Record<string, Record<string, { readonly operationId: string }>>
  }
  const [, readmeSection = ''] = /^## The API$(.*?)^#/ms.exec(read('README.md')) ?? []
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { operationId }] of Object.entries(operations)) {
      const name = `\`${operationId}\``
      const route = (prefix: string): string => `\`${method.toUpperCase()} ${prefix}${path}`
      for (const text of [name, `${route('')}\``]) {
        assert.ok(read('src/api/interface.md').includes(text), `src/api/interface.md lacks ${text}`)
      }
      const row = readmeSection.split('\n').find((line) => line.startsWith(`| ${name} `))
      assert.ok(row?.includes(route('/v1')), `README.md, The API, lacks a row for ${name}`)
    }
  }
})

test('src/api/interface.md has a heading for each operation, in the order of the description', () => {
  const named = findAll(read('src/api/interface.md'), /^#### 4\.\d+ .*: `(\w+)`$/gm)
  const { paths } = JSON.parse(openApiText) as {
    paths: Record<string, Record<string, { readonly operationId: string }>>
  }
  const described = Object.values(paths).flatMap((item) => Object.values(item))
  assert.deepEqual(
    named,
    described.map(({ operationId }) => operationId),
    'src/api/interface.md, section 4',
  )
})

test('the contract suite has a section for each operation in src/api/interface.md, and none that is not a heading there', () => {
  const text = read('src/api/interface.md')
  const titles = findAll(text, /^#{3,4} (\d.*?)(?:: `\w+`)?$/gm)
  const headings = new Set(titles.map((title) => title.replace(/^(\d+)\. /, '$1 ')))
  const operations = findAll(text, /^#### (.*): `\w+`$/gm)
  const sections = findAll(read('test/contract-cases.ts'), /^ {2}'(\d[^',]*)(?:,[^']*)?': \(/gm)
  for (const operation of operations)
    assert.ok(
      sections.includes(operation),
      `test/contract-cases.ts has no section "${operation}"; it has ${sections.join(', ')}`,
    )
  for (const section of sections)
    assert.ok(headings.has(section), `src/api/interface.md has no heading "${section}"`)
})

test('src/api/interface.md demands what the contract suite fails a server for, and does not leave it open', () => {
  const [, demands = '', open = ''] =
    /^## What is demanded$(.*)^## What is left open$(.*)/ms.exec(read('src/api/interface.md')) ?? []
  for (const demand of [
    /any integer from -2\^63 to 2\^63-1/,
    /a body that is no JSON object/,
    /such as `12abc`/,
    /401 comes before the 400/,
    /A page is only shorter/,
  ]) {
    assert.match(demands, demand, 'src/api/interface.md')
    assert.doesNotMatch(open, demand, 'src/api/interface.md')
  }
  assert.doesNotMatch(open, /-2\^63/)
  assert.doesNotMatch(demands, /^\|/m, 'src/api/interface.md has a table in what it demands')
})

test('src/program/README.md has each setting, with its default and its argument', () => {
  const rows = [
    ...read('src/program/README.md').matchAll(
      /^\| `((?:PORT|HOST|PETSTORE)\w*)` \| `?([^`|]+?)`? \| `--([\w-]+)` \|/gm,
    ),
  ]
  assert.deepEqual(
    rows.map(([, variable, fallback, argument]) => ({ variable, fallback, argument })),
    Object.values<Setting>(settings).map(({ variable, fallback, argument }) => {
      return { variable, fallback: fallback || '-', argument }
    }),
    'src/program/README.md, Settings',
  )
})

test('src/embedding.md has each option', () => {
  const [, table = ''] = /^\| Option \|.*?\n((?:\|.*\n)+)/m.exec(read('src/embedding.md')) ?? []
  const named = findAll(table, /^\| ([^|]+) \|/gm).flatMap((cell) => findAll(cell, /`(\w+)`/g))
  const options = Object.keys({ ...petStoreSchemas, ...petStoreServerSchemas })
  assert.deepEqual(named.toSorted(), options.toSorted(), 'src/embedding.md, Options')
})

test('the storage on PostgreSQL and src/embedding.md have each method of a storage', async () => {
  const storage = createPostgresStorage(new Pool())
  await assert.doesNotReject(createPetStore({ apiKeys: ['k'], storage }))
  const [methods = ''] = findAll(
    read('src/embedding.md').replaceAll(/\s+/g, ' '),
    /`storage` an object with the methods ([^()]+?), which/g,
  )
  const named = findAll(methods, /`(\w+)`/g)
  assert.deepEqual(named.toSorted(), Object.keys(storage).toSorted(), 'src/embedding.md, A database of yours')
})

test('src/api/interface.md has each error code with its status, and no other', () => {
  const [, section = ''] = /^### 7\.1 (.*?)^#/ms.exec(read('src/api/interface.md')) ?? []
  const rows = [...section.matchAll(/^\| `(\w+)` \| (\d{3}) \|/gm)]
  assert.deepEqual(
    rows.map(([, code = '', status]) => [code, Number(status)] as const).toSorted(),
    Object.entries(errorCodes)
      .map(([code, { status }]) => [code, status] as const)
      .toSorted(),
    'src/api/interface.md, section 7.1',
  )
})

test('the page reads and shows each member of a pet', () => {
  for (const member of petMembers) {
    assert.match(
      read('src/page/client/pets.ts'),
      new RegExp(`readonly ${member}: string`),
      'src/page/client/pets.ts',
    )
    const row = read('src/page/client/pet-table.ts')
    assert.match(row, new RegExp(`createRow\\(\\{[^}]*\\b${member}\\b`), 'src/page/client/pet-table.ts')
  }
})

test('the page has each text that the tests in test/browser look for', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const source = files
    .filter((file) => /\.(?:ts|html|json)$/.test(file))
    .map((file) => read(`src/${file}`).replaceAll(/\s+/g, ' '))
    .join(' ')
  const names = /getBy(?:Role\('(?:button|link|heading|region|article)', \{ name: |Label\()'([^']+)'/g
  const sentences = /(?:waitForText\([^\n]+, |getByText\()'([A-Z][A-Za-z]* [A-Za-z ,.]+)'/g
  const tests = readdirSync(join(root, 'test/browser')).filter((file) => file.endsWith('.test.ts'))
  const texts = tests.flatMap((file) => {
    const text = read(`test/browser/${file}`)
    return [...findAll(text, names), ...findAll(text, sentences)].map((found) => [file, found] as const)
  })
  assert.ok(texts.length > 60)
  for (const [file, text] of texts) {
    // A request or a pet of the test, or two texts that are put together.
    if (/^(?:GET |Added |No pets\b)/.test(text)) continue
    for (const part of text.split(': ')) assert.ok(source.includes(part), `test/browser/${file}: ${part}`)
  }
})

test('test/README.md says what each test file proves', () => {
  const cells = findAll(read('test/README.md'), /^\| (`.+?) \|/gm)
  const named = new Set(cells.flatMap((cell) => findAll(cell, /`([\w-]+)/g)))
  for (const name of readdirSync(join(root, 'test'))) {
    const [, title] = /^((?!contract)[\w-]+)\.test\.ts$/.exec(name) ?? []
    if (title !== undefined) assert.ok(named.has(title), `test/README.md lacks ${title}`)
  }
})

/** A folder of src, or a file beside them. */
function roomOf(file: string): string {
  return file.split('/')[0] ?? ''
}

const sourceFiles = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll(sep, '/'))
  .filter((file) => file.endsWith('.ts') && file !== 'build.ts' && !file.startsWith('page/client/'))

/** The files of src that a file of src imports. */
function importsOf(file: string): readonly string[] {
  const targets = findAll(read(`src/${file}`), /from '(\.[^']+\.ts)'/g)
  return targets.map((target) => posix.join(posix.dirname(file), target))
}

test('no file in src imports itself, through others', () => {
  const reach = (file: string, seen = new Set<string>()): ReadonlySet<string> => {
    for (const target of importsOf(file)) {
      if (!seen.has(target)) reach(target, seen.add(target))
    }
    return seen
  }
  for (const file of sourceFiles) assert.ok(!reach(file).has(file), file)
  assert.ok(reach('server.ts').has('json/json.ts'))
})

test('the picture in src/README.md has the imports between the rooms, and no arrow more', () => {
  const [picture = ''] = findAll(read('src/README.md'), /```mermaid\n(.*?)```/gs)
  const arrows = [...picture.matchAll(/^ +(\S+) --> (.+)$/gm)].flatMap(([, from = '', to = '']) =>
    to.split(' & ').map((room) => [from, room] as const),
  )
  const isShown = (from: string, to: string): boolean =>
    arrows.some(([room, next]) => room === from && (next === to || isShown(next, to)))
  const imports = new Set<string>()
  for (const file of sourceFiles) {
    for (const target of importsOf(file)) {
      const [from, to] = [roomOf(file), roomOf(target)]
      if (from !== to) imports.add(`${from} --> ${to}`)
      assert.ok(from === to || isShown(from, to), `${file} imports ${target}`)
    }
  }
  for (const [from, to] of arrows) assert.ok(imports.has(`${from} --> ${to}`), `${from} --> ${to}`)
  assert.ok(imports.size > arrows.length)
})

test('an idle connection outlives those of common proxies', () => {
  // That of Caddy, the longest of them.
  assert.ok(defaultTimeouts.idleMs > 120_000)
})

/** A time in milliseconds that its file does not export. */
function readMs(file: string, name: string): number {
  const [text = ''] = findAll(read(file), new RegExp(`^const ${name} = ([\\d_]+)$`, 'gm'))
  return Number(text.replaceAll('_', ''))
}

const { idleMs, requestMs } = defaultTimeouts
const maxEditWaitMs = readMs('src/data-file/reading.ts', 'maxEditWaitMs')
const settleMs = readMs('src/data-file/reading.ts', 'settleMs')
const lookEveryMs = readMs('src/store/file-store.ts', 'lookEveryMs')
const lookWords = lookEveryMs === 500 ? 'twice a second' : `every ${lookEveryMs} ms`

const times: readonly (readonly [what: string, words: string, files: readonly string[]])[] = [
  ['idleMs', `${idleMs / 1_000} s`, ['src/api/interface.md', 'src/program/README.md']],
  ['requestMs', `${requestMs / 1_000} s for all of it`, ['src/api/interface.md']],
  [
    'maxEditWaitMs',
    `is being saved for longer than ${maxEditWaitMs / 1_000} s,`,
    ['src/api/interface.md', 'src/program/README.md'],
  ],
  ['settleMs', `waits ${settleMs / 1_000} seconds for the end of a save`, ['data/README.md']],
  ['lookEveryMs', `looks at the file ${lookWords} `, ['data/README.md']],
  ['lookEveryMs', `: ${lookWords}, and with each creation`, ['src/README.md']],
  ['lookEveryMs', `A look, ${lookWords} `, ['src/data-file/data-file.ts']],
]

test('the documents say how long the service waits, and how often it looks at the data file', () => {
  for (const [what, words, files] of times) {
    for (const file of files)
      assert.ok(read(file).replaceAll(/\s+/g, ' ').includes(words), `${file}, ${what}: ${words}`)
  }
})

/** These names in comments are of Node, of a browser, of a test runner, of a system or of its programs. */
const foreignNames =
  'addChunk beforeEach cp createSecureServer enableGlobally ERR_INVALID_ARG_TYPE fromWeb innerHTML macOS O_EXLOCK readStart resOnFinish stat touch useFakeTimers'

test('comments of src name what is there, or is known to be of others', () => {
  const comment = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const texts = files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file, read(`src/${file}`)] as const)
  const code = texts.map(([, text]) => text.replaceAll(comment, '')).join('\n')
  const known = new Set(findAll(`${code} ${foreignNames}`, /([\w$]+)/g))
  const patterns = [/`#?([a-zA-Z_]\w*)(?:\(\))?`/g, /(?<![\w`/.])#([a-z]\w+)/g, /\b([a-z]+[A-Z]\w+)\b/g]
  const unknown = texts.flatMap(([file, text]) => {
    const comments = (text.match(comment) ?? []).join('\n')
    const names = patterns.flatMap((pattern) => findAll(comments, pattern))
    return names.filter((name) => !known.has(name)).map((name) => `src/${file}: ${name}`)
  })
  assert.deepEqual(unknown, [])
})

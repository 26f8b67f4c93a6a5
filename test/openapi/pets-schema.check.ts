/**
 * `data/pets.schema.json` gives the verdict of the service on a data file, both to a validator and to the language service
 * that editors use, and completes what a person writes.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { DataFileUnusable } from '../../src/data-file/data-file-errors.ts'
import { parseUsableFileText } from '../../src/data-file/file-text.ts'
import { petStatuses } from '../../src/pet/pet.ts'
import { root } from '../support.ts'

// Its names are hidden from an import: it is CommonJS that Node cannot read ahead.
const require = createRequire(import.meta.url)
const json = require('vscode-json-languageservice') as typeof import('vscode-json-languageservice')

const schemaText = readFileSync(join(root, 'data/pets.schema.json'), 'utf8')
const dataFileText = readFileSync(join(root, 'data/pets.json'), 'utf8')

const schema = JSON.parse(schemaText)
const validate = new Ajv({ strict: false }).compile(schema)
const validators = {
  'as data/README.md says': validate,
  'without the u flag': new Ajv({ strict: false, unicodeRegExp: false }).compile(schema),
  'in strict mode, with the two words that editors know': new Ajv({ strict: true })
    .addVocabulary(['defaultSnippets', 'patternErrorMessage'])
    .compile(schema),
}

const editor = json.getLanguageService({
  schemaRequestService: (uri) =>
    uri === 'file:///data/pets.schema.json' ? Promise.resolve(schemaText) : Promise.reject(new Error(uri)),
  workspaceContext: { resolveRelativePath: (path, resource) => new URL(path, resource).href },
})
editor.configure({ validate: true, allowComments: false })

const good: readonly string[] = [
  '{"name":"Rex","categoryId":1}',
  '{"id":1,"name":"Rex","categoryId":1,"status":"available"}',
  '{"status":"pending","categoryId":-7,"name":"Rex","id":12}',
  '{"name":"","categoryId":0,"status":"sold"}',
  '{"name":"Zoë 🐕 \\n \\u0000 \\ud83d\\udc15","categoryId":1}',
  '{"id":9007199254740993,"name":"Rex","categoryId":9007199254740993}',
  '{"id":9223372036854775807,"name":"Rex","categoryId":9223372036854775807}',
  '{"name":"Rex","categoryId":-9223372036854775808}',
]

const bad: readonly string[] = [
  '{}',
  '{"name":"Rex"}',
  '{"categoryId":1}',
  '{"id":1,"categoryId":1,"status":"sold"}',
  ...['1', 'null', 'true', '[]', '{}'].map((name) => `{"name":${name},"categoryId":1}`),
  '{"name":"\\ud800","categoryId":1}',
  '{"name":"\\udc15\\ud83d","categoryId":1}',
  ...['"1"', 'null', '1.5', '[]', '{}', '1e30', '9223372036854785807', '-9223372036854785808'].map(
    (categoryId) => `{"name":"Rex","categoryId":${categoryId}}`,
  ),
  ...['"1"', 'null', '0', '-1', '1.5', '1e30', '9223372036854785807'].map(
    (id) => `{"id":${id},"name":"Rex","categoryId":1}`,
  ),
  ...['"gone"', '""', '"Sold"', 'null', '1', '["sold"]'].map(
    (status) => `{"name":"Rex","categoryId":1,"status":${status}}`,
  ),
  '{"name":"Rex","categoryId":1,"color":"brown"}',
  '{"name":"Rex","categoryId":1,"__proto__":1}',
  'null',
  '1',
  '"Rex"',
  '[]',
]

const goodFiles: readonly string[] = [
  dataFileText,
  '{"pets":[]}',
  '{"$schema":"./pets.schema.json","pets":[]}',
  '{"$schema":"","pets":[]}',
]

const badFiles: readonly string[] = [
  '{}',
  '[]',
  'null',
  '{"$schema":"./pets.schema.json"}',
  '{"pets":{}}',
  '{"pets":null}',
  '{"$schema":1,"pets":[]}',
  '{"pets":[],"animals":[]}',
]

const tables: readonly [title: string, texts: readonly string[], isGood: boolean][] = [
  ['takes a good pet', good.map(toFile), true],
  ['refuses a bad pet', bad.map(toFile), false],
  ['takes a good file', goodFiles, true],
  ['refuses a bad file', badFiles, false],
]
for (const [title, texts, isGood] of tables) {
  test(`${title}, as the service does`, async () => {
    for (const text of texts) {
      assert.equal(isTaken(text), isGood, `the service: ${text}`)
      for (const [how, check] of Object.entries(validators))
        assert.equal(check(JSON.parse(text)), isGood, `a validator ${how}: ${text}`)
      const problems = await findProblems(text)
      assert.equal(problems.length === 0, isGood, `an editor: ${text}: ${problems.join('; ')}`)
    }
  })
}

test('never refuses what the service takes, also where a reader of JSON rounds', () => {
  for (const number of ['5.0', '1e2', '9223372036854775807', '9223372036854775295', '-9223372036854775808']) {
    const text = toFile(`{"name":"Rex","categoryId":${number}}`)
    assert.ok(isTaken(text), text)
    assert.ok(validate(JSON.parse(text)), text)
  }
})

test('leaves to the service what a schema cannot say', () => {
  const rex = '{"id":1,"name":"Rex","categoryId":1}'
  for (const pets of [
    `${rex},${rex}`,
    rex.replace('"Rex"', '"Rex","name":"Max"'),
    rex.replaceAll('1', '9223372036854775808'),
  ]) {
    assert.equal(isTaken(toFile(pets)), false, pets)
    assert.ok(validate(JSON.parse(toFile(pets))), pets)
  }
})

test('the editor completes a pet, its members and each status', async () => {
  assert.deepEqual(await complete(toFile('|')), ['pet'])
  assert.deepEqual(await complete(toFile('{|}')), ['id', 'name', 'categoryId', 'status'])
  assert.deepEqual(
    await complete(toFile('{"status":|}')),
    petStatuses.map((status) => `"${status}"`),
  )
})

test('the pet that the editor offers is one line that the service takes', async () => {
  const [snippet = ''] = await complete(toFile('|'), 'text')
  const filled = snippet
    .replace('$1', 'Rex')
    .replace(/\$\{\d:(\d)\}/, '$1')
    .replace(/\$\{\d\|(\w+)[^}]*\}/, '$1')
  assert.equal(filled, '{"name":"Rex","categoryId":1,"status":"available"}')
  assert.ok(isTaken(toFile(filled)))
})

function toFile(pet: string): string {
  return `{"$schema":"./pets.schema.json","pets":[${pet}]}`
}

function isTaken(text: string): boolean {
  try {
    parseUsableFileText('pets.json', Buffer.from(text))
    return true
  } catch (error) {
    if (error instanceof DataFileUnusable) return false
    throw error
  }
}

function open(text: string) {
  const document = json.TextDocument.create('file:///data/pets.json', 'json', 1, text)
  return { document, parsed: editor.parseJSONDocument(document) }
}

/** A file without `$schema` is held against it all the same: this is about the schema, not about how it is found. */
async function findProblems(text: string): Promise<readonly string[]> {
  const { document, parsed } = open(text)
  const problems = await editor.doValidation(document, parsed, {}, schema)
  return problems.map(({ message }) => String(message))
}

/** What is offered where the `|` is: the labels, or what they put in. */
async function complete(marked: string, what: 'labels' | 'text' = 'labels'): Promise<readonly string[]> {
  const { document, parsed } = open(marked.replace('|', ''))
  const list = await editor.doComplete(document, document.positionAt(marked.indexOf('|')), parsed)
  return (list?.items ?? []).map(({ label, textEdit }) =>
    what === 'labels' ? label : (textEdit?.newText ?? ''),
  )
}

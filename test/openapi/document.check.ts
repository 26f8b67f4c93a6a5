/** The document is valid OpenAPI 3.1, and public linters have nothing to say about it. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { openApiText } from '../../src/text/bundled-texts.ts'
import { makeFolder, runTool, writeDocument } from './tools.ts'

test('is valid against the schema of OpenAPI 3.1', async () => {
  const validator = new Validator()
  const result = await validator.validate(JSON.parse(openApiText))
  assert.deepEqual(result, { valid: true })
  assert.equal(validator.version, '3.1')
})

test('the validator refuses a document with a fault', async () => {
  const text = openApiText.replace('"in":"path"', '"in":"paht"')
  assert.equal((await new Validator().validate(JSON.parse(text))).valid, false)
})

test("is clean under Redocly's recommended rules, warnings too", async (t) => {
  const options = ['--extends', 'recommended-strict', '--format', 'json']
  const report: { totals?: unknown } = JSON.parse(
    await runTool('redocly', 'lint', ...options, writeDocument(t)),
  )
  assert.deepEqual(report.totals, { errors: 0, warnings: 0, ignored: 0 })
})

test("is clean under Spectral's recommended rules, hints too", async (t) => {
  const rules = join(makeFolder(t), 'spectral.json')
  writeFileSync(rules, JSON.stringify({ extends: ['spectral:oas'] }))
  const options = ['--ruleset', rules, '--fail-severity', 'hint', '--format', 'json', '--quiet']
  assert.deepEqual(JSON.parse(await runTool('spectral', 'lint', ...options, writeDocument(t))), [])
})

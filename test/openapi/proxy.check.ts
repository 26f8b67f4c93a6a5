/** Prism, between client and service, finds no answer that breaks the document. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RequestOptions, send, startApp } from '../support.ts'
import { startPrism } from './tools.ts'

const keyless = { headers: { authorization: null } }
const wrongKey = { headers: { authorization: 'Bearer wrong' } }

test('lets good traffic pass when told to stop at every fault', async (t) => {
  const { url } = await startApp(t, { pets: [{ name: 'Rex', categoryId: 1 }] })
  const proxy = await startPrism(t, `${url}/v1`, '--errors')
  const cases: readonly [path: string, status: number, options?: RequestOptions][] = [
    ['/pets', 200],
    ['/pets?limit=1', 200],
    ['/pets?limit=100&status=sold', 200],
    ['/pets', 201, { body: { name: 'Mia', categoryId: 2 } }],
    ['/pets', 201, { body: { name: '', categoryId: -1, status: 'pending' } }],
    ['/pets?limit=1', 200],
    ['/pets?limit=1&after=1', 200],
    ['/pets/1', 200],
    ['/pets/99', 404],
    ['/pets', 401, wrongKey],
    ['/pets', 401, { ...wrongKey, body: { name: 'Mia', categoryId: 2 } }],
    ['/pets/1', 401, wrongKey],
  ]
  for (const [path, status, options] of cases) {
    const answer = await send(proxy, path, options)
    assert.equal(answer.status, status, `${path}: ${answer.text}`)
    assert.equal(answer.headers.get('sl-violations'), undefined, path)
  }
})

test('finds fault with bad requests, and with none of the answers to them', async (t) => {
  const { url } = await startApp(t)
  const proxy = await startPrism(t, `${url}/v1`)
  const cases: readonly [path: string, status: number, options?: RequestOptions][] = [
    ['/pets?limit=0', 400],
    ['/pets?limit=101', 400],
    ['/pets?limit=x', 400],
    ['/pets?limit=1&limit=2', 400],
    ['/pets?status=gone', 400],
    ['/pets?after=x', 400],
    ['/pets', 401, keyless],
    ['/pets', 400, { body: {} }],
    ['/pets', 400, { body: { name: 1, categoryId: 'x', status: null } }],
    ['/pets', 415, { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    ['/pets', 401, { body: { name: 'Mia', categoryId: 2 }, ...keyless }],
    ['/pets/abc', 404],
    ['/pets/0', 404],
    ['/pets/1', 401, keyless],
  ]
  for (const [path, status, options] of cases) {
    const answer = await send(proxy, path, options)
    assert.equal(answer.status, status, `${path}: ${answer.text}`)
    const violations: { location: string[] }[] = JSON.parse(answer.headers.get('sl-violations') ?? '[]')
    const places = violations.map(({ location: [place] }) => place)
    assert.ok(places.length > 0, `${path}: Prism looked`)
    assert.deepEqual(new Set(places), new Set(['request']), answer.headers.get('sl-violations') ?? '')
  }
})

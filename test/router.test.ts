/** Which resource a request target names (RFC 9112 section 3.2). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HttpError } from '../src/http/response.ts'
import { createRouter, findPath } from '../src/http/router.ts'
import { limitEachTest } from './time-limit.ts'

limitEachTest()

const find = createRouter({ '/': 'root', '/pets': 'pets', '/pets/new': 'new', '/pets/{petId}': 'pet' })

describe('finds', () => {
  const cases: Record<string, [resource: string, petId?: string | undefined, search?: string]> = {
    '/pets/new': ['new'],
    // Percent-encoding (RFC 3986 sections 2.2 and 6.2.2.2): `%70` is `p`, `%2F` is no `/`.
    '/pets/%6eew': ['new'],
    '/pets/a%2Fb': ['pet', 'a/b'],
    // It is decoded once: `%25` is the `%` of an id, and begins no escape.
    '/pets/%2531': ['pet', '%31'],
    '/pets/__proto__': ['pet', '__proto__'],
    // Absolute-form (RFC 9112 section 3.2.2).
    'http://elsewhere/pets': ['pets'],
    'HTTPS://elsewhere:8080/pets?a=b': ['pets', undefined, '?a=b'],
    'http://user@elsewhere/pets/7': ['pet', '7'],
    'http://elsewhere': ['root'],
    'http://elsewhere?a=b': ['root', undefined, '?a=b'],
  }
  for (const [target, [resource, petId = '', search = '']] of Object.entries(cases))
    test(`${resource} for ${target}`, () => {
      assert.deepEqual(find(target), { resource, parameter: petId, search })
    })
})

describe('refuses', () => {
  const targets: Readonly<Record<string, readonly string[]>> = {
    'expected a path that begins with "/"': ['*', 'pets', 'ftp://elsewhere/pets', 'http:///pets'],
    'must not contain a fragment ("#…")': ['/pets#top', '/pets?a#top'],
    'has an invalid percent escape: expected UTF-8, such as "%C3%A9"': [
      '/%',
      '/%7',
      '/%zz',
      '/nowhere/%zz',
      '/pets/%ff',
      '/pets/%C0%AF',
      '/pets/%ED%A0%80',
      '/pets?%',
      '/pets?a=%zz',
      '/nowhere?a=%ff',
    ],
  }
  for (const [fault, wrong] of Object.entries(targets))
    for (const target of wrong)
      test(`${target} as malformed, and says why`, () => {
        assert.throws(
          () => find(target),
          (error) =>
            error instanceof HttpError && error.code === 'malformed_request' && error.message.endsWith(fault),
        )
      })

  test('a long target in a short message', () => {
    const fault = 'has an invalid percent escape: expected UTF-8, such as "%C3%A9"'
    for (const before of ['/', '/?a=']) {
      for (const [length, shown] of [
        [57, `%zz${'x'.repeat(57)}`],
        [58, `%zz${'x'.repeat(57)}…`],
        [10_000, `%zz${'x'.repeat(57)}…`],
      ] as const) {
        assert.throws(() => find(`${before}%zz${'x'.repeat(length)}`), {
          message: `request target: "${shown}" ${fault}`,
        })
      }
    }
  })
})

describe('the path for a log', () => {
  const cases: Record<string, string> = {
    '/v1/pets?key=secret': '/v1/pets',
    '/v1/pets#secret': '/v1/pets',
    '/%zz': '/%zz',
    'http://me:secret@pets.test:80/v1/pets?key=secret': '/v1/pets',
    'HTTP://me:secret@pets.test': '/',
    'http://me:secret@pets.test?secret': '/',
    'ftp://me:secret@pets.test/a': '/a',
    'http:me:secret@pets.test': '-',
    'me:secret@pets.test:80': '-',
    '*': '*',
  }
  for (const [target, path] of Object.entries(cases))
    test(`of ${target} is ${path}`, () => assert.equal(findPath(target), path))
})

test('a parameter may stand before the end of a path', () => {
  const findPhotos = createRouter({ '/pets/{petId}/photos': 'photos' })
  assert.deepEqual(findPhotos('/pets/7/photos'), { resource: 'photos', parameter: '7', search: '' })
  assert.equal(findPhotos('/pets//photos'), undefined)
})

describe('a base path that stands before the others', () => {
  const findBelow = createRouter({ '/': 'root', '/pets': 'pets' }, '/my%20shop/a')
  const cases: Record<string, string | undefined> = {
    '/my%20shop/a/pets': 'pets',
    '/pets': 'pets',
    '/m%79%20shop/%61/pets': 'pets',
    'http://elsewhere/my%20shop/a/pets': 'pets',
    '/my%20shop/a/': 'root',
    '/my%20shop/a': undefined,
    '/my%20shop%2Fa/pets': undefined,
    '/my%20shop/pets': undefined,
    '/my%20shop/abc/pets': undefined,
    '/my%20shop/a/my%20shop/a/pets': undefined,
  }
  for (const [target, resource] of Object.entries(cases))
    test(`${target} is ${resource}`, () => assert.equal(findBelow(target)?.resource, resource))
})

/** What a person is told of a server that cannot listen: the setting to change, and to what. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toListenError } from '../src/http/address.ts'
import { systemError } from './file-system.ts'

test('names the setting to change for each error that a person can mend, and keeps its code and cause', () => {
  const sentences = {
    EADDRINUSE:
      /^port: 80 is taken by another program on pets\.test; stop that program, or choose another port$/,
    EACCES: /^port: 80 needs a privilege that this user does not have; choose a port from 1024 on$/,
    EADDRNOTAVAIL:
      /^host: pets\.test is not an address of this machine; 0\.0\.0\.0 listens on all of its addresses$/,
    ENOTFOUND:
      /^host: pets\.test could not be looked up; give an address, such as 0\.0\.0\.0 for all addresses/,
    EAI_AGAIN:
      /^host: pets\.test could not be looked up; give an address, such as 0\.0\.0\.0 for all addresses/,
  }
  for (const [code, sentence] of Object.entries(sentences)) {
    const cause = systemError(code)
    const error = toListenError(cause, 80, 'pets.test')
    assert.ok(error instanceof Error && 'code' in error && error.code === code)
    assert.match(error.message, sentence)
    assert.equal(error.cause, cause)
  }
  for (const [code, host, sentence] of [
    [
      'EAFNOSUPPORT',
      '::',
      /^host: :: is an address of IPv6, which this system does not have; 0\.0\.0\.0 listens/,
    ],
    ['EINVAL', 'fe80::1', /^host: fe80::1 is a link-local address, .* such as fe80::1%eth0$/],
    ['EINVAL', 'FE80::1%none', /^host: FE80::1%none is a link-local address, .* such as FE80::1%eth0$/],
  ] as const) {
    const error = toListenError(systemError(code), 80, host)
    assert.ok(error instanceof Error)
    assert.match(error.message, sentence)
  }
  const unexplained = systemError('EINVAL')
  assert.equal(toListenError(unexplained, 80, 'pets.test'), unexplained)
  const reserved = toListenError(systemError('EACCES'), 5000, 'pets.test')
  assert.ok(reserved instanceof Error)
  assert.equal(reserved.message, 'port: 5000 is reserved by the system; choose another port')
  const other = systemError('EMFILE')
  assert.equal(toListenError(other, 80, 'pets.test'), other)
})

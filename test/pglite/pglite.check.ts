/**
 * The program on PGlite: PostgreSQL as WebAssembly, of a newer version than Debian's, and on any system. It has one session, which its
 * socket lends to all connections in turn; so what needs several, such as locks and kills, is in test/postgres.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { buildOnce } from '../built.ts'
import { key, makeFolder, runProgram, send, startProgram } from '../support.ts'

process.env['PETSTORE_TEST_DIST'] = buildOnce()

let database: PGlite
let socket: PGLiteSocketServer
before(async () => {
  database = await PGlite.create()
  socket = new PGLiteSocketServer({ db: database, port: 0, maxConnections: 20 })
  await socket.start()
})
after(async () => {
  await socket.stop()
  await database.close()
})

const environment = () => ({
  PETSTORE_DATABASE_URL: `postgres://postgres@${socket.getServerConn()}/postgres`,
})

async function run(t: TestContext, folder: string, ...args: string[]): Promise<string> {
  const program = runProgram(t, folder, environment(), [], args)
  const { code } = await program.ended
  assert.equal(code, 0, program.output())
  return program.output()
}

const name = String.raw`"\u0000\\\"{}'🐕"`
const pets = [
  `    {"id":1,"name":${name},"categoryId":-9223372036854775808,"status":"sold"}`,
  `    {"id":9007199254740993,"name":"","categoryId":9223372036854775807,"status":"pending"}`,
]
const text = `{\n  "pets": [\n${pets.join(',\n')}\n  ]\n}\n`

test('brings pets there and back, exact to the bit', async (t) => {
  const folder = makeFolder()
  writeFileSync(join(folder, 'pets.json'), text)
  assert.match(await run(t, folder, '--import', 'pets.json'), /imported 2 pets\n$/)
  const program = await startProgram(t, folder, environment())
  assert.equal((await send(program.url, '/v1/pets')).text, `[${pets.map((line) => line.trim()).join()}]`)
  assert.equal((await send(program.url, '/v1/pets?status=sold')).text, `[${pets[0]?.trim()}]`)
  const ended = once(program.child, 'exit')
  program.child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
  assert.match(await run(t, folder, '--export', 'back.json'), /exported 2 pets\n$/)
  assert.equal(readFileSync(join(folder, 'back.json'), 'utf8'), text)
})

test('holds the interface', async (t) => {
  const { url } = await startProgram(t, makeFolder(), environment())
  assert.match(await run(t, makeFolder(), '--verify', url, '--keys', key, '--all'), /^Passed: all /m)
})

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
import { otherPet, wholePet } from '../whole-pet.ts'

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

test('brings each member of a pet from a client through a file, a restart and an edit, into the database and back', async (t) => {
  const folder = makeFolder()
  const file = join(folder, 'whole.json')
  await database.exec('DROP TABLE IF EXISTS pets, pet_counter')
  const start = async (env: NodeJS.ProcessEnv) => {
    const program = await startProgram(t, folder, env)
    const list = async () => JSON.parse((await send(program.url, '/v1/pets')).text)
    const create = (body: object) => send(program.url, '/v1/pets', { body })
    const stop = async () => {
      program.child.kill('SIGTERM')
      assert.equal((await program.ended).code, 0)
    }
    return { ...program, list, create, stop }
  }
  const onFile = { PETSTORE_DATA_FILE: file }
  const pet = { id: 1, ...wholePet }
  const first = await start(onFile)
  assert.deepEqual(JSON.parse((await first.create(wholePet)).text), pet)
  await first.stop()
  const second = await start(onFile)
  assert.deepEqual(await second.list(), [pet])
  const edited = { id: 1, ...otherPet }
  writeFileSync(file, JSON.stringify({ pets: [edited] }))
  await second.waitFor(/reloaded 1 pet: 0 added, 0 removed, 1 changed/)
  assert.deepEqual(await second.list(), [edited])
  await second.stop()
  await run(t, folder, '--import', 'whole.json')
  const onDatabase = await start(environment())
  const created = await onDatabase.create(wholePet)
  const added = { id: 2, ...wholePet }
  assert.deepEqual(JSON.parse(created.text), added)
  assert.deepEqual(await onDatabase.list(), [edited, added])
  await onDatabase.stop()
  await run(t, folder, '--export', 'exported.json')
  const last = await start({ PETSTORE_DATA_FILE: join(folder, 'exported.json') })
  assert.deepEqual(await last.list(), [edited, added])
  await last.stop()
})

test('holds the interface', async (t) => {
  const { url } = await startProgram(t, makeFolder(), environment())
  assert.match(await run(t, makeFolder(), '--verify', url, '--keys', key, '--all'), /^Passed: all /m)
})

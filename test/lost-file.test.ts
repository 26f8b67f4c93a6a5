/**
 * Ordinary accidents: `jq … pets.json > pets.json`, `rm`, `git clean`. The server has the pets in memory, keeps them beside the file
 * when it stops, and the next one does not start without them unnoticed.
 */
import assert from 'node:assert/strict'
import nodeFs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { clock } from '../src/system/clock.ts'
import { openFileStore } from '../src/store/local-store.ts'
import {
  Lines,
  makeFastFolder,
  namesIn,
  newPet,
  openStore,
  petLine,
  systemError,
  watchFileSystem,
} from './file-system.ts'
import { formatDataFile, makeDataFile, makeFolder, makeOld, runProgram, startProgram } from './support.ts'

const rex = petLine(1, 'Rex')
const mia = petLine(2, 'Mia')

/** What a person does to the file by accident. */
const accidents: readonly [what: string, happen: (path: string) => void][] = [
  ['is empty', (path) => nodeFs.truncateSync(path)],
  ['is empty', (path) => nodeFs.writeFileSync(path, '\r\n')],
  ['is missing', (path) => nodeFs.rmSync(path)],
  // With its folder, which is moved away and not removed, so that no other folder gets its inode while the store holds its lock.
  ['is missing', (path) => nodeFs.renameSync(dirname(path), `${dirname(path)}.away`)],
]

function findKept(path: string): readonly string[] {
  const names = nodeFs.readdirSync(dirname(path)).filter((name) => name.includes('.kept-'))
  return names.map((name) => join(dirname(path), name))
}

describe('stopping keeps the pets of a file that', () => {
  for (const [index, [what, happen]] of accidents.entries()) {
    test(`${what} (${index + 1}), says so, and the next start is refused and names them`, async (t) => {
      const path = join(makeFolder(), 'data', 'pets.json')
      nodeFs.mkdirSync(dirname(path))
      nodeFs.writeFileSync(path, formatDataFile(rex))
      nodeFs.chmodSync(path, 0o640)
      const { store, lines } = await openStore(t, path)
      await store.create(newPet('Mia "ä"'))
      happen(path)
      await store.close()
      const [kept = '', ...others] = findKept(path)
      assert.deepEqual(others, [])
      assert.equal(nodeFs.readFileSync(kept, 'utf8'), formatDataFile(rex, petLine(2, 'Mia "ä"')))
      if (nodeFs.existsSync(path)) assert.equal(nodeFs.statSync(kept).mode & 0o777, 0o640)
      assert.equal(
        lines.at(-1),
        `${path}: ${what}; its 2 pets are kept in ${basename(kept)}; to get them back, rename that to ${basename(path)}`,
      )
      if (nodeFs.existsSync(path)) makeOld(path)
      await assert.rejects(openFileStore(path), (error: Error) => {
        const andDelete = what === 'is empty' ? `, and delete ${basename(path)}` : ''
        const remedy = `to get them back, rename that to ${basename(path)}; to start without any, move it away${andDelete}`
        assert.equal(error.message, `${path}: ${what}; its pets are kept in ${basename(kept)}; ${remedy}`)
        return true
      })
      nodeFs.renameSync(kept, `${path}.away`)
      nodeFs.rmSync(path, { force: true })
      const { store: empty } = await openStore(t, path)
      assert.equal(empty.size, 0)
      await empty.close()
      nodeFs.renameSync(`${path}.away`, kept)
      nodeFs.renameSync(kept, path)
      const { store: again } = await openStore(t, path)
      assert.deepEqual(namesIn(again), ['Rex', 'Mia "ä"'])
      assert.equal((await again.create(newPet('Kit'))).id, 3)
    })
  }
})

test('stopping keeps nothing of a file that has a mistake, is valid, or had no pets', async (t) => {
  for (const text of [formatDataFile(rex).replace(':', ''), formatDataFile(mia), undefined]) {
    const path = makeDataFile(text === undefined ? [] : [rex])
    const { store } = await openStore(t, path)
    if (text === undefined) nodeFs.rmSync(path)
    else nodeFs.writeFileSync(path, text)
    await store.close()
    assert.deepEqual(findKept(path), [])
  }
})

test('keeps pets a second time without writing over the first', async (t) => {
  // Both are kept at the same time of day.
  t.mock.method(clock, 'now', () => 1_000_000)
  const path = makeDataFile([rex])
  for (const name of ['Max', 'Kit']) {
    nodeFs.writeFileSync(path, formatDataFile(petLine(1, name)))
    const { store } = await openStore(t, path)
    nodeFs.rmSync(path)
    await store.close()
  }
  const texts = findKept(path).map((kept) => nodeFs.readFileSync(kept, 'utf8'))
  assert.deepEqual(texts, [formatDataFile(petLine(1, 'Max')), formatDataFile(petLine(1, 'Kit'))])
  await assert.rejects(
    openFileStore(path),
    /its pets are kept in \S+Z and \S+Z-2; to get them back, rename one of them to \S+; to start without any, move them away$/,
  )
})

test('says when the pets cannot be kept, and closes', async () => {
  const path = makeDataFile([rex])
  const said = new Lines()
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (name === 'writeSync' && place.includes('.kept-')) throw systemError('ENOSPC')
    },
  })
  const store = await openFileStore(path, { fileSystem, onMessage: said.say })
  nodeFs.rmSync(path)
  await store.close()
  assert.deepEqual(nodeFs.readdirSync(dirname(path)), [])
  assert.equal(
    said.at(-1),
    `${path}: the pets that were served cannot be kept: no space left on device (ENOSPC)`,
  )
  // The lock is given back.
  await (await openFileStore(path)).close()
})

test('whatever a kill leaves while pets are kept, they are whole or the start says that the file is empty', async () => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, formatDataFile(rex, mia))
  const copies: string[] = []
  let isArmed = false
  const fileSystem = watchFileSystem({
    before() {
      if (!isArmed) return
      const copy = join(makeFastFolder(), 'data')
      nodeFs.cpSync(dirname(path), copy, { recursive: true })
      copies.push(copy)
    },
  })
  const store = await openFileStore(path, { fileSystem })
  nodeFs.truncateSync(path)
  isArmed = true
  await store.close()
  assert.ok(copies.length > 5)
  for (const copy of copies) {
    const killed = join(copy, 'pets.json')
    makeOld(killed)
    await assert.rejects(
      openFileStore(killed),
      /pets\.json: is empty; (?:put the pets back|its pets are kept in)/,
    )
  }
})

test('the program ends well after `jq … pets.json > pets.json` and a restart', async (t) => {
  const folder = makeFolder()
  const path = join(folder, 'data/pets.json')
  nodeFs.mkdirSync(dirname(path))
  nodeFs.writeFileSync(path, formatDataFile(rex, mia))
  const first = await startProgram(t, folder)
  nodeFs.truncateSync(path)
  await first.waitFor(/data\/pets\.json: is empty; .*in memory only/)
  first.child.kill('SIGTERM')
  assert.deepEqual(await first.ended, { code: 0, signal: null })
  const [, name = ''] = /its 2 pets are kept in (pets\.json\.kept-[^;]+);/.exec(first.output()) ?? []
  makeOld(path)
  const second = runProgram(t, folder, { PETSTORE_API_KEYS: 'k' })
  assert.equal((await second.ended).code, 1)
  assert.match(
    second.output(),
    new RegExp(`^data/pets\\.json: is empty; its pets are kept in ${name}; [^\\n]+\\n$`),
  )
  nodeFs.renameSync(join(folder, 'data', name), path)
  const third = await startProgram(t, folder)
  assert.match(third.output(), /pets\.json, 2 pets/)
})

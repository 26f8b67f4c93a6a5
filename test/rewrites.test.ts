/**
 * The file is rewritten to fill in ids. An editor may save, and the process may die, before
 * any system call of that: the edit is served and stays in the file, and the next start finds a whole file.
 */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import nodeFs from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { Disk, type FileSystem } from '../src/data-file/disk.ts'
import { writeDataFile } from '../src/data-file/export.ts'
import { refuseMissing } from '../src/data-file/start.ts'
import { openFileStore, type FileStore } from '../src/store/file-store.ts'
import { PetStoreError } from '../src/store/store.ts'
import { clock } from '../src/system/clock.ts'
import {
  Lines,
  makeFastFolder,
  namesIn,
  namesInFile,
  newPet,
  openStore,
  petLine,
  systemError,
  watchFileSystem,
} from './file-system.ts'
import {
  copyFolder,
  formatDataFile,
  isThorough,
  listFolder,
  makeDataFile,
  makeFolder,
  makeOld,
  share,
} from './support.ts'

const edited = formatDataFile(petLine(1, 'Max'), petLine(2, 'Mia'))

/** How an editor saves, in two steps. */
const saves: readonly [how: string, begin: (path: string) => () => void][] = [
  [
    'by rename',
    (path) => {
      nodeFs.writeFileSync(`${path}~`, edited)
      return () => nodeFs.renameSync(`${path}~`, path)
    },
  ],
  [
    'in place',
    (path) => {
      const editor = nodeFs.openSync(path, 'w')
      return () => {
        nodeFs.writeSync(editor, edited)
        nodeFs.closeSync(editor)
      }
    },
  ],
  [
    'by removing the file and writing it again',
    (path) => {
      nodeFs.rmSync(path, { force: true })
      return () => nodeFs.writeFileSync(path, edited)
    },
  ],
]

/** What the store has to rewrite. */
const withoutId = `{"pets":[{"name":"Rex","categoryId":1}]}`

/** An editor that takes longer between its two steps is waited for, which other tests hold. */
const maxDistance = 6

/** Begins a save before one call that a creation makes of the file system, and ends it before another. */
interface Moments {
  readonly from: number
  readonly to: number
}

/** Creates a pet, for which the file is rewritten, and calls `before` before each call of the file system. */
async function createWithRewrite(
  folder: string,
  before: (call: number, path: string) => void,
): Promise<{ readonly store: FileStore; readonly path: string; readonly calls: number }> {
  nodeFs.mkdirSync(folder)
  const path = join(folder, 'pets.json')
  let calls = 0
  let isArmed = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      // A save in place between the last look of an append and its write may be damaged: window.test.ts tries it. The moment before a close is
      // that before the next call, and behind the last close the pet is stored: an edit then removes it.
      if (isArmed && name !== 'closeSync' && (name !== 'writeSync' || place !== path)) before(calls++, path)
    },
  })
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Rex')))
  const store = await openFileStore(path, { fileSystem })
  nodeFs.writeFileSync(path, withoutId)
  isArmed = true
  // The file may be gone or empty for so long that the creation is refused; it is tried again until the editor has saved.
  for (let tries = 1; !(await tryCreate(store, 'Kit')); tries++) assert.ok(tries < 1000)
  isArmed = false
  return { store, path, calls }
}

async function tryCreate(store: FileStore, name: string): Promise<boolean> {
  try {
    await store.create(newPet(name))
    return true
  } catch (error) {
    assert.ok(error instanceof PetStoreError && error.code === 'data_file_invalid', String(error))
    return false
  }
}

/** Saves during the rewrite. Gives copies of the folder, as a kill before each of the later calls would leave it. */
async function saveDuringRewrite(
  folder: string,
  begin: (path: string) => () => void,
  { from, to }: Moments,
): Promise<readonly string[]> {
  const killed: string[] = []
  let end: (() => void) | undefined
  let isSaved = false
  const { store, path } = await createWithRewrite(folder, (call, file) => {
    if (call === from) end = begin(file)
    if (call === to) {
      end?.()
      isSaved = true
    }
    // A kill before every fifth call: with all moments, every call has its turn.
    if (!isSaved || (call + 2 * from) % 5 > 0) return
    const copy = `${folder}-${killed.length}`
    copyFolder(folder, copy)
    killed.push(copy)
  })
  // An edit that ends only now was made without the pet, and so removes it.
  if (!isSaved) (end ?? begin(path))()
  await store.create(newPet('after'))
  assert.deepEqual(namesInFile(path), ['Max', 'Mia', ...(isSaved ? ['Kit'] : []), 'after'])
  assert.deepEqual(namesIn(store), namesInFile(path))
  await store.close()
  assert.deepEqual(listFolder(folder), ['pets.json'])
  return killed
}

describe(
  'keeps an edit that falls between any two system calls of a rewrite, also when the process is killed',
  { concurrency: false },
  () => {
    for (const [how, begin] of saves) {
      test(`saved ${how}`, async (t) => {
        // Time goes on only while the store waits for something.
        let ms = 0
        t.mock.method(clock, 'performanceNow', () => ms)
        t.mock.method(clock, 'setTimeout', (call: () => void, waitMs: number) => {
          ms += waitMs
          return setImmediate(call)
        })
        const root = makeFastFolder()
        const { store, calls } = await createWithRewrite(join(root, 'count'), () => {})
        await store.close()
        assert.ok(calls > 20, `${calls} calls`)
        const moments: Moments[] = []
        for (let from = 0; from < calls; from++)
          for (let to = from; to < Math.min(from + maxDistance, calls); to++) moments.push({ from, to })
        // The store does something else with what it finds at each call, but seldom with what it finds at two of them.
        // A save by rename can be seen only when it ends.
        const distance = how === 'by rename' ? 1 : 2
        for (const moment of moments.filter(({ from, to }) => isThorough || to - from < distance)) {
          const folder = join(root, `${moment.from}-${moment.to}`)
          for (const killed of await saveDuringRewrite(folder, begin, moment)) {
            const again = await openFileStore(join(killed, 'pets.json'))
            const [first, second] = again.list({ limit: 100 }).pets
            assert.deepEqual([first?.name, second?.name], ['Max', 'Mia'], killed)
            await again.close()
            nodeFs.rmSync(killed, { recursive: true })
          }
          nodeFs.rmSync(folder, { recursive: true })
        }
      })
    }
  },
)

/** As a process leaves it that is killed between moving the old file aside and putting the new one into its place. */
function interruptRewrite(path: string): void {
  nodeFs.writeFileSync(`${path}.petstore-old`, edited)
  nodeFs.writeFileSync(`${path}.petstore-new`, edited)
}

test('restores the file that a killed process had moved aside, and says so', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  interruptRewrite(path)
  const { store, lines } = await openStore(t, path)
  assert.equal(store.size, 2)
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
  assert.equal(nodeFs.readFileSync(path, 'utf8'), edited)
  assert.deepEqual(
    [...lines],
    [`${path}: restored: a crash had interrupted the server while it rewrote this file`],
  )
})

test('an export is refused where a killed process had moved the file aside, and leaves that to a start', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  interruptRewrite(path)
  const before = listFolder(dirname(path))
  await assert.rejects(
    writeDataFile(path, async () => []),
    { message: `${path}: was moved aside by a rewrite that was interrupted; export to a new file` },
  )
  assert.deepEqual(listFolder(dirname(path)), before)
  const { store } = await openStore(t, path)
  assert.equal(store.size, 2)
})

test('an export to a file that exists asks for no pets, and leaves the file as it is', async () => {
  const path = makeDataFile([petLine(1, 'Rex')])
  await assert.rejects(
    writeDataFile(path, () => assert.fail()),
    { message: `${path}: exists already; export to a new file` },
  )
  assert.deepEqual(namesInFile(path), ['Rex'])
})

test('an import takes a missing file for one to be restored, as a start does, and otherwise says so', () => {
  const path = join(makeFastFolder(), 'pets.json')
  assert.throws(() => refuseMissing(new Disk(path)), { message: `${path}: is missing` })
  interruptRewrite(path)
  refuseMissing(new Disk(path))
  nodeFs.unlinkSync(`${path}.petstore-new`)
  assert.throws(
    () => refuseMissing(new Disk(path)),
    /is missing, and pets\.json\.petstore-old, .* may lack pets/,
  )
  nodeFs.unlinkSync(`${path}.petstore-old`)
  nodeFs.writeFileSync(`${path}.kept-2026-11-27T09-00-00.000Z`, edited)
  assert.throws(
    () => refuseMissing(new Disk(path)),
    /is missing\n.*pets\.json\.kept-\S+, which was kept last, has 2 pets/,
  )
})

test('neither an import nor an export takes the folder of a lost link for one to make', async () => {
  const folder = makeFastFolder()
  nodeFs.symlinkSync(join(folder, 'disk'), join(folder, 'data'))
  const path = join(folder, 'data/pets.json')
  const refusal = /cannot be found: \S+ is a link to \S+, which is not there; mount it, or make that folder/
  assert.throws(() => refuseMissing(new Disk(path)), refusal)
  await assert.rejects(
    writeDataFile(path, async () => []),
    refusal,
  )
  assert.deepEqual(nodeFs.readdirSync(folder), ['data'])
})

test('serves the file again when the disk that became read-only in the middle of its rewrite can be written', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, edited)
  let willTurn = true
  let isReadOnly = false
  const fileSystem = watchFileSystem({
    before({ name, args }) {
      if (willTurn && name === 'linkSync') {
        willTurn = false
        isReadOnly = true
      }
      const isWrite = ['linkSync', 'renameSync', 'unlinkSync'].includes(name)
      if (isReadOnly && (isWrite || (name === 'accessSync' && args[0] !== path))) throw systemError('EROFS')
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  nodeFs.writeFileSync(path, edited.replace('[', '[{"name":"Kit","categoryId":1},'))
  await assert.rejects(store.reset(), /has to be rewritten, but .* \(EROFS\)/)
  assert.equal(nodeFs.existsSync(path), false)
  await assert.rejects(store.reset(), /has to be rewritten, but .* \(EROFS\)/)
  isReadOnly = false
  await store.reset()
  assert.equal((await store.create(newPet('Lea'))).id, 4)
  assert.deepEqual(namesInFile(path).toSorted(), ['Kit', 'Lea', 'Max', 'Mia'])
})

test('leaves the file aside when it cannot be restored', async () => {
  const path = join(makeFastFolder(), 'pets.json')
  interruptRewrite(path)
  const failing = new Set(['linkSync', 'renameSync'])
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (failing.delete(name)) throw systemError('EIO')
    },
  })
  await assert.rejects(openFileStore(path, { fileSystem }), /pets\.json: cannot be opened or created: .*EIO/)
  assert.equal(nodeFs.readFileSync(`${path}.petstore-old`, 'utf8'), edited)
  const store = await openFileStore(path)
  assert.deepEqual(namesIn(store), ['Max', 'Mia'])
  await store.close()
})

test('keeps the file that was aside until the one at the path is valid', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  interruptRewrite(path)
  for (const text of ['{"pets":[{"name":', '\n']) {
    nodeFs.writeFileSync(path, text)
    makeOld(path)
    await assert.rejects(openFileStore(path), DataFileUnusable)
  }
  assert.equal(nodeFs.readFileSync(`${path}.petstore-old`, 'utf8'), edited)
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Fixed')))
  const { store } = await openStore(t, path)
  assert.equal(store.get(1)?.name, 'Fixed')
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

/** A start without a data file is refused and names the old one; each of its two remedies leads to a start. */
async function assertNamesOldFile(path: string): Promise<void> {
  const names = listFolder(dirname(path))
  const [, toOldFile = '', without = ''] = await openFileStore(path).then(
    () => assert.fail('it starts'),
    ({ message }: Error) =>
      /: is missing, and pets\.json\.petstore-old, which .*; rename it to (\S+) to go on with its pets, or to (another name) to go on without them$/m.exec(
        message,
      ) ?? assert.fail(message),
  )
  assert.deepEqual(listFolder(dirname(path)), names)
  for (const choice of [toOldFile, without]) {
    const folder = makeFastFolder()
    copyFolder(dirname(path), join(folder, 'data'))
    const copy = join(folder, 'data', 'pets.json')
    nodeFs.renameSync(`${copy}.petstore-old`, choice === 'pets.json' ? copy : `${copy}.another`)
    const store = await openFileStore(copy)
    assert.equal(store.size > 0, choice === 'pets.json')
    await store.close()
  }
}

test('refuses to start without a data file beside an old one that may be older than what was confirmed, and names it', async () => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(`${path}.petstore-old`, edited)
  await assertNamesOldFile(path)
})

test('restores nothing beside kept pets, which may be newer', async () => {
  const path = join(makeFastFolder(), 'pets.json')
  interruptRewrite(path)
  nodeFs.writeFileSync(`${path}.kept-2026-11-26T10-00-00.000Z`, edited)
  await assert.rejects(
    openFileStore(path),
    /pets\.json\.petstore-old, which .*\n.*, which was kept last, has 2 pets/,
  )
  assert.equal(nodeFs.existsSync(path), false)
})

test('a killed start that kept something looks like no interrupted rewrite', async () => {
  const torn = `${edited.slice(0, -7)},\n    {"id":3,"name":"Cut o`
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, torn)
  makeOld(path)
  const copies: string[] = []
  const fileSystem = watchFileSystem({
    before() {
      const copy = join(makeFastFolder(), 'data')
      copyFolder(dirname(path), copy)
      copies.push(join(copy, 'pets.json'))
    },
  })
  await (await openFileStore(path, { fileSystem })).close()
  for (const copy of copies) {
    const names = listFolder(dirname(copy))
    const isAside = names.includes('pets.json.petstore-old') && !names.includes('pets.json')
    assert.equal(isAside && !names.includes('pets.json.petstore-new'), false, names.join())
  }
})

/** Fails the calls of one name on files beside the data file: from the n-th on, once or each. */
function failBeside(name: string, from: number, isLasting: boolean): FileSystem {
  let count = 0
  return watchFileSystem({
    before(call) {
      const isBeside = call.args.some((arg) => String(arg).includes('.petstore-'))
      if (call.name !== name || !isBeside) return
      count++
      if (isLasting ? count >= from : count === from) throw systemError('EIO')
    },
  })
}

describe('serves no older state after a rewrite in which a call fails on a file beside, and the data file is removed', () => {
  const kinds = ['unlinkSync', 'renameSync', 'linkSync'].flatMap((name) =>
    [1, 2, 3, 4, 5].flatMap((from) => [false, true].map((isLasting) => ({ name, from, isLasting }))),
  )
  for (const { name, from, isLasting } of share(kinds, 4)) {
    test(`${name}, ${isLasting ? `from call ${from} on` : `call ${from}`}`, async (t) => {
      const path = join(makeFastFolder(), 'pets.json')
      nodeFs.writeFileSync(path, withoutId)
      const said = new Lines()
      const fileSystem = failBeside(name, from, isLasting)
      const store = await openFileStore(path, { fileSystem, onMessage: said.say }).catch((error: unknown) => {
        assert.ok(error instanceof DataFileUnusable, String(error))
        return undefined
      })
      if (store === undefined) {
        // Nothing was confirmed, and the next start has the file.
        const { store: next } = await openStore(t, path)
        assert.deepEqual(namesIn(next), ['Rex'])
        return
      }
      t.after(() => store.close())
      await store.create(newPet('Mia'))
      await store.create(newPet('Kit'))
      nodeFs.rmSync(path)
      const line = await said.next(/is missing; no pet can be added/)
      assert.deepEqual(namesIn(store), ['Rex', 'Mia', 'Kit'])
      assert.equal(nodeFs.existsSync(path), false)
      if (!line.includes('are kept in')) return
      const killed = join(makeFastFolder(), 'data', 'pets.json')
      copyFolder(dirname(path), dirname(killed))
      await assert.rejects(openFileStore(killed), /which was kept last, has 3 pets/)
    })
  }
})

test('a start that cannot make the name of the damaged bytes durable leaves none of them there', async () => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, `${edited.slice(0, -7)},\n    {"id":3,"name":"Cut o`)
  makeOld(path)
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (name === 'fsync' && place === dirname(path)) throw systemError('EIO')
    },
  })
  await assert.rejects(openFileStore(path, { fileSystem }), /i\/o error \(EIO\)$/)
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

test('rewrites nothing while an old file from before cannot be removed', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, withoutId)
  nodeFs.writeFileSync(`${path}.petstore-old`, edited)
  const fileSystem = failBeside('unlinkSync', 1, true)
  await assert.rejects(
    openFileStore(path, { fileSystem }),
    /cannot be opened or created: i\/o error \(EIO\)$/,
  )
  assert.equal(nodeFs.readFileSync(path, 'utf8'), withoutId)
  const { store } = await openStore(t, path)
  assert.deepEqual(namesIn(store), ['Rex'])
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

test('what is made beside the file is for its owner alone until it takes its place, and gets its mode then', async (t) => {
  const umask = process.umask(0)
  t.after(() => process.umask(umask))
  const torn = `${withoutId.slice(0, -2)},\n    {"id":3,"name":"Cut o`
  for (const text of [withoutId, torn]) {
    const path = join(makeFastFolder(), 'pets.json')
    nodeFs.writeFileSync(path, text)
    nodeFs.chmodSync(path, 0o604)
    makeOld(path)
    let isSeen = false
    const fileSystem = watchFileSystem({
      before({ name }) {
        for (const beside of listFolder(dirname(path)).filter((file) => file !== 'pets.json')) {
          const { mode } = nodeFs.statSync(join(dirname(path), beside))
          // From then on it is the next data file. The old one may be what it was.
          const isReady =
            beside.endsWith('.petstore-old') || ['fsync', 'renameSync', 'linkSync'].includes(name)
          if (beside.endsWith('.petstore-new') && isReady) isSeen = true
          else if (!isReady) assert.equal(mode & 0o077, isSeen ? mode & 0o077 : 0, `${name} ${beside}`)
        }
      },
    })
    const { store } = await openStore(t, path, fileSystem)
    assert.ok(isSeen)
    assert.equal(nodeFs.statSync(path).mode & 0o777, 0o604)
    nodeFs.truncateSync(path)
    await store.close()
    const kept = listFolder(dirname(path)).filter((name) => /\.(?:torn|kept)-/.test(name))
    assert.equal(kept.length, text === torn ? 2 : 1)
    for (const name of kept)
      assert.equal(nodeFs.statSync(join(dirname(path), name)).mode & 0o777, 0o600, name)
  }
})

test('gives a new data file, and a group that it cannot keep, to nobody else', async (t) => {
  const umask = process.umask(0)
  t.after(() => process.umask(umask))
  const path = join(makeFastFolder(), 'pets.json')
  const { store } = await openStore(t, path)
  assert.equal(nodeFs.statSync(path).mode & 0o777, 0o600)
  await store.close()
  nodeFs.writeFileSync(path, withoutId)
  nodeFs.chmodSync(path, 0o664)
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (name === 'fchownSync') throw systemError('EPERM')
    },
  })
  await openStore(t, path, fileSystem)
  assert.equal(nodeFs.statSync(path).mode & 0o777, 0o604)
})

test('removes what killed processes have left beside a valid file', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, edited)
  interruptRewrite(path)
  nodeFs.writeFileSync(`${path}.petstore-temporary`, edited)
  const { store } = await openStore(t, path)
  assert.equal(store.size, 2)
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

test('leaves an invalid edit alone that was saved after a rewrite was killed', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  const killed = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, withoutId)
  const fileSystem = watchFileSystem({
    before({ name, args: [from] }) {
      if (name === 'renameSync' && from === path) copyFolder(dirname(path), dirname(killed))
    },
  })
  await openStore(t, path, fileSystem)
  const mistake = edited.replace('"Max",', '"Max"')
  nodeFs.writeFileSync(killed, mistake)
  makeOld(killed)
  await assert.rejects(openFileStore(killed), DataFileUnusable)
  assert.equal(nodeFs.readFileSync(killed, 'utf8'), mistake)
})

test('rewrites on a file system without hard links', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, withoutId)
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (name === 'linkSync') throw systemError('EPERM')
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  await store.create(newPet('Kit'))
  assert.deepEqual(namesInFile(path), ['Rex', 'Kit'])
})

/** A file that is mounted by itself cannot be renamed. */
function mountByItself(path: string): FileSystem {
  return watchFileSystem({
    before({ name, path: place }) {
      if (name === 'renameSync' && place === path) throw systemError('EBUSY')
    },
  })
}

test('appends to a file that is mounted by itself, in any layout', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, `{"pets":[${petLine(1, 'Rex')}]}`)
  const { store } = await openStore(t, path, mountByItself(path))
  await store.create(newPet('Mia'))
  assert.deepEqual(namesInFile(path), ['Rex', 'Mia'])
})

test('tries once to repair a copy that is put back into a file that is mounted by itself', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  let tries = 0
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (name !== 'renameSync' || place !== path) return
      tries++
      throw systemError('EBUSY')
    },
  })
  const { store, lines } = await openStore(t, path, fileSystem)
  await tryCreate(store, 'Rex')
  const first = nodeFs.readFileSync(path)
  await tryCreate(store, 'Mia')
  nodeFs.writeFileSync(path, Buffer.concat([first, nodeFs.readFileSync(path).subarray(first.length)]))
  await lines.next(/mount its folder instead/)
  for (let look = 0; look < 3; look++) await assert.rejects(store.reset(), /a mount of its own/)
  assert.equal(tries, 1)
})

test('refuses to rewrite a file that is mounted by itself, says what to do, and touches nothing', async (t) => {
  const said = /pets\.json: has to be rewritten, but is a mount of its own; mount its folder instead/
  const torn = `${edited.slice(0, -7)},\n    {"id":3,"name":"Cut o`
  for (const text of [withoutId, torn]) {
    const path = join(makeFastFolder(), 'pets.json')
    nodeFs.writeFileSync(path, text)
    makeOld(path)
    await assert.rejects(openFileStore(path, { fileSystem: mountByItself(path) }), said)
    assert.equal(nodeFs.readFileSync(path, 'utf8'), text)
    assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
  }
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, edited)
  const { store, lines } = await openStore(t, path, mountByItself(path))
  nodeFs.writeFileSync(path, withoutId)
  await lines.next(said)
  assert.equal(await tryCreate(store, 'Kit'), false)
  assert.deepEqual(namesIn(store), ['Max', 'Mia'])
  assert.equal(nodeFs.readFileSync(path, 'utf8'), withoutId)
  nodeFs.writeFileSync(path, edited)
  assert.equal(await tryCreate(store, 'Kit'), true)
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

test('keeps the pets when somebody removes the new file in the middle of a rewrite at a start', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, withoutId)
  let isRemoved = false
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (name !== 'renameSync' || isRemoved) return
      isRemoved = true
      nodeFs.rmSync(`${path}.petstore-new`)
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  assert.equal(isRemoved, true)
  assert.deepEqual(namesIn(store), ['Rex'])
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

test('a file that needs ids is read once, and rewritten when its folder may be written again', async (t) => {
  const path = join(makeFolder(), 'pets.json')
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Rex')))
  let isReadOnly = false
  let readCount = 0
  let lookCount = 0
  const looks = new EventEmitter()
  const thirdLook = once(looks, 'third')
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (name === 'readFileSync') readCount++
      if (!isReadOnly) return
      if (name === 'accessSync' && place === dirname(path)) {
        lookCount++
        if (lookCount === 3) looks.emit('third')
        throw systemError('EACCES')
      }
      if (name === 'openSync' && place === `${path}.petstore-new`) throw systemError('EACCES')
    },
  })
  const { lines } = await openStore(t, path, fileSystem)
  isReadOnly = true
  nodeFs.writeFileSync(path, '{"pets":[{"name":"Mia","categoryId":1}]}')
  await lines.next(/: has to be rewritten, but it or its folder cannot be written: permission denied/)
  const countBefore = readCount
  // A store alone keeps no process alive.
  const waiting = setInterval(() => {}, 1_000)
  await thirdLook
  clearInterval(waiting)
  assert.equal(readCount, countBefore)
  isReadOnly = false
  await lines.next(/^reloaded 1 pet: /)
  assert.deepEqual(namesInFile(path), ['Mia'])
})

test('goes on where each of many rewrites has met one edit, and has then worked', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  let isArmed = false
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (!isArmed || name !== 'renameSync') return
      isArmed = false
      nodeFs.appendFileSync(path, ' ')
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  for (let round = 1; round <= 12; round++) {
    nodeFs.writeFileSync(path, `{"pets":[{"name":"Rex ${round}","categoryId":1}]}`)
    isArmed = true
    await store.create(newPet('Mia'))
    assert.equal(isArmed, false)
    assert.deepEqual(namesIn(store), [`Rex ${round}`, 'Mia'])
  }
})

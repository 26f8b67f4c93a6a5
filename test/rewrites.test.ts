/**
 * The file is rewritten to fill in ids or to take over another layout. An editor may save, and the process may die, before
 * any system call of that: the edit is served and stays in the file, and the next start finds a whole file.
 */
import assert from 'node:assert/strict'
import nodeFs from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-error.ts'
import { PetStoreError } from '../src/store/store.ts'
import { openPetStore, type PetStore } from '../src/store/pet-store.ts'
import {
  makeFastFolder,
  namesIn,
  namesInFile,
  newPet,
  openStore,
  petLine,
  systemError,
  watchFileSystem,
} from './file-system.ts'
import { formatDataFile, isThorough, makeOld } from './support.ts'

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

/** What makes the store rewrite the file when a pet is created. */
const causes: readonly [cause: string, text: string][] = [
  ['in another layout', `{"pets":[${petLine(1, 'Rex')}]}`],
  ['with pets that need ids', `{"pets":[{"name":"Rex","categoryId":1}]}`],
]

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
  text: string,
  before: (call: number, path: string) => void,
): Promise<{ readonly store: PetStore; readonly path: string; readonly calls: number }> {
  nodeFs.mkdirSync(folder)
  const path = join(folder, 'pets.json')
  let calls = 0
  let isArmed = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      // To save in place between the last look of an append and its write is not covered.
      if (isArmed && (name !== 'writeSync' || place !== path)) before(calls++, path)
    },
  })
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Rex')))
  const store = await openPetStore(path, { fileSystem })
  nodeFs.writeFileSync(path, text)
  isArmed = true
  // The file may be gone or empty for so long that the creation is refused; it is tried again until the editor has saved.
  for (let tries = 1; !(await tryCreate(store, 'Kit')); tries++) assert.ok(tries < 1000)
  isArmed = false
  return { store, path, calls }
}

async function tryCreate(store: PetStore, name: string): Promise<boolean> {
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
  text: string,
  begin: (path: string) => () => void,
  { from, to }: Moments,
): Promise<readonly string[]> {
  const killed: string[] = []
  let end: (() => void) | undefined
  let isSaved = false
  const { store, path } = await createWithRewrite(folder, text, (call, file) => {
    if (call === from) end = begin(file)
    if (call === to) {
      end?.()
      isSaved = true
    }
    // A kill before every fifth call: with all moments, every call has its turn.
    if (!isSaved || (call + 2 * from) % 5 > 0) return
    const copy = `${folder}-${killed.length}`
    nodeFs.cpSync(folder, copy, { recursive: true })
    killed.push(copy)
  })
  // An edit that ends only now was made without the pet, and so removes it.
  if (!isSaved) (end ?? begin(path))()
  await store.create(newPet('after'))
  assert.deepEqual(namesInFile(path), ['Max', 'Mia', ...(isSaved ? ['Kit'] : []), 'after'])
  assert.deepEqual(namesIn(store), namesInFile(path))
  await store.close()
  assert.deepEqual(nodeFs.readdirSync(folder), ['pets.json'])
  return killed
}

describe(
  'keeps an edit that falls between any two system calls of a rewrite, also when the process is killed',
  { concurrency: true },
  () => {
    for (const [cause, text] of causes) {
      for (const [how, begin] of saves) {
        test(`of a file ${cause}, saved ${how}`, async () => {
          const root = makeFastFolder()
          const { store, calls } = await createWithRewrite(join(root, 'count'), text, () => {})
          await store.close()
          assert.ok(calls > 20, `${calls} calls`)
          const moments: Moments[] = []
          for (let from = 0; from < calls; from++)
            for (let to = from; to < Math.min(from + maxDistance, calls); to++) moments.push({ from, to })
          // The step spreads the moments over all calls.
          const step = isThorough ? 1 : 31
          for (const moment of moments.filter((_, index) => index % step === 0)) {
            const folder = join(root, `${moment.from}-${moment.to}`)
            for (const killed of await saveDuringRewrite(folder, text, begin, moment)) {
              const again = await openPetStore(join(killed, 'pets.json'))
              const [first, second] = again.list({ limit: 100 }).pets
              assert.deepEqual([first?.name, second?.name], ['Max', 'Mia'], killed)
              await again.close()
              nodeFs.rmSync(killed, { recursive: true })
            }
            nodeFs.rmSync(folder, { recursive: true })
          }
        })
      }
    }
  },
)

test('keeps an edit through a file that an editor had opened before it was taken aside', async (t) => {
  for (const [writesBefore, text] of ['linkSync', 'fdatasync'].flatMap((call) =>
    causes.map(([, causeText]) => [call, causeText] as const),
  )) {
    const path = join(makeFastFolder(), 'pets.json')
    let editor: number | undefined
    let isSaved = false
    const fileSystem = watchFileSystem({
      before({ name }) {
        if (name === 'renameSync') editor ??= nodeFs.openSync(path, 'r+')
        if (name !== writesBefore || editor === undefined || isSaved) return
        nodeFs.ftruncateSync(editor, 0)
        nodeFs.writeSync(editor, edited, 0)
        nodeFs.closeSync(editor)
        isSaved = true
      },
    })
    nodeFs.writeFileSync(path, text)
    const { store } = await openStore(t, path, fileSystem)
    await store.create(newPet('Kit'))
    assert.deepEqual(namesInFile(path), ['Max', 'Mia', 'Kit'])
  }
})

for (const [what, text] of [
  ['nothing is at its path', undefined],
  ['somebody has created an empty one', '\n'],
] as const) {
  test(`puts the file back that a killed process had moved aside when ${what}, and says so`, async (t) => {
    const path = join(makeFastFolder(), 'pets.json')
    nodeFs.writeFileSync(`${path}.petstore-old`, edited)
    if (text !== undefined) nodeFs.writeFileSync(path, text)
    const { store, lines } = await openStore(t, path)
    assert.equal(store.size, 2)
    assert.equal(nodeFs.readFileSync(path, 'utf8'), edited)
    assert.equal(nodeFs.existsSync(`${path}.petstore-old`), false)
    assert.deepEqual(
      [...lines],
      [`${path}: restored: a crash had interrupted the server while it replaced this file`],
    )
  })
}

test('keeps the file that was aside until the one at the path is valid', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(`${path}.petstore-old`, edited)
  nodeFs.writeFileSync(path, '{"pets":[{"name":')
  makeOld(path)
  await assert.rejects(openPetStore(path), DataFileUnusable)
  assert.equal(nodeFs.readFileSync(`${path}.petstore-old`, 'utf8'), edited)
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Fixed')))
  const { store } = await openStore(t, path)
  assert.equal(store.get(1)?.name, 'Fixed')
  assert.equal(nodeFs.existsSync(`${path}.petstore-old`), false)
})

test('leaves an invalid edit alone that was saved after a rewrite was killed', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  const killed = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, causes[1]?.[1] ?? '')
  const fileSystem = watchFileSystem({
    before({ name, args: [from] }) {
      if (name === 'renameSync' && from === path)
        nodeFs.cpSync(dirname(path), dirname(killed), { recursive: true })
    },
  })
  await openStore(t, path, fileSystem)
  const mistake = edited.replace('"Max",', '"Max"')
  nodeFs.writeFileSync(killed, mistake)
  makeOld(killed)
  await assert.rejects(openPetStore(killed), DataFileUnusable)
  assert.equal(nodeFs.readFileSync(killed, 'utf8'), mistake)
})

test('leaves a damaged file alone when the text that it was being overwritten with is damaged too', async () => {
  const path = join(makeFastFolder(), 'pets.json')
  const marked = `\0${edited.slice(1)}`
  nodeFs.writeFileSync(path, marked)
  makeOld(path)
  nodeFs.writeFileSync(`${path}.petstore-overwrite`, edited.slice(0, 30))
  await assert.rejects(openPetStore(path), DataFileUnusable)
  assert.equal(nodeFs.readFileSync(path, 'utf8'), marked)
})

test('leaves a mistake alone that was saved after the overwriting of a mounted file was killed', async () => {
  const path = join(makeFastFolder(), 'pets.json')
  const mistake = edited.replace('"Max",', '"Max"')
  nodeFs.writeFileSync(path, mistake)
  makeOld(path)
  nodeFs.writeFileSync(`${path}.petstore-overwrite`, edited)
  await assert.rejects(openPetStore(path), DataFileUnusable)
  assert.equal(nodeFs.readFileSync(path, 'utf8'), mistake)
})

test('rewrites on a file system without hard links', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, causes[1]?.[1] ?? '')
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (name === 'linkSync') throw systemError('EPERM')
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  await store.create(newPet('Kit'))
  assert.deepEqual(namesInFile(path), ['Rex', 'Kit'])
})

test('leaves what an editor saves into a mounted file while it is overwritten, whether or not the disk fails', async (t) => {
  const moments = [1, 2, 3].flatMap((step) => [false, true].map((fails) => ({ step, fails })))
  for (const { step, fails } of moments) {
    const path = join(makeFastFolder(), 'pets.json')
    nodeFs.writeFileSync(path, causes[1]?.[1] ?? '')
    let syncs = 0
    let isOverwriting = false
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (name === 'renameSync' && place === path) throw systemError('EBUSY')
        if (name === 'writeSync' && place === path) isOverwriting = true
        if (name === 'fsync' && place === path && isOverwriting && ++syncs === step) {
          nodeFs.writeFileSync(path, edited)
          if (fails) throw systemError('EIO')
        }
      },
    })
    const { store } = await openStore(t, path, fileSystem)
    assert.equal(syncs >= step, true)
    assert.deepEqual(namesIn(store), ['Max', 'Mia'])
    assert.equal(nodeFs.readFileSync(path, 'utf8'), edited)
    assert.deepEqual(nodeFs.readdirSync(dirname(path)), ['pets.json'])
  }
})

test('finishes at the next start when a mounted file was touched while it was put back', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  const text = `{"pets":[${Array.from({ length: 9 }, (_, pet) => `{"name":"${pet}","categoryId":1}`).join()}]}`
  nodeFs.writeFileSync(path, text)
  let isFull = false
  let isTouched = false
  const fileSystem = watchFileSystem({
    before({ name, path: place, args: [descriptor, bytes] }) {
      if (name === 'renameSync' && place === path) throw systemError('EBUSY')
      if (place !== path) return
      // The disk has room for a part of the new text.
      if (name === 'writeSync' && !isFull && bytes instanceof Buffer && bytes.length > text.length) {
        isFull = true
        nodeFs.writeSync(Number(descriptor), bytes, 0, 100, 1)
        throw systemError('ENOSPC')
      }
      if (name === 'fsync' && isFull && !isTouched) {
        isTouched = true
        nodeFs.utimesSync(path, 1, 1)
      }
    },
  })
  await assert.rejects(openPetStore(path, { fileSystem }), DataFileUnusable)
  assert.equal(isTouched, true)
  const { store } = await openStore(t, path)
  assert.deepEqual(namesIn(store), [...'012345678'])
  assert.deepEqual(namesInFile(path), [...'012345678'])
})

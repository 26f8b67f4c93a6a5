/**
 * A person's hand in the file while the store runs: however an editor saves, at whatever moment, both the edit and the
 * creations survive. What happens while an edit is not valid: unusable-edits.test.ts.
 */
import assert from 'node:assert/strict'
import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  chmodSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { PetStoreError } from '../src/store/store.ts'
import { clock } from '../src/system/clock.ts'
import {
  countTime,
  createGate,
  createSyncGate,
  holdLooks,
  makeFastFolder,
  namesIn,
  namesInFile,
  newPet,
  openStore,
  petLine,
  watchFileSystem,
} from './file-system.ts'
import { formatDataFile, makeDataFile, makeFolder, readPetLines, listFolder } from './support.ts'

const rex = petLine(1, 'Rex')
const mia = petLine(2, 'Mia')

/** How editors and tools put a new text into a file. */
const saves: readonly [how: string, save: (path: string, text: string) => void][] = [
  ['in place', (path, text) => writeFileSync(path, text)],
  [
    'by rename',
    (path, text) => {
      writeFileSync(`${path}.new`, text)
      renameSync(`${path}.new`, path)
    },
  ],
  [
    'by a backup and a new file, as vim does',
    (path, text) => {
      renameSync(path, `${path}~`)
      writeFileSync(path, text)
      rmSync(`${path}~`)
    },
  ],
  [
    'by removing and making it again, as git does',
    (path, text) => {
      rmSync(path)
      writeFileSync(path, text)
    },
  ],
  [
    'by cp',
    (path, text) => {
      writeFileSync(`${path}.copy`, text)
      copyFileSync(`${path}.copy`, path)
      rmSync(`${path}.copy`)
    },
  ],
]

describe('sees an edit and swaps it in whole', () => {
  test('within a second', async (t) => {
    // Time goes on only here, so that it does not matter how fast this machine is.
    const look = holdLooks(t)
    const path = makeDataFile([rex])
    const { lines } = await openStore(t, path)
    writeFileSync(path, formatDataFile(rex, mia))
    look(1000)
    assert.equal(await lines.next(/./), 'reloaded 2 pets: 1 added, 0 removed, 0 changed')
  })

  for (const [how, save] of saves) {
    test(`saved ${how}`, async (t) => {
      const path = makeDataFile([rex, mia, petLine(3, 'Old')])
      const { store, lines } = await openStore(t, path)
      save(path, formatDataFile(petLine(1, 'Max'), mia, petLine(4, 'New'), petLine(5, 'Newer')))
      const line = await lines.next(/./)
      assert.equal(line, 'reloaded 4 pets: 2 added, 1 removed, 1 changed')
      assert.deepEqual(namesIn(store), ['Max', 'Mia', 'New', 'Newer'])
      await store.create(newPet('next'))
      assert.deepEqual(namesInFile(path), ['Max', 'Mia', 'New', 'Newer', 'next'])
    })
  }

  test('through a symbolic link, which stays one', async (t) => {
    const path = makeDataFile([rex])
    const link = join(makeFolder(), 'pets.json')
    symlinkSync(path, link)
    const { store, lines } = await openStore(t, link)
    const [, saveByRename] = saves[1] ?? []
    saveByRename?.(path, '{"pets":[{"name":"Max","categoryId":1}]}')
    await lines.next(/reloaded 1 pet:/)
    await store.create(newPet('Mia'))
    assert.deepEqual(namesInFile(path), ['Max', 'Mia'])
    assert.deepEqual(namesInFile(link), ['Max', 'Mia'])
    assert.deepEqual(listFolder(dirname(link)), ['pets.json'])
  })

  test('after hundreds of creations', async (t) => {
    const path = makeDataFile([rex])
    const { store, lines } = await openStore(t, path)
    for (let i = 0; i < 3; i++) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => store.create(newPet(`${i}/${index}`))))
    }
    writeFileSync(path, readFileSync(path, 'utf8').replace('"Rex"', '"Maximilian"'))
    assert.equal(await lines.next(/./), 'reloaded 301 pets: 0 added, 0 removed, 1 changed')
    assert.equal(store.get(1)?.name, 'Maximilian')
  })

  test('with pets that need ids, which it writes into the file', async (t) => {
    const path = makeDataFile([rex, petLine(9, 'Mia')])
    const { store, lines } = await openStore(t, path)
    const mine = '{ "name": "Kit",\t"categoryId": 5 }'
    writeFileSync(path, `{"pets": [\n${mine},\n${rex}, ${petLine(9, 'Mia')}]}`)
    await lines.next(/^reloaded 3 pets: 1 added, 0 removed, 0 changed$/)
    assert.deepEqual(store.get(10), { id: 10, name: 'Kit', categoryId: 5, status: 'available' })
    assert.match(readFileSync(path, 'utf8'), /\n\{"id":10, "name": "Kit",\t"categoryId": 5 \},\n/)
    assert.equal((await store.create(newPet('next'))).id, 11)
  })
})

test('begins no look for edits while another is under way', async (t) => {
  const look = holdLooks(t)
  const gate = createGate()
  const path = makeDataFile([rex])
  let isArmed = false
  let looks = 0
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (isArmed && name === 'statSync' && place === path) looks++
      return isArmed && name === 'fdatasync' ? gate.pass() : undefined
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  writeFileSync(path, formatDataFile(rex, mia))
  isArmed = true
  look(1000)
  await gate.reached
  for (let i = 0; i < 50; i++) look(1000)
  isArmed = false
  gate.open()
  isArmed = true
  // Comes after all looks that were begun before.
  await store.reset()
  assert.ok(looks < 20, `${looks}`)
  assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
})

test('leaves an edit alone that comes during the sync of a creation', async (t) => {
  const path = makeDataFile([rex])
  const { ino } = statSync(path)
  let isArmed = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (!isArmed || name !== 'fdatasync' || place !== path) return
      isArmed = false
      writeFileSync(path, formatDataFile(mia))
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  isArmed = true
  await store.create(newPet('Kit'))
  assert.deepEqual(namesIn(store), ['Mia', 'Kit'])
  assert.equal(statSync(path).ino, ino, 'it was not rewritten')
})

test('reads it again after a touch, without a change, and says nothing of another mode', async (t) => {
  const path = makeDataFile([rex])
  const { store, lines } = await openStore(t, path)
  chmodSync(path, 0o600)
  await store.reset()
  assert.deepEqual([...lines], [])
  utimesSync(path, 2, 2)
  assert.equal(await lines.next(/./), 'reloaded 1 pet: 0 added, 0 removed, 0 changed')
  await store.create(newPet('Mia'))
  assert.deepEqual(readPetLines(path), [rex, mia])
})

test('sees an edit of the same length that keeps the modification time', async (t) => {
  const path = makeDataFile([rex, mia])
  const { store, lines } = await openStore(t, path)
  const { atimeMs, mtimeMs } = statSync(path)
  writeFileSync(path, readFileSync(path, 'utf8').replace('Rex', 'Max'))
  utimesSync(path, atimeMs / 1000, mtimeMs / 1000)
  await lines.next(/^reloaded 2 pets: 0 added, 0 removed, 1 changed$/)
  assert.deepEqual(namesIn(store), ['Max', 'Mia'])
})

test('gives no id a second time after an edit removed its pet', async (t) => {
  const path = makeDataFile([rex])
  const { store, lines } = await openStore(t, path)
  assert.equal((await store.create(newPet('Mia'))).id, 2)
  assert.equal((await store.create(newPet('Kit'))).id, 3)
  writeFileSync(path, formatDataFile(rex))
  await lines.next(/^reloaded 1 pet:/)
  assert.equal((await store.create(newPet('Otto'))).id, 4)
  writeFileSync(path, formatDataFile(rex, '{"name":"Pip","categoryId":1}'))
  await lines.next(/^reloaded 2 pets/)
  assert.deepEqual(
    store.list({ limit: 9 }).pets.map(({ id }) => id),
    [1, 5],
  )
})

/** Empties the file; what it gives writes the new text. */
function saveInPlace(path: string, text: string): () => void {
  const editor = openSync(path, 'w')
  return () => {
    writeSync(editor, text)
    closeSync(editor)
  }
}

describe('keeps an edit and a creation that fall together', () => {
  // The edit is made in two steps, each before one of the calls that a creation makes, or within its sync.
  const text = formatDataFile(petLine(1, 'Max'), mia)
  /** Each makes the first step and gives the second. */
  const steps: readonly [how: string, begin: (path: string) => () => void][] = [
    [
      'a rename',
      (path) => {
        writeFileSync(`${path}~`, text)
        return () => renameSync(`${path}~`, path)
      },
    ],
    [
      'a removal and return',
      (path) => {
        rmSync(path)
        return () => writeFileSync(path, text)
      },
    ],
    ['a save in place', (path) => saveInPlace(path, text)],
    // It ends where the store has written in the meantime, before the end of that, or behind it.
    ['a longer save in place', (path) => saveInPlace(path, text + ' '.repeat(80))],
    ['a save in place of much', (path) => saveInPlace(path, text + ' '.repeat(400))],
    // It ends just where the store expects to write.
    [
      'a save in place of all that is there',
      (path) => saveInPlace(path, readFileSync(path, 'utf8').replace('Rex', 'Max')),
    ],
  ]
  for (const [how, begin] of steps) {
    test(`${how}, at each pair of moments of it`, async (t) => {
      countTime(t, 0)
      // The store looks again at once: the moments are counted, not the time between them.
      t.mock.method(clock, 'setTimeout', (call: () => void) => setImmediate(call))
      const folder = makeFastFolder()
      // What a creation calls, in this order; `retry` is when it has looked at the file many times, and what it did not come to is done.
      const moments = ['statSync', 'writeSync', 'fstatSync', 'readSync', 'fdatasync', 'retry'] as const
      for (const [index, from] of moments.entries()) {
        for (const to of moments.slice(index)) {
          // To empty the file between two system calls that follow each other directly is not covered.
          if (from === 'writeSync' && how.includes('in place')) continue
          // What is as long as what was just written, in the same tick of the kernel's clock, looks the same.
          if (index > moments.indexOf('writeSync') && how.endsWith('all that is there')) continue
          const path = join(folder, `${from}-${to}.json`)
          writeFileSync(path, formatDataFile(rex, mia))
          let step = 0
          let end: (() => void) | undefined
          const at = (moment: string): void => {
            if (step === 0 && moment === from) {
              step = 1
              end = begin(path)
            }
            if (step === 1 && moment === to) {
              step = 2
              end?.()
            }
          }
          let isArmed = false
          let looked = 0
          const fileSystem = watchFileSystem({
            before({ name }) {
              if (!isArmed) return
              at(name)
              if (name === 'statSync' && ++looked === 12) for (const moment of ['retry', from, to]) at(moment)
            },
          })
          const { store, lines } = await openStore(t, path, fileSystem)
          await store.create(newPet('before'))
          isArmed = true
          const creation = store.create(newPet('Kit'))
          await creation
          isArmed = false
          // An edit that is made only now is made without the pet, and so takes it out.
          const created = step < 2 && !how.endsWith('all that is there') ? [] : ['Kit']
          at(from)
          at(to)
          await store.create(newPet('after'))
          const found = namesInFile(path).filter((name) => name !== 'before')
          assert.deepEqual(found, ['Max', 'Mia', ...created, 'after'], `${from} ${to}`)
          assert.deepEqual(namesIn(store), namesInFile(path))
          assert.equal(
            lines.some((line) => line.includes('no pet can be added')),
            false,
            lines.join('\n'),
          )
          await store.close()
        }
      }
    })
  }
})

describe('keeps an edit that falls into the very sync of a creation', () => {
  for (const [how, save] of saves) {
    test(`saved ${how}, with and without the pet that is being stored`, async (t) => {
      for (const contains of [false, true]) {
        const path = makeDataFile([rex, mia])
        const gate = createSyncGate()
        const { store, lines } = await openStore(t, path, gate.fileSystem)
        gate.hold()
        const creations = [store.create(newPet('Kit')), store.create(newPet('Otto'))]
        await gate.reached
        const current = contains ? readFileSync(path, 'utf8') : formatDataFile(rex, mia)
        save(path, current.replace('"Rex"', '"Max"'))
        gate.open()
        const pets = await Promise.all(creations)
        assert.deepEqual(
          pets.map(({ id }) => id),
          [3, 4],
        )
        assert.deepEqual(namesInFile(path), ['Max', 'Mia', 'Kit', 'Otto'])
        assert.deepEqual(namesIn(store), ['Max', 'Mia', 'Kit', 'Otto'])
        assert.match(lines.join('\n'), /^reloaded \d pets?: \d added, 0 removed, 1 changed$/)
        await store.close()
      }
    })
  }
})

describe('an edit that has read a pet in flight', () => {
  test('sets it to sold with all others: it is listed once, as sold, and the client gets that pet', async (t) => {
    const path = makeDataFile([rex, mia])
    const gate = createSyncGate()
    const { store } = await openStore(t, path, gate.fileSystem)
    gate.hold()
    const creations = [store.create(newPet('Kit')), store.create(newPet('Otto'))]
    await gate.reached
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('"available"', '"sold"'))
    gate.open()
    const pets = await Promise.all(creations)
    assert.deepEqual(store.list({ limit: 9 }).pets, [
      { id: 1, ...newPet('Rex'), status: 'sold' },
      { id: 2, ...newPet('Mia'), status: 'sold' },
      { id: 3, ...newPet('Kit'), status: 'sold' },
      { id: 4, ...newPet('Otto'), status: 'sold' },
    ])
    assert.deepEqual(pets, store.list({ limit: 2, after: 2 }).pets)
    assert.deepEqual(namesInFile(path), ['Rex', 'Mia', 'Kit', 'Otto'])
  })

  test('gives its id to a pet of another name: that one keeps the id, and the one in flight gets the next', async (t) => {
    const path = makeDataFile([rex, mia])
    const gate = createSyncGate()
    const { store } = await openStore(t, path, gate.fileSystem)
    gate.hold()
    const creation = store.create(newPet('Kit'))
    await gate.reached
    writeFileSync(path, formatDataFile(rex, mia, petLine(3, 'Olaf')))
    gate.open()
    assert.equal((await creation).id, 4)
    assert.deepEqual(namesIn(store), ['Rex', 'Mia', 'Olaf', 'Kit'])
    assert.deepEqual(namesInFile(path), ['Rex', 'Mia', 'Olaf', 'Kit'])
  })

  test('gives its id to a pet of the same name in another category: each is listed with its own id', async (t) => {
    const path = makeDataFile([rex, mia])
    const gate = createSyncGate()
    const { store } = await openStore(t, path, gate.fileSystem)
    gate.hold()
    const creation = store.create({ ...newPet('Kit'), categoryId: 2 })
    await gate.reached
    writeFileSync(path, formatDataFile(rex, mia, petLine(3, 'Kit')))
    gate.open()
    assert.deepEqual(await creation, { id: 4, ...newPet('Kit'), categoryId: 2 })
    assert.deepEqual(store.get(3), { id: 3, ...newPet('Kit') })
    assert.deepEqual(namesInFile(path), ['Rex', 'Mia', 'Kit', 'Kit'])
  })
})

test('takes no pet for its own that was in the file before the creation, whatever its name', async (t) => {
  const path = makeDataFile([rex, mia])
  const { store } = await openStore(t, path)
  writeFileSync(path, formatDataFile(rex, mia, petLine(3, 'Kit')))
  assert.equal((await store.create(newPet('Kit'))).id, 4)
  assert.deepEqual(namesInFile(path), ['Rex', 'Mia', 'Kit', 'Kit'])
})

test("takes over an edit in place that is made right after the first write over a person's closing brackets", async (t) => {
  // A person's closing brackets that are shorter than ours, as long, and longer.
  for (const end of [']}', '\n\n\n ]}\n', '\n  ]\n}\n\n']) {
    const path = makeDataFile(`{"pets": [${rex}${end}`)
    let expected = ''
    const fileSystem = watchFileSystem({
      before({ name }) {
        // The state of the file is taken after each write.
        if (name === expected && name === 'fstatSync')
          writeFileSync(path, formatDataFile(petLine(1, 'Max'), mia))
        if (name === expected) expected = name === 'writeSync' ? 'fstatSync' : ''
      },
    })
    const { store } = await openStore(t, path, fileSystem)
    expected = 'writeSync'
    await store.create(newPet('Kit'))
    assert.deepEqual(namesIn(store), ['Max', 'Mia', 'Kit'])
    assert.deepEqual(namesInFile(path), ['Max', 'Mia', 'Kit'])
  }
})

test("takes over an edit of the same length that falls into the first sync over a person's closing brackets", async (t) => {
  const text = `${formatDataFile(rex)}\n\n`
  const path = makeDataFile(text)
  const gate = createSyncGate()
  const { store } = await openStore(t, path, gate.fileSystem)
  gate.hold()
  const creation = store.create(newPet('Kit'))
  await gate.reached
  const { ctimeNs } = statSync(path, { bigint: true })
  // Within one tick of the kernel's clock, the two would look the same.
  do writeFileSync(path, formatDataFile(petLine(1, 'Max')))
  while (statSync(path, { bigint: true }).ctimeNs === ctimeNs)
  gate.open()
  await creation
  assert.deepEqual(namesIn(store), ['Max', 'Kit'])
  assert.deepEqual(namesInFile(path), ['Max', 'Kit'])
})

test('keeps an edit in place that falls into a sync which then fails', async (t) => {
  const path = makeDataFile([rex, mia])
  const gate = createSyncGate('EIO')
  const { store } = await openStore(t, path, gate.fileSystem)
  gate.hold()
  const creation = store.create(newPet('refused'))
  await gate.reached
  writeFileSync(path, formatDataFile(petLine(1, 'Maximilian the Great'), mia, petLine(3, 'Kit')))
  const { ino } = statSync(path)
  gate.open()
  await assert.rejects(creation, (error) => error instanceof PetStoreError && error.code === 'storage_failed')
  await store.create(newPet('next'))
  // The system may have dropped what the editor wrote when the sync failed, and the next sync would not know.
  assert.notEqual(statSync(path).ino, ino)
  assert.deepEqual(namesInFile(path), ['Maximilian the Great', 'Mia', 'Kit', 'next'])
})

test('keeps every edit and every creation while both go on', async (t) => {
  const path = makeDataFile([rex])
  const { store } = await openStore(t, path)
  const made: string[] = []
  const create = async (name: string): Promise<void> => {
    made.push((await store.create(newPet(name))).name)
  }
  const marks = Array.from({ length: 30 }, (_, index) => `mark ${index}`)
  const end = new AbortController()
  const load = Array.from({ length: 8 }, async (_, client) => {
    for (let count = 0; !end.signal.aborted; count++) await create(`${client}/${count}`)
  })
  try {
    for (const mark of marks) {
      // What a quick person does: takes the file as it is at this moment, and saves by rename.
      const text = readFileSync(path, 'utf8').replace('\n  ]\n}\n', '')
      writeFileSync(`${path}~`, `${text},\n    {"name":"${mark}","categoryId":1}\n  ]\n}\n`)
      renameSync(`${path}~`, path)
      await create(`after ${mark}`)
      made.push(mark)
    }
  } finally {
    end.abort()
  }
  await Promise.all(load)
  assert.deepEqual(new Set(namesInFile(path)), new Set(['Rex', ...made]))
  assert.equal(namesInFile(path).length, made.length + 1)
  assert.equal(store.size, made.length + 1)
})

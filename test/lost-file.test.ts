/**
 * Ordinary accidents: `jq … pets.json > pets.json`, `rm`, a save that is cut off. The pets that were confirmed are then in memory alone, so
 * the server keeps them beside the file at once, and no start goes on without them unnoticed.
 */
import assert from 'node:assert/strict'
import nodeFs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { openFileStore } from '../src/store/file-store.ts'
import { clock } from '../src/system/clock.ts'
import {
  holdLooks,
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
  formatDataFile,
  makeDataFile,
  makeFolder,
  makeOld,
  runProgram,
  startProgram,
  copyFolder,
  listFolder,
  withoutTimes,
} from './support.ts'

const rex = petLine(1, 'Rex')
const mia = petLine(2, 'Mia')
const whole = formatDataFile(rex, mia)

/** What a person does to the file by accident, and whether a start without kept pets would repair what is left. */
const accidents: readonly [what: string, fault: RegExp, happen: (path: string) => void][] = [
  ['is emptied', /is empty/, (path) => nodeFs.truncateSync(path)],
  ['is left with a line break', /is empty/, (path) => nodeFs.writeFileSync(path, '\r\n')],
  ['is removed', /is missing/, (path) => nodeFs.rmSync(path)],
  [
    'is moved away with its folder',
    /is missing/,
    (path) => nodeFs.renameSync(dirname(path), `${dirname(path)}.away`),
  ],
  ['gets a mistake', /expected ":"/, (path) => nodeFs.writeFileSync(path, whole.replace(':', ''))],
  ['is cut off inside a pet', /got the end/, (path) => nodeFs.truncateSync(path, whole.length - 30)],
  ['is cut off behind a pet', /got the end/, (path) => nodeFs.truncateSync(path, whole.indexOf('},') + 1)],
  ['is cut off behind the [', /got the end/, (path) => nodeFs.truncateSync(path, whole.indexOf('[') + 1)],
  ['ends in NULs', /expected/, (path) => nodeFs.writeFileSync(path, whole.slice(0, -30) + '\0'.repeat(30))],
  [
    'makes place for a folder',
    /is a folder/,
    (path) => {
      nodeFs.rmSync(path)
      nodeFs.mkdirSync(path)
    },
  ],
  [
    'becomes a link to itself',
    /too many symbolic links/,
    (path) => {
      nodeFs.rmSync(path)
      nodeFs.symlinkSync(basename(path), path)
    },
  ],
  [
    'becomes a link that leads nowhere',
    /is missing/,
    (path) => {
      nodeFs.rmSync(path)
      nodeFs.symlinkSync('backup/old.json', path)
    },
  ],
]

function findKept(path: string): readonly string[] {
  const names = nodeFs.readdirSync(dirname(path)).filter((name) => name.includes('.kept-'))
  return names.map((name) => join(dirname(path), name))
}

/** Renames in the folder what the last line of a refusal says: to go on with the kept pets, or with the data file. */
function follow(refusal: string, folder: string, choice: 'kept pets' | 'data file'): void {
  const path = join(folder, 'pets.json')
  const line = refusal.trim().split('\n').at(-1) ?? ''
  const [, restore = '', giveUp = ''] =
    /has [^;]+; to go on with these, ([^;]+); to go on with pets\.json, ([^;]+)$/.exec(line) ?? []
  if (choice === 'data file') {
    assert.match(
      giveUp,
      /^mend it, or delete it to begin without any pets, and rename each pets\.json\.kept-… to another name$/,
    )
    nodeFs.rmSync(path, { recursive: true, force: true })
    for (const kept of findKept(path)) nodeFs.renameSync(kept, join(folder, `old-${basename(kept)}`))
    return
  }
  const [, kept = ''] =
    /^rename pets\.json, if it is there, to another name, and then rename (\S+) to pets\.json$/.exec(
      restore,
    ) ?? []
  if (nodeFs.existsSync(path)) nodeFs.renameSync(path, join(folder, 'old-pets.json'))
  nodeFs.renameSync(join(folder, kept), path)
}

test('keeps the pets of a linked file beside the file, and a start by the link finds them there', async (t) => {
  const path = join(makeFolder(), 'pets.json')
  nodeFs.writeFileSync(path, whole)
  const link = join(makeFolder(), 'pets.json')
  nodeFs.symlinkSync(path, link)
  const { store, lines } = await openStore(t, link)
  nodeFs.truncateSync(path)
  await lines.next(/no pet can be added/)
  const [kept = ''] = findKept(path)
  assert.equal(nodeFs.readFileSync(kept, 'utf8'), whole)
  assert.deepEqual(findKept(link), [])
  await store.close()
  await assert.rejects(openFileStore(link), ({ message }: Error) => message.includes(basename(kept)))
})

describe(
  'keeps the confirmed pets at once, and a restart after `kill -9` offers them, when the file',
  // Node 20 warns of a leak when the hooks of more than ten tests run at once.
  { concurrency: 10 },
  () => {
    for (const [what, fault, happen] of accidents) {
      test(what, async (t) => {
        const path = join(makeFolder(), 'data', 'pets.json')
        nodeFs.mkdirSync(dirname(path))
        nodeFs.writeFileSync(path, formatDataFile(rex))
        nodeFs.chmodSync(path, 0o640)
        const { store, lines } = await openStore(t, path)
        await store.create(newPet('Mia'))
        happen(path)
        const line = await lines.next(/no pet can be added/)
        assert.match(line, fault)
        const [kept = '', ...others] = findKept(path)
        assert.deepEqual(others, [])
        assert.ok(line.includes(`are kept in ${basename(kept)} until then`), line)
        assert.equal(nodeFs.readFileSync(kept, 'utf8'), whole)
        const isFile = nodeFs.lstatSync(path, { throwIfNoEntry: false })?.isFile() === true
        assert.equal(nodeFs.statSync(kept).mode & 0o777, isFile ? 0o640 : 0o600)
        assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
        // As a kill leaves it: in a copy, since this process goes on.
        const killed = join(makeFolder(), 'data', 'pets.json')
        copyFolder(dirname(path), dirname(killed))
        if (nodeFs.existsSync(killed)) makeOld(killed)
        const refusal = await openFileStore(killed).then(
          () => assert.fail('it starts'),
          (error: Error) => error.message,
        )
        assert.match(refusal, fault)
        assert.ok(
          refusal.includes(`\n${killed}: ${basename(kept)}, which was kept last, has 2 pets; `),
          refusal,
        )
        follow(refusal, dirname(killed), 'kept pets')
        const { store: again } = await openStore(t, killed)
        assert.deepEqual(namesIn(again), ['Rex', 'Mia'])
        assert.equal((await again.create(newPet('Kit'))).id, 3)
        // The other choice starts without them.
        const other = join(makeFolder(), 'data', 'pets.json')
        copyFolder(dirname(path), dirname(other))
        if (nodeFs.existsSync(other)) makeOld(other)
        follow(refusal, dirname(other), 'data file')
        assert.equal((await openStore(t, other)).store.size, 0)
      })
    }
  },
)

// They wait for the store's next look at the file, and so beside each other.
describe('with the clock of the machine', { concurrency: true }, () => {
  test('removes what it has kept and says so when the file can be used again, and keeps anew at the next mistake', async (t) => {
    const path = makeDataFile([rex, mia])
    const { store, lines } = await openStore(t, path)
    for (const spoilt of ['{', '']) {
      nodeFs.writeFileSync(path, spoilt)
      await lines.next(/are kept in \S+ until then$/)
      nodeFs.writeFileSync(path, 'another mistake')
      await lines.next(/expected "\{", got "a"; .* are kept in \S+ until then$/)
      assert.equal(findKept(path).length, 1, 'one file, not one for each mistake')
      nodeFs.writeFileSync(path, formatDataFile(rex))
      await lines.next(/: is valid again, and the pets come from it$/)
      assert.deepEqual(findKept(path), [])
    }
    assert.deepEqual(namesIn(store), ['Rex'])
    await store.close()
    assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
  })

  test('keeps what was confirmed after a disk that failed for a while, and not what it kept then', async (t) => {
    const path = makeDataFile([rex])
    let isFailing = true
    const fileSystem = watchFileSystem({
      before({ name }) {
        if (isFailing && name === 'fdatasync') throw systemError('EIO')
      },
    })
    isFailing = false
    const { store, lines } = await openStore(t, path, fileSystem)
    isFailing = true
    await assert.rejects(store.create(newPet('Refused')))
    await lines.next(/are kept in/)
    assert.equal(findKept(path).length, 1)
    isFailing = false
    await store.create(newPet('Mia'))
    assert.deepEqual(findKept(path), [], 'the file has them again')
    nodeFs.truncateSync(path)
    await lines.next(/is empty.* are kept in/)
    assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex', 'Mia'])
  })

  test('keeps the pets of a file that was spoilt, and has its size and time as before', async (t) => {
    const path = makeDataFile([rex])
    const { store, lines } = await openStore(t, path)
    await store.create(newPet('Mia'))
    const { atime, mtime } = nodeFs.statSync(path)
    const descriptor = nodeFs.openSync(path, 'r+')
    nodeFs.writeSync(descriptor, 'X', 2)
    nodeFs.closeSync(descriptor)
    nodeFs.utimesSync(path, atime, mtime)
    await lines.next(/are kept in/)
    assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex', 'Mia'])
  })

  test('keeps the pets again when somebody deletes the file with them', async (t) => {
    const path = makeDataFile([rex])
    const { lines } = await openStore(t, path)
    nodeFs.rmSync(path)
    await lines.next(/are kept in/)
    nodeFs.rmSync(findKept(path)[0] ?? '')
    await lines.next(/are kept in/)
    assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex'])
  })

  test('keeps the pets of a file that was damaged just before the stop', async () => {
    const path = makeDataFile([rex])
    const lines = new Lines()
    const store = await openFileStore(path, { onMessage: lines.say })
    nodeFs.truncateSync(path)
    await store.close()
    assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex'])
    assert.match(lines.at(-1) ?? '', /is empty; .* are kept in pets\.json\.kept-/)
  })

  test('keeps nothing of a file that is valid, or had no pets, or is only not readable', async (t) => {
    const path = makeDataFile([rex])
    const { store } = await openStore(t, path)
    nodeFs.writeFileSync(path, formatDataFile(mia))
    await store.close()
    assert.deepEqual(findKept(path), [])

    const none = makeDataFile([])
    const { store: empty } = await openStore(t, none)
    nodeFs.rmSync(none)
    await empty.close()
    assert.deepEqual(listFolder(dirname(none)), [])

    const locked = makeDataFile([rex])
    let isLocked = false
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (isLocked && name === 'openSync' && place === locked) throw systemError('EACCES')
      },
    })
    const { store: kept, lines } = await openStore(t, locked, fileSystem)
    isLocked = true
    nodeFs.chmodSync(locked, 0o600)
    assert.match(
      await lines.next(/./),
      /cannot be used: permission denied \(EACCES\); .* pets are still served$/,
    )
    isLocked = false
    nodeFs.chmodSync(locked, 0o644)
    await lines.next(/: can be used again$/)
    assert.deepEqual(findKept(locked), [])
    assert.equal((await kept.create(newPet('Mia'))).id, 2)
  })

  test('a start on a file that may not be read names the kept pets, too', async (t) => {
    const path = makeDataFile([rex])
    const { store, lines } = await openStore(t, path)
    nodeFs.truncateSync(path)
    await lines.next(/are kept in/)
    await store.close()
    const [kept = ''] = findKept(path)
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (name === 'openSync' && place === path) throw systemError('EACCES')
      },
    })
    await assert.rejects(openFileStore(path, { fileSystem }), ({ message }: Error) => {
      assert.match(message, /cannot be opened or created: permission denied \(EACCES\)\n/)
      assert.ok(
        message.includes(`${basename(kept)}, which was kept last, has 1 pet; to go on with these, `),
        message,
      )
      return true
    })
  })

  test('its owner can read the kept pets, whatever mode the data file has got', async (t) => {
    const path = makeDataFile([rex])
    const { lines } = await openStore(t, path)
    nodeFs.truncateSync(path)
    nodeFs.chmodSync(path, 0)
    await lines.next(/are kept in/)
    const [kept = ''] = findKept(path)
    assert.equal(nodeFs.statSync(kept).mode & 0o600, 0o600)
  })

  test('says that a folder can be read again', async (t) => {
    const path = makeDataFile([rex])
    let isLocked = false
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (isLocked && name === 'statSync' && place === path) throw systemError('EACCES')
      },
    })
    const { lines } = await openStore(t, path, fileSystem)
    isLocked = true
    await lines.next(/cannot be used: permission denied/)
    isLocked = false
    await lines.next(/: can be used again$/)
  })

  test('says when the pets cannot be kept, and keeps them as soon as there is room', async (t) => {
    const path = makeDataFile([rex])
    let isFull = true
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (isFull && name === 'writeSync' && place !== path) throw systemError('ENOSPC')
      },
    })
    const { lines } = await openStore(t, path, fileSystem)
    nodeFs.rmSync(path)
    await lines.next(/still served, but cannot be kept beside it: no space left on device \(ENOSPC\)$/)
    assert.deepEqual(listFolder(dirname(path)), [])
    isFull = false
    await lines.next(/are kept in pets\.json\.kept-/)
    assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex'])
  })
})

test('keeps pets a second time without writing over the first, and a start takes the later, however the clock was set', async (t) => {
  let time = Date.UTC(2099, 0)
  t.mock.method(clock, 'now', () => (time -= 86_400_000))
  const path = makeDataFile([petLine(1, 'Max')])
  const texts = [formatDataFile(petLine(1, 'Max')), formatDataFile(petLine(1, 'Kit'))]
  for (const text of texts) {
    nodeFs.writeFileSync(path, text)
    const { store } = await openStore(t, path)
    nodeFs.rmSync(path)
    await store.close()
  }
  assert.deepEqual(
    findKept(path).map((kept) => nodeFs.readFileSync(kept, 'utf8')),
    texts,
  )
  const [, last = ''] = findKept(path)
  await assert.rejects(openFileStore(path), ({ message }: Error) => {
    assert.ok(message.includes(`${basename(last)}, which was kept last, has 1 pet; `), message)
    return true
  })
})

test('serves a usable file beside kept pets, and says how many they are', async (t) => {
  const path = makeDataFile([rex])
  nodeFs.writeFileSync(`${path}.kept-2026`, formatDataFile(rex, mia, petLine(3, 'Kit')))
  nodeFs.writeFileSync(`${path}.kept-2027`, 'nonsense')
  const { store, lines } = await openStore(t, path)
  assert.deepEqual(
    [...lines],
    [
      `${path}: pets.json.kept-2026 has 3 pets that an earlier run has kept; delete it once they are in pets.json, or not wanted`,
      `${path}: pets.json.kept-2027 has an unknown number of pets that an earlier run has kept; delete it once they are in pets.json, or not wanted`,
    ],
  )
  assert.equal((await store.create(newPet('Otto'))).id, 2)
})

test('repairs no damaged end beside kept pets', async (t) => {
  const torn = `${whole.slice(0, -7)},\n    {"id":3,"name":"Cut o`
  const path = makeDataFile(torn)
  nodeFs.writeFileSync(`${path}.kept-2026`, whole)
  await assert.rejects(
    openFileStore(path),
    /; to go on with pets\.json, mend it, or delete it .*, and rename each pets\.json\.kept-… to another name$/,
  )
  assert.equal(nodeFs.readFileSync(path, 'utf8'), torn)
  nodeFs.rmSync(`${path}.kept-2026`)
  const { store } = await openStore(t, path)
  assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
})

test('writes nothing while there cannot be room to keep the pets, and looks ever more seldom, but at the stop', async (t) => {
  holdLooks(t)
  const path = makeDataFile([rex, mia])
  let looks = 0
  let writes = 0
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (name === 'writeSync') writes++
      if (name !== 'statfsSync') return undefined
      looks++
      return { bavail: 0, bsize: 4096 }
    },
  })
  let ms = 0
  t.mock.method(clock, 'performanceNow', () => (ms += 20))
  const store = await openFileStore(path, { fileSystem })
  nodeFs.truncateSync(path)
  const look = () => store.reset().catch(() => {})
  for (let second = 0; second < 300; second++, ms += 1_000) await look()
  // After a second, two, four, … 32, and then each minute.
  assert.ok(looks > 7 && looks < 13, `${looks} looks`)
  const before = looks
  await store.close()
  assert.deepEqual([looks, writes], [before + 1, 0])
})

test('looks for room a second after it lacked, in each accident anew', async (t) => {
  holdLooks(t)
  const path = makeDataFile([rex, mia])
  let isFull = true
  const fileSystem = watchFileSystem({
    before: ({ name }) => (isFull && name === 'statfsSync' ? { bavail: 0, bsize: 4096 } : undefined),
  })
  let ms = 0
  t.mock.method(clock, 'performanceNow', () => (ms += 20))
  const store = await openFileStore(path, { fileSystem })
  t.after(() => store.close())
  const lookAfter = (seconds: number): Promise<unknown> => {
    ms += 1_000 * seconds
    return store.reset().catch(() => {})
  }
  nodeFs.truncateSync(path)
  for (const seconds of [0, 1, 2, 4, 8, 16]) await lookAfter(seconds)
  nodeFs.writeFileSync(path, whole)
  await lookAfter(0)
  nodeFs.truncateSync(path)
  await lookAfter(0)
  isFull = false
  assert.deepEqual(findKept(path), [])
  await lookAfter(1)
  assert.equal(findKept(path).length, 1)
})

test('has every confirmed pet after a kill at any call that keeps them or goes back to the file, once the message was there', async (t) => {
  const path = join(makeFastFolder(), 'pets.json')
  nodeFs.writeFileSync(path, whole)
  const said = new Lines()
  const copies: { readonly path: string; readonly isKept: boolean }[] = []
  const fileSystem = watchFileSystem({
    before() {
      if (!said.some((line) => line.includes('no pet can be added'))) return
      const copy = join(makeFastFolder(), 'data')
      copyFolder(dirname(path), copy)
      copies.push({ path: join(copy, 'pets.json'), isKept: findKept(path).length > 0 })
    },
  })
  const store = await openFileStore(path, { fileSystem, onMessage: said.say })
  t.after(() => store.close())
  nodeFs.truncateSync(path, 40)
  await said.next(/are kept in/)
  nodeFs.writeFileSync(path, formatDataFile(rex, mia, petLine(3, 'Kit')))
  await said.next(/^reloaded 3 pets/)
  assert.ok(copies.length > 5)
  for (const { path: killed } of copies) {
    makeOld(killed)
    const names = await openFileStore(killed).then(
      async (opened) => {
        await opened.close()
        return namesIn(opened)
      },
      () => namesInFile(findKept(killed)[0] ?? ''),
    )
    assert.deepEqual(names.slice(0, 2), ['Rex', 'Mia'])
  }
})

test('the program keeps the pets of a cut-off save, and its restart refuses with exit code 1, and says what to rename', async (t) => {
  const folder = makeFolder()
  const path = join(folder, 'data/pets.json')
  nodeFs.mkdirSync(dirname(path))
  nodeFs.writeFileSync(
    path,
    formatDataFile(...Array.from({ length: 100 }, (_, i) => petLine(i + 1, `p${i}`))),
  )
  const first = await startProgram(t, folder)
  nodeFs.truncateSync(path, nodeFs.statSync(path).size >> 1)
  const [, name = ''] = await first.waitFor(/are kept in (\S+) until then/)
  first.child.kill('SIGKILL')
  await first.ended
  makeOld(path)
  const second = runProgram(t, folder, { PETSTORE_API_KEYS: 'k' })
  assert.equal((await second.ended).code, 1)
  assert.match(withoutTimes(second.output()), /^data\/pets\.json:\d+:\d+: expected/)
  assert.ok(second.output().includes(`${name}, which was kept last, has 100 pets; `), second.output())
  follow(second.output(), dirname(path), 'kept pets')
  const third = await startProgram(t, folder)
  assert.match(third.output(), /pets\.json, 100 pets/)
})

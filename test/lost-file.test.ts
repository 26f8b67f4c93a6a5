/**
 * Ordinary accidents: `jq … pets.json > pets.json`, `rm`, a save that is cut off. The pets that were confirmed are then in memory alone, so
 * the server keeps them beside the file at once, and no start goes on without them unnoticed.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import nodeFs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { inspectDataFile } from '../src/data-file/inspection.ts'
import { openFileStore, type FileStore } from '../src/store/file-store.ts'
import { clock } from '../src/system/clock.ts'
import {
  createGate,
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

/** What a person does to the file by accident, what the server says of it, and what a start says if that is something else. */
const accidents: readonly [
  what: string,
  fault: RegExp,
  happen: (path: string) => void,
  faultAtStart?: RegExp,
][] = [
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
    /cannot be found: \S+ is a link to \S+, whose folder is not there/,
  ],
]

function findKept(path: string): readonly string[] {
  const names = nodeFs.readdirSync(dirname(path)).filter((name) => name.includes('.kept-'))
  return names.map((name) => join(dirname(path), name))
}

function replace(path: string, text: string): void {
  nodeFs.writeFileSync(`${path}.saved`, text)
  nodeFs.renameSync(`${path}.saved`, path)
}

/** What a start says of the file, as the store leaves it when it is closed. */
async function refuseKilled(store: FileStore, path: string): Promise<string> {
  await store.close()
  return openFileStore(path).then(
    () => assert.fail('it starts'),
    (error: Error) => error.message,
  )
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

describe('keeps the pets of a linked file beside the link and beside the file', { concurrency: true }, () => {
  for (const [what, happen] of [
    ['the file is emptied', (path) => nodeFs.truncateSync(path)],
    ['the link is removed', (_, link) => nodeFs.rmSync(link)],
    ['a cut-off file is moved over the link', (_, link) => replace(link, whole.slice(0, 60))],
    ['a mistake is moved over the link', (_, link) => replace(link, whole.replace(':', ''))],
  ] satisfies [string, (path: string, link: string) => void][]) {
    test(`when ${what}, and a restart offers them`, async (t) => {
      const path = join(makeFolder(), 'store.json')
      nodeFs.writeFileSync(path, whole)
      const link = join(makeFolder(), 'pets.json')
      nodeFs.symlinkSync(path, link)
      const { store, lines } = await openStore(t, link)
      happen(path, link)
      const line = await lines.next(/no pet can be added/)
      const [atLink = ''] = findKept(link)
      const [atFile = ''] = findKept(path)
      assert.ok(line.endsWith(`are kept in ${basename(atLink)} and ${atFile} until then`), line)
      for (const kept of [atLink, atFile]) {
        assert.equal(nodeFs.readFileSync(kept, 'utf8'), whole)
        assert.equal(nodeFs.statSync(kept).mode & 0o777, 0o600)
      }
      const refusal = await refuseKilled(store, link)
      assert.ok(refusal.includes(`: ${basename(atLink)}, which was kept last, has 2 pets; `), refusal)
      follow(refusal, dirname(link), 'kept pets')
      const { store: again } = await openStore(t, link)
      assert.deepEqual(namesIn(again), ['Rex', 'Mia'])
    })
  }

  test('and removes both when the file can be used again', async (t) => {
    const path = join(makeFolder(), 'pets.json')
    nodeFs.writeFileSync(path, whole)
    const link = join(makeFolder(), 'pets.json')
    nodeFs.symlinkSync(path, link)
    const { lines } = await openStore(t, link)
    nodeFs.truncateSync(path)
    await lines.next(/are kept in/)
    nodeFs.writeFileSync(path, formatDataFile(rex))
    await lines.next(/is valid again/)
    assert.deepEqual([...findKept(path), ...findKept(link)], [])
  })

  test('or beside one of them, if nothing can be kept beside the other', async (t) => {
    const path = join(makeFolder(), 'pets.json')
    nodeFs.writeFileSync(path, whole)
    const link = join(makeFolder(), 'pets.json')
    nodeFs.symlinkSync(path, link)
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (name === 'openSync' && place.startsWith(`${link}.`)) throw systemError('EROFS')
      },
    })
    const { lines } = await openStore(t, link, fileSystem)
    nodeFs.truncateSync(path)
    const line = await lines.next(/are kept in/)
    const [kept = ''] = findKept(path)
    assert.ok(line.endsWith(`are kept in ${kept} until then`), line)
    assert.deepEqual(findKept(link), [])
  })
})

test('keeps the pets where the path leads now when the link of its folder was switched, and makes no folder anew', async (t) => {
  const releases = makeFolder()
  const current = join(releases, 'current')
  for (const name of ['1', '2']) nodeFs.mkdirSync(join(releases, name))
  nodeFs.writeFileSync(join(releases, '1/pets.json'), whole)
  nodeFs.symlinkSync('1', current)
  const { lines } = await openStore(t, join(current, 'pets.json'))
  nodeFs.symlinkSync('2', `${current}.new`)
  nodeFs.rmSync(join(releases, '1'), { recursive: true })
  nodeFs.renameSync(`${current}.new`, current)
  await lines.next(/is missing; .* are kept in \S+ until then$/)
  assert.deepEqual(namesInFile(findKept(join(releases, '2/pets.json'))[0] ?? ''), ['Rex', 'Mia'])
  assert.equal(nodeFs.existsSync(join(releases, '1')), false)
})

for (const [what, linked, leadsTo, missing] of [
  ['of its folder', 'data', 'disk/store', 'which is not there'],
  ['of its file', 'data/pets.json', '../disk/store/pets.json', 'whose folder is not there'],
] as const) {
  test(`does not start, and makes nothing, where the link ${what} leads to none`, async (t) => {
    const folder = makeFolder()
    const link = join(folder, linked)
    nodeFs.mkdirSync(dirname(link), { recursive: true })
    nodeFs.symlinkSync(leadsTo, link)
    nodeFs.mkdirSync(join(folder, 'disk'))
    const path = join(folder, 'data/pets.json')
    const refusal = {
      message: `${path}: cannot be found: ${link} is a link to ${leadsTo}, ${missing}; mount it, or make that folder`,
    }
    await assert.rejects(openFileStore(path), refusal)
    await assert.rejects(inspectDataFile(path), refusal)
    assert.deepEqual(nodeFs.readdirSync(join(folder, 'disk')), [])
    nodeFs.mkdirSync(join(folder, 'disk/store'))
    const { store } = await openStore(t, path)
    await store.create(newPet('Rex'))
    assert.deepEqual(namesInFile(join(folder, 'disk/store/pets.json')), ['Rex'])
  })
}

test('does not start, and makes nothing, where a link leads to none, beside kept pets either', async () => {
  const folder = makeFolder()
  const path = join(folder, 'pets.json')
  nodeFs.symlinkSync('disk/pets.json', path)
  nodeFs.writeFileSync(`${path}.kept-2026-11-27T09-00-00.000Z`, whole)
  const before = nodeFs.readdirSync(folder)
  const refusal =
    /cannot be found: \S+ is a link to disk\/pets\.json, .*\n.*, which was kept last, has 2 pets; /
  await assert.rejects(openFileStore(path), refusal)
  await assert.rejects(inspectDataFile(path), refusal)
  assert.deepEqual(nodeFs.readdirSync(folder), before)
})

describe(
  'keeps the confirmed pets at once, and a restart after `kill -9` offers them, when the file',
  // Node 20 warns of a leak when the hooks of more than ten tests run at once (https://github.com/nodejs/node/issues/48475).
  { concurrency: 10 },
  () => {
    for (const [what, fault, happen, faultAtStart = fault] of accidents) {
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
        assert.equal(nodeFs.statSync(kept).mode & 0o777, 0o600)
        assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
        // As a kill leaves it: in a copy, since this process goes on.
        const killed = join(makeFolder(), 'data', 'pets.json')
        copyFolder(dirname(path), dirname(killed))
        if (nodeFs.existsSync(killed)) makeOld(killed)
        const refusal = await openFileStore(killed).then(
          () => assert.fail('it starts'),
          (error: Error) => error.message,
        )
        assert.match(refusal, faultAtStart)
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

test(
  'a start and a check wait for no FIFO that has the name of kept pets',
  { skip: process.platform === 'win32' },
  async (t) => {
    const path = makeDataFile([rex])
    execFileSync('mkfifo', [`${path}.kept-2026-11-27T09-00-00.000Z`])
    assert.equal((await inspectDataFile(path)).petCount, 1)
    const { store } = await openStore(t, path)
    assert.equal(store.size, 1)
  },
)

test('removes what it has kept as soon as the folder may be written, if that is after the file can be used', async (t) => {
  const path = makeDataFile([rex, mia])
  let isLocked = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      const isLook = name === 'statSync' || name === 'unlinkSync'
      if (isLocked && isLook && place.includes('.kept-')) throw systemError('EACCES')
    },
  })
  const { store, lines } = await openStore(t, path, fileSystem)
  nodeFs.writeFileSync(path, '{')
  await lines.next(/are kept in \S+ until then$/)
  isLocked = true
  nodeFs.writeFileSync(path, formatDataFile(rex))
  await lines.next(/: is valid again, and the pets come from it$/)
  assert.equal(findKept(path).length, 1)
  // It is out of date, so it is not taken for what another mistake needs.
  await store.create(newPet('Kit'))
  nodeFs.writeFileSync(path, '{')
  await lines.next(/are kept in \S+ until then$/)
  assert.deepEqual(namesInFile(findKept(path).at(-1) ?? ''), ['Rex', 'Kit'])
  nodeFs.writeFileSync(path, formatDataFile(rex))
  await lines.next(/: is valid again, and the pets come from it$/)
  isLocked = false
  // A creation looks.
  await store.create(newPet('Ada'))
  await store.close()
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

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
    const path = makeDataFile([rex, mia])
    // A time in whole seconds, since utimes gives no nanoseconds back.
    nodeFs.utimesSync(path, 2, 2)
    const { lines } = await openStore(t, path)
    const descriptor = nodeFs.openSync(path, 'r+')
    nodeFs.writeSync(descriptor, 'X', 2)
    nodeFs.closeSync(descriptor)
    nodeFs.utimesSync(path, 2, 2)
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

  test('says when the pets cannot be kept, and keeps them at the stop if there is room then', async (t) => {
    const path = makeDataFile([rex])
    let isFull = true
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (isFull && name === 'writeSync' && place !== path) throw systemError('ENOSPC')
      },
    })
    const { store, lines } = await openStore(t, path, fileSystem)
    nodeFs.rmSync(path)
    await lines.next(/still served, but cannot be kept beside it: no space left on device \(ENOSPC\)$/)
    assert.deepEqual(listFolder(dirname(path)), [])
    isFull = false
    await store.close()
    assert.match(lines.at(-1) ?? '', /are kept in pets\.json\.kept-/)
    assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex'])
  })
})

test('says at the stop that the pets cannot be kept if there is no room then either', async (t) => {
  const path = makeDataFile([rex])
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (name === 'writeSync' && place !== path) throw systemError('ENOSPC')
    },
  })
  const { store, lines } = await openStore(t, path, fileSystem)
  nodeFs.rmSync(path)
  await store.close()
  assert.match(lines.at(-1) ?? '', /: 1 pet could not be kept beside it: no space left/)
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
  nodeFs.writeFileSync(`${path}.kept-2026-11-27T09-00-00.000Z`, formatDataFile(rex, mia, petLine(3, 'Kit')))
  nodeFs.writeFileSync(`${path}.kept-2027-11-27T09-00-00.000Z`, 'nonsense')
  const { store, lines } = await openStore(t, path)
  assert.deepEqual(
    [...lines],
    [
      `${path}: pets.json.kept-2026-11-27T09-00-00.000Z has 3 pets that an earlier run has kept; delete it once they are in pets.json, or not wanted`,
      `${path}: pets.json.kept-2027-11-27T09-00-00.000Z has an unknown number of pets that an earlier run has kept; delete it once they are in pets.json, or not wanted`,
    ],
  )
  assert.equal((await store.create(newPet('Otto'))).id, 2)
})

test('repairs no damaged end beside kept pets', async (t) => {
  const torn = `${whole.slice(0, -7)},\n    {"id":3,"name":"Cut o`
  const path = makeDataFile(torn)
  nodeFs.writeFileSync(`${path}.kept-2026-11-27T09-00-00.000Z`, whole)
  await assert.rejects(
    openFileStore(path),
    /; to go on with pets\.json, mend it, or delete it .*, and rename each pets\.json\.kept-… to another name$/,
  )
  assert.equal(nodeFs.readFileSync(path, 'utf8'), torn)
  nodeFs.rmSync(`${path}.kept-2026-11-27T09-00-00.000Z`)
  const { store } = await openStore(t, path)
  assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
})

/** A store whose pets find no room to be kept while `disk.isFull`, with a clock of its own. `look` looks at the file so much later. */
async function openFull(t: TestContext) {
  holdLooks(t)
  const path = makeDataFile([rex, mia])
  const disk = { isFull: true, asked: 0, writes: 0 }
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (name === 'writeSync') disk.writes++
      if (name !== 'statfsSync') return undefined
      disk.asked++
      // Two pets take more than 64 bytes.
      return { bavail: disk.isFull ? 64 : 4_096_000, blocks: 4_096_000, bsize: 1 }
    },
  })
  let ms = 0
  t.mock.method(clock, 'performanceNow', () => (ms += 20))
  const store = await openFileStore(path, { fileSystem })
  t.after(() => store.close())
  nodeFs.truncateSync(path)
  const look = (seconds = 0): Promise<unknown> => {
    ms += 1_000 * seconds
    return store.reset().catch(() => {})
  }
  return { path, disk, store, look }
}

test('writes nothing while there cannot be room to keep the pets, and looks once in 10 s, and at the stop', async (t) => {
  const { disk, store, look } = await openFull(t)
  for (let second = 0; second < 100; second++) await look(1)
  assert.ok(disk.asked > 8 && disk.asked < 12, `${disk.asked} looks`)
  const before = disk.asked
  await store.close()
  assert.deepEqual([disk.asked, disk.writes], [before + 1, 0])
})

test('keeps the pets 10 s after there was no room, and in another accident at once', async (t) => {
  const { path, disk, look } = await openFull(t)
  await look()
  disk.isFull = false
  await look(8)
  assert.deepEqual(findKept(path), [])
  await look(2)
  assert.equal(findKept(path).length, 1)
  nodeFs.writeFileSync(path, whole)
  await look()
  disk.isFull = true
  nodeFs.truncateSync(path)
  await look()
  nodeFs.writeFileSync(path, whole)
  await look()
  disk.isFull = false
  nodeFs.truncateSync(path)
  await look()
  assert.equal(findKept(path).length, 1)
})

test('keeps the pets on a file system that reports zeros for its room', async (t) => {
  const path = makeDataFile([rex])
  const fileSystem = watchFileSystem({
    before: ({ name }) => (name === 'statfsSync' ? { bavail: 0, blocks: 0, bsize: 4096 } : undefined),
  })
  const { lines } = await openStore(t, path, fileSystem)
  nodeFs.truncateSync(path)
  await lines.next(/are kept in pets\.json\.kept-/)
})

test('keeps the pets at a stop before another server may have the file', async () => {
  const path = makeDataFile([rex])
  let others = 0
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (name !== 'fsync' || place === dirname(path)) return undefined
      others++
      return assert.rejects(openFileStore(path), /is in use by another server/)
    },
  })
  const store = await openFileStore(path, { fileSystem })
  nodeFs.truncateSync(path)
  await store.close()
  assert.equal(others, 1)
  assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex'])
})

describe('takes only what is named as it names a kept file for one', () => {
  const kept = 'pets.json.kept-2026-11-27T09-00-00.000Z'
  for (const name of [
    'pets.json.kept-old',
    'pets.json.kept-2026',
    `${kept}.bak`,
    `${kept}~`,
    'pets.json.kept-2026-11-27T09:00:00.000Z',
    'pets.json.kept-2026-02-30T09-00-00.000Z',
    'pets.json.kept-\x1b]0;title\x07',
    'other.json.kept-2026-11-27T09-00-00.000Z',
  ])
    test(`and not ${JSON.stringify(name)}`, async (t) => {
      const path = makeDataFile(`${whole.slice(0, -7)},\n    {"id":3,"name":"Cut o`)
      nodeFs.writeFileSync(join(dirname(path), name), whole)
      const { store, lines } = await openStore(t, path)
      assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
      assert.equal(lines.length, 1, lines.join('\n'))
      assert.match(lines[0] ?? '', /: repaired: /)
    })
})

test('recommends the pets that were kept last by the time in the name, whatever the names of their folders', async () => {
  const folder = makeFolder()
  for (const name of ['a', 'z']) nodeFs.mkdirSync(join(folder, name))
  const link = join(folder, 'z/pets.json')
  nodeFs.symlinkSync('../a/pets.json', link)
  nodeFs.writeFileSync(join(folder, 'a/pets.json'), '')
  nodeFs.writeFileSync(join(folder, 'z/pets.json.kept-2026-11-26T00-00-00.000Z'), whole)
  const last = join(folder, 'a/pets.json.kept-2026-11-27T00-00-00.000Z')
  nodeFs.writeFileSync(last, formatDataFile(rex))
  await assert.rejects(openFileStore(link), ({ message }: Error) => {
    assert.ok(message.includes(`${last}, which was kept last, has 1 pet; to go on with these, `), message)
    assert.ok(message.includes(`and then rename ${last} to ${join(folder, 'a/pets.json')};`), message)
    const others = `rename each pets.json.kept-… and each ${join(folder, 'a/pets.json')}.kept-… to another name`
    assert.ok(message.endsWith(others), message)
    return true
  })
})

test('a start names a kept file with its folder where that is not the folder of the path', async (t) => {
  const folder = makeFolder()
  for (const name of ['a', 'z']) nodeFs.mkdirSync(join(folder, name))
  const link = join(folder, 'z/pets.json')
  nodeFs.symlinkSync('../a/pets.json', link)
  nodeFs.writeFileSync(join(folder, 'a/pets.json'), whole)
  const kept = join(folder, 'a/pets.json.kept-2026-11-27T00-00-00.000Z')
  nodeFs.writeFileSync(kept, formatDataFile(rex))
  const { lines } = await openStore(t, link)
  assert.ok(lines[0]?.startsWith(`${link}: ${kept} has 1 pet that an earlier run has kept; `), lines[0])
})

test('sends no control character of a name to a terminal', async (t) => {
  const path = join(makeFolder(), 'pe\x1b]0;ts.json')
  nodeFs.writeFileSync(path, whole)
  const { lines, store } = await openStore(t, path)
  nodeFs.truncateSync(path)
  await lines.next(/are kept in pe<U\+001B>\]0;ts\.json\.kept-/)
  const refusal = await refuseKilled(store, path)
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(lines.join('') + refusal.replaceAll('\n', ''), /[\x00-\x1f\x7f]/)
})

test('keeps the pets before it reads a file that is much larger, and serves that where they cannot be kept', async (t) => {
  for (const isReadOnly of [false, true]) {
    const path = makeDataFile([rex])
    const calls: string[] = []
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (isReadOnly && name === 'openSync' && place.startsWith(`${path}.`)) throw systemError('EACCES')
        if (name === 'readFileSync' || (name === 'linkSync' && !isReadOnly)) calls.push(name)
      },
    })
    const { store, lines } = await openStore(t, path, fileSystem)
    calls.length = 0
    const large = Array.from({ length: 30_000 }, (_, i) => petLine(i + 1, `Pet ${i} of a large file`))
    replace(path, formatDataFile(...large.slice(0, 20_000)))
    await lines.next(/^reloaded 20000 pets/)
    assert.deepEqual(calls.slice(0, 2), isReadOnly ? ['readFileSync'] : ['linkSync', 'readFileSync'])
    assert.equal(store.size, 20_000)
    assert.deepEqual(findKept(path), [], 'they go when the file is served')
    calls.length = 0
    replace(path, formatDataFile(...large))
    await lines.next(/^reloaded 30000 pets/)
    assert.equal(calls[0], 'readFileSync', 'it is not much larger')
  }
})

test('serves others between the parts of a file that it keeps or writes anew, which are of 64 KiB at most', async (t) => {
  const count = 10_000
  const path = makeDataFile('{"pets":[]}')
  let turns = 0
  const ticking = setInterval(() => {})
  const turn = (): void => void (turns++, setImmediate(turn).unref())
  turn()
  t.after(() => clearInterval(ticking))
  const writes: { readonly path: string; readonly bytes: number; readonly turn: number }[] = []
  const fileSystem = watchFileSystem({
    before({ name, path: place, args }) {
      if (name === 'writeSync') writes.push({ path: place, bytes: Number(args[3]), turn: turns })
    },
  })
  const { lines } = await openStore(t, path, fileSystem)
  const pets = Array.from({ length: count }, (_, i) => `{"name":"Pet ${i}","categoryId":1}`)
  replace(path, `{"pets":[${pets.join(',')}]}`)
  await lines.next(/^reloaded 10000 pets/)
  nodeFs.truncateSync(path)
  await lines.next(/are kept in/)
  for (const suffix of ['.petstore-new', '.petstore-temporary']) {
    const parts = writes.filter((write) => write.path === `${path}${suffix}`)
    assert.ok(parts.length > 5 && parts.length < 25, `${parts.length} parts of ${suffix}`)
    for (const [i, part] of parts.entries()) {
      assert.ok(part.bytes <= 65_536, `${part.bytes} bytes`)
      assert.ok(i === 0 || part.turn > (parts[i - 1]?.turn ?? 0), 'a turn of others between two parts')
    }
  }
})

test('health and lists know the fault while keeping takes long, and a stop says how many pets are not kept yet', async () => {
  const path = makeDataFile([rex, mia])
  const gate = createGate()
  const fileSystem = watchFileSystem({
    before: ({ name, path: place }) =>
      name === 'fsync' && place !== dirname(path) ? gate.pass() : undefined,
  })
  const lines = new Lines()
  const store = await openFileStore(path, { fileSystem, onMessage: lines.say })
  nodeFs.truncateSync(path)
  // A store alone keeps no process alive.
  const waiting = setInterval(() => {}, 1_000)
  await gate.reached
  clearInterval(waiting)
  assert.equal(store.whyNoCreation(), 'read_only')
  assert.equal(store.dataFileError, 'it is empty')
  const closed = store.close(clock.performanceNow())
  await lines.next(/pets\.json: 2 pets are not kept beside it yet$/)
  gate.open()
  await closed
  assert.match(lines.at(-1) ?? '', /are kept in/)
  assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex', 'Mia'])
})

test('a stop says nothing of pets that were kept before it', async (t) => {
  const path = makeDataFile([rex, mia])
  const lines = new Lines()
  const store = await openFileStore(path, { onMessage: lines.say })
  const waiting = setInterval(() => {}, 1_000)
  t.after(() => clearInterval(waiting))
  nodeFs.truncateSync(path)
  await lines.next(/are kept in/)
  // The time that a stop gives the keeping of pets is over at once.
  t.mock.method(clock, 'setTimeout', (call: () => void) => {
    call()
    return setTimeout(() => {}, 0)
  })
  await store.close(clock.performanceNow())
  assert.ok(!lines.some((line) => line.includes('not kept')), lines.join('\n'))
})

for (const [what, text, fault] of [
  ['an empty file', '', /is empty; put the pets back, or delete it to start without any/],
  ['no file', undefined, /is missing/],
] as const) {
  test(`a start on ${what} is refused, and names the file in which an earlier run was keeping its pets when it was ended`, async () => {
    const path = join(makeFolder(), 'pets.json')
    if (text !== undefined) nodeFs.writeFileSync(path, text)
    nodeFs.writeFileSync(`${path}.petstore-temporary`, whole)
    const refusal = /; look into pets\.json\.petstore-temporary first, which .*: rename it to pets\.json if /
    for (const look of [inspectDataFile, openFileStore]) {
      await assert.rejects(
        look(path),
        (error: Error) => fault.test(error.message) && refusal.test(error.message),
      )
    }
    nodeFs.renameSync(`${path}.petstore-temporary`, path)
    const store = await openFileStore(path)
    assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
    await store.close()
  })
}

test('keeps nothing that it does not name when the name of the kept file cannot be made durable', async (t) => {
  const path = makeDataFile([rex, mia])
  let isFailing = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (isFailing && name === 'fsync' && place === dirname(path)) throw systemError('EIO')
    },
  })
  const { store, lines } = await openStore(t, path, fileSystem)
  isFailing = true
  nodeFs.truncateSync(path)
  await lines.next(/cannot be kept beside it: i\/o error \(EIO\)/)
  assert.deepEqual(findKept(path), [])
  isFailing = false
  await store.close()
  assert.deepEqual(namesInFile(findKept(path)[0] ?? ''), ['Rex', 'Mia'])
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

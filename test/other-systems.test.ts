/**
 * The data file where calls answer as on Windows and macOS, which the other tests do not run on. Each test makes the calls of this system
 * answer so; what Wine does by itself is tested in test/windows.
 */
import assert from 'node:assert/strict'
import nodeFs from 'node:fs'
import { readFileSync, writeFileSync, type BigIntStats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { FileSystem } from '../src/data-file/disk.ts'
import { openFileStore } from '../src/store/file-store.ts'
import { clock } from '../src/system/clock.ts'
import {
  countTime,
  holdLooks,
  namesIn,
  namesInFile,
  newPet,
  openStore,
  petLine,
  systemError,
  watchFileSystem,
  type Call,
  type OpenedStore,
} from './file-system.ts'
import { formatDataFile, makeDataFile, makeFolder, listFolder } from './support.ts'

const rex = petLine(1, 'Rex')
const mia = petLine(2, 'Mia')
const withoutIds = '{"pets":[{"name":"Rex","categoryId":1}]}'

function openOnWindows(t: TestContext, path: string, fileSystem?: FileSystem): Promise<OpenedStore> {
  return openStore(t, path, fileSystem, 'win32')
}

/** Whether Windows refuses the call while another program holds the data file. */
function isRefused({ name, args, path }: Call): boolean {
  return (
    basename(path) === 'pets.json' && (name === 'renameSync' || (name === 'openSync' && args[1] === 'r+'))
  )
}

/** Another program holds the data file while `isHeld`: what Windows then refuses fails with this error. */
function createHolder(code: string): { fileSystem: FileSystem; holder: { isHeld: boolean } } {
  const holder = { isHeld: true }
  const fileSystem = watchFileSystem({
    before(call) {
      if (holder.isHeld && isRefused(call)) throw systemError(code)
    },
  })
  return { fileSystem, holder }
}

test('a creation is answered where a file has another device by its path than by its descriptor', async (t) => {
  const fileSystem = watchFileSystem({
    after({ name }, result) {
      // Node 22.12 to 22.16 and 24.0 to 24.1 on Windows 11 24H2 (libuv's pull request 4698).
      if (name === 'fstatSync') (result as BigIntStats).dev += 1n
    },
  })
  const path = makeDataFile([rex])
  const { store, lines } = await openOnWindows(t, path, fileSystem)
  await store.create(newPet('Mia'))
  assert.deepEqual(namesInFile(path), ['Rex', 'Mia'])
  assert.deepEqual([...lines], [])
})

/** A file system on which a renamed file has another inode. */
function createMovingInodes(): FileSystem {
  let renames = 0n
  return watchFileSystem({
    after({ name, args }, result) {
      if (name === 'renameSync') renames++
      const isFile = /pets\.json(?:\.petstore-old)?$/.test(String(args[0]))
      if (name === 'statSync' && isFile && result !== undefined) (result as BigIntStats).ino = renames
    },
  })
}

test('a start on a mount that gives a renamed file another inode ends in words, and leaves the file', async () => {
  const text = '{"pets":[{"name":"Rex","categoryId":1}]}'
  const path = makeDataFile(text)
  await assert.rejects(openFileStore(path, { fileSystem: createMovingInodes() }), {
    message: `${path}: has to be rewritten, but is another file whenever it is moved`,
  })
  assert.equal(readFileSync(path, 'utf8'), text)
})

test('each edit without ids on such a mount is told, and not the first alone', async (t) => {
  const path = makeDataFile([rex])
  const { lines } = await openStore(t, path, createMovingInodes())
  for (const name of ['Mia', 'Kit']) {
    writeFileSync(path, `{"pets":[{"name":"${name}","categoryId":1}]}`)
    await lines.next(/has to be rewritten, but is another file whenever it is moved/)
    writeFileSync(path, formatDataFile(rex))
    await lines.next(/can be used again|is valid again/)
  }
})

test('a start where reading a file changes its time ends in words', async (t) => {
  let reads = 0n
  const fileSystem = watchFileSystem({
    after({ name, path: place }, result) {
      // As rclone's mounts do for a file that was written not long ago.
      if (name === 'fstatSync' && place === path) (result as BigIntStats).mtimeNs += ++reads
    },
  })
  const path = makeDataFile([rex])
  let ms = 0
  t.mock.method(clock, 'performanceNow', () => (ms += 5_000))
  await assert.rejects(openFileStore(path, { fileSystem }), {
    message: `${path}: is being written, again and again`,
  })
})

/** Tells that `pets.json` was written only once it is closed: NTFS promises no more. */
function createLazyTimes(onClose = (): void => {}): { fileSystem: FileSystem; openCount: () => number } {
  const open = new Set<unknown>()
  let times: Pick<BigIntStats, 'mtimeNs' | 'ctimeNs'> | undefined
  const fileSystem = watchFileSystem({
    before({ name, path }) {
      if (name === 'writeSync' && basename(path) === 'pets.json')
        times ??= nodeFs.statSync(path, { bigint: true })
      return undefined
    },
    after({ name, path, args: [descriptor, flags] }, result) {
      if (basename(path) !== 'pets.json') return
      if (name === 'openSync' && flags === 'r+') open.add(result)
      if ((name === 'statSync' || name === 'fstatSync') && times !== undefined) {
        const { ctimeNs, mtimeNs } = times
        Object.assign(result as BigIntStats, { ctimeNs, mtimeNs })
      }
      if (name === 'closeSync' && open.delete(descriptor) && times !== undefined) {
        times = undefined
        onClose()
      }
    },
  })
  return { fileSystem, openCount: () => open.size }
}

test('on Windows nobody is kept from a file by a server that has added a pet, and its own writing is no edit', async (t) => {
  const look = holdLooks(t)
  const { fileSystem, openCount } = createLazyTimes()
  const path = makeDataFile([rex])
  const { store, lines } = await openOnWindows(t, path, fileSystem)
  for (const name of ['Mia', 'Max']) {
    await store.create(newPet(name))
    assert.equal(openCount(), 0)
  }
  look(1000)
  await store.create(newPet('Moe'))
  assert.deepEqual([...lines], [])
  writeFileSync(path, formatDataFile(rex, mia))
  look(1000)
  assert.equal(await lines.next(/./), 'reloaded 2 pets: 0 added, 2 removed, 0 changed')
})

test('on Windows an edit at the moment at which an append is closed is kept, and the pet is added to it', async (t) => {
  const path = makeDataFile([rex])
  let edits = 0
  const { fileSystem } = createLazyTimes(() => {
    if (edits++ === 0) writeFileSync(path, formatDataFile(petLine(1, 'Rexi'), mia))
  })
  const { store } = await openOnWindows(t, path, fileSystem)
  const { id } = await store.create(newPet('Max'))
  assert.equal(id, 3)
  assert.deepEqual(namesInFile(path), ['Rexi', 'Mia', 'Max'])
})

for (const code of ['EBUSY', 'EPERM', 'EACCES']) {
  test(`on Windows a scanner that holds the file for a moment (${code}) keeps nobody from anything`, async (t) => {
    const refusals = { openSync: 3, renameSync: 3 }
    const fileSystem = watchFileSystem({
      before({ name, path, args }) {
        if (basename(path) !== 'pets.json' || (name !== 'renameSync' && args[1] !== 'r+')) return
        if ((name === 'renameSync' || name === 'openSync') && refusals[name]-- > 0) throw systemError(code)
      },
    })
    countTime(t, 1)
    const path = makeDataFile(withoutIds)
    const { store, lines } = await openOnWindows(t, path, fileSystem)
    await store.create(newPet('Mia'))
    assert.deepEqual(namesInFile(path), ['Rex', 'Mia'])
    assert.ok(readFileSync(path, 'utf8').includes('"id":1'))
    assert.deepEqual([...lines], [])
  })

  test(`on Windows a program that holds the file while it has to be rewritten (${code}) is named, until it lets go`, async (t) => {
    const look = holdLooks(t)
    countTime(t, 400)
    const { fileSystem, holder } = createHolder(code)
    holder.isHeld = false
    const path = makeDataFile([rex])
    const { store, lines } = await openOnWindows(t, path, fileSystem)
    holder.isHeld = true
    writeFileSync(path, withoutIds)
    look(1000)
    const line = await lines.next(/./)
    assert.match(line, /another program holds it/)
    assert.doesNotMatch(line, /mount/)
    await assert.rejects(store.create(newPet('Mia')), /nothing was stored/)
    holder.isHeld = false
    await store.create(newPet('Mia'))
    assert.deepEqual(namesInFile(path), ['Rex', 'Mia'])
  })

  test(`on Windows a file that cannot be opened for writing (${code}) is served`, async (t) => {
    countTime(t, 400)
    const { fileSystem } = createHolder(code)
    const path = makeDataFile([rex])
    const { store, lines } = await openOnWindows(t, path, fileSystem)
    assert.deepEqual(namesIn(store), ['Rex'])
    assert.match(lines.join('\n'), /pets\.json: cannot be written: .*; pets can be listed, but not added$/)
    await assert.rejects(store.create(newPet('Mia')), /nothing was stored/)
    assert.deepEqual(namesInFile(path), ['Rex'])
  })
}

test('a start on a name that cannot be made ends in words', async () => {
  const fileSystem = watchFileSystem({
    before({ name, args, path }) {
      if (name === 'openSync' && args[1] === 'wx' && path.includes('?')) throw systemError('ENOENT')
    },
  })
  const folder = makeFolder()
  await assert.rejects(openFileStore(join(folder, 'pets?.json'), { fileSystem }), {
    message: `${folder}/pets?.json: cannot be opened or created: no such file or directory (ENOENT)`,
  })
  if (process.platform !== 'linux') return
  await assert.rejects(
    openFileStore('/proc/pets.json'),
    /^Error: \/proc\/pets\.json: cannot be opened or created: /,
  )
})

test('what a rewrite left is removed where rmSync removes nothing', async (t) => {
  // Node 23 to 24.13 on Windows, below a folder with letters beyond ASCII (Node's issues 61067 and 65578).
  const fileSystem = watchFileSystem({
    before({ name }) {
      return name === 'rmSync' ? true : undefined
    },
  })
  const path = makeDataFile(withoutIds)
  writeFileSync(`${path}.petstore-new`, 'left')
  await openStore(t, path, fileSystem)
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

test('on Windows a second store is refused on the same file in other letters', async (t) => {
  const path = makeDataFile([rex])
  await openOnWindows(t, path)
  const other = join(dirname(path), 'PETS.JSON')
  await assert.rejects(
    openFileStore(other, { platform: 'win32' }),
    /PETS\.JSON: is in use by another server;/,
  )
})

/** open(2) of macOS: with O_EXLOCK and O_NONBLOCK it opens and locks a file, unless somebody else has it open so. */
function createMacOS(): FileSystem {
  const locked = new Map<number, string>()
  const files = watchFileSystem({
    before({ name, args: [first, flags], path }) {
      if (name === 'closeSync') locked.delete(Number(first))
      if (name !== 'openSync' || typeof flags !== 'number' || (flags & 0x20) === 0) return
      if ([...locked.values()].includes(path)) throw systemError('EAGAIN')
    },
    after({ name, args: [, flags], path }, result) {
      if (name === 'openSync' && typeof flags === 'number' && (flags & 0x20) !== 0)
        locked.set(Number(result), path)
    },
  })
  return files
}

for (const platform of ['darwin', 'freebsd', 'netbsd', 'openbsd'] as const)
  test(`on ${platform} a second store on a file is refused until the first is closed`, async (t) => {
    const fileSystem = createMacOS()
    const path = makeDataFile([rex])
    const other = join(dirname(path), 'others.json')
    writeFileSync(other, formatDataFile(rex))
    const { store } = await openStore(t, path, fileSystem, platform)
    const options = { fileSystem, platform }
    await assert.rejects(openFileStore(path, options), /: is in use by another server;/)
    // Servers of other users have to be able to open it.
    assert.equal(nodeFs.statSync(`${path}.petstore-lock`).mode & 0o777, 0o644 & ~process.umask())
    await openStore(t, other, fileSystem, platform)
    await store.close()
    await openStore(t, path, fileSystem, platform)
  })

test('refuses a creation where the file differs at each append, and serves what is in it', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  let time = 0
  const fileSystem = watchFileSystem({
    before({ name, args }) {
      if (time > 0 && name === 'openSync' && args[1] === 'r+') nodeFs.utimesSync(path, time, time++)
    },
  })
  const store = await openFileStore(path, { fileSystem })
  t.after(() => store.close())
  time = 1
  await assert.rejects(store.create({ name: 'Mia', categoryId: 2, status: 'sold' }), {
    code: 'data_file_invalid',
    message: 'The data file is not valid (it is being written, again and again); nothing was stored.',
  })
  assert.equal(store.size, 1)
})

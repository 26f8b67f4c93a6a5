/** One server a file: who is refused, and that nothing but a living process refuses. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import nodeFs from 'node:fs'
import { linkSync, mkdirSync, readdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { Server } from 'node:net'
import { dirname, join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { Disk } from '../src/data-file/disk.ts'
import { lockFile } from '../src/data-file/file-lock.ts'
import { openFileStore } from '../src/store/file-store.ts'
import { buildOnce } from './built.ts'
import { newPet, openStore, petLine, systemError } from './file-system.ts'
import {
  cleanEnvironment,
  makeDataFile,
  makeFolder,
  runProgram,
  send,
  startProgram,
  listFolder,
  isThorough,
  root,
  withoutTimes,
} from './support.ts'

async function assertLocked(path: string): Promise<void> {
  await assert.rejects(openFileStore(path), (error) => {
    assert.ok(error instanceof DataFileUnusable)
    assert.match(error.message, /: is in use by another server;/)
    return true
  })
}

test('refuses a second store on a file, whatever path leads there', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const { store } = await openStore(t, path)
  const link = join(makeFolder(), 'link.json')
  symlinkSync(path, link)
  const folderLink = join(makeFolder(), 'folder')
  symlinkSync(dirname(path), folderLink)
  for (const other of [path, relative(process.cwd(), path), link, join(folderLink, 'pets.json')]) {
    await assertLocked(other)
  }
  await store.create(newPet('Mia'))
  await store.close()
  const { store: next } = await openStore(t, link)
  assert.equal(next.size, 2)
})

test('refuses a second store on a file in a folder that is mounted in two places', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  await openStore(t, path)
  const mounted = makeFolder()
  const { status } = spawnSync('mount', ['--bind', dirname(path), mounted])
  if (status !== 0) return t.skip('a folder can be mounted on Linux as root alone')
  try {
    await assertLocked(join(mounted, 'pets.json'))
  } finally {
    spawnSync('umount', ['-l', mounted])
  }
})

test('refuses a second store on a file that is still to be made', async () => {
  const path = join(makeFolder(), 'not/yet/pets.json')
  const opened = await Promise.allSettled([openFileStore(path), openFileStore(path), openFileStore(path)])
  const stores = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  assert.equal(stores.length, 1)
  for (const store of stores) await store.close()
})

test('locks each file by itself', async (t) => {
  const folder = makeFolder()
  await openStore(t, join(folder, 'a.json'))
  const { store } = await openStore(t, join(folder, 'b.json'))
  assert.equal((await store.create(newPet('Rex'))).id, 1)
})

test('gives the lock back when the file cannot be opened', async (t) => {
  const path = makeDataFile('{')
  await assert.rejects(openFileStore(path), DataFileUnusable)
  writeFileSync(path, '{"pets":[]}')
  const { store } = await openStore(t, path)
  assert.equal(store.size, 0)
})

test('gives the lock back, and takes it again and again', async () => {
  const target = join(makeFolder(), 'pets.json')
  const disk = new Disk(target)
  for (let i = 0; i < 20; i++) {
    const release = await lockFile(disk)
    await assert.rejects(lockFile(disk), /pets\.json: is in use by another server;/)
    await release()
  }
})

test('holds the lock when the system cannot let in a start that asks for it', async (t) => {
  const servers: Server[] = []
  const { listen } = Server.prototype
  t.mock.method(Server.prototype, 'listen', function (this: Server, ...args: Parameters<typeof listen>) {
    servers.push(this)
    return listen.apply(this, args)
  })
  const path = makeDataFile([petLine(1, 'Rex')])
  await openStore(t, path)
  assert.ok(servers.length > 0)
  for (const server of servers) server.emit('error', systemError('EMFILE'))
  await assertLocked(path)
})

test('refuses a second store while the inode of the folder is another one, as on overlays', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  await openStore(t, path)
  let inode = 1n
  const fileSystem = new Proxy(nodeFs, {
    get: (target, name: keyof typeof nodeFs) =>
      name === 'statSync'
        ? (...args: Parameters<typeof nodeFs.statSync>) =>
            Object.assign(nodeFs.statSync(...args) ?? {}, { ino: inode++ })
        : target[name],
  })
  await assert.rejects(openFileStore(path, { fileSystem }), /: is in use by another server;/)
})

const inMounts = ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs tmpfs data && exec "$@"', 'sh']
const canMount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0

test(
  'containers that share a network have files of their own at the same path',
  { skip: canMount ? false : 'only root on Linux can mount' },
  async (t) => {
    const folder = makeFolder()
    mkdirSync(join(folder, 'data'))
    for (const name of ['first', 'second']) {
      const { url } = await startProgram(t, folder, {}, inMounts)
      assert.equal((await send(url, '/v1/pets', { body: { name, categoryId: 1 } })).status, 201)
    }
  },
)

test('a folder that has the inode of one that was removed is not taken for it', async (t) => {
  const paths = [makeDataFile(), makeDataFile()]
  const fileSystem = new Proxy(nodeFs, {
    get: (target, name: keyof typeof nodeFs) =>
      name === 'statSync'
        ? (...args: Parameters<typeof nodeFs.statSync>) =>
            Object.assign(nodeFs.statSync(...args) ?? {}, {
              dev: 1n,
              ino: 1n,
              birthtimeNs: BigInt(paths.findIndex((path) => path.startsWith(String(args[0])))),
            })
        : target[name],
  })
  // On Linux, it is no socket in the folder that tells them apart.
  for (const path of paths) await openStore(t, path, fileSystem, 'win32')
})

test('refuses a second store on Android, and says on a system without locks that there is none', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  await openStore(t, path, nodeFs, 'android')
  await assertLocked(path)
  const { lines } = await openStore(t, makeDataFile(), nodeFs, 'sunos')
  assert.match(
    lines.join('\n'),
    /pets\.json: cannot be locked: function not implemented \(ENOSYS\); start no second server on it$/,
  )
})

test('refuses a second store by a long path', async (t) => {
  const folder = join(makeFolder(), 'x'.repeat(200))
  mkdirSync(folder)
  const longPath = join(folder, `${'y'.repeat(180)}.json`)
  await openStore(t, longPath)
  await assertLocked(longPath)
  assert.equal(readLocks(longPath).length, process.platform === 'linux' ? 1 : 0)
})

test('a second program says so in one line and exits with 1; a killed one blocks nobody, again and again', async (t) => {
  const folder = makeFolder()
  let first = await startProgram(t, folder)
  const second = runProgram(t, folder, { PETSTORE_API_KEYS: 'k' })
  assert.deepEqual(await second.ended, { code: 1, signal: null })
  assert.equal(
    withoutTimes(second.output()),
    'data/pets.json: is in use by another server; stop that one, or give this one a file of its own\n',
  )
  for (let kills = 0; kills < (isThorough ? 20 : 1); kills++) {
    first.child.kill('SIGKILL')
    await first.ended
    first = await startProgram(t, folder)
  }
  assert.deepEqual(listFolder(join(folder, 'data')), ['pets.json'])
  first.child.kill()
  await first.ended
  assert.deepEqual(readdirSync(join(folder, 'data')), ['pets.json'], 'the lock is gone')
})

test('of two workers of node:cluster, one serves, and the other is refused', async (t) => {
  const script = `const cluster = require('node:cluster')
    cluster.setupPrimary({ exec: process.argv[1], args: [], execArgv: [] })
    for (let i = 0; i < 2; i++) cluster.fork()`
  const env = { ...cleanEnvironment(), PORT: '0', PETSTORE_API_KEYS: 'k' }
  const args = ['-e', script, join(buildOnce(), 'server.js')]
  const child = spawn(process.execPath, args, { cwd: makeFolder(), env })
  t.after(() => child.kill('SIGKILL'))
  // Both write to the same two pipes.
  const [served, refused] = await Promise.all(
    [child.stdout, child.stderr].map(async (stream) => String((await once(stream, 'data'))[0])),
  )
  assert.match(served ?? '', /^Petstore listens on /)
  assert.match(withoutTimes(refused ?? ''), /^data\/pets\.json: is in use by another server;/)
})

test('of many programs that start at once after a kill, exactly one serves', async (t) => {
  const folder = makeFolder()
  for (let round = 0; round < (isThorough ? 10 : 1); round++) {
    const programs = Array.from({ length: isThorough ? 20 : 3 }, () =>
      runProgram(t, folder, { PETSTORE_API_KEYS: 'k' }),
    )
    const outcomes = await Promise.all(
      programs.map(({ waitFor }) => waitFor(/listens on|is in use by another server/).then(String)),
    )
    assert.deepEqual(
      outcomes.filter((outcome) => outcome === 'listens on'),
      ['listens on'],
    )
    for (const { child } of programs) child.kill('SIGKILL')
    await Promise.all(programs.map(({ ended }) => ended))
  }
})

/** Locks the file of each line that comes, and says what came of that. */
const holder = `
  import { createInterface } from 'node:readline'
  const { Disk } = await import(process.argv[1] + '/disk.ts')
  const { lockFile } = await import(process.argv[1] + '/file-lock.ts')
  for await (const path of createInterface(process.stdin)) {
    const outcome = await lockFile(new Disk(path)).then(() => 'locked', (error) => error.message)
    process.stdout.write(outcome + '\\n')
  }`
const isolated = ['--net', process.execPath, '--import', import.meta.resolve('./translated.mjs')]
const canIsolate = spawnSync('unshare', ['--net', 'true']).status === 0

test(
  'of processes with networks of their own that find a dead lock at once, at most one takes its place, and one that comes later does',
  { skip: canIsolate ? false : 'only root on Linux can separate networks' },
  async (t) => {
    const data = join(root, 'src/data-file')
    const holders = Array.from({ length: isThorough ? 6 : 3 }, () => {
      const args = [...isolated, '--input-type=module', '--eval', holder, data]
      const child = spawn('unshare', args, { stdio: ['pipe', 'pipe', 'inherit'] })
      t.after(() => child.kill('SIGKILL'))
      return { child, answers: createInterface(child.stdout)[Symbol.asyncIterator]() }
    })
    for (let round = 0; round < (isThorough ? 500 : 15); round++) {
      const path = makeDataFile()
      const dead = await leaveDeadLock(path)
      const lock = async (which: typeof holders): Promise<readonly string[]> => {
        for (const { child } of which) child.stdin.write(`${path}\n`)
        const answers = await Promise.all(which.map(async ({ answers: next }) => (await next.next()).value))
        const refused = `${path}: is in use by another server; stop that one, or give this one a file of its own`
        assert.deepEqual(
          answers.filter((answer) => answer !== 'locked' && answer !== refused),
          [],
        )
        return answers.filter((answer) => answer === 'locked')
      }
      const first = await lock(holders)
      const later = await lock(holders.slice(0, 1))
      assert.equal(first.length + later.length, 1, `${first.length} at once, ${later.length} later`)
      assert.deepEqual(await lock(holders), [])
      const locks = readLocks(path)
      assert.deepEqual([locks.length, locks.includes(dead)], [1, false])
    }
  },
)

test('servers of other users can see its socket in the folder', async () => {
  const path = makeDataFile()
  const release = await lockFile(new Disk(path))
  const modes = readLocks(path).map((name) => statSync(join(dirname(path), name)).mode & 0o777)
  assert.deepEqual(modes, process.platform === 'linux' ? [0o777] : [])
  await release()
})

function readLocks(path: string): readonly string[] {
  return readdirSync(dirname(path)).filter((name) => name.startsWith('.petstore-lock-'))
}

/** What a killed process leaves: a socket on which nobody listens. Returns its name. */
async function leaveDeadLock(path: string): Promise<string> {
  const disk = new Disk(path)
  const release = await lockFile(disk)
  const [name = ''] = readLocks(path)
  const saved = join(makeFolder(), 'socket')
  linkSync(join(dirname(path), name), saved)
  await release()
  linkSync(saved, join(dirname(path), name))
  return name
}

test('a second store is refused at the path of another, though the folder was moved and made anew', async (t) => {
  const path = join(makeFolder(), 'data', 'pets.json')
  const { store } = await openStore(t, path)
  await store.create(newPet('Rex'))
  const moved = `${dirname(path)}-moved`
  renameSync(dirname(path), moved)
  mkdirSync(dirname(path))
  await assertLocked(path)
  await store.close()
  assert.deepEqual(readdirSync(moved), ['pets.json'], 'the lock is gone')
})

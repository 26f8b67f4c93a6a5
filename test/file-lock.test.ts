/** One server a file: who is refused, and that nothing but a living process refuses. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import nodeFs from 'node:fs'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { DataFileUnusable, Disk } from '../src/data-file/disk.ts'
import { lockFile } from '../src/data-file/file-lock.ts'
import { openFileStore } from '../src/store/local-store.ts'
import { newPet, openStore, petLine } from './file-system.ts'
import { makeDataFile, makeFolder, runProgram, send, startProgram } from './support.ts'

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

test('a second program says so in one line and exits with 1; a killed one blocks nobody', async (t) => {
  const folder = makeFolder()
  const first = await startProgram(t, folder)
  const second = runProgram(t, folder, { PETSTORE_API_KEYS: 'k' })
  assert.deepEqual(await second.ended, { code: 1, signal: null })
  assert.equal(
    second.output(),
    'data/pets.json: is in use by another server; stop that one, or give this one a file of its own\n',
  )
  first.child.kill('SIGKILL')
  await first.ended
  await startProgram(t, folder)
  assert.deepEqual(readdirSync(join(folder, 'data')), ['pets.json'])
})

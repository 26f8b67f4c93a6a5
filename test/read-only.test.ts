/** Files and folders that the server may not write: it says so at the start, serves what is there, and changes nothing. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openFileStore } from '../src/store/file-store.ts'
import { buildOnce } from './built.ts'
import { petLine, systemError, watchFileSystem } from './file-system.ts'
import { assertRefusal, formatDataFile, makeFolder, send, startApp, startProgram } from './support.ts'

const dist = buildOnce()
const nobody = 65_534
const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups']
const canBeNobody = spawnSync(asNobody[0] ?? '', [...asNobody.slice(1), 'true']).status === 0
const skip = canBeNobody ? false : 'only root on Linux can start a server as somebody else'

const pets = formatDataFile(petLine(1, 'Rex'))

/** A folder of nobody's with a data file of root's, and the built server to be run there. */
function makeStore(
  t: TestContext,
  text: string,
  modes: { readonly file: number; readonly folder: number },
): string {
  const folder = makeFolder()
  const path = join(folder, 'pets.json')
  writeFileSync(path, text)
  copyFileSync(join(dist, 'server.js'), join(folder, 'server.js'))
  chmodSync(join(folder, 'server.js'), 0o755)
  chmodSync(path, modes.file)
  if (modes.folder === 0o700) chownSync(folder, nobody, nobody)
  chmodSync(folder, modes.folder)
  process.env['PETSTORE_TEST_ENTRY'] = join(folder, 'server.js')
  t.after(() => delete process.env['PETSTORE_TEST_ENTRY'])
  return folder
}

const env = { PETSTORE_DATA_FILE: 'pets.json' }
const creation = { body: { name: 'Mia', categoryId: 1 } }

function describeFile(path: string): unknown {
  const { uid, gid, mode, ino } = statSync(path)
  return { uid, gid, mode, ino, text: readFileSync(path, 'utf8') }
}

for (const [what, text] of [
  ['in its own layout', pets],
  ['in another layout', `{"pets":[${petLine(1, 'Rex')}]}`],
] as const) {
  test(`serves a read-only file ${what}, and leaves it as it is`, { skip }, async (t) => {
    const folder = makeStore(t, text, { file: 0o444, folder: 0o700 })
    const path = join(folder, 'pets.json')
    const before = describeFile(path)
    const { url, output } = await startProgram(t, folder, env, asNobody)
    assert.match(
      output(),
      /^pets\.json: cannot be written: permission denied \(EACCES\); pets can be listed, but not added$/m,
    )
    assert.match(
      assertRefusal(await send(url, '/v1/pets', creation), 503, 'storage_failed'),
      /nothing was stored/,
    )
    assert.equal((await send(url, '/v1/pets')).headers.get('x-total-count'), '1')
    assert.deepEqual(describeFile(path), before)
    assertRefusal(await send(url, '/healthz?ready=write'), 503, 'read_only')
    assert.equal((await send(url, '/healthz?ready')).status, 200)
    chmodSync(path, 0o666)
    while ((await send(url, '/healthz?ready=write')).status !== 200);
  })
}

test(
  'says once that a file has become read-only, and once that it can be used again, though nobody creates a pet',
  { skip },
  async (t) => {
    const folder = makeStore(t, pets, { file: 0o666, folder: 0o700 })
    const path = join(folder, 'pets.json')
    const { url, output, waitFor } = await startProgram(t, folder, env, asNobody)
    chmodSync(path, 0o444)
    await waitFor(/ cannot be written: /)
    assertRefusal(await send(url, '/healthz?ready=write'), 503, 'read_only')
    assertRefusal(await send(url, '/v1/pets', creation), 503, 'storage_failed')
    chmodSync(path, 0o666)
    await waitFor(/ can be used again\n/)
    assert.equal((await send(url, '/healthz?ready=write')).status, 200)
    assert.equal((await send(url, '/v1/pets', creation)).status, 201)
    const said = output().match(/(?<=\dZ ).+/g)
    assert.deepEqual(said, [
      'pets.json: cannot be written: permission denied (EACCES); pets can be listed, but not added',
      'pets.json: can be used again',
    ])
  },
)

/** Opens each file in one process of nobody's, and returns what it is told instead, or `served`. */
function openAsNobody(folder: string, names: readonly string[]): readonly string[] {
  copyFileSync(join(dist, 'index.js'), join(folder, 'index.cjs'))
  const script = `const { createPetStore } = require('./index.cjs')
    const open = (dataFile) => createPetStore({ apiKeys: ['k'], dataFile }).then(() => 'served', (error) => error.message)
    Promise.all(process.argv.slice(1).map(open)).then((outcomes) => {
      console.log(JSON.stringify(outcomes))
      process.exit()
    })`
  const [file = '', ...args] = [...asNobody, process.execPath, '-e', script, '--', ...names]
  const { stdout, stderr } = spawnSync(file, args, { cwd: folder, encoding: 'utf8' })
  assert.equal(stderr, '')
  const outcomes: readonly string[] = JSON.parse(stdout)
  return outcomes
}

test(
  'does not start on a file that needs ids, a damaged one and one that it may not read, leaves them as they are, and says whose one is and what mends it',
  { skip },
  (t) => {
    const withoutIds = '{"pets":[{"name":"Rex","categoryId":1}]}'
    const ownFolder = makeStore(t, withoutIds, { file: 0o444, folder: 0o700 })
    const folder = makeStore(t, pets.slice(0, -30), { file: 0o666, folder: 0o755 })
    const unreadable = join(folder, 'private.json')
    writeFileSync(unreadable, pets, { mode: 0o600 })
    const paths = [join(ownFolder, 'pets.json'), join(folder, 'pets.json'), unreadable]
    const before = paths.map(describeFile)
    const [first = '', second = '', third = ''] = openAsNobody(folder, paths)
    for (const refusal of [first, second])
      assert.match(
        refusal,
        /pets\.json: has to be rewritten, but it or its folder cannot be written: permission denied \(EACCES\)$/,
      )
    assert.deepEqual(paths.map(describeFile), before)
    const [, command = '', uid = '', path = ''] =
      /private\.json: cannot be opened or created: permission denied \(EACCES\); .* belongs to user 0, and the server runs as user 65534: (chown) (\d+) (\S+)$/.exec(
        third,
      ) ?? []
    assert.equal(command, 'chown', third)
    assert.equal(spawnSync(command, [uid, path]).status, 0)
    assert.deepEqual(openAsNobody(folder, [path]), ['served'])
  },
)

test(
  'appends to a file in a folder that cannot be written, for one server, and makes none there',
  { skip },
  async (t) => {
    const folder = makeStore(t, pets, { file: 0o666, folder: 0o755 })
    const { url } = await startProgram(t, folder, env, asNobody)
    assert.equal((await send(url, '/v1/pets', creation)).status, 201)
    const [created = '', second = ''] = openAsNobody(folder, ['new.json', 'pets.json'])
    assert.match(
      created,
      /^new\.json: cannot be opened or created: permission denied \(EACCES\); \S+ belongs to user 0, and the server runs as user 65534: chown 65534 \S+$/,
    )
    assert.match(second, /^pets\.json: is in use by another server; /)
  },
)

test('keeps the group of a file that a server of another user writes anew', { skip }, async (t) => {
  // The server's user is in the group that the file is shared by, and may not give the file away.
  const group = 65_533
  const folder = makeStore(t, '{"pets":[{"name":"Rex","categoryId":1}]}', { file: 0o660, folder: 0o700 })
  const path = join(folder, 'pets.json')
  chownSync(path, 0, group)
  const asMember = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, `--groups=${group}`]
  await startProgram(t, folder, env, asMember)
  const { uid, gid, mode } = statSync(path)
  assert.deepEqual({ uid, gid, mode: mode & 0o777 }, { uid: nobody, gid: group, mode: 0o660 })
  assert.match(readFileSync(path, 'utf8'), /"id":1/)
})

test('says that a file that only takes appends cannot be written', async (t) => {
  const folder = makeStore(t, pets, { file: 0o644, folder: 0o755 })
  const path = join(folder, 'pets.json')
  const { status } = spawnSync('chattr', ['+a', path])
  if (status !== 0) return t.skip('chattr +a needs root on Linux, and a file system that knows it')
  t.after(() => spawnSync('chattr', ['-a', path]))
  const { lines } = await startApp(t, { dataFile: path })
  assert.match(
    lines.join('\n'),
    /pets\.json: cannot be written: operation not permitted \(EPERM\); pets can be listed, but not added$/,
  )
})

test(
  'serves a file in a folder that may not be listed, and says once that it cannot be synced',
  { skip },
  async (t) => {
    const folder = makeStore(t, pets, { file: 0o666, folder: 0o711 })
    const { url, output } = await startProgram(t, folder, env, asNobody)
    assert.match(output(), /: its folder cannot be synced: a new file in it may not survive a power cut$/m)
    assert.equal((await send(url, '/v1/pets', creation)).status, 201)
    writeFileSync(join(folder, 'pets.json'), pets)
    while ((await send(url, '/v1/pets')).headers.get('x-total-count') !== '1');
    assert.equal(output().match(/cannot be synced/g)?.length, 1)
  },
)

test('says that a file system has no inodes left', async (t) => {
  const folder = makeFolder()
  const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,nr_inodes=1', 'petstore-test', folder])
  if (mount.status !== 0) return t.skip('a small disk can be mounted on Linux as root alone')
  t.after(() => spawnSync('umount', ['-l', folder]))
  await assert.rejects(
    openFileStore(join(folder, 'pets.json')),
    /pets\.json: cannot be created or rewritten: its file system has no inodes left, though it may have room \(ENOSPC\)$/,
  )
})

test('says that there is too little room where a file system that counts no inodes is full', async () => {
  const path = join(makeFolder(), 'pets.json')
  const fileSystem = watchFileSystem({
    before({ name, args: [place] }) {
      // Btrfs has no fixed number of inodes, and reports zeros.
      if (name === 'statfsSync') return { bavail: 0, blocks: 1, bsize: 4096, files: 0, ffree: 0 }
      if (name === 'openSync' && place === `${path}.petstore-new`) throw systemError('ENOSPC')
      return undefined
    },
  })
  const fault = /pets\.json: cannot be created or rewritten: no space left on device \(ENOSPC\)$/
  await assert.rejects(openFileStore(path, { fileSystem }), fault)
})

for (const [what, script, names] of [
  ['is', `"$0" "$1" --file "$(printf 'M\\344use.json')" --keys k --port 0`, 0],
  [
    'begins in a folder that is',
    `mkdir "$(printf 'd\\377')"; cd "$(printf 'd\\377')"; "$0" "$1" --file pets.json --keys k --port 0`,
    1,
  ],
] as const) {
  test(`refuses a path that ${what} no UTF-8, and creates no file of another name`, async (t) => {
    if (process.platform !== 'linux') return t.skip('the names of other systems are Unicode')
    const folder = makeFolder()
    const entry = join(dist, 'server.js')
    const { status, stderr } = spawnSync('sh', ['-c', script, process.execPath, entry], {
      cwd: folder,
      env: { PATH: process.env['PATH'] },
      encoding: 'utf8',
      timeout: 60_000,
    })
    assert.equal(status, 1, stderr)
    assert.match(stderr, /is no path in UTF-8; give the file, or its folder, another name\n$/)
    assert.equal(readdirSync(folder, { encoding: 'buffer' }).length, names)
  })
}

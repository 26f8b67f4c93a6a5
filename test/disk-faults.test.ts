/**
 * Failing disks. Each call that a workload makes of the file system fails once, and from then on, with each kind of error,
 * then the disk works again; and a file system that is really full. Whatever was acknowledged is served and on disk,
 * whatever was refused is neither, and the store goes on by itself.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import nodeFs from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { type FileSystem } from '../src/data-file/disk.ts'
import type { Pet } from '../src/options/types.ts'
import { openFileStore, type FileStore } from '../src/store/file-store.ts'
import { PetStoreError } from '../src/store/store.ts'
import { clock } from '../src/system/clock.ts'
import {
  countTime,
  createSyncGate,
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
  type Call,
} from './file-system.ts'
import {
  assertRefusal,
  formatDataFile,
  isThorough,
  makeDataFile,
  makeOld,
  readPetLines,
  share,
  startApp,
  listFolder,
} from './support.ts'

type CallName = keyof FileSystem

/** Fails the calls of one name from the n-th on, once or each, with this error. */
interface Fault {
  readonly name: CallName
  readonly from: number
  readonly isLasting: boolean
  readonly code: string
}

/** What was called in any test of this file. */
const called = new Set<CallName>()

class FaultyDisk {
  #faults: readonly Fault[] = []
  readonly #counts = new Map<CallName, number>()
  /** Whether the last fault was met. */
  isMet = false

  arm(...faults: readonly Fault[]): void {
    this.#faults = faults
    this.#counts.clear()
    this.isMet = false
  }

  mend(): void {
    this.#faults = []
  }

  readonly fileSystem = watchFileSystem({
    before: (call) => {
      const { name } = call
      const count = (this.#counts.get(name) ?? 0) + 1
      this.#counts.set(name, count)
      called.add(name)
      const fault = this.#faults.find(
        ({ name: failing, from, isLasting }) =>
          failing === name && (isLasting ? count >= from : count === from),
      )
      if (fault === undefined || (fault.code === 'ENOSPC' && !needsRoom(call))) return
      if (fault === this.#faults.at(-1)) this.isMet = true
      leaveWhatItLeaves(call, fault.code)
      throw systemError(fault.code)
    },
  })
}

/** Whether a full disk can refuse it: what is written over other bytes has its room. */
function needsRoom({ name, args: [descriptor, , , length, position] }: Call): boolean {
  if (name !== 'writeSync') return true
  return Number(position) + Number(length) > nodeFs.fstatSync(Number(descriptor)).size
}

/** Linux closes a descriptor even when close(2) fails, and a full disk takes the beginning of a write. */
function leaveWhatItLeaves({ name, args }: Call, code: string): void {
  const [descriptor, bytes, offset, length, position] = args
  if (name === 'closeSync') nodeFs.closeSync(Number(descriptor))
  if (name === 'writeSync' && code === 'ENOSPC' && bytes instanceof Uint8Array)
    nodeFs.writeSync(Number(descriptor), bytes, Number(offset), Number(length) >> 1, Number(position))
}

/** The last test of this file holds that there are no others. */
const everyCall: readonly CallName[] = [
  'accessSync',
  'closeSync',
  'fchmodSync',
  'fchownSync',
  'fdatasync',
  'fstatSync',
  'fsync',
  'ftruncateSync',
  'linkSync',
  'lstatSync',
  'mkdirSync',
  'openSync',
  'readFileSync',
  'readSync',
  'readdirSync',
  'readlinkSync',
  'realpathSync',
  'renameSync',
  'statSync',
  'statfsSync',
  'unlinkSync',
  'writeSync',
]

/** Every call, with every error, once and from then on. */
const faultKinds: readonly Omit<Fault, 'from'>[] = everyCall.flatMap((name) =>
  ['EIO', 'ENOSPC', 'EACCES'].flatMap((code) => [
    { name, code, isLasting: false },
    { name, code, isLasting: true },
  ]),
)

/** Faults of these kinds at the first call, at the second and so on; `run` tells whether it met the one it was given. */
async function forEachFault(
  kinds: readonly Omit<Fault, 'from'>[],
  run: (fault: Fault) => Promise<boolean>,
): Promise<number> {
  let count = 0
  for (const kind of kinds) {
    for (let from = 1; await run({ ...kind, from }); from++) count++
  }
  return count
}

/** How many descriptors of this process are open on something in the folder. */
function countDescriptors(folder: string): number {
  if (process.platform !== 'linux') return 0
  const targets = nodeFs.readdirSync('/proc/self/fd').map((descriptor) => {
    try {
      return nodeFs.readlinkSync(`/proc/self/fd/${descriptor}`)
    } catch {
      // The one that the folder was listed with is gone.
      return ''
    }
  })
  return targets.filter((target) => target.startsWith(folder)).length
}

interface Workload {
  readonly title: string
  readonly text: string
  /** What a person does to the file while the disk fails. */
  readonly edit?: (path: string) => void
  /** What the file holds then, before anything is created. */
  readonly names: readonly string[]
  /** Faults beside the one that is tried out. */
  readonly faults?: readonly Fault[]
}

const lines = formatDataFile(petLine(1, 'Rex'), petLine(2, 'Mia'))
const edited = lines.replace('Rex', 'Maximilian')
const withoutIds = lines.replaceAll(/"id":\d,/g, '')
const failingSync = { name: 'fdatasync', from: 1, isLasting: false, code: 'EIO' } as const
const fullDisk = { name: 'writeSync', from: 1, isLasting: false, code: 'ENOSPC' } as const

const workloads: readonly Workload[] = [
  { title: 'appends', text: lines, names: ['Rex', 'Mia'] },
  { title: 'an append that cannot be synced', text: lines, names: ['Rex', 'Mia'], faults: [failingSync] },
  { title: 'an append that finds the disk full', text: lines, names: ['Rex', 'Mia'], faults: [fullDisk] },
  { title: 'the first pet', text: '{\n  "pets": [\n  ]\n}\n', names: [] },
  { title: 'the first pet in an unusual layout', text: '{"pets":[]}', names: [] },
  {
    title: 'the first append to an unusual layout',
    text: `{"$schema":"x","pets":[${petLine(1, 'Rex')}]}`,
    names: ['Rex'],
  },
  {
    title: 'an edit in place',
    text: lines,
    names: ['Maximilian', 'Mia'],
    edit: (path) => nodeFs.writeFileSync(path, edited),
  },
  {
    title: 'an edit by rename, with pets that need ids',
    text: lines,
    names: ['Rex', 'Mia'],
    edit(path) {
      nodeFs.writeFileSync(`${path}~`, withoutIds)
      nodeFs.renameSync(`${path}~`, path)
    },
  },
  {
    title: 'an edit in place, with pets that need ids',
    text: lines,
    names: ['Rex', 'Mia'],
    edit: (path) => nodeFs.writeFileSync(path, withoutIds),
  },
]

const cases = share(
  workloads.flatMap((workload) => faultKinds.map((kind) => ({ workload, kind }))),
  60,
)

for (const workload of workloads) {
  test(`keeps what it acknowledged and goes on after a fault in ${workload.title}`, async (t) => {
    countTime(t, 40)
    const folder = makeFastFolder()
    let number = 0
    const kinds = cases.filter((one) => one.workload === workload).map(({ kind }) => kind)
    const count = await forEachFault(kinds, (fault) =>
      assertOutlives(join(folder, `${number++}`), workload, fault),
    )
    t.diagnostic(`${count} faults`)
    assert.ok(count > (isThorough ? 20 : 1))
  })
}

async function assertOutlives(folder: string, workload: Workload, fault: Fault): Promise<boolean> {
  const { text, edit, names, faults = [] } = workload
  const path = join(folder, 'pets.json')
  nodeFs.mkdirSync(folder)
  nodeFs.writeFileSync(path, text)
  const disk = new FaultyDisk()
  const said = new Lines()
  const store = await openFileStore(path, { fileSystem: disk.fileSystem, onMessage: said.say })
  const kept = [...names]
  try {
    disk.arm(...faults, fault)
    edit?.(path)
    for (const batch of [['a'.repeat(300)], ['b', 'c'], ['d']]) {
      for (const pet of await createAll(store, batch)) kept.push(pet.name)
      if (faults.length === 0) assertServed(path, store, edit === undefined ? kept : undefined)
    }
    const wasMet = disk.isMet
    disk.mend()
    const recovered = await createAll(store, ['recovered', 'again'])
    assert.equal(recovered.length, 2, 'creations work again')
    for (const pet of recovered) kept.push(pet.name)
    assertServed(path, store, kept)
    const { pets } = store.list({ limit: 100 })
    const ids = pets.map(({ id }) => Number(id))
    assert.ok(
      ids.every((id, index) => id > (ids[index - 1] ?? 0)),
      ids.join(),
    )
    await store.close()
    if (fault.name !== 'unlinkSync') assert.deepEqual(listFolder(folder), ['pets.json'])
    assert.equal(countDescriptors(folder), 0, 'no descriptor is left open')
    const again = await openFileStore(path)
    assertServed(path, again, kept)
    await again.close()
    nodeFs.rmSync(folder, { recursive: true })
    return wasMet
  } catch (error) {
    await store.close()
    const left = nodeFs.readFileSync(path, 'utf8')
    throw new Error(`${JSON.stringify(fault)}: ${error}\n${left}\n${said.join('\n')}`, { cause: error })
  }
}

/** Creates these at once; the refused ones are refused in the right words. */
async function createAll(store: FileStore, names: readonly string[]): Promise<readonly Pet[]> {
  const results = await Promise.allSettled(names.map((name) => store.create(newPet(name))))
  return results.flatMap((result) => {
    if (result.status === 'fulfilled') return [result.value]
    const error: unknown = result.reason
    assert.ok(error instanceof PetStoreError, String(error))
    // A rewrite that is not allowed is the file's fault, as long as it needs one.
    if (error.code === 'data_file_invalid')
      assert.match(error.message, /has to be rewritten, but .* \((?:EACCES|EROFS)\)/)
    else assert.match(error.code, /^(?:storage_failed|insufficient_storage)$/)
    return []
  })
}

/** The store lists these, no other, and the file holds what is listed. */
function assertServed(path: string, store: FileStore, names: readonly string[] | undefined): void {
  const { pets } = store.list({ limit: 100 })
  if (names === undefined) return
  assert.deepEqual(
    pets.map(({ name }) => name),
    names,
  )
  // Written by the store itself, as the assertion shows.
  const file = JSON.parse(nodeFs.readFileSync(path, 'utf8')) as { pets: Pet[] }
  assert.deepEqual(file.pets, pets)
}

function makeParent(path: string): void {
  nodeFs.mkdirSync(dirname(path))
}

function makeLinkToMissing(path: string): void {
  makeParent(path)
  nodeFs.symlinkSync('linked.json', path)
}

test('says in one plain line why it cannot open, and leaves the file byte for byte, on any fault', async () => {
  const folder = makeFastFolder()
  let number = 0
  const makeFile = (text: string) => (path: string) => {
    makeParent(path)
    nodeFs.writeFileSync(path, text)
    makeOld(path)
  }
  const texts = [lines, withoutIds, lines.slice(0, -20)]
  const starts: readonly { text?: string; prepare: (path: string) => void }[] = [
    ...texts.map((text) => ({ text, prepare: makeFile(text) })),
    { prepare: makeParent },
    // The folder is missing, too.
    { prepare: () => {} },
    { prepare: makeLinkToMissing },
  ]
  for (const { text, prepare } of starts) {
    await forEachFault(share(faultKinds, 8), async (fault) => {
      const path = join(folder, String(number++), 'pets.json')
      prepare(path)
      const disk = new FaultyDisk()
      disk.arm(fault)
      let isWhole = true
      try {
        const store = await openFileStore(path, { fileSystem: disk.fileSystem })
        await store.close()
        isWhole = false
      } catch (error) {
        assert.ok(error instanceof DataFileUnusable, `${JSON.stringify(fault)}: ${error}`)
        assert.match(
          error.message,
          /^\S+pets\.json: (?:cannot be opened or created|cannot be created or rewritten|has to be rewritten, but it or its folder cannot be written): [a-z /-]+ \(E[A-Z]+\)$/,
        )
        const left = nodeFs.existsSync(path) ? nodeFs.readFileSync(path, 'utf8') : undefined
        if (left === text) isWhole = true
        // A replacement that stands but could not be made durable is as whole.
        else assert.match(left ?? '', /\n {2}\]\n\}\n$/)
      }
      if (text === lines && isWhole) assert.equal(nodeFs.readFileSync(path, 'utf8'), text)
      assert.equal(countDescriptors(folder), 0, JSON.stringify(fault))
      const wasMet = disk.isMet
      disk.mend()
      const store = await openFileStore(path, { fileSystem: disk.fileSystem })
      assert.equal((await store.create(newPet('next'))).name, 'next')
      await store.close()
      return wasMet
    })
  }
})

test('takes a write that is done in pieces', async (t) => {
  const path = makeDataFile('{"pets":[]}')
  const fileSystem = watchFileSystem({
    before({ name, args: [descriptor, bytes, offset, , position] }) {
      if (name !== 'writeSync' || !(bytes instanceof Uint8Array)) return undefined
      return nodeFs.writeSync(Number(descriptor), bytes, Number(offset), 1, Number(position))
    },
  })
  const store = await openFileStore(path, { fileSystem })
  t.after(() => store.close())
  assert.equal((await createAll(store, ['Rex', 'Mia'])).length, 2)
  assert.deepEqual(readPetLines(path), [petLine(1, 'Rex'), petLine(2, 'Mia')])
})

test('takes a write of which nothing is written for an i/o error', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  let isBroken = true
  const fileSystem = watchFileSystem({
    before({ name }) {
      return name === 'writeSync' && isBroken ? 0 : undefined
    },
  })
  const { store, lines: said } = await openStore(t, path, fileSystem)
  await assert.rejects(store.create(newPet('Mia')), { code: 'storage_failed' })
  assert.match(said[0] ?? '', /pets\.json: cannot be used: i\/o error \(EIO\); /)
  isBroken = false
  assert.equal((await store.create(newPet('Kit'))).id, 2)
})

test("makes the file valid by itself, with the person's end, when an append was undone in part", async (t) => {
  const end = '\t]\r\n}\r\n'
  const path = makeDataFile(`{"pets":[${petLine(1, 'Rex')}${end}`)
  const text = nodeFs.readFileSync(path, 'utf8')
  let isBroken = false
  const fileSystem = watchFileSystem({
    before({ name, args: [descriptor, bytes, , , position] }) {
      if (!isBroken) return
      if (name === 'fdatasync') throw systemError('EIO')
      if (name !== 'writeSync' || String(bytes) !== end) return
      nodeFs.writeSync(Number(descriptor), end.slice(0, 3), Number(position))
      isBroken = false
      throw systemError('EIO')
    },
  })
  const said = new Lines()
  const store = await openFileStore(path, { fileSystem, onMessage: said.say })
  t.after(() => store.close())
  isBroken = true
  await assert.rejects(store.create(newPet('Mia')), { code: 'storage_failed' })
  await said.next(/can be used again$/)
  assert.equal(nodeFs.readFileSync(path, 'utf8'), text)
})

test('says once that the disk fails and once that it works again', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const disk = new FaultyDisk()
  const said = new Lines()
  const store = await openFileStore(path, { fileSystem: disk.fileSystem, onMessage: said.say })
  t.after(() => store.close())
  disk.arm({ name: 'fdatasync', from: 1, isLasting: true, code: 'EIO' })
  for (const name of ['a', 'b', 'c']) assert.deepEqual(await createAll(store, [name]), [])
  disk.mend()
  assert.equal((await createAll(store, ['d'])).length, 1)
  assert.match(
    said[0] ?? '',
    /pets\.json: cannot be used: i\/o error \(EIO\); no pet can be added until this is fixed; the last valid pets are still served$/,
  )
  assert.match(said.at(-1) ?? '', /pets\.json: can be used again$/)
  assert.equal(said.filter((line) => line.includes('cannot')).length, 1)
})

test('says once that the disk fails, also when it fails in several ways', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const codes = ['EIO', 'ENOSPC', 'EIO', 'ENOSPC']
  const fileSystem = watchFileSystem({
    before({ name }) {
      const code = name === 'writeSync' ? codes.shift() : undefined
      if (code !== undefined) throw systemError(code)
    },
  })
  const { store, lines: said } = await openStore(t, path, fileSystem)
  while (codes.length > 0) await assert.rejects(store.create(newPet('refused')), PetStoreError)
  await store.create(newPet('Kit'))
  assert.deepEqual(
    said.map((line) => /cannot be used|can be used again/.exec(line)?.[0]),
    ['cannot be used', 'can be used again'],
  )
})

test('says a second fault too, after the first was repaired', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const disk = new FaultyDisk()
  const said = new Lines()
  const store = await openFileStore(path, { fileSystem: disk.fileSystem, onMessage: said.say })
  t.after(() => store.close())
  for (let fault = 0; fault < 2; fault++) {
    disk.arm(failingSync, { name: 'ftruncateSync', from: 1, isLasting: true, code: 'EIO' })
    assert.deepEqual(await createAll(store, ['a']), [])
    await said.next(/cannot be used: i\/o error \(EIO\)/)
    disk.mend()
    await said.next(/can be used again$/)
  }
})

test('says that nothing was stored only if no byte of it reached the file, and gives its id to no other pet otherwise', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const disk = new FaultyDisk()
  const store = await openFileStore(path, { fileSystem: disk.fileSystem })
  t.after(() => store.close())
  const refuse = (message: RegExp): Promise<void> => assert.rejects(store.create(newPet('a')), message)
  const createNext = async (id: number): Promise<void> => {
    disk.mend()
    assert.equal((await store.create(newPet('b'))).id, id)
  }
  disk.arm({ name: 'writeSync', from: 1, isLasting: false, code: 'EIO' })
  await refuse(/^Error: The storage failed; nothing was stored\.$/)
  await createNext(2)
  disk.arm(failingSync)
  await refuse(/^Error: The storage failed; it is not known whether the pet was stored\.$/)
  await createNext(4)
  // What is left of that creation is removed before the next one, of which then nothing is in the file.
  disk.arm(failingSync, { name: 'ftruncateSync', from: 1, isLasting: true, code: 'EIO' })
  await refuse(/it is not known whether the pet was stored\.$/)
  await refuse(/nothing was stored\.$/)
  await createNext(6)
})

test('says that it is not known when the disk was full in the middle of a pet', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  let writes = 0
  let isFull = true
  const fileSystem = watchFileSystem({
    before({ name, args: [descriptor, bytes, offset, , position], path: place }) {
      if (!isFull || name !== 'writeSync' || place !== path || !(bytes instanceof Uint8Array))
        return undefined
      if (++writes === 1)
        return nodeFs.writeSync(Number(descriptor), bytes, Number(offset), 10, Number(position))
      isFull = false
      throw systemError('ENOSPC')
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  await assert.rejects(
    store.create(newPet('Mia')),
    /There is no room left; it is not known whether the pet was stored\.$/,
  )
  assert.deepEqual(namesInFile(path), ['Rex'])
  assert.equal((await store.create(newPet('Kit'))).id, 3)
})

test('gives no other pet the id of one that was refused, and that an editor had read before and saves later', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const gate = createSyncGate('EIO')
  const { store, lines: said } = await openStore(t, path, gate.fileSystem)
  gate.hold()
  const creation = store.create(newPet('Mia'))
  await gate.reached
  const read = nodeFs.readFileSync(path, 'utf8')
  gate.open()
  await assert.rejects(creation, /it is not known whether the pet was stored\.$/)
  assert.deepEqual(namesInFile(path), ['Rex'])
  const kit = await store.create(newPet('Kit'))
  assert.equal(kit.id, 3)
  nodeFs.writeFileSync(path, read)
  await said.next(/^reloaded 2 pets: 1 added, 1 removed/)
  assert.equal(store.get(2)?.name, 'Mia')
})

test('says that it is not known when an editor has saved while the pet was being stored', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const gate = createSyncGate()
  const { store } = await openStore(t, path, gate.fileSystem)
  gate.hold()
  const creation = store.create(newPet('Kit'))
  await gate.reached
  nodeFs.writeFileSync(path, nodeFs.readFileSync(path, 'utf8').replace('"Rex",', '"Rex"'))
  gate.open()
  await assert.rejects(
    creation,
    /not valid \(line 3, column \d+: expected [^)]+\); it is not known whether the pet was stored\.$/,
  )
})

test('keeps an edit that is saved while room is made for the closing brackets', async (t) => {
  const path = makeDataFile(`{"pets":[${petLine(1, 'Rex')}]}`)
  const gate = createSyncGate()
  const { store } = await openStore(t, path, gate.fileSystem)
  gate.hold()
  const creation = store.create(newPet('Kit'))
  await gate.reached
  const saved = [petLine(1, 'Max'), petLine(2, 'Mia'), petLine(3, 'Sam')]
  nodeFs.writeFileSync(path, `{"pets":[${saved.join()}]}`)
  gate.open()
  assert.equal((await creation).id, 4)
  assert.deepEqual(
    store.list({ limit: 100 }).pets.map(({ name }) => name),
    ['Max', 'Mia', 'Sam', 'Kit'],
  )
  const { pets } = JSON.parse(nodeFs.readFileSync(path, 'utf8'))
  assert.equal(pets.length, 4)
})

test('says that it cannot open when an edit was put back, and its folder cannot be synced', async () => {
  const path = makeDataFile('{"pets":[{"name":"Rex","categoryId":1}]}')
  const saved = '{"pets":[{"name":"Maximilian","categoryId":1}]}'
  let isSaved = false
  const fileSystem = watchFileSystem({
    before({ name }) {
      // The editor saves between the look at the file and the rename.
      if (name === 'renameSync') nodeFs.writeFileSync(path, saved)
      isSaved ||= name === 'renameSync'
      if (name === 'fsync' && isSaved) throw systemError('EIO')
    },
  })
  await assert.rejects(
    openFileStore(path, { fileSystem }),
    /cannot be opened or created: .*i\/o error \(EIO\)$/,
  )
  assert.equal(nodeFs.readFileSync(path, 'utf8'), saved)
})

// As Node reports it, which has no name for this error.
const quotaError = Object.assign(new Error('write'), {
  code: `Unknown system error -${constants.errno.EDQUOT}`,
  errno: -constants.errno.EDQUOT,
})
for (const [what, error, words] of [
  ['the quota is exceeded', quotaError, 'disk quota exceeded (EDQUOT)'],
  ['the file may not grow', systemError('EFBIG'), 'file too large (EFBIG)'],
] as const)
  test(`answers 507, and says that there is too little room, when ${what}`, async (t) => {
    const path = makeDataFile([petLine(1, 'Rex')])
    let isOver = false
    const fileSystem = watchFileSystem({
      before({ name }) {
        if (isOver && name === 'writeSync') throw error
      },
    })
    const said = new Lines()
    const store = await openFileStore(path, { fileSystem, onMessage: said.say })
    t.after(() => store.close())
    isOver = true
    await assert.rejects(
      store.create(newPet('a')),
      (refusal) => refusal instanceof PetStoreError && refusal.code === 'insufficient_storage',
    )
    assert.ok(said[0]?.includes(`has too little room: ${words}; pets that do not fit`), said.join())
  })

test('answers 507 when there is no room for a pet, for whichever reason, and 503 when the disk fails', async (t) => {
  const expected = {
    ENOSPC: 'insufficient_storage',
    EDQUOT: 'insufficient_storage',
    EFBIG: 'insufficient_storage',
    EIO: 'storage_failed',
    EROFS: 'storage_failed',
  }
  const disk = new FaultyDisk()
  const path = makeDataFile([petLine(1, 'Rex')])
  const { store } = await openStore(t, path, disk.fileSystem)
  const codes: [string, string][] = []
  for (const code of Object.keys(expected)) {
    disk.arm({ name: 'writeSync', from: 1, isLasting: false, code })
    const refusal: unknown = await store.create(newPet('a')).catch((error: unknown) => error)
    assert.ok(refusal instanceof PetStoreError, String(refusal))
    codes.push([code, refusal.code])
    disk.mend()
    await store.create(newPet(code))
  }
  assert.deepEqual(Object.fromEntries(codes), expected)
})

test('starts after a write that stored only its first bytes, a roll back that did too, and a kill', async () => {
  const folder = makeFastFolder()
  const lengths = Array.from({ length: 60 }, (_, length) => length)
  for (const written of share(lengths, 5)) {
    for (const rolledBack of [-1, ...Array.from({ length: 8 }, (_, length) => length)]) {
      const path = join(folder, `${written}-${rolledBack}.json`)
      nodeFs.writeFileSync(path, lines)
      let limits: number[] = []
      const fileSystem = watchFileSystem({
        before({ name, args: [descriptor, bytes, offset, , position] }) {
          if (limits.length === 0) return undefined
          if (name === 'ftruncateSync' && limits.at(-1) === -1) throw systemError('EIO')
          if (name !== 'writeSync' || !(bytes instanceof Uint8Array)) return undefined
          const limit = limits.length > 1 ? limits.shift() : limits[0]
          nodeFs.writeSync(
            Number(descriptor),
            bytes,
            Number(offset),
            Math.max(0, limit ?? 0),
            Number(position),
          )
          throw systemError('EIO')
        },
      })
      const store = await openFileStore(path, { fileSystem })
      limits = [written, rolledBack]
      assert.deepEqual(await createAll(store, ['Kit']), [])
      const killed = `${path}.killed`
      nodeFs.copyFileSync(path, killed)
      makeOld(killed)
      limits = []
      await store.close()
      const again = await openFileStore(killed)
      assert.deepEqual(namesIn(again), ['Rex', 'Mia'], `${written} ${rolledBack}`)
      await again.close()
    }
  }
})

/**
 * A sync of an edit that fails: Linux marks the bytes as written although the disk does not have them, and the next sync of the same
 * file succeeds. `lost` has the inodes of such files.
 */
function forgetFailedSyncs(path: string): {
  fileSystem: FileSystem
  lost: Set<number>
  fail: (isFailing: boolean) => void
} {
  const lost = new Set<number>()
  let isFailing = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (!isFailing || (name !== 'fdatasync' && name !== 'fsync')) return
      if (place === path) lost.add(nodeFs.statSync(path).ino)
      throw systemError('EIO')
    },
  })
  return {
    fileSystem,
    lost,
    fail(value) {
      isFailing = value
    },
  }
}

test('writes an edit anew whose sync has failed, before a pet is acknowledged on top of it', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const { fileSystem, lost, fail } = forgetFailedSyncs(path)
  const { store } = await openStore(t, path, fileSystem)
  fail(true)
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Max')))
  for (let i = 0; i < 3; i++) assert.deepEqual(await createAll(store, ['refused']), [])
  fail(false)
  assert.ok(lost.has(nodeFs.statSync(path).ino))
  assert.equal((await createAll(store, ['Kit'])).length, 1)
  assert.equal(lost.has(nodeFs.statSync(path).ino), false, 'the file is another one')
  assert.deepEqual(namesInFile(path), ['Max', 'Kit'])
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
  const { ino } = nodeFs.statSync(path)
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Moritz')))
  assert.equal((await createAll(store, ['Kim'])).length, 1)
  assert.equal(nodeFs.statSync(path).ino, ino, 'the next edit is not written anew')
})

test('writes the file anew when its sync fails at the start', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const { ino } = nodeFs.statSync(path)
  const disk = new FaultyDisk()
  disk.arm(failingSync)
  const { store } = await openStore(t, path, disk.fileSystem)
  assert.notEqual(nodeFs.statSync(path).ino, ino)
  assert.equal((await createAll(store, ['Kit'])).length, 1)
  assert.deepEqual(namesInFile(path), ['Rex', 'Kit'])
})

test('keeps a torn end also when the repaired file cannot be synced, and starts the next time', async (t) => {
  const torn = `${lines.slice(0, -7)},\n    {"id":3,"name":"Cut o`
  const path = makeDataFile(torn)
  const disk = new FaultyDisk()
  // The torn end and its folder are synced, and the new file; then the folder again, which has its name by now.
  disk.arm({ name: 'fsync', from: 4, isLasting: true, code: 'EIO' })
  await assert.rejects(openFileStore(path, { fileSystem: disk.fileSystem }), /i\/o error \(EIO\)$/)
  const { store } = await openStore(t, path)
  assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
  const names = nodeFs.readdirSync(dirname(path)).filter((name) => name.includes('.torn-'))
  const kept = names.map((name) => nodeFs.readFileSync(join(dirname(path), name), 'utf8'))
  assert.ok(kept.includes(',\n    {"id":3,"name":"Cut o'), kept.join('\n'))
})

test('keeps a torn end whose file somebody saves while it is being repaired', async (t) => {
  const path = makeDataFile(`${lines.slice(0, -7)},\n    {"id":3,"name":"Cut o`)
  const fileSystem = watchFileSystem({
    // An editor that has read the whole pets of the torn file saves them between the look at the file and the rename.
    before({ name, args: [from] }) {
      if (name === 'renameSync' && from === path) nodeFs.writeFileSync(path, lines)
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  assert.deepEqual(namesIn(store), ['Rex', 'Mia'])
  const names = nodeFs.readdirSync(dirname(path)).filter((name) => name.includes('.torn-'))
  const kept = names.map((name) => nodeFs.readFileSync(join(dirname(path), name), 'utf8'))
  assert.deepEqual(kept, [',\n    {"id":3,"name":"Cut o'])
})

test('keeps an edit refused whose sync has failed while it cannot be written anew', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const { fileSystem, fail } = forgetFailedSyncs(path)
  let isMounted = true
  const store = await openFileStore(path, {
    fileSystem: new Proxy(fileSystem, {
      get: (target, name: 'renameSync') =>
        name === 'renameSync' && isMounted
          ? () => {
              throw systemError('EBUSY')
            }
          : target[name],
    }),
  })
  t.after(() => store.close())
  fail(true)
  const text = formatDataFile(petLine(1, 'Max'))
  nodeFs.writeFileSync(path, text)
  const refuse = (): Promise<void> => assert.rejects(store.create(newPet('refused')), PetStoreError)
  await refuse()
  fail(false)
  for (let i = 0; i < 3; i++) await refuse()
  assert.equal(nodeFs.readFileSync(path, 'utf8'), text)
  isMounted = false
  nodeFs.utimesSync(path, 1, 1)
  assert.equal((await store.create(newPet('Kit'))).name, 'Kit')
})

test('serves a file on a file system that has become read-only', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  const fileSystem = watchFileSystem({
    before({ name, args: [, flags] }) {
      const writes = ['fdatasync', 'fsync', 'writeSync', 'linkSync', 'renameSync', 'unlinkSync', 'accessSync']
      if (
        writes.includes(name) ||
        (name === 'openSync' && String(flags) !== 'r' && Number.isNaN(Number(flags)))
      )
        throw systemError('EROFS')
    },
  })
  const { store, lines: said } = await openStore(t, path, fileSystem)
  assert.deepEqual(namesIn(store), ['Rex'])
  assert.deepEqual(
    [...said],
    [`${path}: cannot be written: read-only file system (EROFS); pets can be listed, but not added`],
  )
  await assert.rejects(store.create(newPet('Mia')), /nothing was stored\.$/)
  assert.deepEqual(namesIn(store), ['Rex'])
})

test('says that a folder that cannot be written keeps it from a rewrite, for whichever reason', async (t) => {
  for (const code of ['EACCES', 'EPERM', 'EROFS']) {
    const path = makeDataFile([petLine(1, 'Rex')])
    const fileSystem = watchFileSystem({
      before({ name }) {
        if (name === 'linkSync' || name === 'renameSync' || name === 'accessSync') throw systemError(code)
      },
    })
    const { store, lines: said } = await openStore(t, path, fileSystem)
    nodeFs.writeFileSync(path, '{"pets":[{"name":"Mia","categoryId":1}]}')
    await assert.rejects(store.create(newPet('Kit')), PetStoreError)
    const why = 'has to be rewritten, but it or its folder cannot be written: '
    assert.ok(said.at(-1)?.startsWith(`${path}: ${why}`), said.at(-1))
    assert.ok(said.at(-1)?.includes(`(${code});`), said.at(-1))
  }
})

test('reads a file again that was away when it was to be synced, and does not write it anew', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  let isAway = false
  const fileSystem = watchFileSystem({
    before({ name, args: [, flags] }) {
      if (!isAway || name !== 'openSync' || flags !== 'r') return
      isAway = false
      throw systemError('ENOENT')
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  isAway = true
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Max')))
  const { ino } = nodeFs.statSync(path)
  await store.create(newPet('Kit'))
  assert.deepEqual(namesIn(store), ['Max', 'Kit'])
  assert.equal(nodeFs.statSync(path).ino, ino)
})

test('serves an edit whose sync takes longer than it waits for a save', async (t) => {
  countTime(t, 0)
  const path = makeDataFile([petLine(1, 'Rex')])
  let now = 0
  t.mock.method(clock, 'performanceNow', () => now)
  let isArmed = false
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (isArmed && name === 'fdatasync') now += 1_700
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  isArmed = true
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Max')))
  assert.equal((await store.create(newPet('Kit'))).id, 2)
  assert.deepEqual(namesIn(store), ['Max', 'Kit'])
})

test('goes on when a write stores nothing at all', async (t) => {
  const path = makeDataFile([petLine(1, 'Rex')])
  let isStuck = false
  const fileSystem = watchFileSystem({
    before: ({ name }) => (isStuck && name === 'writeSync' ? 0 : undefined),
  })
  const { store } = await openStore(t, path, fileSystem)
  isStuck = true
  await assert.rejects(store.create(newPet('refused')), PetStoreError)
  isStuck = false
  assert.equal((await createAll(store, ['Mia'])).length, 1)
  assert.deepEqual(namesInFile(path), ['Rex', 'Mia'])
})

test("leaves a person's closing brackets valid while the disk has no room for ours", async (t) => {
  const path = makeDataFile(`{"pets":[${petLine(1, 'Rex')}]}`)
  let isFull = false
  const fileSystem = watchFileSystem({
    before({ name, args: [descriptor, bytes, offset, length, position] }) {
      if (!isFull || name !== 'writeSync' || !(bytes instanceof Uint8Array)) return undefined
      // Whatever is within the file has its room, and one byte beyond it.
      const room = nodeFs.statSync(path).size + 1 - Number(position)
      if (Number(length) <= room) return undefined
      if (room > 0) nodeFs.writeSync(Number(descriptor), bytes, Number(offset), room, Number(position))
      throw systemError('ENOSPC')
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  isFull = true
  for (let i = 0; i < 3; i++) {
    await assert.rejects(store.create(newPet('refused')), /There is no room left; nothing was stored\.$/)
    assert.deepEqual(namesInFile(path), ['Rex'])
  }
  isFull = false
  assert.equal((await createAll(store, ['Mia'])).length, 1)
  assert.deepEqual(namesInFile(path), ['Rex', 'Mia'])
})

test('answers 507 while a real disk is full, keeps every pet, and goes on when there is room', async (t) => {
  const folder = mountSmallDisk(t)
  if (folder === undefined) return
  const dataFile = join(folder, 'pets.json')
  nodeFs.writeFileSync(dataFile, '{"pets":[]}')
  const { send, server, lines: said } = await startApp(t, { dataFile })
  const ballast = join(folder, 'ballast')
  fill(ballast)
  let count = 0
  const body = { name: 'x'.repeat(1000), categoryId: 1 }
  for (;;) {
    const answer = await send('/v1/pets', { body })
    if (answer.status !== 201) {
      assert.match(assertRefusal(answer, 507, 'insufficient_storage'), /no room/)
      break
    }
    count++
  }
  const total = (await send('/v1/pets')).headers.get('x-total-count')
  assert.equal(total, String(count))
  // What fits into the last page still fits.
  const small = await send('/v1/pets', { body: { name: '', categoryId: 1 } })
  if (small.status === 201) count++
  assert.equal(JSON.parse(nodeFs.readFileSync(dataFile, 'utf8')).pets.length, count)
  nodeFs.rmSync(ballast)
  const next = await send('/v1/pets', { body })
  // The ids of pets of which the beginning was written are not given again.
  const [, id] = /^\/v1\/pets\/(\d+)$/.exec(next.headers.get('location') ?? '') ?? []
  assert.ok(Number(id) > count, `${id}`)
  assert.match(
    said.join('\n'),
    /has too little room: no space left on device \(ENOSPC\); pets that do not fit are refused[^]*can be used again/,
  )
  assert.deepEqual(listFolder(folder), ['pets.json'])
  await server.close()
})

/** Mounts a file system of 256 KiB, gone after the test; undefined, and the test skipped, where that cannot be done. */
function mountSmallDisk(t: TestContext): string | undefined {
  const folder = nodeFs.mkdtempSync(join(tmpdir(), 'petstore-'))
  const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'petstore-test', folder])
  t.after(() => {
    if (mount.status === 0) spawnSync('umount', ['-l', folder])
    nodeFs.rmSync(folder, { recursive: true, force: true })
  })
  if (mount.status === 0) return folder
  t.skip('a small disk can be mounted on Linux as root alone')
  return undefined
}

/** Takes the room but for a few pages. */
function fill(path: string): void {
  nodeFs.writeFileSync(path, Buffer.alloc(224 * 1024))
}

test('takes only what the file system throws for a failure of the disk, and a bug for a bug', async (t) => {
  const look = holdLooks(t)
  const path = makeDataFile([petLine(1, 'Rex')])
  let isBroken = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (isBroken && place === path && (name === 'writeSync' || name === 'readFileSync'))
        throw Object.assign(new TypeError('a bug'), { code: 'ERR_INVALID_ARG_TYPE' })
    },
  })
  const said = new Lines()
  const bugs = new Lines()
  const store = await openFileStore(path, { fileSystem, onMessage: said.say, onError: bugs.say })
  t.after(() => store.close())
  isBroken = true
  await assert.rejects(store.create(newPet('Mia')), TypeError)
  assert.deepEqual(namesIn(store), ['Rex'])
  nodeFs.writeFileSync(path, formatDataFile(petLine(1, 'Max')))
  look(1000)
  assert.equal(await bugs.next(/./), 'internal_error in a look at the data file: ERR_INVALID_ARG_TYPE')
  assert.equal(said.filter((line) => line.includes('cannot be used')).length, 0)
  isBroken = false
  assert.equal((await store.create(newPet('Kit'))).id, 2)
  assert.deepEqual(namesInFile(path), ['Max', 'Kit'])
})

test('says in one sentence that no folder can be made, up to the topmost', async () => {
  // As on Windows for a drive that is not there: even its topmost folder is missing.
  const fileSystem: FileSystem = new Proxy(nodeFs, {
    get(target, name: 'statSync' | 'mkdirSync') {
      if (name === 'statSync') return () => undefined
      if (name !== 'mkdirSync') return target[name]
      return () => {
        throw systemError('ENOENT')
      }
    },
  })
  await assert.rejects(openFileStore('/nowhere/data/pets.json', { fileSystem }), {
    message: '/nowhere/data/pets.json: cannot be opened or created: no such file or directory (ENOENT)',
  })
})

test('makes each call fail that the program has made in the tests of this file, and no other', () => {
  assert.deepEqual([...called].toSorted(), [...everyCall].toSorted())
})

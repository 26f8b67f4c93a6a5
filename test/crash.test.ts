/**
 * Crashes by enumeration, as ALICE and SQLite's crash tests do. What a workload does to the disk is recorded, and cut
 * after each operation. What was not synced by then is lost, kept, or kept in part: each sector of a file is as it was
 * after any of the unsynced operations, its length too or at any byte between, and each unsynced name is there or not.
 * Whatever is left must open with every acknowledged pet, and take the next. (One kind of file may be refused; see `Refusable`.)
 */
import assert from 'node:assert/strict'
import nodeFs, { constants } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { parseUsableFileText } from '../src/data-file/file-text.ts'
import type { Pet } from '../src/options/types.ts'
import { openFileStore, type FileStore } from '../src/store/file-store.ts'
import {
  Lines,
  makeFastFolder,
  newPet,
  petLine,
  systemError,
  watchFileSystem,
  type Call,
} from './file-system.ts'
import { createRandom, formatDataFile, isThorough, makeOld, share, listFolder } from './support.ts'

const sectorBytes = 512
let stateCount = 0
let refusedCount = 0
// `npm test` opens one state in forty, the same ones in each run.
const random = createRandom(20301205)
const isInShare = (): boolean => isThorough || random(40) === 0

/** What happened, in order. Files are numbered, since a rename moves them; `since` is where a sync began. */
type Entry =
  | { readonly kind: 'write'; readonly file: number; readonly position: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly file: number; readonly length: number }
  | { readonly kind: 'name'; readonly names: ReadonlyMap<string, number | undefined> }
  | { readonly kind: 'sync'; readonly target: number | string; readonly since: number }
  | { readonly kind: 'acknowledged'; readonly pet: Pet }
  /** It was said where the pets are kept. */
  | { readonly kind: 'kept' }

/** A folder stands among the names under this number. */
const folderNumber = -1

interface Recording {
  readonly entries: Entry[]
  readonly files: Buffer[]
  readonly names: Map<string, number>
}

/** Runs a workload on a data file in a new folder; `text` undefined is no file, and no folder either. */
async function record(
  text: string | undefined,
  work: (recorder: Recorder) => Promise<void>,
): Promise<Recording> {
  const recorder = new Recorder(makeFastFolder(), text)
  await work(recorder)
  // The program may swallow an error of a call, so they are noted, and not thrown.
  assert.deepEqual([...recorder.unknownCalls], [], 'these calls are not modelled')
  return recorder
}

const modelledFlags = new Set<unknown>(['r', 'r+', 'wx', constants.O_RDONLY | constants.O_NONBLOCK])

/** These calls leave nothing that a crash could lose. */
const withoutTrace = new Set<string>([
  'accessSync',
  'closeSync',
  'fchmodSync',
  'fchownSync',
  'fstatSync',
  'lstatSync',
  'readFileSync',
  'readSync',
  'readdirSync',
  'realpathSync',
  'statSync',
  'statfsSync',
])

class Recorder implements Recording {
  /** What the program has called, and no state after a crash takes into account. */
  readonly unknownCalls = new Set<string>()
  readonly root: string
  readonly path: string
  readonly entries: Entry[] = []
  readonly files: Buffer[] = []
  readonly names = new Map<string, number>()
  readonly #current = new Map<string, number>()
  readonly #opened = new Map<unknown, number | string>()
  readonly #syncing = new Map<unknown, number>()
  /** Called before each call, to make it fail. */
  fault: (call: Call) => void = () => {}

  constructor(root: string, text: string | undefined) {
    this.root = root
    this.path = join(root, 'data/pets.json')
    if (text === undefined) return
    nodeFs.mkdirSync(dirname(this.path))
    nodeFs.writeFileSync(this.path, text)
    this.names.set('data', folderNumber).set('data/pets.json', 0)
    for (const [name, file] of this.names) this.#current.set(name, file)
    this.files.push(Buffer.from(text))
  }

  readonly fileSystem = watchFileSystem({
    before: (call) => {
      this.fault(call)
      if (call.name === 'fsync' || call.name === 'fdatasync')
        this.#syncing.set(call.args[1], this.entries.length)
    },
    after: (call, result) => this.#add(call, result),
  })

  open(): Promise<FileStore> {
    return openFileStore(this.path, { fileSystem: this.fileSystem })
  }

  /** Creates these at once, so that they are one batch. */
  async create(store: FileStore, ...names: readonly string[]): Promise<void> {
    await Promise.allSettled(
      names.map(async (name) => {
        const pet = await store.create(newPet(name))
        this.entries.push({ kind: 'acknowledged', pet })
      }),
    )
  }

  /** What a person's editor does: it syncs the file that it renames, but not the folder. */
  async edit(text: string): Promise<void> {
    const fs = this.fileSystem
    const temporary = `${this.path}.editor`
    const descriptor = fs.openSync(temporary, 'wx')
    fs.writeSync(descriptor, Buffer.from(text), 0, Buffer.byteLength(text), 0)
    await new Promise((done) => {
      fs.fsync(descriptor, done)
    })
    fs.closeSync(descriptor)
    fs.renameSync(temporary, this.path)
  }

  /** What a person's copy does that goes into the file in place. */
  overwrite(text: string): void {
    const fs = this.fileSystem
    const descriptor = fs.openSync(this.path, 'r+')
    fs.ftruncateSync(descriptor, 0)
    fs.writeSync(descriptor, Buffer.from(text), 0, Buffer.byteLength(text), 0)
    fs.closeSync(descriptor)
  }

  #add({ name, args, path }: Call, result: unknown): void {
    const place = relative(this.root, path)
    const [first, second, third, fourth, fifth] = args
    const file = this.#opened.get(first)
    if (name === 'openSync') {
      // On macOS and the BSDs, the lock is a file, in which nothing is ever written.
      if (!modelledFlags.has(second) && !place.endsWith('.petstore-lock'))
        this.unknownCalls.add(`openSync with ${String(second)}`)
      let opened: number | string = this.#current.get(place) ?? place
      if (second === 'wx') {
        opened = this.files.push(Buffer.alloc(0)) - 1
        this.#rename([place, opened])
      }
      this.#opened.set(result, opened === folderNumber ? place : opened)
    } else if (name === 'writeSync' && typeof file === 'number' && second instanceof Uint8Array) {
      const bytes = Buffer.from(second.slice(Number(third), Number(third) + Number(result)))
      assert.ok(Number(fourth) >= bytes.length)
      this.entries.push({ kind: 'write', file, position: Number(fifth), bytes })
    } else if (name === 'ftruncateSync' && typeof file === 'number') {
      this.entries.push({ kind: 'truncate', file, length: Number(second) })
    } else if (name === 'renameSync') {
      const to = relative(this.root, String(second))
      this.#rename([place, undefined], [to, this.#current.get(place)])
    } else if (name === 'linkSync') {
      this.#rename([relative(this.root, String(second)), this.#current.get(place)])
    } else if (name === 'unlinkSync') {
      this.#rename([place, undefined])
    } else if (name === 'mkdirSync') {
      this.#rename([place, folderNumber])
    } else if ((name === 'fsync' || name === 'fdatasync') && file !== undefined) {
      this.entries.push({ kind: 'sync', target: file, since: this.#syncing.get(second) ?? 0 })
    } else if (!withoutTrace.has(name)) this.unknownCalls.add(name)
  }

  #rename(...names: readonly (readonly [string, number | undefined])[]): void {
    this.entries.push({ kind: 'name', names: new Map(names) })
    for (const [name, file] of names) {
      if (file === undefined) this.#current.delete(name)
      else this.#current.set(name, file)
    }
  }
}

/** What a crash can leave in the folder. */
type State = ReadonlyMap<string, Buffer | undefined>

/** The states after a crash behind the first `length` entries. */
function* crash({ entries, files, names }: Recording, length: number): Generator<State> {
  const before = entries.slice(0, length)
  const isSynced = (target: number | string, index: number): boolean =>
    before.some((entry) => entry.kind === 'sync' && entry.target === target && entry.since > index)

  const durable = new Map<string, number | undefined>(names)
  const loose: (readonly [string, number | undefined])[][] = []
  for (const [index, entry] of before.entries()) {
    if (entry.kind !== 'name') continue
    const [name = ''] = entry.names.keys()
    const folder = dirname(name) === '.' ? '' : dirname(name)
    if (isSynced(folder, index)) for (const [key, file] of entry.names) durable.set(key, file)
    else loose.push([...entry.names])
  }
  const versions = files.map((first, file) => {
    const list = [first]
    for (const [index, entry] of before.entries()) {
      if ((entry.kind !== 'write' && entry.kind !== 'truncate') || entry.file !== file) continue
      const next = apply(list.at(-1) ?? first, entry)
      if (isSynced(file, index)) list.length = 0
      list.push(next)
    }
    return list
  })
  for (let kept = 0; kept < 2 ** loose.length; kept++) {
    const left = new Map(durable)
    for (const [index, changes] of loose.entries()) {
      if ((kept >> index) & 1) for (const [name, file] of changes) left.set(name, file)
    }
    const state = new Map<string, Buffer | undefined>()
    for (const [name, file] of left) {
      const folder = dirname(name)
      const hasFolder = folder === '.' || left.get(folder) === folderNumber
      if (file === undefined || !hasFolder) continue
      state.set(name, file === folderNumber ? undefined : versions[file]?.at(-1))
    }
    const main = left.get('data/pets.json')
    const list = main === undefined ? undefined : versions[main]
    if (list === undefined || !state.has('data/pets.json')) yield state
    else for (const bytes of mix(list)) yield new Map([...state, ['data/pets.json', bytes]])
  }
}

function apply(bytes: Buffer, entry: Entry & { kind: 'write' | 'truncate' }): Buffer {
  const end = entry.kind === 'write' ? entry.position + entry.bytes.length : entry.length
  const next = Buffer.alloc(entry.kind === 'write' ? Math.max(bytes.length, end) : end)
  bytes.copy(next)
  if (entry.kind === 'write') entry.bytes.copy(next, entry.position)
  return next
}

/** Files whose sectors are each from one of the versions, and whose length is one of theirs or between. */
function* mix(versions: readonly Buffer[]): Generator<Buffer> {
  for (const length of lengths(versions)) {
    const padded = versions.map((version) => {
      const bytes = Buffer.alloc(length)
      version.copy(bytes)
      return bytes
    })
    const [first = Buffer.alloc(0)] = padded
    const choices: { readonly at: number; readonly options: readonly Buffer[] }[] = []
    for (let at = 0; at < length; at += sectorBytes) {
      const sectors = padded.map((bytes) => bytes.subarray(at, at + sectorBytes))
      const options = sectors.filter((sector, index) => sectors.findIndex((s) => s.equals(sector)) === index)
      if (options.length > 1) choices.push({ at, options })
    }
    const count = choices.reduce((product, { options }) => product * options.length, 1)
    // A step that has no divisor in common with the count visits different ones when there are too many.
    const step = count <= 64 ? 1 : 2 * Math.floor(count / 128) + 1
    for (let number = 0; number < count; number += step) {
      const bytes = Buffer.from(first)
      let rest = number
      for (const { at, options } of choices) {
        options[rest % options.length]?.copy(bytes, at)
        rest = Math.floor(rest / options.length)
      }
      yield bytes
    }
  }
}

/** All lengths near the borders of what changed, near those of sectors, and some inside. */
function lengths(versions: readonly Buffer[]): ReadonlySet<number> {
  const all = versions.map((version) => version.length)
  const from = Math.min(...all)
  const to = Math.max(...all)
  const chosen = new Set(all)
  for (let length = from; length < to; length++) {
    const isNear = length - from < 20 || to - length < 20
    const inSector = length % sectorBytes
    if (isNear || inSector < 2 || inSector === sectorBytes - 1 || length % 41 === 0) chosen.add(length)
  }
  return chosen
}

/**
 * A file that a person has closed, and a crash within the first append to it: it begins so, to the end of its last pet, and may be refused,
 * but not be touched.
 */
type Refusable = string | undefined

/** Opens everything that a crash at any point can leave, with the pets that were `kept` before, and adds a pet. */
async function assertSurvives(
  recording: Recording,
  kept: readonly Pet[] = [],
  refusable?: Refusable,
): Promise<void> {
  const seen = new Set<string>()
  const folder = makeFastFolder()
  const acknowledged = [...kept]
  for (let length = 0; length <= recording.entries.length; length++) {
    const entry = recording.entries[length - 1]
    if (entry?.kind === 'acknowledged') acknowledged.push(entry.pet)
    for (const state of crash(recording, length)) {
      const files = [...state].map(([name, bytes]) => `${name} ${bytes?.toString('latin1')}`)
      const key = `${acknowledged.length} ${files.join('\0')}`
      if (seen.has(key)) continue
      seen.add(key)
      if (!isInShare()) continue
      stateCount++
      const isFirstAppend = acknowledged.length === kept.length
      const mayRefuse = isFirstAppend ? refusable : undefined
      await assertOpens(join(folder, String(seen.size)), state, acknowledged, mayRefuse)
    }
  }
  assert.ok(seen.size > 10, 'the workload was recorded')
}

async function assertOpens(
  folder: string,
  state: State,
  acknowledged: readonly Pet[],
  refusable: Refusable,
): Promise<void> {
  nodeFs.mkdirSync(folder)
  for (const [name, bytes] of state) {
    if (bytes === undefined) nodeFs.mkdirSync(join(folder, name))
    else {
      nodeFs.writeFileSync(join(folder, name), bytes)
      makeOld(join(folder, name))
    }
  }
  const path = join(folder, 'data/pets.json')
  // While the file is replaced, it may be aside.
  const before = state.get('data/pets.json') ?? state.get('data/pets.json.petstore-old')
  const lines: string[] = []
  try {
    const store = await openFileStore(path, { onMessage: (line) => lines.push(line) })
    for (const pet of acknowledged) assert.deepEqual(store.get(pet.id), pet)
    const { size } = store
    const next = await store.create(newPet('next'))
    await store.close()
    assert.ok(acknowledged.every(({ id }) => id < next.id))
    const text = nodeFs.readFileSync(path, 'utf8')
    // Written by the store itself, as the assertion after it shows.
    const { pets } = JSON.parse(text) as { pets: Pet[] }
    assert.equal(pets.length, size + 1)
    assert.deepEqual(pets.at(-1), next)
    assert.equal(new Set(pets.map(({ id }) => id)).size, pets.length)
    assertKept(dirname(path), text, before, lines)
    const names = listFolder(dirname(path))
    assert.deepEqual(
      names.filter((name) => name.includes('.petstore-')),
      [],
    )
  } catch (error) {
    if (error instanceof DataFileUnusable && hasHolesAmongPets(before)) {
      refusedCount++
      assert.deepEqual(nodeFs.readFileSync(path), before)
      nodeFs.rmSync(folder, { recursive: true })
      return
    }
    if (refusable !== undefined && error instanceof DataFileUnusable) {
      refusedCount++
      assert.match(error.message, /pets\.json:\d+:\d+: expected /)
      assert.deepEqual(nodeFs.readFileSync(path), before)
      assert.ok(before?.toString('latin1').startsWith(refusable))
      assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
      return
    }
    const text = JSON.stringify(
      before?.toString('latin1').replaceAll(/\0+/g, (run) => `<${run.length} NULs>`),
    )
    throw new Error(`after a crash that left ${[...state.keys()].join()} with ${text}: ${error}`, {
      cause: error,
    })
  }
  nodeFs.rmSync(folder, { recursive: true })
}

const wholePet = /\{"id":\d+,"name":"(?:[^"\\\0]|\\.)*","categoryId":-?\d+,"status":"\w+"\}/g

/** What was taken out stands in a file beside it, one line says so, and no whole pet was taken out. */
function assertKept(
  folder: string,
  text: string,
  before: Buffer | undefined,
  lines: readonly string[],
): void {
  // A rewrite that was interrupted is undone or finished, which loses nothing.
  // Nor does a file that gets its closing brackets back.
  const lossless = /: restored: a crash had interrupted|: repaired: its closing brackets were missing$/
  const repairs = lines.filter((line) => !lossless.test(line))
  if (repairs.length === 0) return
  const [line = ''] = repairs
  const [, count, name = ''] = /repaired: .*; (\d+) damaged bytes are kept in (\S+); \S.*$/.exec(line) ?? []
  assert.equal(repairs.length, 1, lines.join('\n'))
  const kept = nodeFs.readFileSync(join(folder, basename(name)))
  assert.equal(kept.length, Number(count))
  const damaged = before?.toString('latin1') ?? ''
  const taken = kept.toString('latin1')
  // A hole, and an end that was cut off, may be two parts.
  const parts = Array.from(taken, (_, at) => [taken.slice(0, at), taken.slice(at)] as const)
  const isOnePart = damaged.includes(taken)
  assert.ok(isOnePart || parts.some(([first, second]) => damaged.includes(first) && damaged.endsWith(second)))
  for (const [pet] of damaged.matchAll(wholePet))
    assert.ok(Buffer.from(text).toString('latin1').includes(pet), `${pet} was taken out`)
}

/** Holes in an append that was not confirmed look like holes in pets that were. Beside whole pets, more than one is not repaired. */
function hasHolesAmongPets(before: Buffer | undefined): boolean {
  const text = before?.toString('latin1') ?? ''
  const holes = [...text.matchAll(/\0+/g)]
  const [first] = holes
  return first !== undefined && holes.length > 1 && wholePetBehind(text, first.index)
}

function wholePetBehind(text: string, at: number): boolean {
  return [...text.matchAll(wholePet)].some(({ index }) => index > at)
}

const canonical = formatDataFile(petLine(1, 'Rex'), petLine(2, 'Mia'))

test('loses no acknowledged pet by a crash between and within appends', async () => {
  const recording = await record(canonical, async (recorder) => {
    const store = await recorder.open()
    for (let i = 0; i < 12; i++) await recorder.create(store, `pet number ${i} "ä\\ö🐕"`)
    await store.close()
  })
  await assertSurvives(recording)
})

test('loses no acknowledged pet by a crash within a batch over many sectors', async () => {
  const recording = await record(canonical, async (recorder) => {
    const store = await recorder.open()
    await recorder.create(store, 'one')
    await recorder.create(store, ...Array.from({ length: 6 }, (_, i) => `${i}${'long '.repeat(60)}`))
    await recorder.create(store, ...Array.from({ length: 20 }, (_, i) => `short ${i}`))
    await recorder.create(store, '}\n  ]\n}\n')
    await store.close()
  })
  await assertSurvives(recording)
})

test('heals wherever the border of a sector falls within the append', async () => {
  const shifts = Array.from({ length: 24 }, (_, shift) => shift)
  for (const shift of share(shifts, 8)) {
    const text = formatDataFile(petLine(1, 'x'.repeat(sectorBytes - 95 + shift)))
    const recording = await record(text, async (recorder) => {
      const store = await recorder.open()
      await recorder.create(store, 'Rex', 'Mia')
      await store.close()
    })
    await assertSurvives(recording)
  }
})

test('loses no acknowledged pet by a crash around the first creation', async () => {
  for (const text of [undefined, '{"pets":[]}', '{\n  "pets": [\n  ]\n}\n', '{"pets":[\r\n  ]\r\n}\r\n']) {
    const recording = await record(text, async (recorder) => {
      const store = await recorder.open()
      await recorder.create(store, 'first')
      await recorder.create(store, 'second', 'third')
      await store.close()
    })
    // With fewer than 7 bytes after the `[`, it could as well be a save that was stopped.
    await assertSurvives(recording, [], text === '{"pets":[]}' ? '{"pets":[' : undefined)
  }
})

test('loses no acknowledged pet by a crash while ids are given', async () => {
  const text = '{"pets":[{"name":"Rex","categoryId":1},{"id":7,"name":"Mia","categoryId":2}]}'
  const recording = await record(text, async (recorder) => {
    const store = await recorder.open()
    await recorder.create(store, 'first')
    await recorder.create(store, 'second')
    await store.close()
  })
  await assertSurvives(recording, [{ id: 7, name: 'Mia', categoryId: 2, status: 'available' }])
})

test('loses no pet by a crash while pets are appended to a file that a person has laid out, wherever a sector ends', async () => {
  const rex: Pet = { id: 1, ...newPet('Rex') }
  const ends = [']}', '\n]}\n', '\r\n\t]\r\n}\r\n', `${'\n'.repeat(200)}]\n}${'\n'.repeat(200)}`]
  const cases = ends.flatMap((end) =>
    [0, 1, 2, 3, 8, 100, 250].flatMap((bytes) => [
      { end, border: Math.min(bytes, end.length) },
      { end, border: end.length + bytes },
    ]),
  )
  for (const { end, border } of share(cases, 12)) {
    const start = `{"pets":[${petLine(1, 'Rex')}`
    const head = `{${' '.repeat(2 * sectorBytes - border - start.length)}${start.slice(1)}`
    const text = head + end
    const recording = await record(text, async (recorder) => {
      const store = await recorder.open()
      await recorder.create(store, 'first')
      await recorder.create(store, 'second', 'third')
      await store.close()
    })
    const isCrossed = border > 0 && border <= end.length
    await assertSurvives(recording, [rex], isCrossed ? head : undefined)
  }
})

test('loses no pet that was acknowledged after a rename that nobody synced', async () => {
  const recording = await record(canonical, async (recorder) => {
    const store = await recorder.open()
    await recorder.create(store, 'third')
    const edited = nodeFs.readFileSync(recorder.path, 'utf8').replace('Rex', 'Max')
    await recorder.edit(edited)
    await recorder.create(store, 'after the edit')
    await store.close()
  })
  await assertSurvives(recording)
})

test('loses no acknowledged pet by a crash after a failed append was taken back', async () => {
  const recording = await record(canonical, async (recorder) => {
    const store = await recorder.open()
    await recorder.create(store, 'third')
    for (const failures of [1, 2, 3]) {
      let left = failures
      recorder.fault = ({ name }) => {
        if (name === 'fdatasync' && left-- > 0) throw systemError('EIO')
      }
      await recorder.create(store, 'refused, and longer than the one that follows')
      await recorder.create(store, 'accepted')
    }
    await store.close()
  })
  assert.equal(recording.entries.filter(({ kind }) => kind === 'acknowledged').length >= 2, true)
  await assertSurvives(recording)
})

test('heals again when it crashes while it heals', async () => {
  const torn = `${canonical.slice(0, -7)},\n    {"id":3,"name":"Cut o`
  const recording = await record(torn, async (recorder) => {
    const store = await recorder.open()
    await recorder.create(store, 'third')
    await store.close()
  })
  await assertSurvives(recording)
})

test('loses no pet by a crash after a save was cut off, from when it was said where the pets are kept', async () => {
  for (const cut of [1, 40, canonical.length - 8]) {
    const recording = await record(canonical, async (recorder) => {
      const lines = new Lines()
      const options = { fileSystem: recorder.fileSystem, onMessage: lines.say }
      const store = await openFileStore(recorder.path, options)
      await recorder.create(store, 'third')
      const whole = nodeFs.readFileSync(recorder.path, 'utf8')
      recorder.overwrite(whole.slice(0, cut))
      await lines.next(/are kept in/)
      recorder.entries.push({ kind: 'kept' })
      recorder.overwrite(whole)
      await lines.next(/^reloaded/)
      await store.close()
    })
    await assertKeeps(recording)
  }
})

/** Whatever a crash leaves from that moment on either opens with every acknowledged pet, or is refused beside a file that has them. */
async function assertKeeps(recording: Recording): Promise<void> {
  const { entries } = recording
  const acknowledged = entries.flatMap((entry) => (entry.kind === 'acknowledged' ? [entry.pet] : []))
  const folder = makeFastFolder()
  let count = 0
  for (
    let length = entries.findIndex(({ kind }) => kind === 'kept') + 1;
    length <= entries.length;
    length++
  ) {
    for (const state of crash(recording, length)) {
      if (!isInShare()) continue
      stateCount++
      const path = join(folder, String(count++), 'data/pets.json')
      nodeFs.mkdirSync(dirname(path), { recursive: true })
      for (const [name, bytes] of state) {
        if (bytes === undefined) continue
        nodeFs.writeFileSync(join(dirname(dirname(path)), name), bytes)
        makeOld(join(dirname(dirname(path)), name))
      }
      const pets = await openFileStore(path).then(
        async (store) => {
          await store.close()
          return store.list({ limit: 100 }).pets
        },
        (error: unknown) => {
          assert.ok(error instanceof DataFileUnusable, String(error))
          refusedCount++
          const kept = nodeFs.readdirSync(dirname(path)).find((name) => name.includes('.kept-')) ?? 'none'
          assert.ok(error.message.includes(kept), error.message)
          return parseUsableFileText(kept, nodeFs.readFileSync(join(dirname(path), kept))).pets
        },
      )
      for (const pet of acknowledged)
        assert.deepEqual(
          pets.find(({ id }) => id === pet.id),
          pet,
        )
      assert.equal(pets.length, 2 + acknowledged.length)
    }
  }
  assert.ok(count > 1)
}

test('has opened states that are served, and states that are refused', (t) => {
  t.diagnostic(`${stateCount} states after a crash were opened, of which ${refusedCount} were refused`)
  assert.ok(refusedCount > 0 && refusedCount < stateCount, `${refusedCount} of ${stateCount}`)
})

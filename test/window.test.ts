/**
 * Somebody changes the data file in the moment between two system calls of the store. The store is stopped before each call that it makes
 * for an append, a rollback, a rewrite and a start; there the file is changed, and the store goes on until its next look at the file has
 * ended. Then the process is killed and started again. No confirmed pet is lost unless a valid edit has removed it, what was saved by
 * rename is served, and what was saved in place is served or told as damaged.
 */
import assert from 'node:assert/strict'
import nodeFs from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import { parseUsableFileText } from '../src/data-file/file-text.ts'
import type { Pet } from '../src/options/types.ts'
import { openFileStore, type FileStore } from '../src/store/file-store.ts'
import { clock } from '../src/system/clock.ts'
import {
  isValidFile,
  Lines,
  makeFastFolder,
  newPet,
  petLine,
  systemError,
  watchFileSystem,
  type Call,
} from './file-system.ts'
import { copyFolder, formatDataFile, makeOld, share } from './support.ts'

/** Enough pets that the first is far from the end, where the store compares some bytes. */
const lines = Array.from({ length: 60 }, (_, index) => petLine(index + 1, `Pet${index + 100}`))
const first = '"Pet100"'
const canonical = formatDataFile(...lines)
const aside = '.petstore-old'

/** What the store is stopped in. It was opened before, unless it is a start, and has confirmed a pet, unless this is the first. */
interface Work {
  readonly what: string
  readonly isStart?: true
  readonly isFirst?: true
  /** What the store is opened on. */
  readonly text?: string
  /** Comes before the store is stopped. */
  readonly prepare?: (path: string) => void
  /** Makes calls fail, or return something else. */
  readonly createFault?: () => (call: Call) => unknown
}

function failSyncs(count: number): () => (call: Call) => unknown {
  return () => {
    let left = count
    return ({ name }) => {
      if (name === 'fdatasync' && left-- > 0) throw systemError('EIO')
    }
  }
}

/** Of the first write into the data file only a half is done, and the next one fails. */
function fillDisk(): (call: Call) => unknown {
  let writes = 0
  return ({ name, args, path }) => {
    if (name !== 'writeSync' || !path.endsWith('.json') || ++writes > 2) return undefined
    if (writes === 2) throw systemError('ENOSPC')
    const [descriptor, bytes, from, length, position] = args
    assert.ok(bytes instanceof Uint8Array)
    return nodeFs.writeSync(Number(descriptor), bytes, Number(from), Number(length) >> 1, Number(position))
  }
}

const works: readonly Work[] = [
  { what: 'the first append', isFirst: true },
  { what: 'an append' },
  { what: "an append over a person's longer end", text: `{"pets":[${lines.join()}${' '.repeat(300)}]}` },
  { what: 'a rollback', createFault: failSyncs(1) },
  { what: 'a rollback that fails and is made again', createFault: failSyncs(2) },
  { what: 'a rollback of a half-written append', createFault: fillDisk },
  {
    what: 'a rewrite',
    prepare: (path) => {
      const text = nodeFs.readFileSync(path, 'utf8')
      nodeFs.writeFileSync(path, text.replace('[', '[{"name":"Without id","categoryId":1},'))
    },
  },
  { what: 'a start', isStart: true },
  { what: 'a start that fills in ids', isStart: true, text: canonical.replace('{"id":7,', '{') },
  { what: 'a start on a torn end', isStart: true, text: `${canonical.slice(0, -7)},\n    {"id":61,"na` },
  {
    what: 'a start after a rewrite that was killed',
    isStart: true,
    prepare: (path) => {
      nodeFs.copyFileSync(path, `${path}.petstore-new`)
      nodeFs.renameSync(path, path + aside)
    },
  },
]

/** What happens to the file. Gives the new text if that is a valid edit. */
interface Accident {
  readonly what: string
  /** For an edit: whether it must be served, since it came into the folder in one step. */
  readonly isByRename?: true
  /** The process stands still for longer than an append takes. */
  readonly isLong?: true
  readonly happen: (path: string, text: string) => string | undefined
}

/** Writes over the file without changing its length, in another tick of the kernel's clock than what was written before. */
function overwrite(path: string, text: string): string {
  const before = nodeFs.statSync(path, { bigint: true, throwIfNoEntry: false })
  const padded = text.padEnd(Number(before?.size ?? 0n))
  do {
    const descriptor = nodeFs.openSync(path, before === undefined ? 'w' : 'r+')
    nodeFs.writeSync(descriptor, padded)
    nodeFs.closeSync(descriptor)
  } while (nodeFs.statSync(path, { bigint: true }).ctimeNs === before?.ctimeNs)
  return padded
}

const accidents: readonly Accident[] = [
  {
    what: 'emptied',
    happen: (path) => {
      nodeFs.writeFileSync(path, '')
      return undefined
    },
  },
  {
    what: 'cut off',
    happen: (path, text) => {
      nodeFs.writeFileSync(path, text.slice(0, text.length / 2))
      return undefined
    },
  },
  {
    what: 'continued with what does not belong there',
    happen: (path) => {
      nodeFs.appendFileSync(path, '{}')
      return undefined
    },
  },
  {
    what: 'removed',
    happen: (path) => {
      nodeFs.rmSync(path, { force: true })
      return undefined
    },
  },
  {
    what: 'replaced by rename',
    isByRename: true,
    happen: (path, text) => {
      const edited = text.replace(first, '"Maximilian"').replace(`${lines[1]},`, '')
      nodeFs.writeFileSync(`${path}~`, edited)
      nodeFs.renameSync(`${path}~`, path)
      return edited
    },
  },
  {
    what: 'saved in place, and shorter',
    happen: (path, text) => {
      const edited = text.replace(`${lines[1]},`, '')
      nodeFs.writeFileSync(path, edited)
      return edited
    },
  },
  {
    what: 'saved in place, and longer',
    happen: (path, text) => {
      const edited = text.replace('[', `[${petLine(1000, 'Newcomer')},${' '.repeat(200)}`)
      nodeFs.writeFileSync(path, edited)
      return edited
    },
  },
  {
    what: 'saved in place with the same length and another end',
    happen: (path, text) => overwrite(path, text.replace(/"Pet(\d+)"(?![^]*"Pet)/, '"Dog$1"')),
  },
  {
    what: 'saved in place with the same length and another beginning, while the process was stopped',
    isLong: true,
    happen: (path, text) => {
      const current = nodeFs.existsSync(path) ? nodeFs.readFileSync(path, 'utf8') : ''
      return overwrite(path, (isValidFile(current) ? current : text).replace(first, '"Dog100"'))
    },
  },
]

const nothing: Accident = { what: 'nothing', happen: () => undefined }

interface Case {
  readonly work: Work
  readonly accident: Accident
  /** Before which call of the file system; Infinity for none. */
  readonly stopAt: number
  /** Whether a pet is created between the accident and the look at the file. */
  readonly goesOn: boolean
}

/** Time goes on only while the store waits, or is stopped: a busy machine changes nothing. */
function holdTime(t: TestContext): (ms: number) => void {
  let ms = 0
  const begin = Date.now()
  t.mock.method(clock, 'performanceNow', () => ms)
  t.mock.method(clock, 'now', () => begin + ms)
  t.mock.method(clock, 'setTimeout', (call: () => void, waitMs: number) => {
    ms += waitMs
    return setImmediate(call)
  })
  return (passedMs) => {
    ms += passedMs
  }
}

const root = makeFastFolder()
let folderCount = 0

const listAll = (store: FileStore): readonly Pet[] => store.list({ limit: 1000 }).pets

/** Runs one case. Gives how many calls the store made, and before which of them the last sync of the creation ended. */
async function run(
  passTime: (ms: number) => void,
  { work, accident, stopAt, goesOn }: Case,
  syncedAt = Infinity,
): Promise<{ readonly calls: number; readonly syncedAt: number }> {
  const folder = join(root, String(folderCount++))
  nodeFs.mkdirSync(folder)
  const path = join(folder, 'pets.json')
  nodeFs.writeFileSync(path, work.text ?? canonical)
  makeOld(path)
  const said = new Lines()
  const fault = work.createFault?.()
  /** The pets as the editor has them, who opened the file before. */
  let text = canonical
  let calls = 0
  let synced = 0
  let endOfSync = 0
  let isArmed = false
  let edit: string | undefined
  const fileSystem = watchFileSystem({
    before(call) {
      if (!isArmed) return undefined
      if (call.name === 'fdatasync') synced = calls
      if (calls++ === stopAt) {
        edit = accident.happen(path, text)
        if (accident.isLong) passTime(1000)
      }
      return fault?.(call)
    },
  })
  const open = (): Promise<FileStore> => openFileStore(path, { fileSystem, onMessage: said.say })
  let store: FileStore | undefined
  const confirmed = new Map<Pet['id'], Pet>()
  const create = async (name: string): Promise<Pet | undefined> => {
    try {
      const pet = await store?.create(newPet(name))
      if (pet !== undefined) confirmed.set(pet.id, pet)
      return pet
    } catch {
      return undefined
    }
  }
  let refusal: string | undefined
  let inFlight: Pet | undefined
  if (work.isStart) {
    work.prepare?.(path)
    isArmed = true
    store = await open().catch((error: unknown) => {
      assert.ok(error instanceof DataFileUnusable, String(error))
      refusal = error.message
      return undefined
    })
    for (const pet of store === undefined ? [] : listAll(store)) confirmed.set(pet.id, pet)
  } else {
    store = await open()
    for (const pet of listAll(store)) confirmed.set(pet.id, pet)
    if (!work.isFirst) await create('Pet999')
    text = nodeFs.readFileSync(path, 'utf8')
    work.prepare?.(path)
    isArmed = true
    inFlight = await create('In flight')
    endOfSync = synced + 1
    // A rollback that has failed is made again by a look.
    await store.reset().catch(() => {})
  }
  isArmed = false
  const isHappened = calls > stopAt
  const next = goesOn ? await create('Next') : undefined
  await store?.reset().catch(() => {})
  const live = store === undefined ? [] : listAll(store)

  // As a kill leaves it: in a copy, since this process goes on.
  const killed = `${folder}-killed`
  copyFolder(folder, killed)
  const again = await openFileStore(join(killed, 'pets.json')).catch((error: unknown) => {
    assert.ok(error instanceof DataFileUnusable, String(error))
    return undefined
  })
  const listed = again === undefined ? undefined : listAll(again)
  const kept = nodeFs.readdirSync(killed).filter((name) => name.includes('.kept-'))
  const keptPets = kept.flatMap(
    (name) => parseUsableFileText(name, nodeFs.readFileSync(join(killed, name))).pets,
  )
  await again?.close()
  await store?.close()
  nodeFs.rmSync(folder, { recursive: true })
  nodeFs.rmSync(killed, { recursive: true })
  if (!isHappened) return { calls, syncedAt: endOfSync }

  const told = said.some((line) => line.includes('no pet can be added') && !line.includes('cannot be used:'))
  const isRefused = refusal !== undefined
  const edited = edit === undefined ? undefined : parseUsableFileText('edit', Buffer.from(edit)).pets
  const onDisk = [...(listed ?? []), ...keptPets]
  const isOnDisk = ({ id, name }: Pet): boolean => onDisk.some((pet) => pet.id === id && pet.name === name)
  // An editor may have read a pet that is then refused, and a rollback may remove it again.
  const isRolledBack = ({ name }: Pet): boolean => inFlight === undefined && name === 'In flight'
  const isEditServed =
    edited !== undefined &&
    edited.every(
      (pet) => isRolledBack(pet) || listed?.some(({ id, name }) => pet.id === id && pet.name === name),
    )
  // A save in place may be damaged by an append. Then all is as if there had been no edit.
  if (accident.isByRename) assert.ok(isEditServed, `the edit is lost: ${said.join('\n')}`)
  else if (edited !== undefined && !isEditServed)
    assert.ok(told || isRefused, 'the edit is lost, and nothing said')
  for (const pet of confirmed.values()) {
    const wasConfirmedBefore = pet !== next && (pet !== inFlight || stopAt > syncedAt)
    const isRemoved = isEditServed && wasConfirmedBefore
    assert.ok(isRemoved || isOnDisk(pet), `${pet.name} is lost: ${said.join('\n')}`)
  }
  assert.equal(new Set(listed?.map(({ id }) => id)).size, listed?.length ?? 0, 'an id stands there twice')
  const isSameName = (name: string): boolean => (listed ?? []).filter((pet) => pet.name === name).length > 1
  assert.equal(isSameName('In flight'), false, 'it is listed twice')
  if (listed !== undefined && !isRefused && !told) assert.deepEqual(live, listed, 'another file is served')
  if (listed === undefined && !isRefused) assert.ok(told, `nothing is said:\n${said.join('\n')}`)
  return { calls, syncedAt }
}

describe('loses no confirmed pet and no save, in the middle of', { concurrency: false }, () => {
  for (const work of works) {
    test(work.what, async (t) => {
      const passTime = holdTime(t)
      const whole = await run(passTime, { work, accident: nothing, stopAt: Infinity, goesOn: true })
      assert.ok(whole.calls > 5, `${whole.calls} calls`)
      const cases: Case[] = []
      for (let stopAt = 0; stopAt < whole.calls; stopAt++)
        for (const accident of accidents)
          for (const goesOn of [false, true]) cases.push({ work, accident, stopAt, goesOn })
      // Only a clock shows some of those in which the process was stopped for long, so each is tried in the quick run, too.
      const long = cases.filter(({ accident }) => accident.isLong === true)
      const others = cases.filter((one) => !long.includes(one))
      for (const one of [...long, ...share(others, 30)]) {
        await run(passTime, one, whole.syncedAt).catch((error: unknown) => {
          const { accident, stopAt, goesOn } = one
          const where = `${accident.what} before call ${stopAt} of ${whole.calls}, ${goesOn ? 'with' : 'without'} another creation`
          throw new Error(`${where}: ${error instanceof Error ? error.message : error}`, { cause: error })
        })
      }
      t.diagnostic(`${whole.calls} calls, ${cases.length} cases`)
    })
  }
})

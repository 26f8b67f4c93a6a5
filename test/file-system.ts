/** Stands between the data file and the real file system: tells what is called, delays it, makes it fail. */
import { EventEmitter, once } from 'node:events'
import nodeFs from 'node:fs'
import { tmpdir } from 'node:os'
import type { TestContext } from 'node:test'
import type { FileSystem } from '../src/data-file/disk.ts'
import { findUnusable, parseFileText } from '../src/data-file/file-text.ts'
import type { Pet, PetWithoutId } from '../src/options/types.ts'
import { openFileStore, type FileStore } from '../src/store/file-store.ts'
import { clock } from '../src/system/clock.ts'
import { makeFolder } from './support.ts'

type CallName = Exclude<keyof FileSystem, 'promises' | 'constants'>

export interface Call {
  readonly name: CallName
  readonly args: readonly unknown[]
  /** What the call is about, through the descriptor if it has one. */
  readonly path: string
}

export interface Watcher {
  /** May throw to make the call fail, and wait to delay a sync; what it returns otherwise is the call's result. */
  readonly before?: (call: Call) => unknown
  readonly after?: (call: Call, result: unknown) => void
}

/** The real file system, watched. Delays are for `fsync` and `fdatasync` alone: the others are synchronous. */
export function watchFileSystem({ before = () => {}, after = () => {} }: Watcher): FileSystem {
  const paths = new Map<number, string>()
  const call = (name: CallName, args: readonly unknown[]): unknown => {
    const [first] = args
    const path = typeof first === 'number' ? (paths.get(first) ?? '') : String(first)
    const made: Call = { name, args, path }
    if (name === 'fsync' || name === 'fdatasync') return callSync(made)
    const instead = before(made)
    if (instead !== undefined) return instead
    const result: unknown = Reflect.apply(nodeFs[name], nodeFs, args)
    if (name === 'openSync') paths.set(Number(result), path)
    after(made, result)
    return result
  }
  const callSync = async (made: Call): Promise<void> => {
    const [descriptor, done] = made.args
    if (typeof descriptor !== 'number' || typeof done !== 'function') throw new TypeError('not a sync')
    try {
      await before(made)
    } catch (error) {
      done(error)
      return
    }
    nodeFs[made.name === 'fsync' ? 'fsync' : 'fdatasync'](descriptor, (error) => {
      if (error === null) after(made, undefined)
      done(error)
    })
  }
  const watched = new Proxy(nodeFs, {
    get:
      (_, name: CallName) =>
      (...args: unknown[]) =>
        call(name, args),
  })
  return watched
}

export function systemError(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: injected`), { code })
}

/** A gate that a test holds shut: who comes is told of, and waits until it is opened. */
export interface Gate {
  /** Resolves when somebody waits at it. */
  readonly reached: Promise<unknown>
  readonly open: () => void
  readonly pass: () => Promise<unknown>
}

export function createGate(): Gate {
  const gate = new EventEmitter()
  const reached = once(gate, 'reached')
  const opened = once(gate, 'opened')
  return {
    reached,
    open: () => gate.emit('opened'),
    pass: () => {
      gate.emit('reached')
      return opened
    },
  }
}

/** A gate before one sync of a file system: the first after `hold` was called. It fails, if told so, once the gate is open. */
export interface SyncGate extends Omit<Gate, 'pass'> {
  readonly fileSystem: FileSystem
  readonly hold: () => void
}

export function createSyncGate(errorCode?: string): SyncGate {
  const { pass, ...gate } = createGate()
  let isHeld = false
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (!isHeld || name !== 'fdatasync') return undefined
      isHeld = false
      return errorCode === undefined ? pass() : pass().then(() => Promise.reject(systemError(errorCode)))
    },
  })
  return {
    ...gate,
    fileSystem,
    hold: () => {
      isHeld = true
    },
  }
}

/**
 * What a store says comes with its next look at the file at the latest, twice a second. The wait is counted in ticks of this process, so
 * that it lasts longer on a machine that is busy.
 */
const lateTicks = 100
const tickMs = 100
/** Once a line has not come, further ones of this process need not be waited for as long. */
let maxTicks = lateTicks

/** The lines that a store says; `next` resolves with the first that matches among those not yet taken by it. */
export class Lines extends Array<string> {
  static override get [Symbol.species](): ArrayConstructor {
    return Array
  }

  readonly #watchers = new Set<() => void>()
  #taken = 0

  readonly say = (line: string): void => {
    this.push(line)
    for (const look of this.#watchers) look()
  }

  next(pattern: RegExp): Promise<string> {
    return new Promise((resolve, reject) => {
      let ticks = 0
      // It also keeps the process alive: a store alone does not.
      const waiting = setInterval(() => {
        if (++ticks < maxTicks) return
        maxTicks = lateTicks / 10
        clearInterval(waiting)
        this.#watchers.delete(look)
        reject(new Error(`no ${pattern} in:\n${this.join('\n')}`))
      }, tickMs)
      const look = (): void => {
        for (let at = this.#taken; at < this.length; at++) {
          const line = this[at] ?? ''
          if (!pattern.test(line)) continue
          this.#taken = at + 1
          this.#watchers.delete(look)
          clearInterval(waiting)
          resolve(line)
          return
        }
      }
      this.#watchers.add(look)
      look()
    })
  }
}

export interface OpenedStore {
  readonly store: FileStore
  readonly lines: Lines
}

/** Opens a store, and closes it after the test. */
export async function openStore(
  t: TestContext,
  path: string,
  fileSystem: FileSystem = nodeFs,
  platform: NodeJS.Platform = process.platform,
): Promise<OpenedStore> {
  const lines = new Lines()
  const store = await openFileStore(path, { onMessage: lines.say, fileSystem, platform })
  t.after(() => store.close())
  return { store, lines }
}

/** A folder where syncs cost nothing, if the machine has one: the calls are counted, not the disk. */
export function makeFastFolder(): string {
  return makeFolder(nodeFs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
}

export function newPet(name: string): PetWithoutId {
  return { name, categoryId: 1, status: 'available' }
}

/**
 * Lets the store's clock go on by so much whenever the store looks at it, and not by itself. Then it is how often a file was
 * looked at that decides whether somebody is still saving it, and never for how long a busy machine has paused.
 */
export function countTime(t: TestContext, msPerLook: number): void {
  let now = 0
  t.mock.method(clock, 'performanceNow', () => (now += msPerLook))
}

/**
 * Stores that are opened from here on look for edits only when the returned function is called, with a time in which they
 * have to look at least once.
 */
export function holdLooks(t: TestContext): (withinMs: number) => void {
  const held: { look: () => void; everyMs: number }[] = []
  t.mock.method(clock, 'setInterval', (look: () => void, everyMs: number) => {
    held.push({ look, everyMs })
    return setInterval(() => {}, 2 ** 31 - 1)
  })
  return (withinMs) => {
    for (const { look, everyMs } of held) if (everyMs <= withinMs) look()
  }
}

/** The names of the first pets in the store. */
export function namesIn(store: FileStore): readonly string[] {
  return store.list({ limit: 100 }).pets.map(({ name }) => name)
}

/** The names of all pets in the data file, which is valid JSON. */
export function namesInFile(path: string): readonly string[] {
  // The tests that use it say what must be in the file.
  const { pets } = JSON.parse(nodeFs.readFileSync(path, 'utf8')) as { pets: Pet[] }
  return pets.map(({ name }) => name)
}

/** Whether a start takes this text as it is. */
export function isValidFile(text: string): boolean {
  return findUnusable(parseFileText(Buffer.from(text)), 'pets.json') === undefined
}

/** A pet's line in a data file. */
export function petLine(id: number | bigint, name: string): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":1,"status":"available"}`
}

/** Appends pets to the data file in place, and rolls back an append that has failed. */
import type { Pet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { attempt, errorCode } from '../system/errors.ts'
import { DataFileChanged, type Disk, type Identity, isSame } from './disk.ts'
import { closingBrackets, type FileText, formatPets } from './file-text.ts'

/** The end of a file that is served, over which an append writes. */
export interface FileEnd {
  readonly identity: Identity | undefined
  /** The offset behind the last pet or, if there is none, behind the `[`. */
  readonly petsEnd: number
  /** The last bytes before `petsEnd`, as many as are compared. */
  readonly before: Buffer
  /** Closing brackets, ours or a person's, with white space. */
  readonly closing: Buffer
}

/** What follows the last pet since an append has failed: a mixture of the old closing brackets, of these bytes, and of NULs. */
export interface HalfWritten {
  readonly bytes: Buffer
  /** The identity of the file as the append has left it. */
  readonly identity: Identity | 'unknown'
}

/**
 * `error` is a DataFileChanged if somebody else has written the file. `halfWritten`: what is in it, if the append failed after the first call that
 * changes it. `writtenBytes`: how many bytes of the new end have reached it. `hasSyncFailed`: `error` is that of the sync.
 */
export type AppendOutcome =
  | { readonly is: 'durable'; readonly end: FileEnd }
  | {
      readonly is: 'failed'
      readonly error: unknown
      readonly writtenBytes: number
      readonly halfWritten: HalfWritten | undefined
      readonly hasSyncFailed: boolean
    }

/** `error` is a DataFileChanged if somebody else has written the file, or may have. */
export type RollBackOutcome =
  | { readonly is: 'durable'; readonly end: FileEnd }
  | {
      readonly is: 'failed'
      readonly error: unknown
      readonly halfWritten: HalfWritten
      readonly hasSyncFailed: boolean
    }

const comparedBytes = 256

/**
 * Somebody may save the file between our look and our write. If its length and last bytes stay the same, nothing shows that. The gap takes
 * microseconds, unless the process was stopped in it (SIGSTOP, a machine that sleeps). So after a longer gap, the file is read again. The time of day
 * measures the gap, since the monotonic clock of Linux stands still while the machine sleeps
 * (https://man7.org/linux/man-pages/man2/clock_getres.2.html).
 */
const maxGapMs = 250

export function formatAppend(pets: readonly Pet[], isFirst: boolean): Buffer {
  return Buffer.from(formatPets(pets, isFirst) + closingBrackets.toString())
}

/** Copies the bytes, since a Buffer on a part of the text would keep all of it in memory. */
export function endOf({ bytes, petsEnd, tail }: FileText, identity: Identity | undefined): FileEnd {
  const before = Buffer.from(bytes.subarray(Math.max(0, petsEnd - comparedBytes), petsEnd))
  return { identity, petsEnd, before, closing: Buffer.from(tail) }
}

function endAfter(end: FileEnd, bytes: Buffer, identity: Identity): FileEnd {
  const added = bytes.subarray(0, -closingBrackets.length)
  const petsEnd = end.petsEnd + added.length
  const before = Buffer.concat([end.before, added]).subarray(-comparedBytes)
  return { identity, petsEnd, before: Buffer.from(before), closing: closingBrackets }
}

/**
 * Writes `bytes` (see formatAppend) over the closing brackets.
 *
 * Somebody may empty the file (`: > pets.json`) between the look and the write, which then fills it with NULs up to its place. So what lies
 * before that place is compared too, before the write and after it.
 */
export async function append(disk: Disk, end: FileEnd, bytes: Buffer): Promise<AppendOutcome> {
  const { closing, petsEnd } = end
  let file: OpenEnd | undefined
  let isTouched = false
  let hasSyncFailed = false
  let writtenBytes = 0
  let identity: Identity | undefined
  try {
    // 1. Look: the file is as it was left. Where times are whole seconds, only its bytes show an edit.
    file = await OpenEnd.open(disk, end)
    if (!isSame(file.identify(), end.identity) || !file.endsIn(closing)) throw new DataFileChanged()
    // 2. Write. The file is cut only if its old end is longer than the new one, since a cut removes what an editor adds at this very moment.
    isTouched = true
    if (closing.length > bytes.length) file.cut(petsEnd + bytes.length)
    while (writtenBytes < bytes.length) writtenBytes += file.writeSome(bytes, writtenBytes)
    identity = file.identify()
    // 3. Look: nobody else has written meanwhile.
    if (file.wasStopped() || !file.endsIn(bytes)) throw new DataFileChanged()
    // 4. Sync. That takes milliseconds, in which the file can be edited.
    await file.sync().catch((error: unknown) => {
      hasSyncFailed = true
      throw error
    })
    // 5. Look: it is still the file at the path.
    identity = file.closeAndFind(identity)
    return { is: 'durable', end: endAfter(end, bytes, identity) }
  } catch (error) {
    // Even a write that fails may have changed the file.
    const left = identity ?? file?.identifyUnlessStopped() ?? 'unknown'
    const halfWritten = isTouched ? { bytes, identity: left } : undefined
    return { is: 'failed', error: toChanged(error), writtenBytes, halfWritten, hasSyncFailed }
  } finally {
    file?.close()
  }
}

/** Writes the closing brackets again that were there before the append. */
export async function rollBack(disk: Disk, end: FileEnd, halfWritten: HalfWritten): Promise<RollBackOutcome> {
  const { closing, petsEnd } = end
  let file: OpenEnd | undefined
  let isTouched = false
  let hasSyncFailed = false
  let identity: Identity | undefined
  try {
    // 1. Look: the file is as the append has left it.
    file = await OpenEnd.open(disk, end)
    const isUntouched =
      halfWritten.identity === 'unknown'
        ? file.endsInMixtureOf(closing, halfWritten.bytes)
        : isSame(file.identify(), halfWritten.identity)
    if (!isUntouched) throw new DataFileChanged()
    // 2. Write.
    isTouched = true
    file.cut(petsEnd + closing.length)
    for (let done = 0; done < closing.length;) done += file.writeSome(closing, done)
    identity = file.identify()
    // 3. Look: nobody else has written meanwhile.
    if (file.wasStopped() || !file.endsIn(closing)) throw new DataFileChanged()
    // 4. Sync.
    await file.sync().catch((error: unknown) => {
      hasSyncFailed = true
      throw error
    })
    // 5. Look: it is still the file at the path.
    identity = file.closeAndFind(identity)
    // 6. Somebody may have edited the beginning of the file since the append. Only a known identity shows that: without one, it has to be read.
    if (halfWritten.identity === 'unknown') throw new DataFileChanged()
    return { is: 'durable', end: { ...end, identity } }
  } catch (error) {
    const left = identity ?? file?.identifyUnlessStopped() ?? 'unknown'
    const stillHalfWritten = isTouched ? { bytes: halfWritten.bytes, identity: left } : halfWritten
    return {
      is: 'failed',
      error: toChanged(error),
      halfWritten: stillHalfWritten,
      hasSyncFailed,
    }
  } finally {
    file?.close()
  }
}

/** Returns a DataFileChanged if the file is gone, since some editors remove it and write it again, or if a folder is there by now. */
function toChanged(error: unknown): unknown {
  return ['ENOENT', 'EISDIR'].includes(errorCode(error)) ? new DataFileChanged() : error
}

/** The data file, open to be written behind its last pet. */
class OpenEnd {
  readonly #disk: Disk
  readonly #end: FileEnd
  readonly #startMs = clock.now()
  #descriptor: number

  static async open(disk: Disk, end: FileEnd): Promise<OpenEnd> {
    return new OpenEnd(disk, end, await disk.open(disk.path, 'r+'))
  }

  constructor(disk: Disk, end: FileEnd, descriptor: number) {
    this.#disk = disk
    this.#end = end
    this.#descriptor = descriptor
  }

  identify(): Identity {
    return this.#disk.fstatIdentity(this.#descriptor)
  }

  /** Returns `unknown` if the process was stopped, since somebody else may have written the file meanwhile. */
  identifyUnlessStopped(): Identity | 'unknown' {
    const identity = attempt(() => this.identify())
    return identity === undefined || this.wasStopped() ? 'unknown' : identity
  }

  wasStopped(): boolean {
    return clock.now() - this.#startMs > maxGapMs
  }

  /** Returns whether these bytes are all that follows the last pet, and what lies before them is as it was. */
  endsIn(bytes: Buffer): boolean {
    return this.#readEnd(bytes.length)?.equals(bytes) === true
  }

  endsInMixtureOf(a: Buffer, b: Buffer): boolean {
    const maxLength = Math.max(a.length, b.length)
    const found = this.#readEnd(maxLength)
    if (found === undefined || found.length > maxLength) return false
    return found.every((byte, at) => byte === a[at] || byte === b[at] || byte === 0)
  }

  /** Returns what follows the last pet, and one byte more than there should be; undefined if what lies before it has changed. */
  #readEnd(length: number): Buffer | undefined {
    const { before, petsEnd } = this.#end
    const found = this.#disk.readAt(this.#descriptor, petsEnd - before.length, before.length + length + 1)
    return found.subarray(0, before.length).equals(before) ? found.subarray(before.length) : undefined
  }

  cut(length: number): void {
    this.#disk.fs.ftruncateSync(this.#descriptor, length)
  }

  /** See Disk.writeSome. */
  writeSome(bytes: Buffer, from: number): number {
    return this.#disk.writeSome(this.#descriptor, bytes, from, this.#end.petsEnd + from)
  }

  sync(): Promise<void> {
    return this.#disk.sync('fdatasync', this.#descriptor)
  }

  /**
   * Returns the identity of the file at the path. Throws a DataFileChanged if it is another file, or was written since it had the identity `written`.
   * Windows has the times of a file for certain only when it is closed (https://learn.microsoft.com/windows/win32/sysinfo/file-times).
   */
  closeAndFind(written: Identity): Identity {
    const { isWindows } = this.#disk
    if (isWindows) this.close()
    const found = this.#disk.statIdentity()
    const isSameFile = isWindows
      ? found?.ino === written.ino && found.size === written.size
      : isSame(found, written)
    if (found === undefined || !isSameFile) throw new DataFileChanged()
    return found
  }

  close(): void {
    if (this.#descriptor !== -1) this.#disk.close(this.#descriptor)
    this.#descriptor = -1
  }
}

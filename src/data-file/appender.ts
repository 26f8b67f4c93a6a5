/** Appends pets to the data file in place, and rolls back an append that has failed. */
import type { Pet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { attempt, errorCode } from '../system/errors.ts'
import { DataFileChanged } from './data-file-errors.ts'
import { type Disk, type Identity, isSame } from './disk.ts'
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

/**
 * What follows the last pet since an append has failed: a mixture of the old closing brackets, of the bytes
 * that were appended, and of NULs.
 */
export interface HalfWritten {
  readonly appended: Buffer
  /** The identity of the file as the append has left it. */
  readonly identity: Identity | 'unknown'
}

/**
 * `error` is a DataFileChanged if somebody else has written the file, or may have. `hasWritten`: a byte of
 * the new end has reached it. `halfWritten`: what is in it now; undefined if it was not changed.
 * `hasSyncFailed`: `error` is that of the sync.
 */
interface Failed {
  readonly is: 'failed'
  readonly error: unknown
  readonly hasWritten: boolean
  readonly halfWritten: HalfWritten | undefined
  readonly hasSyncFailed: boolean
}

type EndOutcome = { readonly is: 'durable'; readonly end: FileEnd } | Failed

const comparedBytes = 256

/**
 * Somebody may save the file between our look and our write. If its length and last bytes stay the same,
 * nothing shows that. The gap takes microseconds, unless the process was stopped in it (SIGSTOP, a machine
 * that sleeps). So after a longer gap, the file is read again. The time of day measures the gap, since the
 * monotonic clock of Linux stands still while the machine sleeps
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
 * Somebody may empty the file (`: > pets.json`) between the look and the write, which then fills it with NULs
 * up to its place. So what lies before that place is compared too, before the write and after it.
 */
export async function append(disk: Disk, end: FileEnd, bytes: Buffer): Promise<EndOutcome> {
  // Where times are whole seconds, only the bytes of a file show an edit.
  const isAsLeft = (file: OpenEnd) => isSame(file.identify(), end.identity) && file.endsIn(end.closing)
  // A cut removes what an editor adds at this very moment, so it is made only if the old end is longer than
  // the new one.
  const isCut = end.closing.length > bytes.length
  const outcome = await writeEnd(disk, end, bytes, { isAsLeft, isCut, appended: bytes })
  return outcome.is === 'failed' ? outcome : { is: 'durable', end: endAfter(end, bytes, outcome.identity) }
}

/**
 * Writes the closing brackets again that were there before the append. `unread`: that was done, and the file
 * has to be read before it is served.
 */
export async function rollBack(
  disk: Disk,
  end: FileEnd,
  halfWritten: HalfWritten,
): Promise<EndOutcome | { readonly is: 'unread' }> {
  const { appended, identity } = halfWritten
  const isAsLeft = (file: OpenEnd) =>
    identity === 'unknown' ? file.endsInMixtureOf(end.closing, appended) : isSame(file.identify(), identity)
  const outcome = await writeEnd(disk, end, end.closing, { isAsLeft, isCut: true, appended })
  if (outcome.is === 'failed') return outcome
  // Somebody may have edited the beginning of the file since the append, which only a known identity would
  // show.
  if (identity === 'unknown') return { is: 'unread' }
  return { is: 'durable', end: { ...end, identity: outcome.identity } }
}

/** Writes `bytes` behind the last pet, for an append of the bytes `appended`, or to undo it. */
async function writeEnd(
  disk: Disk,
  end: FileEnd,
  bytes: Buffer,
  { isAsLeft, isCut, appended }: { isAsLeft: (file: OpenEnd) => boolean; isCut: boolean; appended: Buffer },
): Promise<{ readonly is: 'durable'; readonly identity: Identity } | Failed> {
  let file: OpenEnd | undefined
  let hasBegun = false
  let hasWritten = false
  let hasSyncFailed = false
  let written: Identity | undefined
  try {
    // 1. Look: the file is as it was left.
    file = new OpenEnd(disk, end, await disk.open(disk.path, 'r+'))
    if (!isAsLeft(file)) throw new DataFileChanged()
    // 2. Write.
    hasBegun = true
    if (isCut) file.cut(end.petsEnd + bytes.length)
    for (let done = 0; done < bytes.length;) {
      done += file.writeSome(bytes, done)
      hasWritten = true
    }
    written = file.identify()
    // 3. Look: nobody else has written meanwhile.
    if (file.wasStopped() || !file.endsIn(bytes)) throw new DataFileChanged()
    // 4. Sync. That takes milliseconds, in which the file can be edited.
    await file.sync().catch((error: unknown) => {
      hasSyncFailed = true
      throw error
    })
    // 5. Look: it is still the file at the path.
    return { is: 'durable', identity: file.confirmWritten(written) }
  } catch (error) {
    // Even a write that fails may have changed the file.
    const identity = written ?? file?.identifyUnlessStopped() ?? 'unknown'
    const halfWritten = hasBegun ? { appended, identity } : undefined
    return { is: 'failed', error: toChanged(error), hasWritten, halfWritten, hasSyncFailed }
  } finally {
    file?.close()
  }
}

/**
 * Returns a DataFileChanged if the file is gone, since some editors remove it and write it again, or if a
 * folder is there by now.
 */
function toChanged(error: unknown): unknown {
  return ['ENOENT', 'EISDIR'].includes(errorCode(error)) ? new DataFileChanged() : error
}

/** The data file, open to be written behind its last pet. */
class OpenEnd {
  readonly #disk: Disk
  readonly #end: FileEnd
  readonly #startMs = clock.now()
  #descriptor: number

  constructor(disk: Disk, end: FileEnd, descriptor: number) {
    this.#disk = disk
    this.#end = end
    this.#descriptor = descriptor
  }

  identify(): Identity {
    return this.#disk.fstatIdentity(this.#descriptor)
  }

  /**
   * Returns `unknown` if the process was stopped, since somebody else may have written the file meanwhile.
   */
  identifyUnlessStopped(): Identity | 'unknown' {
    const identity = attempt(() => this.identify())
    return identity === undefined || this.wasStopped() ? 'unknown' : identity
  }

  wasStopped(): boolean {
    return clock.now() - this.#startMs > maxGapMs
  }

  /**
   * Returns whether these bytes are all that follows the last pet, and what lies before them is as it was.
   */
  endsIn(bytes: Buffer): boolean {
    return this.#readEnd(bytes.length)?.equals(bytes) === true
  }

  endsInMixtureOf(a: Buffer, b: Buffer): boolean {
    const maxLength = Math.max(a.length, b.length)
    const found = this.#readEnd(maxLength)
    if (found === undefined || found.length > maxLength) return false
    return found.every((byte, at) => byte === a[at] || byte === b[at] || byte === 0)
  }

  /**
   * Returns what follows the last pet, and one byte more than there should be; undefined if what lies before
   * it has changed.
   */
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
   * Returns the identity of the file at the path. Throws a DataFileChanged if it is another file, or was
   * written since it had the identity `written`. Windows has the times of a file for certain only when it is
   * closed (https://learn.microsoft.com/windows/win32/sysinfo/file-times).
   */
  confirmWritten(written: Identity): Identity {
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

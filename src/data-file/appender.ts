/** Writes a new end of the data file in place. */
import { formatPet, type Pet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { errorCode } from '../system/errors.ts'
import { DataFileChanged, type Disk, type Identity, isSame, quietly } from './disk.ts'
import { closingBrackets, type FileText, separator } from './file-text.ts'

export interface FileEnd {
  readonly identity: Identity
  /** After the last pet or, if there is none, after the `[`. */
  readonly petsEnd: number
  /** The bytes up to there, as many as are compared. */
  readonly before: Buffer
  /** Closing brackets, ours or a person's, with white space. */
  readonly closing: Buffer
}

export interface PartOfEnd {
  readonly bytes: Buffer
  readonly identity: Identity
}

/** `error` is a DataFileChanged if somebody else has written the file. `part`: what is now in it, if anything was written. */
export type Outcome =
  | { readonly is: 'durable'; readonly identity: Identity }
  | { readonly is: 'failed'; readonly error: unknown; readonly part: PartOfEnd | undefined }

const comparedBytes = 256

/**
 * An edit that keeps length and end falls unseen between look and write, which takes microseconds unless the process was stopped there. Of
 * the clocks, only the time of day goes on while a machine sleeps.
 */
const maxGapMs = 250

/** The bytes to write at `petsEnd`. The very first pet has no comma before it. */
export function formatAppend(pets: readonly Pet[], isFirst: boolean): Buffer {
  const text = pets.map((pet) => separator + formatPet(pet)).join('') + closingBrackets.toString()
  return Buffer.from(isFirst ? text.slice(1) : text)
}

/** Copies, since a part of the text would keep all of it in memory. */
export function endOf({ bytes, petsEnd, tail }: FileText, identity: Identity): FileEnd {
  const before = Buffer.from(bytes.subarray(Math.max(0, petsEnd - comparedBytes), petsEnd))
  return { identity, petsEnd, before, closing: Buffer.from(tail) }
}

export function endAfter(end: FileEnd, bytes: Buffer, identity: Identity): FileEnd {
  const added = bytes.subarray(0, -closingBrackets.length)
  const petsEnd = end.petsEnd + added.length
  const before = Buffer.concat([end.before, added]).subarray(-comparedBytes)
  return { identity, petsEnd, before: Buffer.from(before), closing: closingBrackets }
}

/**
 * Puts `bytes` in the place of what follows the last pet. `part`: what an earlier call has left there instead of `end.closing`.
 *
 * `: > pets.json` may fall between the look and the write, which then fills the file with NULs up to its place. So what lies before that
 * place is compared too, before the write and after it.
 */
export async function replaceEnd(
  disk: Disk,
  end: FileEnd,
  bytes: Buffer,
  part?: PartOfEnd,
): Promise<Outcome> {
  const { before, petsEnd } = end
  // A byte more than there should be.
  const readEnd = (length: number): Buffer =>
    disk.readAt(descriptor, petsEnd - before.length, before.length + length + 1)
  const startMs = clock.now()
  const wasStopped = (): boolean => clock.now() - startMs > maxGapMs
  const changed = (): DataFileChanged => new DataFileChanged(disk.name)
  let identity: Identity
  let isWritten = false
  let descriptor = -1
  try {
    // 1. Look.
    descriptor = await disk.open(disk.path, 'r+')
    const { identity: known } = part ?? end
    if (known !== undefined && !isSame(disk.fstatIdentity(descriptor), known)) throw changed()
    // An edit may look the same where times are whole seconds.
    if (part === undefined || known === undefined) {
      const found = readEnd(Math.max(end.closing.length, part?.bytes.length ?? 0))
      const isOurs = found.subarray(0, before.length).equals(before)
      if (!isOurs || !isEndOf(end, found.subarray(before.length), part)) throw changed()
    }
    // 2. Write. A cut would remove what an editor adds at this very moment, so only if more follows than is written.
    isWritten = true
    if (part !== undefined || end.closing.length > bytes.length)
      disk.fs.ftruncateSync(descriptor, petsEnd + bytes.length)
    disk.write(descriptor, bytes, petsEnd)
    identity = disk.fstatIdentity(descriptor)
    // 3. Look.
    const isLanded = !wasStopped() && readEnd(bytes.length).equals(Buffer.concat([before, bytes]))
    if (!isLanded) throw changed()
    // 4. Sync. That takes milliseconds, in which the file can be edited.
    await disk.sync('fdatasync', descriptor)
    // 5. Look: it is still the file at the path. On Windows, times are certain only when it is closed (MSDN, File Times).
    if (disk.isWindows) {
      disk.close(descriptor)
      descriptor = -1
    }
    const now = disk.statIdentity()
    const isStillOurs = disk.isWindows
      ? now?.ino === identity?.ino && now?.size === identity?.size
      : isSame(now, identity)
    if (known === undefined || !isStillOurs) throw changed()
    return { is: 'durable', identity: now }
  } catch (error) {
    // Even a write that fails may have changed the file.
    quietly(() => {
      const seen = disk.fstatIdentity(descriptor)
      if (!wasStopped()) identity ??= seen
    })
    const written = isWritten ? { bytes: part?.bytes ?? bytes, identity } : undefined
    // Some editors remove the file and write it again. And a folder may be there by now.
    const isGone = ['ENOENT', 'EISDIR'].includes(errorCode(error))
    return { is: 'failed', error: isGone ? changed() : error, part: written }
  } finally {
    disk.close(descriptor)
  }
}

/** What was written in part is a mixture of both. */
function isEndOf({ closing }: FileEnd, found: Buffer, part: PartOfEnd | undefined): boolean {
  if (part === undefined) return found.equals(closing)
  if (found.length > Math.max(closing.length, part.bytes.length)) return false
  return found.every((byte, at) => byte === closing[at] || byte === part.bytes[at] || byte === 0)
}

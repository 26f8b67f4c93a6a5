/** Writes a new end of the data file in place, and tells what that did to the file. What follows from it is for data-file.ts. */
import { formatPet, type Pet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { errorCode } from '../system/errors.ts'
import { type Disk, type Identity, isSame, quietly } from './disk.ts'
import { closingBrackets, type FileText, separator } from './file-text.ts'

/** What is known of a file whose pets are served: how it was when it was last read or written here, and how it ends. */
export interface FileEnd {
  readonly identity: Identity
  /** Where the next pet goes: after the last one or, if there is none, after the `[`. */
  readonly petsEnd: number
  /** The bytes up to there, as many as are compared. */
  readonly before: Buffer
  /** What follows there: closing brackets, which are ours or a person's, with white space. */
  readonly closing: Buffer
}

/** An end that was written in part. `identity` is that of the file afterwards, if it is known. */
export interface PartOfEnd {
  readonly bytes: Buffer
  readonly identity: Identity
}

/** What became of the file. `changed`: somebody else has written or replaced it, so it has to be read. */
export type Outcome =
  | { readonly is: 'durable'; readonly identity: Identity }
  | { readonly is: 'changed'; readonly isWritten: boolean }
  | { readonly is: 'untouched'; readonly error: unknown }
  | { readonly is: 'half-written'; readonly part: PartOfEnd; readonly error: unknown }

const comparedBytes = 256

/**
 * An edit of the same length that leaves the end as it is can fall unseen between a look and the write. That takes microseconds, unless the
 * process was stopped there.
 */
const maxGapMs = 250

/** The bytes to write at `petsEnd`: the pets, then the closing brackets again. The very first pet has no comma before it. */
export function formatAppend(pets: readonly Pet[], isFirst: boolean): Buffer {
  const text = pets.map((pet) => separator + formatPet(pet)).join('') + closingBrackets.toString()
  return Buffer.from(isFirst ? text.slice(1) : text)
}

/** The end of a text that was read. Copies, since a part of the text would keep all of it in memory. */
export function endOf({ bytes, petsEnd, tail }: FileText, identity: Identity): FileEnd {
  const before = Buffer.from(bytes.subarray(Math.max(0, petsEnd - comparedBytes), petsEnd))
  return { identity, petsEnd, before, closing: Buffer.from(tail) }
}

/** The end after `bytes`, pets and our closing brackets, were appended. */
export function endAfter(end: FileEnd, bytes: Buffer, identity: Identity): FileEnd {
  const added = bytes.subarray(0, -closingBrackets.length)
  const before = Buffer.concat([end.before, added])
  return {
    identity,
    petsEnd: end.petsEnd + added.length,
    before: Buffer.from(before.subarray(-comparedBytes)),
    closing: closingBrackets,
  }
}

/**
 * Puts `bytes` in the place of what follows the last pet. `part`: what an earlier call has left there instead of `end.closing`.
 *
 * `: > pets.json` may fall between the look and the write. Then the write fills the file with NULs up to its place, and all that it wrote is as
 * expected. So what lies before that place is compared too, before the write and after it.
 */
export async function replaceEnd(
  disk: Disk,
  end: FileEnd,
  bytes: Buffer,
  part?: PartOfEnd,
): Promise<Outcome> {
  const { before, petsEnd } = end
  /** What of the file is read: from what lies before the pets' end on, and a byte more than there should be. */
  const readEnd = (length: number): Buffer =>
    disk.readAt(descriptor, petsEnd - before.length, before.length + length + 1)
  const clocks = readClocks()
  const wasStopped = (): boolean => readClocks().some((ms, i) => ms - (clocks[i] ?? 0) > maxGapMs)
  let identity: Identity
  let isWritten = false
  let descriptor: number
  try {
    descriptor = await disk.open(disk.path, 'r+')
  } catch (error) {
    // Some editors remove the file and write it again. And a folder may be there by now.
    return ['ENOENT', 'EISDIR'].includes(errorCode(error))
      ? { is: 'changed', isWritten }
      : { is: 'untouched', error }
  }
  try {
    // 1. Look: nobody has edited the file. The write follows at once.
    const { identity: known } = part ?? end
    if (known !== undefined && !isSame(disk.fstatIdentity(descriptor), known))
      return { is: 'changed', isWritten }
    // Where times are whole seconds, an edit may look the same. And what was left in part may be of unknown identity.
    if (part === undefined || known === undefined) {
      const found = readEnd(Math.max(end.closing.length, part?.bytes.length ?? 0))
      const isOurs = found.subarray(0, before.length).equals(before)
      if (!isOurs || !isEndOf(end, found.subarray(before.length), part)) return { is: 'changed', isWritten }
    }
    // 2. Write. The file is cut only if more follows than is written, since a cut would also remove what an editor adds at this very moment.
    isWritten = true
    if (part !== undefined || end.closing.length > bytes.length)
      disk.fs.ftruncateSync(descriptor, petsEnd + bytes.length)
    disk.write(descriptor, bytes, petsEnd)
    identity = disk.fstatIdentity(descriptor)
    // 3. Look: the file ends with what was written, and is as before in front of it.
    const isLanded = !wasStopped() && readEnd(bytes.length).equals(Buffer.concat([before, bytes]))
    if (!isLanded) return { is: 'changed', isWritten }
    // 4. Sync, which makes it durable. That takes milliseconds, in which the file can be edited.
    await disk.sync('fdatasync', descriptor)
    // 5. Look: it is still the file at the path, and nobody has written into it. On Windows, times are certain only when it is closed (MSDN,
    // File Times).
    if (disk.isWindows) {
      disk.close(descriptor)
      descriptor = -1
    }
    const now = disk.statIdentity()
    const isStillOurs = disk.isWindows
      ? now?.ino === identity?.ino && now?.size === identity?.size
      : isSame(now, identity)
    if (known === undefined || !isStillOurs) return { is: 'changed', isWritten }
    return { is: 'durable', identity: now }
  } catch (error) {
    if (!isWritten) return { is: 'untouched', error }
    // Even a write that fails may have changed the file.
    quietly(() => {
      const seen = disk.fstatIdentity(descriptor)
      if (!wasStopped()) identity ??= seen
    })
    return { is: 'half-written', part: { bytes: part?.bytes ?? bytes, identity }, error }
  } finally {
    disk.close(descriptor)
  }
}

/** Whether this is what follows the last pet: the closing brackets or, if something was written over them in part, a mixture of both. */
function isEndOf({ closing }: FileEnd, found: Buffer, part: PartOfEnd | undefined): boolean {
  if (part === undefined) return found.equals(closing)
  if (found.length > Math.max(closing.length, part.bytes.length)) return false
  return found.every((byte, at) => byte === closing[at] || byte === part.bytes[at] || byte === 0)
}

/** The time of day stands still while a process is stopped in no case, but may be set; the other clock stands still while a machine sleeps. */
function readClocks(): readonly number[] {
  return [clock.now(), clock.performanceNow()]
}

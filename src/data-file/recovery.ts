/**
 * Keeps the bytes of a damaged file before they are repaired, and finishes an overwriting that a crash has interrupted. What is
 * returned is a message for the person who runs the server. `target` is the path that all symbolic links lead to.
 */
import { basename, dirname } from 'node:path'
import { DataFileEdited } from './data-file-error.ts'
import { type Disk, overwriteMark, type WholeFile } from './disk.ts'
import { parsePets } from './pets-parser.ts'
import { readUnfinishedOverwrite } from './replace-file.ts'
import { tornEndPath } from './torn-append.ts'

/**
 * Finishes the overwriting of a mounted file (see overwriteMounted). Returns undefined if there is none to finish. Throws a
 * DataFileEdited when somebody saves the file meanwhile.
 */
export async function finishOverwrite(
  disk: Disk,
  target: string,
  whole: WholeFile,
): Promise<string | undefined> {
  // Without the mark it is whole, or somebody has saved it since.
  if (!whole.bytes.subarray(0, overwriteMark.length).equals(overwriteMark)) return undefined
  const next = readUnfinishedOverwrite(disk, target)
  if (next === undefined || parsePets(next).faultCount > 0) return undefined
  const kept = await keepDamaged(disk, target, whole, 0)
  if (!(await disk.overwriteFile(target, next))) throw new DataFileEdited()
  return `rewritten; a crash had interrupted that. What was left of it is kept in ${kept}`
}

/** Keeps the end of a file that is to be repaired (see repairTornAppend). The message is for after the repair. */
export async function keepDamagedEnd(
  disk: Disk,
  target: string,
  whole: WholeFile,
  damagedAt: number,
): Promise<string> {
  const kept = await keepDamaged(disk, target, whole, damagedAt)
  const size = whole.bytes.length - damagedAt
  const cause = 'its end was cut off by a crash, or it was copied while pets were created'
  return `repaired: ${cause}; the last ${size} bytes as they were are kept in ${kept}`
}

/** Writes the bytes from `damagedAt` on into a file of their own, as private as the data file. Returns its name. */
async function keepDamaged(
  disk: Disk,
  target: string,
  { bytes, identity }: WholeFile,
  damagedAt: number,
): Promise<string> {
  const kept = tornEndPath(target, Number((identity?.mtimeNs ?? 0n) / 1_000_000n))
  disk.fs.rmSync(kept, { force: true })
  await disk.createFile(kept, bytes.subarray(damagedAt), disk.fs.statSync(target))
  await disk.syncFolder(dirname(kept))
  return basename(kept)
}

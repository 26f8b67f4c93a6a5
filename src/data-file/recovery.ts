/**
 * Keeps the bytes of a damaged file before it is repaired, and finishes an overwrite that a crash has interrupted. Both return
 * the name of the file that keeps the bytes; the second returns undefined if there is nothing to finish. `target` is the path
 * that all symbolic links lead to.
 */
import { basename, dirname } from 'node:path'
import { DataFileEdited } from './data-file-error.ts'
import { type Disk, overwriteMark, type WholeFile } from './disk.ts'
import { parsePets } from './pets-parser.ts'
import { readUnfinishedOverwrite } from './replace-file.ts'
import { tornEndPath } from './torn-append.ts'

/**
 * Finishes the overwrite of a mounted file (see overwriteMounted). Throws a DataFileEdited when somebody saves the file
 * meanwhile.
 */
export async function finishOverwrite(
  disk: Disk,
  target: string,
  whole: WholeFile,
): Promise<string | undefined> {
  // No mark: either no overwrite was interrupted, or somebody has saved the file since.
  if (!whole.bytes.subarray(0, overwriteMark.length).equals(overwriteMark)) return undefined
  const next = readUnfinishedOverwrite(disk, target)
  if (next === undefined || parsePets(next).faultCount > 0) return undefined
  const keptName = await keepDamagedEnd(disk, target, whole, 0)
  if (!(await disk.overwriteFile(target, next))) throw new DataFileEdited()
  return keptName
}

/** Keeps the bytes from `damagedAt` on in a file of their own, as private as the data file. */
export async function keepDamagedEnd(
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

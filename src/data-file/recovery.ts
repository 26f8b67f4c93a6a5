/**
 * What a start does about a file that a crash has damaged. The damaged bytes are kept beside it, in `pets.json.torn-<time>`; what
 * is returned is a message for the person who runs the server. `target` is the path that all symbolic links lead to.
 */
import { basename, dirname } from 'node:path'
import type { Disk, WholeFile } from './disk.ts'
import { parsePets } from './pets-parser.ts'
import { readUnfinishedOverwrite } from './replace-file.ts'

/** Overwrites a mounted file again if a crash has interrupted that, or returns undefined. */
export async function finishOverwrite(
  disk: Disk,
  target: string,
  whole: WholeFile,
): Promise<string | undefined> {
  const next = readUnfinishedOverwrite(disk, target)
  if (next === undefined || parsePets(next).faultCount > 0) return undefined
  const kept = await keepDamaged(disk, target, whole, 0)
  await disk.overwriteFile(target, next)
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
  // Named after the last write: if the repair is interrupted, the next one keeps the same bytes under the same name.
  const lastWrite = new Date(Number((identity?.mtimeNs ?? 0n) / 1_000_000n))
  const kept = `${target}.torn-${lastWrite.toISOString().replaceAll(':', '-')}`
  disk.fs.rmSync(kept, { force: true })
  await disk.createFile(kept, bytes.subarray(damagedAt), disk.fs.statSync(target))
  await disk.syncFolder(dirname(kept))
  return basename(kept)
}

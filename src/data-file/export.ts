/** Writes pets that come from elsewhere to a new data file. */
import type { Pet } from '../pet/pet.ts'
import { DataFileUnusable } from './data-file-errors.ts'
import { Disk } from './disk.ts'
import { formatFile, parseUsableFileText } from './file-text.ts'
import { isOldFileAside, linkIfMissing, writeWhole } from './new-files.ts'
import { refuseLostLink } from './start.ts'

/**
 * Writes a new data file, and returns how many pets are in it. `readPets` is called once it is known that
 * there is no file. Throws a DataFileUnusable if there is one, or if a pet is not valid.
 */
export async function writeDataFile(path: string, readPets: () => Promise<readonly Pet[]>): Promise<number> {
  const disk = new Disk(path)
  const alreadyExists = DataFileUnusable.ofFile(disk.shownPath, 'exists already; export to a new file')
  if (disk.statIdentity() !== undefined) throw alreadyExists
  refuseLostLink(disk)
  // A start on the exported file would remove the old one.
  if (isOldFileAside(disk))
    throw DataFileUnusable.ofFile(
      disk.shownPath,
      'was moved aside by a rewrite that was interrupted; export to a new file',
    )
  const pets = await readPets()
  const bytes = Buffer.concat([...formatFile(pets)])
  parseUsableFileText(disk.shownPath, bytes)
  await disk.makeFolder()
  const target = disk.findTarget()
  const giveName = (newPath: string) => (linkIfMissing(disk, newPath, target) ? target : undefined)
  if ((await writeWhole(disk, target, [bytes], giveName)) === undefined) throw alreadyExists
  return pets.length
}

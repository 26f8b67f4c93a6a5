/** Moves all pets between a data file and a database that has the tables: all of them or none. */
import { Disk, type DiskOptions } from '../data-file/disk.ts'
import { writeDataFile } from '../data-file/export.ts'
import { refuseMissing, openDataFile } from '../data-file/start.ts'
import type { Pet } from '../pet/pet.ts'
import type { PetStorage } from '../store/store.ts'
import { type Connections, DatabaseUnusable, send, withClient } from './connections.ts'
import { checkCreated, insertPets, nextParameter, raiseCounter, toColumns } from './postgres-storage.ts'

const batchPets = 2_000
const insert = `
  WITH created AS (
    ${insertPets(`(${nextParameter}::bigint[])[place]`)}
  ) SELECT ${checkCreated}`

/**
 * Stores the pets of the file with their ids, and returns how many. Locks the file meanwhile: a server that
 * still ran would go on to confirm pets that stay behind. Throws a DataFileUnusable, or a DatabaseUnusable if
 * there are pets already.
 */
export async function importPets(
  connections: Connections,
  path: string,
  options: DiskOptions,
): Promise<number> {
  // A start would make a file that is missing.
  refuseMissing(new Disk(path, options))
  return withClient(connections, async (client) => {
    // Other servers' creations wait for this row until the end.
    await send(client, 'BEGIN; SELECT FROM pet_counter FOR UPDATE')
    if ((await send(client, 'SELECT FROM pets LIMIT 1')).length > 0)
      throw new DatabaseUnusable('the database has pets; import into one that has none')
    // As a start does, this may fill in ids and repair the file. So nothing else is left that could be
    // refused.
    const { file, data } = await openDataFile(path, options)
    try {
      for (let from = 0; from < data.pets.length; from += batchPets) {
        const pets = data.pets.slice(from, from + batchPets)
        await send(client, insert, [...toColumns(pets), pets.map(({ id }) => String(id))])
      }
      await send(client, raiseCounter)
      await send(client, 'COMMIT')
    } finally {
      await file.close()
    }
    return data.pets.length
  })
}

/**
 * Writes a new data file, and returns how many pets are in it. Throws a DataFileUnusable as writeDataFile
 * does.
 */
export function exportPets(storage: Pick<PetStorage, 'list'>, path: string): Promise<number> {
  return writeDataFile(path, async () => {
    const pets: Pet[] = []
    let hasMore = true
    while (hasMore) {
      const page = await storage.list({ limit: batchPets, after: pets.at(-1)?.id })
      pets.push(...page.pets)
      hasMore = page.hasMore
    }
    return pets
  })
}

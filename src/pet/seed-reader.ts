/** Reads a pet of the data file, with everything that is wrong with it. */
import { colon, type JsonReader, openBrace } from '../json/json-reader.ts'
import { type CheckedSeed, petMembers } from './pet.ts'
import { checkSeed, isCategoryId, isId, nameFault, type SeedFault } from './pet-rules.ts'
import { defaultStatus, type PetStatus, petStatuses } from './pet-status.ts'

const memberTexts = petMembers.map((name) => Buffer.from(`"${name}"`))
const statusTexts = petStatuses.map((status) => Buffer.from(`"${status}"`))

/**
 * Reads what SeedPetSchema takes, as long as each member is given at most once, and names and statuses have no escapes. Returns
 * undefined for anything else: then the reader is somewhere in the middle of it, and the caller reads it again in another way.
 */
export function readPlainPet(reader: JsonReader): CheckedSeed | undefined {
  if (!reader.accept(openBrace)) return undefined
  /** In the order of petMembers. */
  const values: unknown[] = [undefined, undefined, undefined, undefined]
  let status: PetStatus | undefined
  for (let first = true; reader.acceptMore('}', first); first = false) {
    const member = reader.acceptOneOf(memberTexts)
    if (member < 0 || values[member] !== undefined || !reader.accept(colon)) return undefined
    if (petMembers[member] === 'status')
      values[member] = status = petStatuses[reader.acceptOneOf(statusTexts)]
    else values[member] = reader.readScalar()
    if (values[member] === undefined) return undefined
  }
  const [id, name, categoryId] = values
  if (typeof name !== 'string' || nameFault(name) !== undefined || !isCategoryId(categoryId)) return undefined
  status ??= defaultStatus
  if (id === undefined) return { name, categoryId, status }
  return isId(id) ? { id, name, categoryId, status } : undefined
}

/**
 * Reads a value as a pet whose id may be missing. If anything is wrong with it, reports all of that with its offset in bytes, and
 * returns undefined. Throws a JsonFault on a syntax error.
 */
export function readPet(
  reader: JsonReader,
  report: (fault: SeedFault, offset: number) => void,
): CheckedSeed | undefined {
  const start = reader.at
  const plain = readPlainPet(reader)
  if (plain !== undefined) return plain
  reader.at = start
  const offsets = new Map<string, number>()
  let isRepeated = false
  const value = reader.readValue((member, offset) => {
    if (offsets.has(member)) {
      isRepeated = true
      report({ member, message: 'is given twice' }, offset)
    } else offsets.set(member, offset)
  })
  const seed = checkSeed(value, (fault) => report(fault, offsets.get(fault.member ?? '') ?? start))
  return isRepeated ? undefined : seed
}

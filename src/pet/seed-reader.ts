/** Reads a pet of the data file, with everything that is wrong with it. */
import { type JsonReader, openBrace } from '../json/json-reader.ts'
import { type CheckedSeed, type Pet, petMembers } from './pet.ts'
import { checkSeed, isCategoryId, isId, nameFault, type SeedFault } from './pet-rules.ts'
import { defaultStatus, petStatuses } from './pet-status.ts'

const memberTexts = petMembers.map((name) => Buffer.from(`"${name}"`))
const statusTexts = petStatuses.map((status) => Buffer.from(`"${status}"`))

/**
 * Reads what SeedPetSchema takes, as long as each member is given at most once, and names and statuses have no escapes. Returns
 * undefined for anything else: then the reader is somewhere in the middle of it, and the caller reads it again in another way.
 */
export function readPlainPet(reader: JsonReader): CheckedSeed | undefined {
  if (!reader.accept(openBrace)) return undefined
  let id: unknown
  let name: unknown
  let categoryId: unknown
  let status: Pet['status'] | undefined
  for (let first = true; reader.acceptMore('}', first); first = false) {
    const member = petMembers[reader.acceptOneOf(memberTexts)]
    if (member === undefined) return undefined
    reader.readColon()
    // Stays undefined if the value is not plain, or if the member was given before.
    let value: unknown
    if (member === 'status' && status === undefined)
      value = status = petStatuses[reader.acceptOneOf(statusTexts)]
    else if (member === 'id' && id === undefined) value = id = reader.readScalar()
    else if (member === 'name' && name === undefined) value = name = reader.readScalar()
    else if (member === 'categoryId' && categoryId === undefined) value = categoryId = reader.readScalar()
    if (value === undefined) return undefined
  }
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
  reader.skipSpace()
  const start = reader.at
  const plain = readPlainPet(reader)
  if (plain !== undefined) return plain
  reader.at = start
  const offsets = new Map<string, number>()
  const members: [string, unknown][] = []
  const isObject = reader.accept(openBrace)
  if (isObject) {
    reader.readMembers((member, offset) => {
      if (offsets.has(member)) report({ member, message: 'is given twice' }, offset)
      else offsets.set(member, offset)
      members.push([member, reader.readValue()])
    })
  }
  const checked = checkSeed(isObject ? Object.fromEntries(members) : reader.readValue())
  if ('seed' in checked) return members.length > offsets.size ? undefined : checked.seed
  for (const fault of checked.faults) report(fault, offsets.get(fault.member ?? '') ?? start)
  return undefined
}

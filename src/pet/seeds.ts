/**
 * Pets as a person writes them in the data file or in a test, with missing ids and ids that are given twice.
 */
import { isInt64, type Int64 } from '../json/int64.ts'
import type { JsonReader } from '../json/json.ts'
import { parseSeed, formatSeedFault, isId, isName, type SeedFault } from './pet-rules.ts'
import {
  type CheckedSeed,
  defaultStatus,
  type EachMember,
  fillIds,
  hasId,
  isPetMember,
  type Pet,
  petMembers,
  petStatuses,
} from './pet.ts'

/** `firstAt`: where the seed is written that had the id before. */
type TakenId = SeedFault & { readonly firstAt: number }

export const noIdLeftFault: SeedFault = { member: undefined, message: 'no id is left for it' }

/**
 * Collects seeds in the order in which they are written. Missing ids are assigned last, above the highest id
 * given.
 */
export class SeedList {
  readonly #pets: Pet[] = []
  readonly #positions: number[] = []
  readonly #withoutId: { readonly seed: CheckedSeed; readonly at: number; readonly index: number }[] = []
  #highestId: Int64 = 0
  /** Undefined while ids ascend: then none is given twice, and a Map of all would only take memory. */
  #positionOfId: Map<Int64, number> | undefined

  /** Adds a seed that is written at `at`. If its id is taken, returns that fault instead. */
  add(seed: CheckedSeed, at: number, index: number): TakenId | undefined {
    if (!hasId(seed)) {
      this.#withoutId.push({ seed, at, index })
      return undefined
    }
    const { id } = seed
    if (id > this.#highestId) this.#highestId = id
    else this.#positionOfId ??= new Map(this.#pets.map((pet, i) => [pet.id, this.#positions[i] ?? 0]))
    const firstAt = this.#positionOfId?.get(id)
    if (firstAt !== undefined) return { member: 'id', message: `${id} is given twice`, firstAt }
    this.#positionOfId?.set(id, at)
    this.#pets.push(seed)
    this.#positions.push(at)
    return undefined
  }

  /**
   * Fills in the missing ids. The pets come by ascending id; `noIdLeft` is the first seed that gets none;
   * `hasAscendingIds`: whether all were written so.
   */
  complete(highestId: Int64) {
    const seeds = this.#withoutId.map(({ seed }) => seed)
    const highest = this.#highestId > highestId ? this.#highestId : highestId
    const filled = fillIds(seeds, highest).filter((pet) => pet !== undefined)
    if (this.#positionOfId !== undefined) this.#pets.sort((a, b) => (a.id < b.id ? -1 : 1))
    return {
      pets: [...this.#pets, ...filled],
      filledIds: filled.map(({ id }, i) => ({ id, at: this.#withoutId[i]?.at ?? 0 })),
      noIdLeft: this.#withoutId[filled.length],
      hasAscendingIds: this.#positionOfId === undefined && filled.length === 0,
    }
  }
}

/** Returns the pets of an in-memory store, by ascending id, and each thing that is wrong with them. */
export function parseSeeds(values: readonly unknown[]): {
  readonly pets: Pet[]
  readonly faults: readonly string[]
} {
  const list = new SeedList()
  const faults: string[] = []
  for (const [index, value] of values.entries()) {
    const seed = parseSeed(value, (fault) => faults.push(formatSeedFault(index, fault)))
    const fault = seed && list.add(seed, index, index)
    if (fault !== undefined) faults.push(`${formatSeedFault(index, fault)}, first in pets[${fault.firstAt}]`)
  }
  const { pets, noIdLeft } = list.complete(0)
  if (noIdLeft !== undefined) faults.push(formatSeedFault(noIdLeft.index, noIdLeftFault))
  return { pets, faults }
}

/** Returns the same pets. Throws a TypeError with a line for each thing that is wrong. */
export function completeSeeds(values: readonly unknown[]): Pet[] {
  const { pets, faults } = parseSeeds(values)
  if (faults.length > 0) throw new TypeError(faults.join('\n'))
  return pets
}

const quotedMembers = petMembers.map((member) => Buffer.from(`"${member}"`))
const quotedStatuses = petStatuses.map((status) => Buffer.from(`"${status}"`))

/** What was read of a pet. */
type Draft = { -readonly [Member in keyof Required<Pet>]: Pet[Member] | undefined }

/** These read the value of each member. They return undefined for one that SeedPetSchema may not take. */
const memberReaders: { readonly [Member in keyof Draft]: (reader: JsonReader) => Draft[Member] } = {
  id: (reader) => readValue(reader, isId),
  name: (reader) => readValue(reader, isName),
  categoryId: (reader) => readValue(reader, isInt64),
  status: (reader) => petStatuses[reader.acceptOneOf(quotedStatuses)],
}

function readValue<Value>(
  reader: JsonReader,
  isValue: (value: unknown) => value is Value,
): Value | undefined {
  const value = reader.readScalar()
  return isValue(value) ? value : undefined
}

function readMember<Member extends keyof Draft>(draft: Draft, member: Member, reader: JsonReader): boolean {
  const value = memberReaders[member](reader)
  draft[member] = value
  return value !== undefined
}

/**
 * Reads what SeedPetSchema takes, if each member is given at most once, and no member name has an escape.
 * Otherwise returns undefined, and leaves the reader in the middle of the pet.
 */
export function readPlainPet(reader: JsonReader): CheckedSeed | undefined {
  if (!reader.accept('{')) return undefined
  const draft: Draft = { id: undefined, name: undefined, categoryId: undefined, status: undefined }
  for (let first = true; reader.acceptMore('}', first); first = false) {
    const member = petMembers[reader.acceptOneOf(quotedMembers)]
    if (member === undefined || draft[member] !== undefined || !reader.accept(':')) return undefined
    if (!readMember(draft, member, reader)) return undefined
  }
  const { id, name, categoryId, status = defaultStatus } = draft
  if (name === undefined || categoryId === undefined) return undefined
  return { id, name, categoryId, status } satisfies EachMember<unknown>
}

/** Reads a pet, and reports all that is wrong with it. Throws a JsonFault on a syntax error. */
export function readPet(
  reader: JsonReader,
  report: (fault: SeedFault, offset: number) => void,
): CheckedSeed | undefined {
  const start = reader.at
  const plain = readPlainPet(reader)
  if (plain !== undefined) return plain
  reader.at = start
  const offsets = new Map<string, number>()
  const value = reader.accept('{') ? readMembers(reader, offsets, report) : reader.readShallowValue()
  return parseSeed(value, (fault) => report(fault, offsets.get(fault.member ?? '') ?? start))
}

/**
 * Returns the members that a pet has, with `[]` and `{}` for what is in brackets. The others are reported,
 * and not built: a wrong file may be large.
 */
function readMembers(
  reader: JsonReader,
  offsets: Map<string, number>,
  report: (fault: SeedFault, offset: number) => void,
): object {
  const members: Record<string, unknown> = {}
  for (let first = true; reader.acceptMore('}', first); first = false) {
    const offset = reader.at
    const member = reader.readName()
    if (isPetMember(member)) {
      if (offsets.has(member)) report({ member, message: 'is given twice' }, offset)
      else offsets.set(member, offset)
      members[member] = reader.readShallowValue()
    } else {
      report({ member, message: 'is not a member of a pet' }, offset)
      reader.skipValue()
    }
  }
  return members
}

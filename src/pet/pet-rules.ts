/** What each member of a pet may be (interface section 2), as rules and as schemas, and what is said of one that is wrong. */
import * as v from 'valibot'
import { shorten } from '../messages/describe.ts'
import { expected, expectedValid, expectedMessage } from '../messages/expected.ts'
import { InexactNumber, isInt64, normalizeInt64, type Int64 } from '../json/int64.ts'
import { type CheckedSeed, petMembers } from './pet.ts'
import { defaultStatus, petStatusChoice, petStatuses } from './pet-status.ts'

// The schemas and the fast reader of the data file both ask these three.

/** What keeps a text from being a name, if anything. */
export function nameFault(name: string): string | undefined {
  return name.isWellFormed() ? undefined : 'expected well-formed Unicode, got a lone surrogate'
}

export const isCategoryId = isInt64

export function isId(id: unknown): id is Int64 {
  return isInt64(id) && id > 0
}

/** What a schema says of a member that is missing. */
const required = 'is required'

const PetStatusSchema = v.picklist(petStatuses, expectedMessage(petStatusChoice))
const CategoryIdSchema = v.pipe(
  expected<Int64>('an int64 integer', isCategoryId),
  v.transform(normalizeInt64),
)
const IdSchema = expected<Int64>('an integer from 1 to 2^63-1', isId)

const entries = {
  name: expectedValid('a string', nameFault),
  categoryId: CategoryIdSchema,
  status: v.exactOptional(PetStatusSchema, defaultStatus),
}

/** The body that creates a pet (interface section 2, NewPet). Unknown members, `id` among them, are dropped. */
export const NewPetSchema = v.pipe(expected<object>('a JSON object', isObject), v.object(entries, required))

/** A pet as a person writes it into the data file or into a test: its id and status may be left out. */
export const SeedPetSchema = v.pipe(
  expected<object>('a pet', isObject),
  v.object({ id: v.exactOptional(v.pipe(IdSchema, v.transform(normalizeInt64))), ...entries }, required),
)

/** A stored pet. */
export const PetSchema = v.object({ id: IdSchema, ...entries, status: PetStatusSchema })

/** What is wrong with a seed; `member` is undefined when the seed is no pet at all. */
export interface SeedFault {
  readonly member: string | undefined
  readonly message: string
}

/** Returns the pet, or everything that is wrong with it. */
export function checkSeed(
  value: unknown,
): { readonly seed: CheckedSeed } | { readonly faults: readonly SeedFault[] } {
  const { success, output, issues = [] } = v.safeParse(SeedPetSchema, value)
  const faults = issues.map(({ path, message }): SeedFault => {
    const member = path?.[0]?.key
    return { member: member === undefined ? undefined : String(member), message }
  })
  if (faults.some(({ member }) => member === undefined)) return { faults }
  for (const member of Object.keys(Object(value))) {
    if (!petMembers.includes(member)) faults.push({ member, message: 'is not a member of a pet' })
  }
  return success && faults.length === 0 ? { seed: output } : { faults }
}

/** For a message: where a seed stands, and what is wrong with it. */
export function formatSeedFault(index: number, { member, message }: SeedFault): string {
  return `pets[${index}]${member === undefined ? '' : `.${shorten(member)}`}: ${message}`
}

function isObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  return !Array.isArray(value) && !(value instanceof InexactNumber)
}

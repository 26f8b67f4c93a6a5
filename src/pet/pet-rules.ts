/**
 * What each member of a pet may be (interface section 2), as rules and as schemas, and what is said of one
 * that is wrong.
 */
import * as v from 'valibot'
import { isInt64, normalizeInt64, type Int64 } from '../json/int64.ts'
import { isObject } from '../json/json.ts'
import { expected, expectedMessage, expectedValid } from '../text/schemas.ts'
import { shorten } from '../text/words.ts'
import {
  isPetMember,
  defaultStatus,
  petStatusChoice,
  petStatuses,
  type CheckedSeed,
  type NewPet,
} from './pet.ts'

// The schemas and the fast reader of the data file both ask these, and isInt64 for a category.

function findNameFault(name: string): string | undefined {
  return name.isWellFormed() ? undefined : 'expected well-formed Unicode, got a lone surrogate'
}

export function isName(name: unknown): name is string {
  return typeof name === 'string' && findNameFault(name) === undefined
}

export function isId(id: unknown): id is Int64 {
  return isInt64(id) && id > 0
}

const required = 'is required'

const PetStatusSchema = v.picklist(petStatuses, expectedMessage(petStatusChoice))
const IdSchema = expectedInt64('an integer from 1 to 2^63-1', isId)

/** A client may give these members. */
const entries = {
  name: expectedValid('a string', findNameFault),
  categoryId: expectedInt64('an int64 integer', isInt64),
  status: v.optional(PetStatusSchema, defaultStatus),
} satisfies Record<keyof NewPet, v.GenericSchema>

/** This body creates a pet (interface section 2, NewPet). Unknown members, `id` among them, are dropped. */
export const NewPetSchema = v.pipe(expected<object>('a JSON object', isObject), v.object(entries, required))

/** A person writes a pet in this way into the data file or into a test: its id and status may be left out. */
export const SeedPetSchema = v.pipe(
  expected<object>('a pet', isObject),
  v.object({ id: v.optional(IdSchema), ...entries }, required),
)

export const PetSchema = v.object({ id: IdSchema, ...entries, status: PetStatusSchema })

/** What is wrong with a seed; `member` is undefined when the seed is no pet at all. */
export interface SeedFault {
  readonly member: string | undefined
  readonly message: string
}

/**
 * Reports all that is wrong with a seed. Returns it without the members that no pet has, if the rest could be
 * a pet.
 */
export function parseSeed(value: unknown, report: (fault: SeedFault) => void): CheckedSeed | undefined {
  const { success, output, issues = [] } = v.safeParse(SeedPetSchema, value)
  for (const { path, message } of issues) report({ member: path && String(path[0].key), message })
  for (const member of isObject(value) ? Object.keys(value) : []) {
    if (!isPetMember(member)) report({ member, message: 'is not a member of a pet' })
  }
  return success ? output : undefined
}

export function formatSeedFault(index: number, { member, message }: SeedFault): string {
  return `pets[${index}]${member === undefined ? '' : `.${shorten(member)}`}: ${message}`
}

function expectedInt64(words: string, isValue: (value: unknown) => boolean) {
  const message = (issue: { readonly input: unknown }): string =>
    expectedMessage(words)(issue) +
    (isRounded(issue.input) ? ', which JavaScript has rounded: write it as a bigint' : '')
  return v.pipe(v.custom<Int64>(isValue, message), v.transform(normalizeInt64))
}

/** Returns whether a number of a caller's code may have been another integer. Those of JSON are exact. */
function isRounded(value: unknown): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value)
}

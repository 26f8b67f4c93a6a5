/**
 * The statuses of a pet (interface section 3). Types, schemas and the index derive from this list. Where it has to be repeated,
 * such as in data/pets.schema.json and page.css, a test compares it.
 */

export const petStatuses = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof petStatuses)[number]

/** The status of a pet that is created without one. */
export const defaultStatus = 'available' satisfies PetStatus

/** For messages: `available, pending or sold`. */
export const petStatusChoice = petStatuses.join(', ').replace(/, (\w+)$/, ' or $1')

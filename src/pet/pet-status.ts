/**
 * The statuses of a pet (interface section 3). Types, schemas and the index derive from this list; data/pets.schema.json repeats
 * it (a test compares them), and page.css has a color for each.
 */

export const petStatuses = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof petStatuses)[number]

/** The status of a pet that is created without one. */
export const defaultStatus = 'available' satisfies PetStatus

/** For messages: `available, pending or sold`. */
export const petStatusChoice = petStatuses.join(', ').replace(/, (\w+)$/, ' or $1')

/** The availabilities of a pet (interface section 3). The one list: types, schemas, the index and the page derive from it. */

export const petStatuses = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof petStatuses)[number]

/** The status of a pet that is created without one. */
export const defaultStatus = 'available' satisfies PetStatus

/** For messages: `available, pending or sold`. */
export const petStatusChoice = petStatuses.join(', ').replace(/, (\w+)$/, ' or $1')

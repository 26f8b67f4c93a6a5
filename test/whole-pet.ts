/** A pet with a value for every member that a client may give, and one with another value for each. */
import type { PetWithoutId } from '../src/pet/pet.ts'

export const wholePet: Required<PetWithoutId> = { name: 'Rex', categoryId: 7, status: 'sold' }

/** The name has an escape in its JSON text, so this one is read by another way. */
export const otherPet: Required<PetWithoutId> = { name: 'Mia "II"', categoryId: 8, status: 'pending' }

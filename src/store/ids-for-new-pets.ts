/** Which id each new pet gets: one above all that were given before. Does not know where pets are stored. */
import { nextInt64, type Int64 } from '../json/int64.ts'
import type { Pet, PetWithoutId } from '../pet/pet.ts'
import { PetStoreError } from './store-refusals.ts'

const noIdLeft = 'There is no id left: the highest is 9223372036854775807. Nothing was stored.'

/** A pet with its id, or an error when no id is left for it. */
export type Assigned = Pet | PetStoreError

type Kept = readonly (Assigned | undefined)[]

/** In the order of the new pets. One that has a pet at its place in `kept` becomes that pet. */
export function assignIds(newPets: readonly PetWithoutId[], highestId: Int64, kept: Kept = []): Assigned[] {
  let last = highestId
  return newPets.map((newPet, index) => {
    const pet = kept[index]
    if (pet !== undefined) return pet
    const id = nextInt64(last)
    if (id === undefined) return new PetStoreError('insufficient_storage', noIdLeft)
    last = id
    return { id, ...newPet }
  })
}

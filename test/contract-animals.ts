/** The pets that the contract suite adds: bodies digit for digit, and enough of each status to tell a full page. */
import { randomInt } from 'node:crypto'
import type { Answer, Client } from './contract-client.ts'
import {
  block,
  blockStatus,
  expectAnimal,
  findStray,
  idOf,
  isSuccess,
  readId,
  readPets,
  show,
  statuses,
  TooSlow,
} from './contract-expect.ts'
import { isObject } from './contract-json.ts'
import { shareOf } from './contract-verdict.ts'

export const maxLimit = 100
/** Of each status, so that all together are more than the largest page. */
const stockOfEachStatus = 34

export interface Animal {
  id: string
  pet: Record<string, unknown>
  answer: Answer
}

export interface Animals {
  /** Adds a pet that a case of another section than 4.2 needs. */
  addAnimal(members?: Record<string, string>): Promise<Animal>
  /** The same pet each time, for a case that only needs one to be there. */
  anyAnimal(): Promise<Animal>
  /** Fetches a pet that a case of another section than 4.3 needs. */
  fetchAnimal(id: string): Promise<Answer>
  /** Blames section 4.2 for a pet that was added and can neither be fetched nor listed. */
  expectKept(id: string): Promise<void>
  /** Blames section 2 for an id that two creations were answered with. */
  expectUnique(id: string, answer: Answer): Promise<void>
  /** Makes sure, once, that the store holds more pets than any page, and more of each status than a default page. */
  stock(): Promise<void>
  /** A status that fewer pets have than a page holds, so that a list of it has to show each of them. */
  findRoom(): Promise<string | undefined>
}

/** `isPatient` adds as many pets as fill a page also if each takes long. */
export function createAnimals(client: Client, isPatient: boolean): Animals {
  let any: Promise<Animal> | undefined
  let stocking: Promise<void> | undefined

  const addAnimal = async (members: Record<string, string> = {}): Promise<Animal> => {
    const answer = await client.add(newPet(members))
    if (!isSuccess(answer)) block('4.2', answer, 'success')
    const animal = { id: readId(answer), pet: isObject(answer.json) ? answer.json : {}, answer }
    await expectUnique(animal.id, answer)
    if (members['status'] !== undefined) {
      expectAnimal(answer)
      const given = animal.pet['status']
      if (given === undefined) blockStatus(answer)
      const expected = `status ${members['status']}`
      if (show(given) !== members['status'])
        block('3', answer, expected, `status ${show(given)}: ${answer.received}`)
    }
    return animal
  }

  const expectKept = async (id: string): Promise<void> => {
    const found = await client.get(id)
    if (found.status !== 404) return
    for (const status of statuses) {
      const list = await client.list(`?status=${status}&limit=${maxLimit}`)
      // Whoever lists it has kept it. A list that is no list, or is full, does not say.
      if (list.status !== 200 || !Array.isArray(list.json)) return
      const pets = readPets(list)
      if (pets.length >= maxLimit || pets.some((pet) => idOf(pet) === id)) return
    }
    block(
      '4.2',
      found,
      `pet ${id}, which was just added`,
      `it is not stored: no list has it, and this is ${found.received}`,
    )
  }

  const expectUnique = async (id: string, answer: Answer): Promise<void> => {
    if (client.addedIds.indexOf(id) === client.addedIds.lastIndexOf(id)) return
    // A store that keeps nothing may count the same id again and again.
    await expectKept(id)
    block('2', answer, 'an id that no other pet has', `id ${id}, which another pet was given as well`)
  }

  const listOf = async (status: string) =>
    readPets(await client.list(`?status=${status}&limit=${maxLimit}`)).filter(
      (pet) => pet['status'] === status,
    )

  const fill = async (status: string): Promise<void> => {
    const missing = stockOfEachStatus - (await listOf(status)).length
    // One after the other: the smallest servers have no room for many connections at once.
    for (let added = 0; added < missing; added += 1) {
      const { id } = await addAnimal({ status: quote(status) })
      if (added === 0) await expectKept(id)
    }
  }

  return {
    addAnimal,
    expectKept,
    expectUnique,
    anyAnimal() {
      any ??= addAnimal()
      return any
    },
    async fetchAnimal(id) {
      const answer = await client.get(id)
      if (answer.status === 404) await expectKept(id)
      if (answer.status !== 200) block('4.3', answer, `200: pet ${id} was just added`)
      await expectUnique(id, answer)
      const given = isObject(answer.json) ? answer.json['id'] : undefined
      if (given !== undefined && String(given) !== id)
        block('4.3', answer, `pet ${id}`, `pet ${show(given)}: ${answer.received}`)
      return answer
    },
    stock() {
      if (!isPatient && shareOf(client) < 1)
        return Promise.reject(new TooSlow('the server is slow, and they need a hundred pets'))
      stocking ??= statuses.reduce((before, status) => before.then(() => fill(status)), Promise.resolve())
      return stocking
    },
    async findRoom() {
      // From the last one on: a pet without a status of its own is mostly available.
      for (const status of statuses.toReversed()) {
        const answer = await client.list(`?status=${status}&limit=${maxLimit}`)
        const stray = findStray(answer, status)
        if (stray !== undefined) block('4.1', answer, `only pets that are ${status}`, stray)
        if (readPets(answer).length < maxLimit - 1) return status
      }
      return undefined
    },
  }
}

/** A name that no constraint has cause to refuse: letters only, not long, never used before. */
export function newName(): string {
  const letters = Array.from({ length: 9 }, () => String.fromCodePoint(randomInt(97, 123)))
  return `Rex${letters.join('')}`
}

/**
 * A creation body as JSON text. Members are JSON text as well, so that each int64 is sent digit for digit; undefined leaves one
 * out.
 */
export function newPet(members: Record<string, string | undefined> = {}): string {
  const all = { name: quote(newName()), categoryId: '1', ...members }
  const pairs = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`${quote(name)}:${value}`],
  )
  return `{${pairs.join(',')}}`
}

export function quote(text: string): string {
  return JSON.stringify(text)
}

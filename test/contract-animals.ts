/** The pets that the contract suite adds: bodies digit for digit, and enough of each status to tell a full page. */
import { randomInt } from 'node:crypto'
import type { Answer, Client } from './contract-client.ts'
import {
  block,
  blockStatus,
  countPets,
  expectAnimal,
  expectOnlyElsewhere,
  idOf,
  isSuccess,
  noRoom,
  NotTried,
  readId,
  readPets,
  show,
  statuses,
  TooSlow,
  violate,
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
  /** A status whose list has to show each of its pets. */
  findRoom(): Promise<string>
  /** One pet of each status, the same each time. */
  oneOfEach(): Promise<ReadonlyMap<string, Animal>>
  /** Tries to have a pet of each status in the store, for a case that is not about creations. */
  tryOneOfEach(): Promise<void>
  /** All lists, which show a pet of each status that this run has added. */
  readListsOfNewPets(): Promise<readonly Answer[]>
  /**
   * Fails if `isStray` is true of a pet. It is looked for in all lists, and by the ids that follow `fromId`, which a pet was given before the
   * request that should have stored nothing.
   */
  expectNone(
    isStray: (pet: Record<string, unknown>) => boolean,
    expected: string,
    fromId?: string,
  ): Promise<void>
}

/** Beyond the largest page: a server that has no largest one shows all. */
const beyondMaxLimit = 1_000_000
/** Other clients may add pets meanwhile, so that more ids are between two. */
const maxProbes = 60

/** `isPatient` adds as many pets as fill a page also if each takes long. */
export function createAnimals(client: Client, isPatient: boolean): Animals {
  let any: Promise<Animal> | undefined
  let ofEach: Promise<ReadonlyMap<string, Animal>> | undefined
  let trial: typeof ofEach
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
      `pet ${id}, which was added before`,
      `it is not stored, or no longer: no list has it, and this is ${found.received}`,
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

  const oneOfEach = (): Promise<ReadonlyMap<string, Animal>> => {
    const add = async () => {
      const pets = new Map<string, Animal>()
      for (const status of statuses) pets.set(status, await addAnimal({ status: quote(status) }))
      return pets
    }
    // A server that hangs is asked again: each case that needs a pet waits for a request of its own.
    ofEach ??= add().catch((error: unknown) => {
      ofEach = undefined
      throw error
    })
    return ofEach
  }

  const readLists = async () => {
    const all = await client.list(`?limit=${maxLimit}`)
    const ofStatus = new Map<string, Answer>()
    for (const status of statuses)
      ofStatus.set(status, await client.list(`?status=${status}&limit=${maxLimit}`))
    /** A page of one status that is as long as one of everything may be full. */
    const isWhole = (status: string) => readPets(ofStatus.get(status) ?? all).length < readPets(all).length
    /** For what no list shows. */
    const giveUp = async (): Promise<never> => {
      // Where statuses or pets are not kept, that is the reason.
      const added = await oneOfEach()
      for (const { id } of added.values()) await expectKept(id)
      for (const [status, answer] of ofStatus) {
        expectOnlyElsewhere(answer, status)
        for (const pet of readPets(answer)) {
          const before = readPets(all).find((other) => idOf(other) === idOf(pet))?.['status'] ?? status
          if (before === status) continue
          await expectUnique(idOf(pet), answer)
          block(
            '4.1',
            answer,
            `pets that are ${status}`,
            `pet ${idOf(pet)} among them, which was listed as ${String(before)}`,
          )
        }
      }
      const { length } = readPets(all)
      const missing = findMissing(all, added)
      if (missing !== undefined && length < maxLimit) block('4.1', all, missing.expected, missing.received)
      if (length < maxLimit)
        block('8', all, `${countPets(maxLimit)}, since the store holds more`, countPets(length))
      throw new NotTried(noRoom)
    }
    return { all, ofStatus, isWhole, giveUp }
  }

  /** In a list with any limit and status, and as a pet that has an id between two. Undefined if nothing shows it. */
  const findStrayBeyondLists = async (
    isStray: (pet: Record<string, unknown>) => boolean,
    fromId: string | undefined,
  ): Promise<readonly [Answer, Record<string, unknown>] | undefined> => {
    for (const query of [`?limit=${beyondMaxLimit}`, `?status=lost&limit=${maxLimit}`]) {
      const answer = await client.list(query)
      const stray = petsIn(answer).find(isStray)
      if (stray !== undefined) return [answer, stray]
    }
    const last = await addAnimal().catch(() => undefined)
    for (const id of idsBetween(fromId, last?.id)) {
      if (client.addedIds.includes(id)) continue
      const answer = await client.get(id)
      const stray = petsIn(answer).find(isStray)
      if (stray !== undefined) return [answer, stray]
    }
    return undefined
  }

  return {
    addAnimal,
    expectKept,
    oneOfEach,
    async tryOneOfEach() {
      trial ??= oneOfEach()
      await trial.catch(() => {})
    },
    async readListsOfNewPets() {
      const added = await oneOfEach()
      const { all, ofStatus, isWhole, giveUp } = await readLists()
      for (const [status, { id }] of added) {
        const list = ofStatus.get(status) ?? all
        if ([...readPets(list), ...readPets(all)].some((pet) => idOf(pet) === id)) continue
        await expectKept(id)
        if (!isWhole(status)) await giveUp()
        block('4.1', list, `pet ${id} among them, for it was just added`, 'a list without it')
      }
      return [all, ...ofStatus.values()]
    },
    async expectNone(isStray, expected, fromId) {
      const { all, ofStatus, isWhole, giveUp } = await readLists()
      for (const list of [all, ...ofStatus.values()]) {
        const stray = readPets(list).find(isStray)
        if (stray !== undefined) violate(list, expected, nameStray(list, stray))
      }
      const [answer, stray] = (await findStrayBeyondLists(isStray, fromId)) ?? []
      if (answer !== undefined && stray !== undefined) violate(answer, expected, nameStray(answer, stray))
      if (!statuses.every(isWhole)) await giveUp()
    },
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
      await oneOfEach()
      const { ofStatus, isWhole, giveUp } = await readLists()
      for (const [status, answer] of ofStatus) expectOnlyElsewhere(answer, status)
      // From the last one on: a pet without a status of its own is mostly available.
      const found = statuses.findLast((status) => {
        const list = ofStatus.get(status)
        // A few more are added by the case.
        return list !== undefined && isWhole(status) && readPets(list).length < maxLimit - 2
      })
      return found ?? (await giveUp())
    },
  }
}

function nameStray({ received }: Answer, pet: Record<string, unknown>): string {
  return `pet ${idOf(pet)} (name ${show(pet['name'])}, categoryId ${show(pet['categoryId'])}): ${received}`
}

/** The pets of a list, or the one that was asked for. Empty for what is no success, or shows none. */
function petsIn(answer: Answer): Record<string, unknown>[] {
  if (!isSuccess(answer)) return []
  const found: unknown[] = Array.isArray(answer.json) ? answer.json : [answer.json]
  return found.filter(isObject)
}

/** Those between two ids, if both are integers and not far from each other, as they are in a store that counts. */
function idsBetween(first: string | undefined, last: string | undefined): readonly string[] {
  if (![first, last].every((id) => /^\d{1,19}$/.test(id ?? ''))) return []
  const [low = 0n, high = 0n] = [BigInt(first ?? 0), BigInt(last ?? 0)].toSorted((a, b) => (a < b ? -1 : 1))
  const count = Math.max(0, Number(high - low) - 1)
  return count > 4 * maxProbes
    ? []
    : Array.from({ length: count }, (_, index) => String(low + 1n + BigInt(index))).slice(0, maxProbes)
}

/** A status of which a list without a filter shows no pet, with a pet that has it, in words. */
export function findMissing(
  answer: Answer,
  added: ReadonlyMap<string, Animal>,
): { readonly id: string; readonly expected: string; readonly received: string } | undefined {
  const pets = readPets(answer)
  for (const [status, { id }] of added)
    if (!pets.some((pet) => pet['status'] === status))
      return {
        id,
        expected: `pet ${id} among them, which is ${status}, for no status was asked for`,
        received: `${countPets(pets.length)}, none of them ${status}`,
      }
  return undefined
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

/**
 * What the contract suite says when a response breaks the interface: what was sent, expected and received. The reader is the author
 * of the server and does not know the suite, so there is no stack in it.
 */
import { type Answer, Finding, formatCodePoint, shorten } from './contract-client.ts'
import { isInt64, isObject } from './contract-json.ts'

export const statuses = ['available', 'pending', 'sold']

/** The interface is broken, and the message says how. */
export class Violation extends Finding {}

/** A body is not what it has to be, whatever is in it: this comes before all that is read in it. */
export class FormViolation extends Violation {}

/**
 * A case cannot be judged, because a response that it builds on breaks another section. That section reports it, so that a fault
 * fails where it belongs instead of everywhere.
 */
export class Blocked extends Violation {
  /** The number of the section that has to fail for this. */
  readonly section: string
  /** What is wrong, in one line. */
  readonly reason: string

  constructor(section: string, answer: Answer, expected: string, received: string) {
    super(answer, expected, received)
    this.section = section
    this.reason = `${answer.sent}: expected ${expected}, received ${received}`
  }
}

/** A case cannot be tried here, which is nobody's fault. The message says why. */
export class NotTried extends Error {}

/** Whoever wants it tried can empty the store. */
export const noRoom =
  'the store holds so many pets that no list has to show a new one. Start the server with an empty store'

/** A case is left out, because it takes the server too long. */
export class TooSlow extends NotTried {}

export function violate(answer: Answer, expected: string, received = answer.received): never {
  throw new Violation(answer, expected, received)
}

/** For a response that another section than the case's own is about. */
export function block(section: string, answer: Answer, expected: string, received = answer.received): never {
  throw new Blocked(section, answer, expected, received)
}

export function isSuccess(answer: Answer): boolean {
  return answer.status >= 200 && answer.status < 300
}

/** A refusal that blames the request. A 5xx is none: it says that the service failed. */
export function isRefusal(answer: Answer): boolean {
  return answer.status >= 400 && answer.status < 500
}

/** `reason` says what is right or wrong about the request. */
export function expectStatus(answer: Answer, allowed: number, reason = ''): void {
  if (answer.status === allowed) return
  expectOneStatus(answer)
  violate(answer, `${allowed}${reason && `: ${reason}`}`)
}

/** For a request that gets nothing, while the interface leaves open how it is refused. */
export function expectRefusal(answer: Answer, reason: string): void {
  if (isRefusal(answer)) return
  expectOneStatus(answer)
  violate(answer, `a refusal (4xx; the interface leaves open which): ${reason}`)
}

/** An Error body must not come as a success. */
export function expectOneStatus(answer: Answer): void {
  const status = readMember(answer, 'status')
  if (isSuccess(answer) && typeof status === 'bigint' && typeof readMember(answer, 'code') === 'string')
    violate(answer, `status ${status} not only in the body, but also in the first line of the response`)
}

/** For a section that is not about which success status it is. */
export function expectSuccess(answer: Answer, words = 'success'): void {
  if (!isSuccess(answer)) violate(answer, words)
}

export function expectJson(answer: Answer): void {
  expectJsonType(answer)
  if (answer.json === undefined)
    throw new FormViolation(answer, 'a body that is JSON', `${answer.jsonFault}: ${answer.received}`)
}

function expectJsonType(answer: Answer): void {
  const mediaType = answer.contentType.split(';')[0]?.trim().toLowerCase()
  if (mediaType !== 'application/json')
    violate(
      answer,
      'Content-Type: application/json',
      `${answer.contentType || 'no Content-Type'}: ${answer.received}`,
    )
}

const arrayWords = 'a JSON array ([] if there is nothing), wrapped in nothing'

export function expectArray(answer: Answer): void {
  if (!Array.isArray(answer.json)) throw new FormViolation(answer, arrayWords, nameBody(answer))
}

function nameBody({ json, jsonFault, received }: Answer): string {
  return json === undefined ? `${jsonFault}: ${received}` : received
}

/** Integers are given as bigints, and may come as strings of the same digits: types are section 2's, by expectPet. */
export function expectMembers(answer: Answer, members: Record<string, unknown>): void {
  expectAnimal(answer)
  for (const [name, value] of Object.entries(members)) {
    const given = readMember(answer, name)
    const isSame = given === value || (typeof value === 'bigint' && String(given) === String(value))
    if (isSame) continue
    const received = `${name} ${show(given)}: ${answer.received}`
    if (given === undefined) violate(answer, `a pet with ${name}`, received)
    const [wanted, got] = tellApart(value, given)
    violate(answer, `${name} ${show(value)}${wanted}${hintFor(value, given)}`, `${got}${received}`)
  }
}

/** What differs in two texts that look the same, such as ë as one character and as two, or that are long. */
function tellApart(value: unknown, given: unknown): readonly [value: string, given: string] {
  if (typeof value !== 'string' || typeof given !== 'string') return ['', '']
  if (show(value).normalize() !== show(given).normalize()) return ['', '']
  const [chars, givenChars] = [Array.from(value), Array.from(given)]
  const index = chars.findIndex((char, at) => char !== givenChars[at])
  const at = index === -1 ? chars.length : index
  return [
    `, with ${nameChar(chars[at])} as character ${at + 1}`,
    `${nameChar(givenChars[at])} as character ${at + 1}: `,
  ]
}

function nameChar(char: string | undefined): string {
  return char === undefined ? 'nothing' : formatCodePoint(char)
}

/** Section 2 tells what is no pet at all. */
export function expectAnimal(answer: Answer): void {
  const isAnimal = ['name', 'categoryId'].every((name) => readMember(answer, name) !== undefined)
  if (!isAnimal) block('2', answer, petWords, findPetFault(answer, answer.json))
}

/** In section 3. Undefined as a status is no status. */
export function blockStatus(answer: Answer): never {
  block('3', answer, 'a pet with status', `status (missing): ${answer.received}`)
}

function hintFor(value: unknown, given: unknown): string {
  const isBig = typeof value === 'bigint' && BigInt.asIntN(32, value) !== value && typeof given === 'bigint'
  if (isBig) return ', as a 64-bit integer: 32 bits cut it, and a double rounds it'
  if (typeof value !== 'string' || typeof given !== 'string') return ''
  const [, beyondAscii = ''] = /([^\0-\x7f]+)/.exec(value) ?? []
  return given.includes(beyondAscii) ? '' : ', read and written in UTF-8'
}

const petMembers = ['id', 'name', 'categoryId', 'status']
const petWords = 'a pet with members named id (int64), name (string) and categoryId (int64)'

export function expectPet(answer: Answer, pet: unknown): void {
  const fault = findPetFault(answer, pet)
  if (fault !== undefined) throw new FormViolation(answer, petWords, fault)
}

function findPetFault({ received }: Answer, pet: unknown): string | undefined {
  if (!isObject(pet)) return `${Array.isArray(pet) ? 'an array' : show(pet)}, which is no object: ${received}`
  const unknown = Object.keys(pet).filter((name) => !petMembers.includes(name))
  const missing = petMembers.filter((name) => !(name in pet) && name !== 'status')
  if (unknown.length > 0 && missing.length > 0)
    return `no ${missing.join(', no ')}, but ${shorten(unknown.join(', '), 80)}: ${received}`
  if (typeof pet['name'] !== 'string') return `name ${show(pet['name'])}, which is no string: ${received}`
  for (const member of ['categoryId', 'id'])
    if (!isInt64(pet[member])) return `${member} ${show(pet[member])}, which is no int64 integer: ${received}`
  return undefined
}

export function expectAtMost(answer: Answer, limit: number): void {
  expectStatus(answer, 200)
  const { length } = readPets(answer)
  if (length > limit) violate(answer, `at most ${countPets(limit)}`, countPets(length))
}

export function expectCount(answer: Answer, count: number): void {
  expectStatus(answer, 200)
  const { length } = readPets(answer)
  if (length > count) block('4.1', answer, `at most ${countPets(count)}`, countPets(length))
  if (length !== count) violate(answer, `${countPets(count)}, since the store holds more`, countPets(length))
}

export function expectOnly(answer: Answer, status: string): void {
  expectStatus(answer, 200)
  const stray = findStray(answer, status)
  if (stray !== undefined) violate(answer, `only pets that are ${status}`, stray)
}

/** For a case that is not about the filter. */
export function expectOnlyElsewhere(answer: Answer, status: string): void {
  const stray = findStray(answer, status)
  if (stray !== undefined) block('4.1', answer, `only pets that are ${status}`, stray)
}

/** A pet of another status, in words. */
function findStray(answer: Answer, status: string): string | undefined {
  const stray = readPets(answer).find((pet) => pet['status'] !== status)
  if (stray === undefined) return undefined
  const fault = findPetFault(answer, stray)
  if (fault !== undefined) block('2', answer, petWords, fault)
  if (stray['status'] === undefined) blockStatus(answer)
  return `pet ${idOf(stray)} with status ${show(stray['status'])}: ${answer.received}`
}

/** For a list with limit=100. A full page may leave the pet out, for the order of a list is open. */
export function expectListed(answer: Answer, id: string): void {
  const pets = readPets(answer)
  if (pets.some((pet) => idOf(pet) === id)) return
  if (pets.length >= 100) throw new NotTried(noRoom)
  violate(
    answer,
    `pet ${id} among them, for it was just added, and 100 of its status were asked for`,
    `${countPets(pets.length)}, that one not among them`,
  )
}

/** The pets of a list response, for a case that is not about the list's status or form. */
export function readPets(answer: Answer): Record<string, unknown>[] {
  if (answer.status !== 200) block('4.1', answer, '200')
  expectOneStatus(answer)
  if (!Array.isArray(answer.json)) block('2', answer, arrayWords, nameBody(answer))
  const pets: unknown[] = answer.json
  if (!pets.every(isObject)) block('2', answer, 'an array of objects')
  const withoutId = pets.find((pet) => pet['id'] === undefined)
  if (withoutId !== undefined) block('2', answer, petWords, findPetFault(answer, withoutId))
  return pets
}

export function expectId(answer: Answer, id: string): void {
  const given = readMember(answer, 'id')
  if (String(given) !== id) violate(answer, `id ${id}`, `id ${show(given)}: ${answer.received}`)
}

/** In decimal, whether it came as an integer, as it must, or otherwise. */
export function idOf(pet: Record<string, unknown>): string {
  return String(pet['id'])
}

/** The id that a creation was answered with. */
export function readId(answer: Answer): string {
  if (!isSuccess(answer)) block('4.2', answer, 'success')
  const id = readMember(answer, 'id')
  if (id === undefined) block('2', answer, petWords, findPetFault(answer, answer.json))
  return String(id)
}

/** Undefined, too, when the body is no object. */
export function readMember(answer: Answer, name: string): unknown {
  return isObject(answer.json) ? answer.json[name] : undefined
}

export function isStatus(value: unknown): value is string {
  return typeof value === 'string' && statuses.includes(value)
}

export const errorBodyWords = 'an Error body: {"code": string, "message": string, "status": integer}'

/** `more` is said behind what was expected. */
export function expectError(answer: Answer, more = ''): void {
  if (answer.text !== '') expectJsonType(answer)
  const { json, jsonFault, status } = answer
  const refuse = (fault: string) =>
    violate(answer, `${errorBodyWords}${more}`, `${fault}: ${answer.received}`)
  if (json === undefined) refuse(String(jsonFault))
  if (!isObject(json)) return refuse('the body is no JSON object')
  const faults: string[] = []
  if (typeof json['code'] !== 'string') faults.push(`code is ${show(json['code'])}`)
  if (typeof json['message'] !== 'string') faults.push(`message is ${show(json['message'])}`)
  if (typeof json['status'] !== 'bigint') faults.push(`status is ${show(json['status'])}`)
  if (faults.length > 0) refuse(faults.join(', '))
  if (json['status'] !== BigInt(status))
    violate(
      answer,
      `"status":${status} in the body${more}`,
      `"status":${show(json['status'])}: ${answer.received}`,
    )
}

/** JSON text of a value with exact integers, on one line and not long. */
export function show(value: unknown): string {
  if (value === undefined) return '(missing)'
  const text = JSON.stringify(value, (_name, member: unknown) =>
    typeof member === 'bigint' ? `\u0001${member}\u0001` : member,
  )
  return shorten(text.replaceAll(/"\\u0001(-?\d+)\\u0001"/g, '$1'), 80)
}

export function countPets(count: number): string {
  return count === 1 ? '1 pet' : `${count} pets`
}

/**
 * Validates, at run time, the options that embedding code passes: a JavaScript caller has no type checker. All errors are
 * reported together. The environment is read by config.ts, which uses the functions that are exported here.
 */
import { keyFault } from './http/bearer-auth.ts'
import { originFault } from './http/cors.ts'
import { defaultTimeouts } from './http/limits.ts'
import { describe } from './json/describe.ts'
import type { PetStoreOptions, PetStoreServerOptions } from './types.ts'

/** The longest that a response may be delayed, in milliseconds. */
export const maxDelayMs = 10_000

/** The longest that Node's timers can wait, in milliseconds: about 24 days. */
const maxTimerMs = 2_147_483_647

/** Path segments as a request target spells them (RFC 3986 section 3.3), because the path goes into headers unchanged. */
const basePathPattern = /^(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[\da-f]{2})+)*$/i

/** Returns what is wrong with a value, each error with its place: `timeouts.idleMs: expected …, got …`. */
type Check = (place: string, value: unknown) => readonly string[]

/**
 * A check for each option: the compiler refuses a table in which one is missing. `Options extends unknown ?` distributes over
 * the union, so that the keys of every variant count.
 */
type ChecksFor<Options> = Readonly<Record<Options extends unknown ? keyof Options : never, Check>>

/** Where the pets are kept. Exactly one of these options has to be given. */
const sources = ['pets', 'dataFile', 'storage']

const commonChecks = {
  apiKeys: checkKeys,
  pets: expect('an array of pets', Array.isArray),
  dataFile: expect('the path of a file', isPath),
  storage: expect('an object with the methods list, get and create', isStorage),
  corsOrigins: checkOrigins,
  delayMs: expect(`milliseconds from 0 to ${maxDelayMs}, or [minimum, maximum]`, isDelay),
  onMessage: expect('a function', isFunction),
  onResponse: expect('a function', isFunction),
  onError: expect('a function', isFunction),
}

const storeChecks: ChecksFor<PetStoreOptions> = {
  ...commonChecks,
  basePath: expect('a path such as /store', isBasePath),
}

const serverChecks: ChecksFor<PetStoreServerOptions> = {
  ...commonChecks,
  port: expect('an integer from 0 to 65535', isPort),
  host: expect('an address or a name of this machine', isHost),
  timeouts: checkTimeouts,
}

const timeout = expect(`an integer of milliseconds from 1 to ${maxTimerMs}`, (value) =>
  isInteger(value, 1, maxTimerMs),
)
const timeoutChecks: ChecksFor<NonNullable<PetStoreServerOptions['timeouts']>> = {
  headersMs: timeout,
  requestMs: timeout,
  idleMs: timeout,
  closeMs: timeout,
}

/** Throws a TypeError that names each option of createPetStore that is unknown, missing or wrong. */
export function checkPetStoreOptions(options: unknown): void {
  checkAll(options, storeChecks)
}

/** Throws a TypeError that names each option of startPetStore that is unknown, missing or wrong. */
export function checkPetStoreServerOptions(options: unknown): void {
  checkAll(options, serverChecks)
}

function checkAll(options: unknown, checks: Readonly<Record<string, Check>>): void {
  if (!isObject(options)) throw new TypeError(`options: expected an object, got ${describe(options)}`)
  // An option that is undefined counts as one that is not given.
  const givenOptions = Object.entries(options).filter(([, value]) => value !== undefined)
  const faults = [...checkMembers('', givenOptions, checks)]
  if (!givenOptions.some(([name]) => name === 'apiKeys'))
    faults.push('apiKeys: is required, an array of keys')
  const given = sources.filter((name) => givenOptions.some(([other]) => other === name))
  if (given.length !== 1) {
    faults.push(`${sources.join(', ')}: expected exactly one of them, got ${given.join(' and ') || 'none'}`)
  }
  if (faults.length > 0) throw new TypeError(faults.join('; '))
}

/** Checks each member by its name. A name that has no check is unknown. */
function checkMembers(
  prefix: string,
  members: readonly (readonly [name: string, value: unknown])[],
  checks: Readonly<Record<string, Check>>,
): readonly string[] {
  return members.flatMap(([name, value]) => {
    const checkMember = Object.hasOwn(checks, name) ? checks[name] : undefined
    if (checkMember !== undefined) return checkMember(prefix + name, value)
    return [`${prefix}${name}: is unknown, expected one of ${Object.keys(checks).join(', ')}`]
  })
}

function expect(expected: string, isExpected: (value: unknown) => boolean): Check {
  return (place, value) =>
    isExpected(value) ? [] : [`${place}: expected ${expected}, got ${describe(value)}`]
}

function checkKeys(place: string, value: unknown): readonly string[] {
  // A key is a secret, so a message never shows it.
  if (typeof value === 'string') return [`${place}: expected an array of keys, got a string`]
  if (!Array.isArray(value)) return [`${place}: expected an array of keys, got ${describe(value)}`]
  if (value.length === 0) return [`${place}: expected at least one key, got an empty array`]
  return checkTexts(place, value, 'a key', keyFault)
}

function checkOrigins(place: string, value: unknown): readonly string[] {
  if (value === '*') return []
  if (!Array.isArray(value)) return [`${place}: expected "*" or an array of origins, got ${describe(value)}`]
  return checkTexts(place, value, 'an origin', originFault)
}

function checkTexts(
  place: string,
  values: readonly unknown[],
  expected: string,
  findFault: (text: string) => string | undefined,
): readonly string[] {
  return values.flatMap((value, index) => {
    const fault =
      typeof value === 'string' ? findFault(value) : `expected ${expected}, got ${describe(value)}`
    return fault === undefined ? [] : [`${place}[${index}]: ${fault}`]
  })
}

function checkTimeouts(place: string, value: unknown): readonly string[] {
  if (!isObject(value)) return [`${place}: expected an object, got ${describe(value)}`]
  const faults = checkMembers(`${place}.`, Object.entries(value), timeoutChecks)
  if (faults.length > 0) return faults
  // Node refuses this too, but its message names settings that the caller does not know.
  const { headersMs, requestMs } = { ...defaultTimeouts, ...value }
  return headersMs > requestMs
    ? [`${place}: expected headersMs to be at most requestMs, got ${headersMs} and ${requestMs}`]
    : []
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isBasePath(value: unknown): boolean {
  return typeof value === 'string' && basePathPattern.test(value)
}

function isStorage(value: unknown): boolean {
  return isObject(value) && ['list', 'get', 'create'].every((method) => isFunction(value[method]))
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

/** 0 stands for any free port. */
export function isPort(value: unknown): boolean {
  return isInteger(value, 0, 65_535)
}

/** Whether a host of this name exists is for the system to say, but white space in it is a typo. */
export function isHost(value: unknown): boolean {
  return typeof value === 'string' && /^[^\s\p{Cc}]+$/u.test(value)
}

export function isPath(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0')
}

/** A number of milliseconds, or a range of them: `[minimum, maximum]`. */
export function isDelay(value: unknown): boolean {
  const [minimum, maximum, ...others] = Array.isArray(value) ? value : [value, value]
  const isInRange = [minimum, maximum].every((ms) => typeof ms === 'number' && ms >= 0 && ms <= maxDelayMs)
  return isInRange && minimum <= maximum && others.length === 0
}

function isInteger(value: unknown, minimum: number, maximum: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= maximum
}

/**
 * Validates, at run time, the options that embedding code passes: a JavaScript caller has no type checker.
 * All errors are reported together.
 */
import * as v from 'valibot'
import { completeTimeouts, defaultTimeouts } from '../http/limits.ts'
import { isObject } from '../json/json.ts'
import { expected, expectedInteger, expectedMessage } from '../text/schemas.ts'
import { describe } from '../text/words.ts'
import { parseSeeds } from '../pet/seeds.ts'
import type { PetStorage } from '../store/store.ts'
import { isError } from '../system/errors.ts'
import type { Disturbance } from '../http/disturbance.ts'
import { settings } from './settings.ts'
import type { PetStoreOptions, PetStoreServerOptions } from './types.ts'

/**
 * Node's timers can wait this long at most, in milliseconds: about 24 days
 * (https://nodejs.org/docs/latest-v20.x/api/timers.html#settimeoutcallback-delay-args).
 */
const maxTimerMs = 2_147_483_647

/** Exactly one of these has to be given. */
const sources = ['pets', 'dataFile', 'storage']

/** The compiler refuses this if a method is missing. */
const storageMethods = Object.keys({ list: 0, get: 0, create: 0 } satisfies Record<keyof PetStorage, 0>)

const callback = v.function(expectedMessage('a function'))
const commonSchemas = {
  apiKeys: v.pipe(settings.apiKeys.schema, v.minLength(1, 'expected at least one key, got an empty array')),
  pets: expected('an array of pets', Array.isArray),
  dataFile: settings.dataFile.schema,
  storage: expected(`an object with the methods ${storageMethods.join(', ')}`, isStorage),
  corsOrigins: settings.corsOrigins.schema,
  basePath: settings.basePath.schema,
  delayMs: settings.delayMs.schema,
  fail: settings.fail.schema,
  onMessage: callback,
  onResponse: callback,
  onError: callback,
}

/** Each option has a schema: the compiler refuses a table in which one is missing. */
export const petStoreSchemas: Readonly<Record<keyof PetStoreOptions, v.GenericSchema>> = commonSchemas

const timeoutNames = Object.keys(defaultTimeouts)
export const petStoreServerSchemas: Readonly<Record<keyof PetStoreServerOptions, v.GenericSchema>> = {
  ...commonSchemas,
  port: settings.port.schema,
  host: settings.host.schema,
  timeouts: v.pipe(
    expected<object>('an object', isObject),
    v.record(
      v.picklist(timeoutNames, `is unknown, expected one of ${timeoutNames.join(', ')}`),
      v.optional(expectedInteger('an integer of milliseconds', 1, maxTimerMs)),
    ),
    v.transform(completeTimeouts),
    // Node refuses this too, but its message names settings that the caller does not know.
    v.check(
      ({ headersMs, requestMs }) => headersMs <= requestMs,
      ({ input: { headersMs, requestMs } }) =>
        `expected headersMs to be at most requestMs, got ${headersMs} and ${requestMs}`,
    ),
  ),
}

type Schemas = Readonly<Record<string, v.GenericSchema>>

const disturbanceSchemas: Readonly<Record<keyof Disturbance, v.GenericSchema>> = {
  fail: settings.fail.schema,
  delayMs: settings.delayMs.schema,
  requests: expectedInteger('an integer', 1, Number.MAX_SAFE_INTEGER),
}

/** Throws a TypeError with a line for each member that is unknown or wrong. */
export function checkDisturbance(change: unknown): void {
  const { given, faults } = parseMembers('disturb', change, disturbanceSchemas)
  if (!given.has('fail') && !given.has('delayMs') && faults.length === 0)
    faults.push('disturb: expected fail or delayMs; { fail: "none", delayMs: 0 } ends both')
  if (faults.length > 0) throw new TypeError(faults.join('\n'))
}

/**
 * Throws a TypeError with a line for each option that is unknown, missing or wrong, and for all that is wrong
 * with the pets.
 */
export function checkOptions(options: unknown, schemas: Schemas): void {
  const { given, faults } = parseMembers('options', options, schemas)
  if (!given.has('apiKeys')) faults.push('apiKeys: is required, an array of keys')
  const givenSources = sources.filter((name) => given.has(name))
  if (givenSources.length !== 1) {
    const got = givenSources.join(' and ') || 'none'
    faults.push(`${sources.join(', ')}: expected exactly one of them, got ${got}`)
  }
  const pets = given.get('pets')
  if (Array.isArray(pets)) faults.push(...parseSeeds(pets).faults)
  if (faults.length > 0) throw new TypeError(faults.join('\n'))
}

function parseMembers(what: string, values: unknown, schemas: Schemas) {
  if (!isObject(values)) throw new TypeError(`${what}: expected an object, got ${describe(values)}`)
  // A member that is undefined counts as one that is not given.
  const given = new Map(Object.entries(values).filter(([, value]) => value !== undefined))
  const known = new Map(Object.entries(schemas))
  const unknown = v.never(`is unknown, expected one of ${[...known.keys()].join(', ')}`)
  const faults = [...given].flatMap(([name, value]) => {
    const { issues = [] } = v.safeParse(known.get(name) ?? unknown, value)
    return issues.map((issue) => `${name}${formatOptionPath(issue)}: ${issue.message}`)
  })
  return { given, faults }
}

/** Says where in an option a fault is: `[1]` in an array, `.idleMs` in an object. */
function formatOptionPath({ path }: v.BaseIssue<unknown>): string {
  return path?.map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('') ?? ''
}

function isStorage(value: unknown): boolean {
  return isObject(value) && storageMethods.every((method) => v.is(callback, value[method]))
}

type Callbacks = Pick<PetStoreOptions, 'onMessage' | 'onResponse' | 'onError'>

/**
 * Makes the callbacks safe to call: one that fails changes no response, ends no process, and is reported to
 * onError, unless it is onError itself.
 */
export function guardCallbacks({ onMessage = ignore, onResponse, onError = ignore }: Callbacks) {
  // Embedding code may throw anything, even an error that cannot be put into words.
  const report = (name: string) =>
    guard((error) => onError(`${name} failed: ${isError(error) ? String(error) : describe(error)}`), ignore)
  return {
    onMessage: guard(onMessage, report('onMessage')),
    onError: guard(onError, ignore),
    // Without onResponse, the core makes no entries for the log.
    ...(onResponse !== undefined && { onResponse: guard(onResponse, report('onResponse')) }),
  }
}

function ignore(): void {}

/** Returns a callback that never throws, and leaves no rejected promise, which would end the process. */
function guard<T>(callee: (value: T) => unknown, onFailure: (error: unknown) => void): (value: T) => void {
  // The callee is called at once, and what it throws becomes a rejection.
  const call = async (value: T): Promise<unknown> => callee(value)
  return (value) => void call(value).catch(onFailure)
}

/** Makes the callbacks of embedding code safe to call: one that fails changes no response and ends no process. */
import { describe } from '../messages/describe.ts'
import { isError } from '../system/errors.ts'
import type { PetStoreOptions } from './types.ts'

type Callbacks = Pick<PetStoreOptions, 'onMessage' | 'onResponse' | 'onError'>

/** A failure of onMessage or onResponse is reported to onError. A failure of onError is ignored. */
export function guardCallbacks({ onMessage = ignore, onResponse, onError = ignore }: Callbacks) {
  // Embedding code may throw anything, even an error that cannot be put into words.
  const report = (name: string) =>
    guard((error) => onError(`${name} failed: ${isError(error) ? String(error) : describe(error)}`), ignore)
  return {
    onMessage: guard(onMessage, report('onMessage')),
    onError: guard(onError, ignore),
    // Without it, no entry for it has to be made.
    ...(onResponse !== undefined && { onResponse: guard(onResponse, report('onResponse')) }),
  }
}

function ignore(): void {}

/** Wraps the callback so that it never throws, and never leaves a rejected promise, which would end the process. */
function guard<T>(callback: (value: T) => unknown, onFailure: (error: unknown) => void): (value: T) => void {
  // It is called at once. What it throws becomes a rejection too.
  const call = async (value: T): Promise<unknown> => callback(value)
  return (value) => void call(value).catch(onFailure)
}

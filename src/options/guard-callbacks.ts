/** Makes the callbacks of embedding code safe to call: one that fails changes no response and ends no process. */
import { isPromise } from 'node:util/types'
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
  return (value) => {
    try {
      const result = callback(value)
      if (isPromise(result)) result.then(undefined, onFailure)
    } catch (error) {
      onFailure(error)
    }
  }
}

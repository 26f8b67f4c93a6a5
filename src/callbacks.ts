/** The callbacks of embedding code, made safe to call: one that fails changes no response and ends no process. */
import { isPromise } from 'node:util/types'
import type { PetStoreOptions } from './types.ts'

export type Callbacks = Pick<PetStoreOptions, 'onMessage' | 'onResponse' | 'onError'>

/** A failing onMessage or onResponse is reported to onError; there is nobody to report a failing onError to. */
export function guardCallbacks({ onMessage, onResponse, onError }: Callbacks): Callbacks {
  const reportError = onError === undefined ? () => {} : guard(onError, () => {})
  const report = (name: string) => (error: unknown) => reportError(`${name} failed: ${describeError(error)}`)
  return {
    ...(onMessage !== undefined && { onMessage: guard(onMessage, report('onMessage')) }),
    ...(onResponse !== undefined && { onResponse: guard(onResponse, report('onResponse')) }),
    ...(onError !== undefined && { onError: reportError }),
  }
}

/** The same callback, which neither throws nor leaves a rejected promise that would end the process. */
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

/** Whatever was thrown, in words. Embedding code may throw what cannot even be made a string. */
function describeError(error: unknown): string {
  try {
    return String(error)
  } catch {
    return typeof error
  }
}

/** Schemas whose messages say what was expected, and what came instead. */
import * as v from 'valibot'
import { describe } from './describe.ts'

/** The message for a value that is not as the words say: `expected a function, got 5`. */
export function expectedMessage(words: string) {
  return ({ input }: { readonly input: unknown }): string => `expected ${words}, got ${describe(input)}`
}

/** A value that is as the words say. */
export function expected<Value>(words: string, isValue: (value: unknown) => boolean) {
  return v.custom<Value>(isValue, expectedMessage(words))
}

/** A text in which `findFault` finds nothing wrong. */
export function expectedValid(words: string, findFault: (text: string) => string | undefined) {
  return v.pipe(
    v.string(expectedMessage(words)),
    v.check(
      (text) => findFault(text) === undefined,
      ({ input }) => String(findFault(input)),
    ),
  )
}

export function expectedText(words: string, pattern: RegExp) {
  return expected<string>(words, (value) => typeof value === 'string' && pattern.test(value))
}

export function expectedInteger(words: string, minimum: number, maximum: number) {
  const isValue = (value: unknown) =>
    Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum
  return expected<number>(`${words} from ${minimum} to ${maximum}`, isValue)
}

/** Schemas for a single value, whose messages have it in words: `expected a function, got 5`. */
import * as v from 'valibot'
import { describe } from './words.ts'

export function expectedMessage(words: string) {
  return ({ input }: { readonly input: unknown }): string => `expected ${words}, got ${describe(input)}`
}

export function expected<Value>(words: string, isValue: (value: unknown) => boolean) {
  return v.custom<Value>(isValue, expectedMessage(words))
}

/** Takes a text in which `findFault` finds nothing; what it finds is the message. */
export function expectedValid(words: string, findFault: (text: string) => string | undefined) {
  const isValid = (text: string) => findFault(text) === undefined
  return v.pipe(
    v.string(expectedMessage(words)),
    v.check(isValid, ({ input }) => String(findFault(input))),
  )
}

export function expectedInteger(words: string, minimum: number, maximum: number) {
  const isValue = (value: unknown) =>
    Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum
  return expected<number>(`${words} from ${minimum} to ${maximum}`, isValue)
}

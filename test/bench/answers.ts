/** Checks that answers are right before anything is timed. */
import { deepStrictEqual, strictEqual } from 'node:assert'
import type { Pet } from './data.ts'
import { ask, createRequest, headerOf, type Answer, type Request } from './load.ts'

/** Asks for each of the requests and checks the status. */
export async function askAll(port: number, requests: Request[]): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const request of requests) {
    const answer = await ask(port, request)
    strictEqual(answer.status, request.status, answer.body)
    answers.push(answer)
  }
  return answers
}

/** The pets of an answer are these, and the total is that of the store. */
export function checkPets(answer: Answer | undefined, pets: Pet[], total: number): void {
  if (answer === undefined) throw new Error('no answer')
  deepStrictEqual(JSON.parse(answer.body), pets)
  strictEqual(headerOf(answer, 'X-Total-Count'), String(total))
}

/** Status, headers and body are the same, byte for byte but for the case and order of header names, and the date. */
export function checkSame(name: string, answer: Answer, ours: Answer): void {
  strictEqual(answer.status, ours.status, name)
  deepStrictEqual(headerLines(answer), headerLines(ours), name)
  strictEqual(answer.body, ours.body, name)
}

/** Refuses who has no key. */
export async function checkKeyIsNeeded(port: number, target: string): Promise<void> {
  strictEqual((await ask(port, createRequest('GET', target))).status, 401)
}

function headerLines({ headers }: Answer): string[] {
  return headers
    .map((line) => {
      const colon = line.indexOf(':')
      return line.slice(0, colon).toLowerCase() + line.slice(colon)
    })
    .filter((line) => !line.startsWith('date:'))
    .toSorted()
}

/** The headers that the program itself set: without those that Node adds to every answer. */
export function ownHeaders({ headers }: Answer): Record<string, string> {
  const entries = headers.map((line) => {
    const colon = line.indexOf(': ')
    return [line.slice(0, colon), line.slice(colon + 2)] as const
  })
  return Object.fromEntries(entries.filter(([name]) => !/^(date|connection)$/i.test(name)))
}

/** Those of them that do not depend on the body of the answer. */
export function commonHeaders(answer: Answer): Record<string, string> {
  const entries = Object.entries(ownHeaders(answer))
  return Object.fromEntries(
    entries.filter(([name]) => !/^(content-length|x-total-count|link|location)$/i.test(name)),
  )
}

/** Checks that responses are right, before anything is timed. */
import { deepStrictEqual, strictEqual } from 'node:assert'
import type { Pet } from './data.ts'
import { ask, headerOf, type HttpRequest, type HttpResponse } from './http.ts'

/** Sends the requests one after the other, and checks that each response has the status that its request expects. */
export async function askAll(port: number, requests: HttpRequest[]): Promise<HttpResponse[]> {
  const responses: HttpResponse[] = []
  for (const request of requests) {
    const response = await ask(port, request)
    strictEqual(response.status, request.status, `${request.method} ${request.target}: ${response.body}`)
    responses.push(response)
  }
  return responses
}

/** The list has exactly these pets, and its total is that of the store. */
export function checkPets(response: HttpResponse | undefined, pets: Pet[], total: number): void {
  if (response === undefined) throw new Error('no response')
  deepStrictEqual(JSON.parse(response.body), pets)
  strictEqual(headerOf(response, 'X-Total-Count'), String(total))
}

/** Status, headers and body are the same, but for the date and for case and order of the header names. */
export function checkSame(response: HttpResponse, ours: HttpResponse, name: string): void {
  strictEqual(response.status, ours.status, name)
  deepStrictEqual(headerLines(response), headerLines(ours), name)
  strictEqual(response.body, ours.body, name)
}

function headerLines({ headers }: HttpResponse): string[] {
  return headers
    .map((line) => {
      const colon = line.indexOf(':')
      return line.slice(0, colon).toLowerCase() + line.slice(colon)
    })
    .filter((line) => !line.startsWith('date:'))
    .toSorted()
}

/** What the program prints once it listens: all that a person needs next, in lines to read and to paste. */
import { networkInterfaces } from 'node:os'
import { resolve } from 'node:path'
import type { Config } from './config.ts'
import { formatUrl } from './http/url.ts'

export interface Started {
  /** Where it listens, as a client on this machine writes it. */
  readonly url: string
  readonly petCount: number
  /** The key that was created for this run; undefined when the environment has keys, which are never printed. */
  readonly createdKey: string | undefined
}

export function formatStartText({ dataFile, hints, host }: Config, started: Started): string {
  const { url, petCount, createdKey } = started
  const lines = [`Petstore listens on ${url}`]
  if (isEveryAddress(host))
    lines.push(`Other machines can reach it too, ${describeReach(host, new URL(url).port)}`)
  lines.push(`Data file: ${resolve(dataFile)}, ${petCount} ${petCount === 1 ? 'pet' : 'pets'}`)
  if (createdKey !== undefined) {
    lines.push(`API key for this run: ${createdKey} (set PETSTORE_API_KEYS to choose your own)`)
  }
  lines.push(...hints.map((hint) => `Note: ${hint}`))
  // A browser sends the fragment to nobody; the page reads the key from it.
  lines.push(`Page: ${url}/${createdKey === undefined ? '' : `#key=${createdKey}`}`)
  lines.push(createdKey === undefined ? 'Try, in a shell that has PETSTORE_API_KEYS:' : 'Try:')
  // A shell that has the keys fills in the first.
  const key = createdKey ?? '${PETSTORE_API_KEYS%%,*}'
  // The quotes keep zsh from reading the brackets of an IPv6 address as a pattern.
  lines.push(`  curl -H "Authorization: Bearer ${key}" "${url}/v1/pets"`)
  return lines.join('\n')
}

/** `0.0.0.0`, `::`, and their other spellings. */
function isEveryAddress(host: string): boolean {
  return /^[0:.]+$/.test(host)
}

/** With an address that other machines can use, if there is one. */
function describeReach(host: string, port: string): string {
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    // A listener on `::` takes IPv4 as well. A link-local address is of no use without its zone.
    .filter(({ family }) => family === 'IPv4' || host.includes(':'))
    .filter(({ address, internal }) => !internal && !address.startsWith('fe80:'))
  const { address } = addresses.find(({ family }) => family === 'IPv4') ?? addresses[0] ?? {}
  return address === undefined ? 'at any address of this one' : `for example at ${formatUrl(address, port)}`
}

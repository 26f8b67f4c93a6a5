/** What the program prints once it listens: the addresses, the data file, the key, and a `curl` to paste. */
import { networkInterfaces } from 'node:os'
import type { Config } from '../options/settings.ts'
import { formatUrl } from '../http/listener.ts'

export interface Started {
  /** The version of the program, and its commit if that is known. */
  readonly version: string
  /** The address for a client on this machine. */
  readonly url: string
  /** Where the pets are and how many, as `Data file: /srv/pets.json, 12 pets`. */
  readonly pets: string
  /** The key that was created for this run. Undefined if the environment has keys; those are never printed. */
  readonly createdKey: string | undefined
}

export function formatStartText({ hints, host }: Config, started: Started): string {
  const { version, url, pets, createdKey } = started
  const lines = [`Petstore listens on ${url}`]
  if (isEveryAddress(host))
    lines.push(`Other machines can reach it too, ${describeReach(host, new URL(url).port)}`)
  lines.push(`Version: ${version}`, pets)
  if (createdKey !== undefined) {
    lines.push(`API key for this run: ${createdKey} (set PETSTORE_API_KEYS to choose your own)`)
  }
  lines.push(...hints.map((hint) => `Note: ${hint}`))
  // A browser never sends the part after `#`; the page reads the key from it.
  lines.push(`Page: ${url}/${createdKey === undefined ? '' : `#key=${createdKey}`}`)
  lines.push(createdKey === undefined ? 'Try, with your API key instead of YOUR_API_KEY:' : 'Try:')
  const key = createdKey ?? 'YOUR_API_KEY'
  // In PowerShell, `curl` may be a command of its own.
  const curl = process.platform === 'win32' ? 'curl.exe' : 'curl'
  // Without the quotes, zsh would take the brackets of an IPv6 address for a pattern.
  lines.push(`  ${curl} -H "Authorization: Bearer ${key}" "${url}/v1/pets"`)
  return lines.join('\n')
}

/** `0.0.0.0`, `::`, and other spellings of them. */
function isEveryAddress(host: string): boolean {
  return /^[0:.]+$/.test(host)
}

/** Names an address that other machines can use, if this machine has one. */
function describeReach(host: string, port: string): string {
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    // A listener on `::` accepts IPv4 connections as well. A link-local address is useless without its zone.
    .filter(({ family }) => family === 'IPv4' || host.includes(':'))
    .filter(({ address, internal }) => !internal && !address.startsWith('fe80:'))
  const { address } = addresses.find(({ family }) => family === 'IPv4') ?? addresses[0] ?? {}
  return address === undefined
    ? "at any of this machine's addresses"
    : `for example at ${formatUrl(address, port)}`
}

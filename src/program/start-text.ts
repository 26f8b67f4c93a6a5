/** What the program prints once it listens: the addresses, the data file, the key, and a `curl` to paste. */
import { networkInterfaces } from 'node:os'
import { formatUrl } from '../pet-store-server.ts'
import type { Config } from '../options/settings.ts'
import { packageVersion } from '../system/bundled-texts.ts'

/**
 * The url is for a client on this machine, and `pets` says where they are and how many, as `Data file: /srv/pets.json, 12 pets`.
 * `createdKey` is the key that was created for this run; undefined if the environment has keys, and those are never printed.
 */
export function formatStartText(
  { hints, host }: Config,
  url: string,
  pets: string,
  createdKey: string | undefined,
): string {
  const isCreated = createdKey !== undefined
  // In PowerShell, `curl` may be a command of its own.
  const curl = process.platform === 'win32' ? 'curl.exe' : 'curl'
  const lines = [
    `Petstore listens on ${url}`,
    // `0.0.0.0`, `::`, and other spellings of them.
    /^[0:.]+$/.test(host) && `Other machines can reach it too, ${describeReach(host, new URL(url).port)}`,
    `Version: ${packageVersion}`,
    pets,
    isCreated && `API key for this run: ${createdKey} (set PETSTORE_API_KEYS to choose your own)`,
    ...hints.map((hint) => `Note: ${hint}`),
    // A browser never sends the part after `#`; the page reads the key from it.
    `Page: ${url}/${isCreated ? `#key=${createdKey}` : ''}`,
    isCreated ? 'Try:' : 'Try, with your API key instead of YOUR_API_KEY:',
    // Without the quotes, zsh would take the brackets of an IPv6 address for a pattern.
    `  ${curl} -H "Authorization: Bearer ${createdKey ?? 'YOUR_API_KEY'}" "${url}/v1/pets"`,
  ]
  return lines.filter((line) => line !== false).join('\n')
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

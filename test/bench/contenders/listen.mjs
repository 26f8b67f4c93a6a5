/** What every contender does alike: reads its setup, listens on a free loopback port, says where, exits with the runner. */
import { readFileSync } from 'node:fs'

/** The `Setup` of ../servers.ts. */
export const setup = JSON.parse(readFileSync(process.argv[2], 'utf8'))

/** The pets that the store starts with. */
export function readPets() {
  return JSON.parse(readFileSync(setup.petsFile, 'utf8')).pets
}

/** Listens without a limit between requests, as our server does, so that no response names one in a Keep-Alive header. */
export function listen(server) {
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
  process.stdin.on('end', () => process.exit()).resume()
}

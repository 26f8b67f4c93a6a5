/** What every contender does alike: reads its task, listens on a free loopback port, says where, ends with the runner. */
import { readFileSync } from 'node:fs'

/** The task, as `writeTask` in ../servers.ts wrote it. */
export const task = JSON.parse(readFileSync(process.argv[2], 'utf8'))

/** The pets the store starts with. */
export function readPets() {
  return JSON.parse(readFileSync(task.petsFile, 'utf8')).pets
}

/** Listens without a limit between requests, as our server does, so that no answer names one in a Keep-Alive header. */
export function listen(server) {
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
  process.stdin.on('end', () => process.exit()).resume()
}

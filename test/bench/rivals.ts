/** Starts our server and those it is compared with, all with the same pets, and checks their answers. */
import { deepStrictEqual } from 'node:assert'
import { join } from 'node:path'
import { askAll, checkKeyIsNeeded, checkSame, commonHeaders, ownHeaders } from './answers.ts'
import type { Bench } from './bench.ts'
import { getRequests, key, writePetsFile, type Pet } from './data.ts'
import type { Answer, Request } from './load.ts'
import type { Entrant } from './race.ts'
import { startContender, startOurs } from './servers.ts'
import type { Bar } from './table.ts'

export interface Rival {
  name: string
  file: string
  bar: Bar | null
  /** What it is asked instead, when its interface is another: the answers then have the same pets, and other headers. */
  ownTargets?: string[]
}

export interface Task {
  pets: Pet[]
  requests: Request[]
  /** The targets of the requests, when they are lists or single pets and not creations. */
  targets: string[]
  connections: number
  /** Throws when our server's answers to the requests are not right. */
  check(answers: Answer[]): void
}

/** Every one of them has been asked all requests once, and its answers were those of ours. Ours is the first. */
export async function startRivals(bench: Bench, task: Task, rivals: Rival[]): Promise<Entrant[]> {
  const { pets, requests, targets, connections } = task
  const ourFile = join(bench.folder, 'ours.json')
  writePetsFile(ourFile, pets)
  const ours = await startOurs(bench.serverFile, ourFile)
  const answers = await askAll(ours.port, requests)
  task.check(answers)
  await checkKeyIsNeeded(ours.port, '/v1/pets')
  const entrants: Entrant[] = [
    { name: 'ours', server: ours, requests, connections, answered: requests.length },
  ]

  const example = answers[0]
  if (example === undefined) throw new Error('a task needs a request')
  for (const { name, file, ownTargets } of rivals) {
    const petsFile = join(bench.folder, `${file}.json`)
    writePetsFile(petsFile, pets)
    const server = await startContender(file, {
      key,
      petsFile,
      petCount: pets.length,
      headers: commonHeaders(example),
      answers: targets.map((target, index) => ({
        target,
        headers: ownHeaders(answers[index] ?? example),
        body: answers[index]?.body ?? '',
      })),
    })
    const itsRequests = ownTargets === undefined ? requests : getRequests(ownTargets)
    for (const [index, answer] of (await askAll(server.port, itsRequests)).entries()) {
      const right: Answer = answers[index] ?? example
      if (ownTargets === undefined) checkSame(name, answer, right)
      else deepStrictEqual(JSON.parse(answer.body), withTextIds(right))
    }
    entrants.push({ name, server, requests: itsRequests, connections, answered: itsRequests.length })
  }
  return entrants
}

/** json-server makes every id a string. */
function withTextIds({ body }: Answer): unknown {
  return JSON.parse(body.replaceAll(/"id":(\d+)/g, '"id":"$1"'))
}

export async function stopAll(entrants: Entrant[]): Promise<void> {
  await Promise.all(entrants.map(({ server }) => server.stop()))
}

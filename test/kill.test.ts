/** Real kills: the program gets SIGKILL at random moments under load. Nothing acknowledged is lost, no id given twice. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pet } from '../src/options/types.ts'
import { authorization, createRandom, isThorough, makeFolder, startProgram, listFolder } from './support.ts'

const rounds = isThorough ? 30 : 2
const connections = 16

test('loses nothing that it acknowledged when it is killed under load, again and again', async (t) => {
  const folder = makeFolder()
  const random = createRandom(20301205)
  const acknowledged = new Map<number, string>()
  let killsWithLoad = 0
  for (let round = 0; round <= rounds; round++) {
    const program = await startProgram(t, folder)
    const listed = readPets(folder)
    for (const [id, name] of acknowledged) assert.equal(listed.get(id), name, `pet ${id} in round ${round}`)
    if (round === rounds) break
    const before = acknowledged.size
    // The kill comes after so many answers, wherever the others are then.
    const killAfter = before + 1 + random(400)
    const agent = new Agent({ keepAlive: true, maxSockets: connections })
    const loads = Array.from({ length: connections }, async (_, connection) => {
      for (let count = 0; ; count++) {
        const name = `${round}/${connection}/${count} ${'x'.repeat(random(300))}`
        const pet = await create(agent, program.url, name)
        if (pet === undefined) return
        assert.equal(pet.name, name)
        assert.equal(acknowledged.has(pet.id), false, `the id ${pet.id} was given twice`)
        acknowledged.set(pet.id, name)
        if (acknowledged.size === killAfter) program.child.kill('SIGKILL')
      }
    })
    await Promise.all(loads)
    await program.ended
    agent.destroy()
    if (acknowledged.size > before) killsWithLoad++
  }
  assert.equal(killsWithLoad, rounds)
  const torn = listFolder(join(folder, 'data')).filter((name) => name !== 'pets.json')
  for (const name of torn) assert.match(name, /^pets\.json\.torn-/)
  t.diagnostic(`${acknowledged.size} acknowledged in ${rounds} rounds, ${torn.length} torn tails`)
})

/** Adds a pet; undefined when the program is gone. */
function create(
  agent: Agent,
  url: string,
  name: string,
): Promise<{ readonly id: number; readonly name: string } | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, 'content-type': 'application/json' }
    const sent = request(`${url}/v1/pets`, { method: 'POST', agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', () => resolve(undefined))
      response.on('end', () => {
        if (!response.complete) resolve(undefined)
        else if (response.statusCode === 201) resolve(JSON.parse(text))
        else reject(new Error(text))
      })
    })
    sent.on('error', () => resolve(undefined))
    sent.end(JSON.stringify({ name, categoryId: 1 }))
  })
}

function readPets(folder: string): ReadonlyMap<unknown, string> {
  // The program has just read it, and said that it is valid.
  const file = JSON.parse(readFileSync(join(folder, 'data/pets.json'), 'utf8')) as { pets: Pet[] }
  const pets = new Map(file.pets.map((pet) => [pet.id, pet.name]))
  assert.equal(pets.size, file.pets.length, 'no id stands in the file twice')
  return pets
}

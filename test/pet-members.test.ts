/** Each member of a pet goes all the way, through whatever lists the members. On a database: test/pglite. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { formatPet, petTextEnd, petTextStart } from '../src/pet/pet.ts'
import { makeDataFile, startApp, type StartedApp } from './support.ts'
import { otherPet, wholePet } from './whole-pet.ts'

const list = async ({ send }: StartedApp): Promise<unknown> => JSON.parse((await send('/v1/pets')).text)

test('has each member in its response, after a restart, and after an edit of that member, which is told', async (t) => {
  const dataFile = makeDataFile()
  const first = await startApp(t, { dataFile })
  const pet = { id: 1, ...wholePet }
  const created = await first.send('/v1/pets', { body: wholePet })
  assert.deepEqual(JSON.parse(created.text), pet)
  assert.deepEqual(await list(first), [pet])
  await first.server.close()
  const second = await startApp(t, { dataFile })
  assert.deepEqual(await list(second), [pet])
  for (const [member, value] of Object.entries(otherPet)) {
    Object.assign(pet, { [member]: value })
    writeFileSync(dataFile, JSON.stringify({ pets: [pet] }))
    await second.server.reset()
    assert.deepEqual(await list(second), [pet])
    assert.match(second.lines.at(-1) ?? '', /reloaded 1 pet: 0 added, 0 removed, 1 changed$/, member)
  }
  writeFileSync(dataFile, JSON.stringify({ pets: [wholePet, otherPet] }))
  await second.server.reset()
  assert.deepEqual(await list(second), [
    { id: 2, ...wholePet },
    { id: 3, ...otherPet },
  ])
})

test('has each member in a store in memory, with an id and without', async (t) => {
  const app = await startApp(t, { pets: [wholePet, { id: 7, ...otherPet }] })
  assert.deepEqual(await list(app), [
    { id: 7, ...otherPet },
    { id: 8, ...wholePet },
  ])
})

test('begins and ends its text so that a part of it is known in a damaged file', () => {
  for (const pet of [wholePet, otherPet]) {
    const text = formatPet({ id: 1, ...pet })
    assert.ok(text.startsWith(petTextStart), text)
    assert.match(text, new RegExp(`${petTextEnd.source}$`))
  }
})

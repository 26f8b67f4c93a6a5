/** Copies that are made while pets are created: each opens, with every pet acknowledged before the copy began. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { appendFileSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { parseUsableFileText } from '../src/data-file/file-text.ts'
import { openFileStore } from '../src/store/file-store.ts'
import { isValidFile, makeFastFolder, newPet, openStore } from './file-system.ts'
import { createRandom, isThorough } from './support.ts'

const run = promisify(execFile)
const copyCount = isThorough ? 100 : 10
const random = createRandom(7)

/**
 * Copies as `cp` does on a busy machine: it reads to the end, waits for its turn while any number of pets are created, and reads on. A quick `cp`
 * hardly ever meets a creation.
 */
async function copySlowly(from: string, to: string, countPets: () => number): Promise<void> {
  const source = openSync(from, 'r')
  writeFileSync(to, '')
  for (let turns = 1 + random(3); turns > 0; turns--) {
    appendFileSync(to, readFileSync(source))
    const count = countPets() + 1 + random(turns % 2 === 0 ? 10 : 400)
    while (countPets() < count) await new Promise(setImmediate)
  }
  appendFileSync(to, readFileSync(source))
  closeSync(source)
}

test('every copy opens, with every pet that was acknowledged before it began', async (t) => {
  const folder = makeFastFolder()
  const { store } = await openStore(t, join(folder, 'pets.json'))
  const load = new AbortController()
  const clients = Array.from({ length: 32 }, async (_, client) => {
    for (let count = 0; !load.signal.aborted; count++) await store.create(newPet(`${client}/${count}`))
  })
  const copies: { readonly path: string; readonly acknowledged: number }[] = []
  for (let number = 0; number < copyCount; number++) {
    const path = join(folder, `copy-${number}.json`)
    copies.push({ path, acknowledged: store.size })
    const source = join(folder, 'pets.json')
    if (number % 2 === 0) await run('cp', [source, path])
    else await copySlowly(source, path, () => store.size)
  }
  load.abort()
  await Promise.all(clients)
  let repairedCount = 0
  for (const { path, acknowledged } of copies) {
    if (!isValidFile(readFileSync(path, 'utf8'))) repairedCount++
    const copy = await openFileStore(path)
    const copied = copy.list({ limit: copy.size }).pets
    assert.deepEqual(copied.slice(0, acknowledged), store.list({ limit: acknowledged }).pets, path)
    // Of those that were created meanwhile, the one that `cp` read half before and half after the append is missing, and others follow it.
    for (const pet of copied.slice(acknowledged)) assert.deepEqual(pet, store.get(pet.id), path)
    await copy.close()
    parseUsableFileText(path, readFileSync(path))
  }
  assert.ok(repairedCount > copyCount / 8, `${repairedCount} of ${copyCount} were repaired`)
})

/** A store with two pets, and a copy that `cp` began before the second was created, and ended after that. */
async function openWithCopy(t: TestContext) {
  const path = join(makeFastFolder(), 'pets.json')
  const { store, lines } = await openStore(t, path)
  await store.create(newPet('Rex'))
  const first = readFileSync(path)
  await store.create(newPet('Mia'))
  // `cp` has read to the end, and then what was appended in the meantime.
  const copy = Buffer.concat([first, readFileSync(path).subarray(first.length)])
  return { path, store, lines, copy }
}

test('a copy that caught a creation halfway can be put back while the store runs', async (t) => {
  const { path, store, lines, copy } = await openWithCopy(t)
  writeFileSync(path, copy)
  await lines.next(/repaired: /)
  await store.create(newPet('Kit'))
  // Mia was not there yet when the copy began.
  const names = store.list({ limit: 9 }).pets.map(({ name }) => name)
  assert.deepEqual(names, ['Rex', 'Kit'])
})

test('a copy that is put back is told with the ids that were given since it was made', async (t) => {
  const { path, store, lines, copy } = await openWithCopy(t)
  for (const name of ['Kit', 'Tom']) await store.create(newPet(name))
  writeFileSync(path, copy)
  await lines.next(/repaired: .*; ids above 4 may be given again$/)
  assert.equal((await store.create(newPet('Ada'))).id, 5)
})

test('a copy that caught a creation halfway can be put back after a mistake, for which the pets were kept', async (t) => {
  const { path, store, lines, copy } = await openWithCopy(t)
  writeFileSync(path, '{')
  await lines.next(/are kept in/)
  writeFileSync(path, copy)
  await lines.next(/repaired: /)
  assert.equal((await store.create(newPet('Kit'))).name, 'Kit')
  assert.equal(store.whyNoCreation(), undefined)
})

test('a copy that is put back with cp while the store runs is served', async (t) => {
  const folder = makeFastFolder()
  const path = join(folder, 'pets.json')
  const { store, lines } = await openStore(t, path)
  await store.create(newPet('Rex'))
  await run('cp', [path, `${path}.backup`])
  const mia = await store.create(newPet('Mia'))
  await run('cp', [`${path}.backup`, path])
  await lines.next(/^reloaded 1 pet: 0 added, 1 removed, 0 changed$/)
  const kit = await store.create(newPet('Kit'))
  assert.ok(kit.id > mia.id, 'the id of a pet that is gone is not given again')
})

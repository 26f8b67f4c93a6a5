/** The data file when nothing fails: what it takes, what it refuses and where, and what a creation costs. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  type BigIntStats,
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { Low } from 'lowdb'
import { DataFileUnusable } from '../src/data-file/data-file-errors.ts'
import type { PetData } from '../src/data-file/data-file.ts'
import { openDataFile } from '../src/data-file/start.ts'
import { petStatusChoice } from '../src/pet/pet.ts'
import { type FileStore, openFileStore } from '../src/store/file-store.ts'
import { PetStoreError } from '../src/store/store.ts'
import { clock } from '../src/system/clock.ts'
import {
  createSyncGate,
  holdLooks,
  makeFastFolder,
  namesInFile,
  newPet,
  openStore,
  petLine,
  systemError,
  watchFileSystem,
} from './file-system.ts'
import {
  formatDataFile,
  makeDataFile,
  makeFolder,
  makeOld,
  readPetLines,
  startApp,
  listFolder,
} from './support.ts'

const rex = petLine(1, 'Rex')
const mia = petLine(2, 'Mia')

test('waits at a start for half a minute for a file that is still being written', async (t) => {
  const path = makeDataFile([rex])
  let now = 0
  t.mock.method(clock, 'performanceNow', () => now)
  const openWhileSaved = (seconds: number): Promise<FileStore> => {
    const end = now + seconds * 1_000
    const fileSystem = watchFileSystem({
      before({ name, path: place }) {
        if (name !== 'readFileSync' || place !== path || now >= end) return
        now += 5_000
        appendFileSync(path, ' ')
      },
    })
    return openFileStore(path, { fileSystem })
  }
  await (await openWhileSaved(25)).close()
  await assert.rejects(openWhileSaved(60), /pets\.json: is being written, again and again/)
})

describe('takes a seed file', () => {
  const canonical = formatDataFile(rex, mia)
  const cases: readonly [what: string, text: string, ids?: readonly (number | bigint)[]][] = [
    ['as it writes it', canonical],
    ['on one line', `{"pets":[${rex},${mia}]}`],
    ['spread out, with tabs', JSON.stringify(JSON.parse(canonical), null, '\t')],
    ['with CRLF', canonical.replaceAll('\n', '\r\n')],
    ['with CR alone', canonical.replaceAll('\n', '\r')],
    ['with a byte order mark', `\ufeff${canonical}`],
    ['with $schema first', `{"$schema":"./pets.schema.json","pets":[${rex},${mia}]}`],
    ['without ids', canonical.replaceAll(/"id":\d,/g, '')],
    ['without statuses', canonical.replaceAll(',"status":"available"', '')],
    ['out of order', `{"pets":[${mia},${rex}]}`],
    ['with ids beyond 2^53', canonical.replace('"id":2', '"id":9007199254740993'), [1, 9007199254740993n]],
    ['with an id beside the missing', `{"pets":[{"name":"Mia","categoryId":1},${rex}]}`],
    ['with escapes', canonical.replace('Rex', String.raw`\u0052e\u0078`)],
  ]
  for (const [what, text, ids = [1, 2]] of cases) {
    test(what, async (t) => {
      const path = makeDataFile(text)
      const { store, lines: said } = await openStore(t, path)
      const { pets } = store.list({ limit: 100 })
      assert.deepEqual(
        pets.map(({ id }) => id),
        ids,
      )
      assert.deepEqual(new Set(pets.map(({ name }) => name)), new Set(['Rex', 'Mia']))
      const created = [await store.create(newPet('Kit')), await store.create(newPet('Otto'))]
      const after = readFileSync(path, 'utf8')
      for (const line of readPetLines(path).slice(-2)) assert.match(line, /"name":"(?:Kit|Otto)"/)
      if (!what.includes('without ids') && !what.includes('missing')) {
        const lastPet = text.lastIndexOf('}', text.lastIndexOf(']')) + 1
        assert.ok(after.startsWith(text.slice(0, lastPet)), 'what a person wrote stays as it is')
      }
      await store.close()
      const { store: again } = await openStore(t, path)
      assert.deepEqual(again.list({ limit: 100 }).pets, [...pets, ...created])
      assert.deepEqual([...said], [])
    })
  }

  const nothing: readonly [what: string, text: string][] = [
    ['with no pets', '{"pets":[]}'],
    ['with no pets over some lines', '{\n  "pets": [\n\n  ]\n}\n'],
  ]
  for (const [what, text] of nothing) {
    test(what, async (t) => {
      const path = makeDataFile(text)
      const { store } = await openStore(t, path)
      assert.equal(store.size, 0)
      assert.equal(readFileSync(path, 'utf8'), text)
      assert.equal((await store.create(newPet('Rex'))).id, 1)
      assert.deepEqual(readPetLines(path), [rex])
    })
  }
})

test('makes a missing file, and the folders to it', async (t) => {
  const path = join(makeFolder(), 'a/b/pets.json')
  const { store } = await openStore(t, path)
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), { pets: [] })
  await store.create(newPet('Rex'))
  assert.equal(readFileSync(path, 'utf8'), formatDataFile(rex))
})

test('names the first ten errors, each on a line of its own, and how many more there are', async () => {
  const path = makeDataFile(formatDataFile(rex, ...Array.from({ length: 12 }, () => '{"name":"x"}')))
  await assert.rejects(openFileStore(path), (error) => {
    assert.ok(error instanceof DataFileUnusable)
    const messages = Array.from({ length: 10 }, (_, index) => {
      return `${path}:${index + 4}:5: pets[${index + 1}].categoryId: is required`
    })
    assert.equal(error.message, [...messages, `${path}: and 2 more errors`].join('\n'))
    return true
  })
})

test('makes the file that a symbolic link is still to lead to', async (t) => {
  const folder = makeFolder()
  const link = join(folder, 'pets.json')
  mkdirSync(join(folder, 'disk'))
  symlinkSync('disk/there.json', link)
  const { store } = await openStore(t, link)
  await store.create(newPet('Rex'))
  assert.ok(lstatSync(link).isSymbolicLink())
  assert.deepEqual(readPetLines(join(folder, 'disk/there.json')), [rex])
})

test('keeps two stores apart that both begin with nothing', async (t) => {
  const { store: one } = await openStore(t, makeDataFile())
  await one.create(newPet('Rex'))
  const { store: two } = await openStore(t, makeDataFile())
  assert.equal(two.size, 0)
})

test('keeps the mode of a file that it writes anew', async (t) => {
  const path = makeDataFile('{"pets":[{"name":"Rex","categoryId":1}]}')
  chmodSync(path, 0o640)
  await openStore(t, path)
  assert.equal(statSync(path).mode & 0o777, 0o640)
  assert.match(readFileSync(path, 'utf8'), /"id":1/)
})

function hole(text: string, from: number, to: number): string {
  return text.slice(0, from) + '\0'.repeat(to - from) + text.slice(to)
}

describe('stops the start, with the place, and leaves the file byte for byte', () => {
  const many = Array.from({ length: 200 }, (_, index) => petLine(index + 1, `${index}`))
  const cases: readonly [what: string, text: string | Buffer, said: RegExp | string][] = [
    ['a trailing comma', formatDataFile(rex, `${mia},`), ':5:3: expected a pet after the comma, got "]"'],
    ['a missing comma', formatDataFile(rex, mia).replace('},', '}'), ':4:5: expected "," or "]", got "{"'],
    [
      'a missing comma behind a blank line',
      formatDataFile(rex, mia).replace('},\n', '}\n\n'),
      ':5:5: expected "," or',
    ],
    ['a missing bracket', '{"pets":[', ':1:10: expected a value, got the end'],
    ['a first pet cut off by a person', '{"pets":[{"id":1', ':1:17: expected "," or "}", got the end'],
    [
      'a pet cut off on one line',
      `{"pets":[${rex},{"id":2,"na`,
      /:1:\d+: expected the closing quote, got the end/,
    ],
    ['something behind', `${formatDataFile(rex)}x`, ':6:1: expected the end, got "x"'],
    [
      'a merge conflict',
      formatDataFile(rex, mia).replace(
        `    ${mia}`,
        `<<<<<<< HEAD\n    ${mia}\n=======\n    ${mia}\n>>>>>>> theirs`,
      ),
      ':4:1: expected a value, got "<"',
    ],
    ['a comment', formatDataFile(rex, '// mine', mia), ':4:5: expected a value, got "/"'],
    [
      'single quotes',
      formatDataFile(rex.replaceAll('"', "'")),
      `:3:6: expected a member name in double quotes, got "'"`,
    ],
    [
      'text that is not UTF-8',
      Buffer.from(formatDataFile(rex.replace('Rex', 'R\u00e9x')), 'latin1'),
      ':3:22: expected UTF-8',
    ],
    ['NULs in the middle', hole(formatDataFile(rex, mia), 40, 44), /:3:27: expected an escape/],
    [
      'an empty sector with more behind it than one append',
      hole(formatDataFile(...many), 512, 1024),
      ':11:11: expected a value, got U+0000',
    ],
    [
      'a bad status',
      formatDataFile(rex, mia.replace('available', 'lost')),
      `:4:41: pets[1].status: expected ${petStatusChoice}, got "lost"`,
    ],
    [
      'an id twice',
      formatDataFile(rex, mia, rex),
      ':5:5: pets[2].id: 1 is given twice, first in line 3, column 5',
    ],
    [
      'an id of 0',
      formatDataFile(rex.replace('"id":1', '"id":0')),
      ':3:6: pets[0].id: expected an integer from 1 to 2^63-1, got 0',
    ],
    [
      'an id past 2^63-1',
      formatDataFile(rex.replace('"id":1', '"id":9223372036854775808')),
      ':3:6: pets[0].id: expected an integer from 1 to 2^63-1, got 9223372036854775808',
    ],
    [
      'a name that is missing',
      formatDataFile(rex.replace('"name":"Rex",', '')),
      ':3:5: pets[0].name: is required',
    ],
    [
      'a member twice',
      formatDataFile(rex.replace('}', ',"name":"x"}')),
      /:3:\d+: pets\[0\]\.name: is given twice/,
    ],
    [
      'a member that a pet does not have',
      formatDataFile(rex.replace('}', ',"age":3}')),
      /:3:\d+: pets\[0\]\.age: is not a member of a pet/,
    ],
    ['a pet that is none', formatDataFile(rex, '5'), ':4:5: pets[1]: expected a pet, got 5'],
    ['pets that are no array', '{"pets":{}}', ':1:9: pets: expected an array'],
    ['no pets', '{}', ':1:1: pets: is required'],
    ['pets twice', '{"pets":[],"pets":[]}', ':1:12: pets: is given twice'],
    ['another member', '{"pets":[],"dogs":[]}', ':1:12: dogs: is not a member of the file'],
    ['nothing', '', ': is empty; put the pets back, or delete it to start without any'],
    ['white space', ' \r\n', ': is empty; put the pets back, or delete it to start without any'],
    ['a byte order mark alone', '\ufeff', ': is empty; put the pets back, or delete it to start without any'],
    [
      '$schema behind the pets',
      `{"pets":[${rex}],"$schema":"./pets.schema.json"}`,
      `:1:${rex.length + 12}: $schema: has to come before the pets`,
    ],
    ['a bracket too many', `${formatDataFile(rex)}}`, ':6:1: expected the end, got "}"'],
    ['$schema that is no text', '{"$schema":1,"pets":[]}', ':1:12: $schema: expected a string'],
    ['an array', `[${rex}]`, ':1:1: expected an object; put the array into one: {"pets": […]}'],
    ['an array in the second line', `\n [${rex}]`, ':2:2: expected an object; put the array into one'],
    [
      'no id left for a pet',
      formatDataFile(rex.replace('"id":1', '"id":9223372036854775807'), '{"name":"x","categoryId":1}'),
      ':4:6: pets[1]: no id is left for it',
    ],
  ]
  for (const [what, text, said] of cases) {
    test(what, async () => {
      const path = makeDataFile('')
      writeFileSync(path, text)
      makeOld(path)
      await assert.rejects(openFileStore(path), (error) => {
        assert.ok(error instanceof DataFileUnusable)
        assert.ok(error.message.startsWith(path))
        const place = error.message.slice(path.length)
        if (typeof said === 'string') assert.equal(place.slice(0, said.length), said)
        else assert.match(place, said)
        return true
      })
      assert.deepEqual(readFileSync(path), Buffer.from(text))
      assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
    })
  }

  test('a folder or a pipe in its place', async () => {
    const folder = makeFolder()
    mkdirSync(join(folder, 'folder.json'))
    await assert.rejects(openFileStore(join(folder, 'folder.json')), /folder\.json: is a folder, not a file$/)
    if (process.platform === 'win32') return
    execFileSync('mkfifo', [join(folder, 'pipe.json')])
    await assert.rejects(openFileStore(join(folder, 'pipe.json')), /pipe\.json: is not a regular file$/)
  })

  test('a file in the place of its folder', async () => {
    const path = join(makeDataFile(), 'pets.json')
    await assert.rejects(openFileStore(path), /cannot be opened or created: [a-z ]+ \(E(?:NOTDIR|EXIST)\)$/)
  })
})

test('refuses a file in another encoding, and does not take it for an empty one', async () => {
  for (const [bytes, said] of [
    [Buffer.from(`\xff${formatDataFile(rex)}`, 'latin1'), /:1:1: expected UTF-8$/],
    [Buffer.from(`\ufeff${formatDataFile(rex)}`, 'utf16le'), /:1:1: expected UTF-8, got UTF-16$/],
    [Buffer.from(`\ufeff${formatDataFile(rex)}`, 'utf16le').swap16(), /:1:1: expected UTF-8, got UTF-16$/],
    [Buffer.from([0x20, 0xff]), /:1:2: expected UTF-8$/],
  ] as const) {
    const path = makeDataFile('')
    writeFileSync(path, bytes)
    makeOld(path)
    await assert.rejects(openFileStore(path), said)
    assert.deepEqual(readFileSync(path), bytes)
  }
})

test('waits for a file that is still being copied when it starts', async (t) => {
  const path = makeDataFile('')
  const text = formatDataFile(rex, mia, petLine(3, 'Kit'))
  let reads = 0
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      // The copy goes on when the store has read its first half, and looked whether it grows.
      if (name === 'statSync' && place === path && reads > 0 && ++reads === 3) writeFileSync(path, text)
      if (name === 'readFileSync') reads ||= 1
    },
  })
  writeFileSync(path, text.slice(0, 100))
  // Time stands still, so that the first half does not become old while a busy machine pauses.
  const { mtimeMs } = statSync(path)
  t.mock.method(clock, 'now', () => Math.ceil(mtimeMs))
  const { store } = await openStore(t, path, fileSystem)
  assert.equal(store.size, 3)
  assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
})

test('names the place of a fault at the end of a long line', async () => {
  const pets = Array.from({ length: 20_000 }, (_, index) => petLine(index + 1, 'ä'))
  const text = `{"pets":[${pets.join()},]}`
  const path = makeDataFile(text)
  await assert.rejects(openFileStore(path), (error) => {
    assert.ok(error instanceof DataFileUnusable)
    assert.equal(error.message, `${path}:1:${text.length - 1}: expected a pet after the comma, got "]"`)
    return true
  })
})

test('keeps the bytes of a torn tail beside the file, for its owner alone, and says so in one line', async (t) => {
  const whole = `{\n  "pets": [\n    ${rex}`
  const torn = ',\n    {"id":2,"name":"Mi'
  const path = makeDataFile(whole + torn)
  chmodSync(path, 0o644)
  const { store, lines: said } = await openStore(t, path)
  assert.equal(store.size, 1)
  assert.equal(said.length, 1)
  const [, name = ''] =
    /pets\.json: repaired: .*; 24 damaged bytes are kept in (pets\.json\.torn-\S+); ids above 1 may be given again$/.exec(
      said[0] ?? '',
    ) ?? []
  assert.equal(readFileSync(join(dirname(path), name), 'utf8'), torn)
  assert.equal(statSync(join(dirname(path), name)).mode & 0o777, 0o600)
  assert.equal(readFileSync(path, 'utf8'), `${whole}\n  ]\n}\n`)
})

test('keeps each torn tail of a file, also of one with a strange modification time', async (t) => {
  const path = makeDataFile([rex])
  t.mock.method(clock, 'now', () => 1_000_000)
  const tails = ['},\n    {"id":2,"name":"a', '},\n    {"id":2,"name":"b', '},\n    {"id":2,"name":"c']
  for (const [index, tail] of tails.entries()) {
    writeFileSync(path, formatDataFile(rex).replace(/\}\n {2}\]\n\}\n$/, tail))
    // One of the times is beyond what Date can hold.
    utimesSync(path, 1, index === 2 ? 2 ** 33 * 1000 : 1)
    const { store } = await openStore(t, path)
    await store.close()
  }
  const kept = readdirSync(dirname(path)).filter((name) => name.includes('.torn-'))
  assert.deepEqual(
    kept.map((name) => readFileSync(join(dirname(path), name), 'utf8')),
    tails.map((tail) => tail.slice(1)),
  )
})

test('gives a file that lacks its closing brackets these back, and says so, with nothing to keep', async (t) => {
  for (const tail of ['', '\n', '\n  ]']) {
    const path = makeDataFile(formatDataFile(rex).replace(/\n {2}\]\n\}\n$/, tail))
    const { store, lines: said } = await openStore(t, path)
    assert.equal(store.size, 1)
    assert.deepEqual([...said], [`${path}: repaired: its closing brackets were missing`])
    assert.equal(readFileSync(path, 'utf8'), formatDataFile(rex))
    assert.deepEqual(listFolder(dirname(path)), ['pets.json'])
  }
})

test('writes the missing ids into a file that also lacks its closing brackets', async (t) => {
  const path = makeDataFile('{"pets": [{"name":"Rex","categoryId":1}')
  const { store } = await openStore(t, path)
  assert.equal(store.get(1)?.name, 'Rex')
  await store.create({ name: 'Max', categoryId: 1, status: 'available' })
  const lines = ['"name":"Rex","categoryId":1}', '{"id":2,"name":"Max","categoryId":1,"status":"available"}']
  assert.equal(readFileSync(path, 'utf8'), `{"pets": [{"id":1,${lines.join(',\n    ')}\n  ]\n}\n`)
})

test('adds to a file in a layout of somebody else without writing it anew', async (t) => {
  const names = Array.from({ length: 1000 }, (_, index) => petLine(index + 1, 'x'.repeat(100)))
  for (const end of [']}', '\r\n\t]\r\n}\r\n', `${'\n'.repeat(3000)}]}\n`]) {
    const path = makeDataFile(`\ufeff{ "$schema": "x",\r\n\t"pets":[${names.join(' , ')}${end}`)
    const start = readFileSync(path, 'utf8').slice(0, -end.length)
    const { ino } = statSync(path)
    let written = 0
    const fileSystem = watchFileSystem({
      after({ name }, result) {
        if (name === 'writeSync') written += Number(result)
      },
    })
    const { store } = await openStore(t, path, fileSystem)
    await store.create(newPet('Kit'))
    assert.equal(readFileSync(path, 'utf8'), `${start},\n    ${petLine(1001, 'Kit')}\n  ]\n}\n`)
    assert.equal(statSync(path).ino, ino)
    assert.ok(written < 200, `${written} bytes`)
    await store.close()
  }
})

test('a creation costs the same few calls and the bytes of the pet, at 100 and at 100,000 pets', async (t) => {
  // Without the looks for edits, which come twice a second.
  holdLooks(t)
  const costs = []
  for (const count of [100, 100_000]) {
    const path = join(makeFastFolder(), 'pets.json')
    const pets = Array.from({ length: count }, (_, index) => petLine(1_000_000 + index, 'Rex'))
    writeFileSync(path, formatDataFile(...pets))
    let calls: string[] = []
    let bytes = 0
    const fileSystem = watchFileSystem({
      before: ({ name }) => void calls.push(name),
      after({ name }, result) {
        if (name === 'writeSync') bytes += Number(result)
      },
    })
    const { store } = await openStore(t, path, fileSystem)
    await store.create(newPet('before'))
    calls = []
    bytes = 0
    const { id } = await store.create(newPet('Mia'))
    costs.push({ calls: [...calls], bytes: bytes - petLine(Number(id), 'Mia').length })
    await store.close()
  }
  const look = ['fstatSync', 'readSync']
  const calls = ['openSync', ...look, 'writeSync', ...look, 'fdatasync', 'statSync', 'closeSync']
  const bytes = ',\n    \n  ]\n}\n'.length
  assert.deepEqual(costs, [
    { calls, bytes },
    { calls, bytes },
  ])
})

test('64 clients at once share their syncs', async (t) => {
  let syncs = 0
  const fileSystem = watchFileSystem({
    after({ name }) {
      if (name === 'fdatasync') syncs++
    },
  })
  const { store } = await openStore(t, makeDataFile([rex]), fileSystem)
  syncs = 0
  const each = 25
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      for (let i = 0; i < each; i++) await store.create(newPet('x'))
    }),
  )
  t.diagnostic(`${64 * each} creations, ${syncs} syncs`)
  assert.ok(64 * each >= 10 * syncs, `${syncs} syncs`)
})

test('lists a pet, and answers, only when its sync has returned', async (t) => {
  const gate = createSyncGate()
  const { store } = await openStore(t, makeDataFile([rex]), gate.fileSystem)
  gate.hold()
  let isAnswered = false
  const creation = store.create(newPet('Mia')).then(() => {
    isAnswered = true
    return store.size
  })
  await gate.reached
  assert.equal(store.size, 1)
  assert.equal(store.get(2), undefined)
  assert.equal(isAnswered, false)
  gate.open()
  assert.equal(await creation, 2)
})

test('stores what was under way before it closes, and nothing after', async (t) => {
  const path = makeDataFile([rex])
  const { store } = await openStore(t, path)
  const creations = ['a', 'b', 'c'].map((name) => store.create(newPet(name)))
  const closed = store.close()
  // Without a message of its own: the client is told what the code means.
  const late = new PetStoreError('shutting_down', 'The store is closed.')
  await assert.rejects(store.create(newPet('late')), late)
  await Promise.all([...creations, closed, store.close()])
  assert.equal(readPetLines(path).length, 4)
  const { store: next } = await openStore(t, path)
  assert.equal(next.size, 4)
})

test('answers 507 when no id is left, and still keeps the last', async (t) => {
  const path = makeDataFile([petLine(9223372036854775806n, 'Rex')])
  const { send } = await startApp(t, { dataFile: path })
  const body = '{"name":"Mia","categoryId":-9223372036854775808}'
  const last = await send('/v1/pets', { body })
  assert.equal(last.status, 201)
  assert.equal(
    last.text,
    '{"id":9223372036854775807,"name":"Mia","categoryId":-9223372036854775808,"status":"available"}',
  )
  const refused = await send('/v1/pets', { body })
  assert.equal(refused.status, 507)
  assert.deepEqual(readPetLines(path)[1], last.text)
  assert.equal((await send('/v1/pets/9223372036854775807')).text, last.text)
})

test('refuses to write, by lowdb too, what is no new pet', async (t) => {
  const path = makeDataFile([rex, mia])
  const { file, data } = await openDataFile(path)
  t.after(() => file.close())
  const low = new Low<PetData>(file, data)
  const [first] = low.data.pets
  assert.ok(first !== undefined)
  low.data.pets[0] = { ...first, name: 'Max' }
  await assert.rejects(low.write(), TypeError)
  low.data.pets.pop()
  await assert.rejects(low.write(), TypeError)
  low.data = { pets: [first] }
  await assert.rejects(low.write(), TypeError)
  assert.deepEqual(readPetLines(path), [rex, mia])
})

test('does not take a refusal for want of an id for a sign that the file can be used again', async (t) => {
  const look = holdLooks(t)
  const path = makeDataFile([petLine(9223372036854775807n, 'Rex')])
  let isLocked = false
  const fileSystem = watchFileSystem({
    before({ name, path: place }) {
      if (isLocked && place === path && name === 'statSync') throw systemError('EACCES')
    },
  })
  const { store, lines } = await openStore(t, path, fileSystem)
  isLocked = true
  for (let i = 0; i < 3; i++) {
    look(1000)
    await assert.rejects(store.create(newPet('Kit')), { code: 'insufficient_storage' })
  }
  assert.equal(lines.length, 1, lines.join('\n'))
  assert.match(lines[0] ?? '', /cannot be used: permission denied/)
})

test('goes on with its file when the working directory of the process changes', async (t) => {
  const folder = makeFolder()
  const before = process.cwd()
  t.after(() => process.chdir(before))
  process.chdir(folder)
  const { store, lines } = await openStore(t, 'pets.json')
  process.chdir(makeFolder())
  await store.create(newPet('Rex'))
  await store.reset()
  assert.deepEqual(namesInFile(join(folder, 'pets.json')), ['Rex'])
  assert.deepEqual([...lines], [])
})

test('rewrites a file, and keeps pets, where no mode can be set', async (t) => {
  const fileSystem = watchFileSystem({
    before({ name }) {
      if (name === 'fchmodSync' || name === 'fchownSync') throw systemError('EPERM')
    },
  })
  const path = makeDataFile('{"pets":[{"name":"Rex","categoryId":1}]}')
  const { lines } = await openStore(t, path, fileSystem)
  assert.match(readFileSync(path, 'utf8'), /"id":1,/)
  truncateSync(path)
  await lines.next(/are kept in/)
})

test('sees an edit of the same length where a file system keeps times in whole seconds, if it has another end', async (t) => {
  const fileSystem = watchFileSystem({
    after({ name }, result) {
      if (!/^f?statSync$/.test(name) || result === undefined) return
      const stats = result as BigIntStats
      for (const time of ['mtimeNs', 'ctimeNs'] as const) {
        if (typeof stats[time] === 'bigint') stats[time] -= stats[time] % 1_000_000_000n
      }
    },
  })
  const path = makeDataFile([petLine(1, 'Rex')])
  const { store } = await openStore(t, path, fileSystem)
  await store.create(newPet('Mia'))
  // In the second of that creation, with its length, but another end: an append on top would spoil it.
  const text = readFileSync(path, 'utf8')
  const edited = text.replace(/"Mia"(.*)\n {2}\]/s, '"M"$1  \n  ]')
  assert.equal(edited.length, text.length)
  writeFileSync(path, edited)
  const { id } = await store.create(newPet('Max'))
  assert.equal(id, 3)
  assert.deepEqual(namesInFile(path), ['Rex', 'M', 'Max'])
})

test('compares no more of the file at a creation the more was appended before', async (t) => {
  const path = makeDataFile([])
  const lengths: number[] = []
  const fileSystem = watchFileSystem({
    before({ name, args }) {
      if (name === 'readSync') lengths.push(Number(args[3]))
    },
  })
  const { store } = await openStore(t, path, fileSystem)
  for (let i = 0; i < 20; i++) await store.create(newPet('x'.repeat(1_000)))
  assert.ok(lengths.length >= 20)
  assert.ok(Math.max(...lengths) < 2_000, `${Math.max(...lengths)} bytes`)
})

/** `--import` and `--export`: all pets go into a real PostgreSQL and back, exact to the bit. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Client } from 'pg'
import { send } from '../support.ts'
import { type Database, runSql, startDatabase } from './database.ts'
import { killAll, makeFolder, waitUntil } from './processes.ts'
import { runToEnd, spawnProgram, startServer, stopServer } from './service.ts'

let database: Database
before(async () => {
  database = await startDatabase()
})
after(() => killAll(database.folder))

/** Runs the program in the folder with this database and these arguments. */
const run = (folder: string, databaseUrl: string, ...args: string[]) =>
  runToEnd(folder, args, { PETSTORE_DATABASE_URL: databaseUrl })

const names = ['', '\0', 'a\0b', '"', "'", '\\', '{},"', String.raw`\u0000`, '\u007F', '🐕', '\u2028', 'NULL']
const numbers = ['-9223372036854775808', '-9007199254740993', '0', '9007199254740993', '9223372036854775807']
const statuses = ['available', 'pending', 'sold']
const lines = names.map((name, i) => {
  const id = [1, 7, 9007199254740993n][i] ?? 9_223_372_036_854_775_700n + BigInt(i)
  return `    {"id":${id},"name":${JSON.stringify(name)},"categoryId":${numbers[i % numbers.length]},"status":"${statuses[i % 3]}"}`
})
const text = `{\n  "pets": [\n${lines.join(',\n')}\n  ]\n}\n`

test('brings all pets there and back, exact to the bit', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('there')
  writeFileSync(join(folder, 'pets.json'), text)
  const count = `${names.length} pets`
  assert.deepEqual(await run(folder, databaseUrl, '--import', 'pets.json'), {
    code: 0,
    output: `imported ${count}\n`,
  })
  assert.deepEqual(await run(folder, databaseUrl, '--export=new/back.json'), {
    code: 0,
    output: `exported ${count}\n`,
  })
  symlinkSync('there/pets.json', join(folder, 'link.json'))
  // The folder may be that of a disk which is not mounted yet.
  const refused = await run(folder, databaseUrl, '--export', 'link.json')
  assert.equal(refused.code, 1)
  assert.match(refused.output, /link\.json: cannot be found: .* is a link to .*, whose folder is not there/)
  mkdirSync(join(folder, 'there'))
  await run(folder, databaseUrl, '--export', 'link.json')
  assert.equal(readFileSync(join(folder, 'there/pets.json'), 'utf8'), text)
  assert.equal(readFileSync(join(folder, 'new/back.json'), 'utf8'), text)
  assert.deepEqual(readdirSync(join(folder, 'new')), ['back.json'])
  assert.equal(readFileSync(join(folder, 'pets.json'), 'utf8'), text)
  const server = await startServer(folder, databaseUrl)
  assert.equal((await send(server.url, '/v1/pets')).text, `[${lines.map((line) => line.trim()).join()}]`)
  // The counter goes on from the highest id.
  const created = await send(server.url, '/v1/pets', { body: { name: 'Rex', categoryId: 1 } })
  assert.equal(
    created.headers.get('location'),
    `/v1/pets/${9_223_372_036_854_775_700n + BigInt(names.length)}`,
  )
  await stopServer(server)
  const env = { PETSTORE_DATABASE_URL: '', PETSTORE_DATA_FILE: 'new/back.json' }
  const fileServer = await startServer(folder, '', env)
  assert.match(fileServer.startText, new RegExp(`^Data file: .*, ${count}$`, 'm'))
  await stopServer(fileServer)
})

test('brings back more pets than it reads at once', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('many')
  const many = Array.from(
    { length: 4_500 },
    (_, index) => `    {"id":${index + 1},"name":"Rex","categoryId":1,"status":"sold"}`,
  )
  const file = `{\n  "pets": [\n${many.join(',\n')}\n  ]\n}\n`
  writeFileSync(join(folder, 'pets.json'), file)
  await run(folder, databaseUrl, '--import', 'pets.json')
  await run(folder, databaseUrl, '--export', 'back.json')
  assert.ok(readFileSync(join(folder, 'back.json'), 'utf8') === file)
})

test('imports into a database without pets only', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('twice')
  writeFileSync(join(folder, 'pets.json'), text)
  assert.equal((await run(folder, databaseUrl, '--import', 'pets.json')).code, 0)
  assert.deepEqual(await run(folder, databaseUrl, '--import', 'pets.json'), {
    code: 1,
    output: 'pets.json: the import failed: the database has pets; import into one that has none\n',
  })
  assert.deepEqual(await runSql(databaseUrl, 'SELECT count(*)::int FROM pets'), [{ count: names.length }])
  // Its ids are not filled in.
  const seed = '{"pets":[{"name":"Rex","categoryId":1}]}'
  writeFileSync(join(folder, 'seed.json'), seed)
  assert.equal((await run(folder, databaseUrl, '--import', 'seed.json')).code, 1)
  assert.equal(readFileSync(join(folder, 'seed.json'), 'utf8'), seed)
})

test('fills in missing ids as a start does, and refuses a file with all its faults, a missing one and one in use', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('faults')
  writeFileSync(join(folder, 'wrong.json'), '{"pets":[{"name":1,"categoryId":1},\n{"name":"a"}]}')
  const wrong = await run(folder, databaseUrl, '--import', 'wrong.json')
  assert.equal(wrong.code, 1)
  assert.match(
    wrong.output,
    /^wrong\.json:1:.*expected a string.*\nwrong\.json:2:.*categoryId: is required\n$/,
  )
  assert.deepEqual(await run(folder, databaseUrl, '--import', 'none.json'), {
    code: 1,
    output: 'none.json: is missing\n',
  })
  assert.equal(existsSync(join(folder, 'none.json')), false)
  writeFileSync(
    join(folder, 'pets.json'),
    '{"pets":[{"name":"Rex","categoryId":1},{"id":5,"name":"Mia","categoryId":2}]}',
  )
  const server = await startServer(folder, '', { PETSTORE_DATABASE_URL: '', PETSTORE_DATA_FILE: 'pets.json' })
  const used = await run(folder, databaseUrl, '--import', 'pets.json')
  assert.equal(used.code, 1)
  assert.match(used.output, /^pets\.json: .*another/)
  await stopServer(server)
  assert.equal((await run(folder, databaseUrl, '--import', 'pets.json')).output, 'imported 2 pets\n')
  const stored = 'SELECT id::int, name FROM pets ORDER BY id'
  assert.deepEqual(await runSql(databaseUrl, stored), [
    { id: 5, name: 'Mia' },
    { id: 6, name: 'Rex' },
  ])
})

test('stores none of the pets when the database refuses one', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('refusing')
  writeFileSync(join(folder, 'pets.json'), text)
  assert.equal((await run(folder, databaseUrl, '--export', 'empty.json')).code, 0)
  // The second batch, or the only one, is refused.
  await runSql(databaseUrl, 'ALTER TABLE pets ADD CHECK (name::text <> \'"NULL"\')')
  const { code, output } = await run(folder, databaseUrl, '--import', 'pets.json')
  assert.equal(code, 1)
  assert.match(output, /^pets\.json: the import failed: new row [^\n]* violates check constraint [^\n]*\n$/)
  const state = 'SELECT (SELECT count(*)::int FROM pets) AS count, last_id FROM pet_counter'
  assert.deepEqual(await runSql(databaseUrl, state), [{ count: 0, last_id: '0' }])
})

test('stores none of the pets when a trigger drops one', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('dropping')
  writeFileSync(join(folder, 'pets.json'), text)
  await run(folder, databaseUrl, '--export', 'empty.json')
  await runSql(
    databaseUrl,
    `CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF NEW.name::text = '"NULL"' THEN RETURN NULL; END IF; RETURN NEW;
     END $$; CREATE TRIGGER judge BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION judge()`,
  )
  const { code, output } = await run(folder, databaseUrl, '--import', 'pets.json')
  assert.equal(code, 1)
  assert.match(output, /^pets\.json: the import failed: .*a trigger keeps pets from being stored/)
  assert.deepEqual(await runSql(databaseUrl, 'SELECT count(*)::int FROM pets'), [{ count: 0 }])
})

test('asks for no keys, and names its file when the database or the disk refuses', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('keys')
  const env = { PETSTORE_DATABASE_URL: databaseUrl, PETSTORE_API_KEYS: '', HOST: '0.0.0.0' }
  assert.equal((await runToEnd(folder, ['--export', 'pets.json'], env)).output, 'exported 0 pets\n')
  assert.equal((await runToEnd(folder, ['--import', 'pets.json'], env)).output, 'imported 0 pets\n')
  // A file is where the folder has to be.
  for (const [name, wrongUrl] of [
    ['pets.json/new.json', databaseUrl],
    ['new.json', `${databaseUrl}_none`],
  ] as const) {
    const { code, output } = await run(folder, wrongUrl, '--export', name)
    assert.equal(code, 1)
    assert.match(output, new RegExp(`^${name.replaceAll('.', '[.]')}: the export failed: [^\\n]*\\n$`))
    assert.doesNotMatch(output, /start/)
  }
})

test('stores none of the pets when the import is killed in the middle, and all when it is run again', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('killed')
  await run(folder, databaseUrl, '--export', 'empty.json')
  const pets = Array.from({ length: 5_000 }, (_, i) => `{"id":${i + 1},"name":"${i}","categoryId":${i}}`)
  writeFileSync(join(folder, 'pets.json'), `{"pets":[${pets.join()}]}`)
  // Somebody's transaction has an id of the second batch, which waits for its end.
  const somebody = new Client({ connectionString: databaseUrl })
  await somebody.connect()
  await somebody.query(`BEGIN; INSERT INTO pets VALUES (3000, '"Rex"', 1, 'sold')`)
  const { child } = spawnProgram(folder, databaseUrl, {}, ['--import', 'pets.json'])
  const importing = `SELECT wait_event_type FROM pg_stat_activity
    WHERE datname = 'killed' AND application_name = 'petstore' AND query LIKE '%INSERT INTO pets%'`
  await waitUntil('the second batch waits', async () => {
    return (await runSql(databaseUrl, importing))[0]?.['wait_event_type'] === 'Lock' || undefined
  })
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  assert.deepEqual(await ended, [null, 'SIGKILL'])
  await somebody.query('ROLLBACK')
  await somebody.end()
  await waitUntil('PostgreSQL has noticed', async () => {
    return (await runSql(databaseUrl, importing)).length === 0 || undefined
  })
  const state = 'SELECT (SELECT count(*)::int FROM pets) AS count, last_id::int FROM pet_counter'
  assert.deepEqual(await runSql(databaseUrl, state), [{ count: 0, last_id: 0 }])
  assert.deepEqual(await run(folder, databaseUrl, '--import', 'pets.json'), {
    code: 0,
    output: 'imported 5000 pets\n',
  })
  assert.deepEqual(await runSql(databaseUrl, state), [{ count: 5_000, last_id: 5_000 }])
})

test('exports over no other file', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('over')
  writeFileSync(join(folder, 'pets.json'), text)
  assert.deepEqual(await run(folder, databaseUrl, '--export', 'pets.json'), {
    code: 1,
    output: 'pets.json: exists already; export to a new file\n',
  })
  assert.equal(readFileSync(join(folder, 'pets.json'), 'utf8'), text)
})

test('exports nothing beside the old file of a rewrite that was interrupted', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('old')
  for (const kind of ['old', 'new']) {
    writeFileSync(join(folder, `pets.json.petstore-${kind}`), text)
    const left = readdirSync(folder)
    assert.deepEqual(await run(folder, databaseUrl, '--export', 'pets.json'), {
      code: 1,
      output: 'pets.json: was moved aside by a rewrite that was interrupted; export to a new file\n',
    })
    assert.deepEqual(readdirSync(folder), left)
  }
})

test('exports nothing that a start would refuse', async () => {
  const folder = makeFolder()
  const databaseUrl = await database.createDatabase('surrogate')
  await run(folder, databaseUrl, '--export', 'empty.json')
  await runSql(
    databaseUrl,
    String.raw`INSERT INTO pets VALUES (1, '"\ud800"', 1, 'sold'); UPDATE pet_counter SET last_id = 1`,
  )
  const { code, output } = await run(folder, databaseUrl, '--export', 'pets.json')
  assert.equal(code, 1)
  assert.match(output, /^pets\.json:\d+:\d+: pets\[0\]\.name: expected well-formed Unicode/)
  assert.deepEqual(readdirSync(folder), ['empty.json'])
})

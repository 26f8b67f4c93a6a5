/**
 * The service installed by the commands of src/program/README.md, as they stand there, and used as an operator would; then power cuts.
 * The steps build on each other, in one machine.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { waitUntil } from '../postgres/processes.ts'
import { createRandom, root } from '../support.ts'
import { type Confirmed, createUntilDeath, findLost } from './load.ts'
import { makeMachine } from './machine.ts'

const rounds = 10
const guide = readFileSync(join(root, 'src/program/README.md'), 'utf8')
const random = createRandom(20301205)
const file = '/var/lib/petstore/pets.json'

/** The block of commands that begins so. */
function block(start: string): string {
  const blocks = Array.from(guide.matchAll(/^```sh\n(.*?)^```/gms), ([, commands = '']) => commands)
  const found = blocks.find((commands) => commands.startsWith(start))
  assert.ok(found !== undefined, `src/program/README.md has no commands that begin with ${start}`)
  return found
}

/** The line of commands that begins so. */
function line(start: string): string {
  const lines = Array.from(guide.matchAll(/^```sh\n(.*?)^```/gms), ([, commands = '']) =>
    commands.split('\n'),
  )
  const found = lines.flat().find((command) => command.startsWith(start))
  assert.ok(found !== undefined, `src/program/README.md has no command that begins with ${start}`)
  return found
}

/** The text of a file that is to be made at this path. */
function fileAt(path: string): string {
  const [, text] = guide.split(`\`${path}\`:\n\`\`\`ini\n`)
  return text?.split('```')[0] ?? assert.fail(`src/program/README.md has no ${path}`)
}

const machine = await makeMachine(root)
after(() => machine.cut(() => false))
await machine.start()
let key = ''

const atHome = 'curl -sS -m 60 -H "Authorization: Bearer'
const list = (): Promise<string> => machine.run(`${atHome} ${key}" http://127.0.0.1:3000/v1/pets?limit=100`)
const create = (name: string): Promise<string> =>
  machine.run(
    `${atHome} ${key}" -H 'Content-Type: application/json' -d '{"name":"${name}","categoryId":1}' -w ' %{http_code}' http://127.0.0.1:3000/v1/pets`,
  )
const readMessages = (): Promise<string> => machine.run(line('sudo journalctl'))

async function untilSaid(pattern: RegExp): Promise<void> {
  await waitUntil(`it says ${pattern}`, async () => pattern.test(await readMessages()) || undefined)
}

async function untilListed(pattern: RegExp): Promise<void> {
  await waitUntil(`${pattern} is listed`, async () => pattern.test(await list()) || undefined)
}

/** Resolves when the service answers through the machine's network. */
async function untilServing(): Promise<void> {
  await waitUntil('the service answers', async () => {
    const response = await fetch(`${machine.url}/healthz`, { signal: AbortSignal.timeout(10_000) })
    return response.ok || undefined
  })
}

test('it is installed, and starts', async () => {
  await machine.runAtHome(block('npm run build'))
  const printed = await machine.run(block('sudo install -D'))
  key = /^PETSTORE_API_KEYS=(\S+)$/m.exec(printed)?.[1] ?? ''
  await untilSaid(/Data file: .*, 0 pets/)
  assert.match(await create('Rex'), / 201$/)
})

test('the pets are edited, by an editor and by a program, and the owner stays', async () => {
  const edit = line('sudoedit')
  await machine.run(`EDITOR='sed -i s/Rex/Max/' ${edit}`)
  await untilListed(/"Max"/)
  assert.match(await create('sold'), / 201$/)
  await machine.run(`EDITOR='sed -i /sold/s/available/sold/' ${edit}`)
  await untilListed(/"sold","categoryId":1,"status":"sold"/)
  const owner = await machine.run(`sudo stat -c '%U %a' ${file}`)
  await machine.run(block("sudo sh -c 'cd"))
  await untilListed(/^\[\{"id":1,"name":"Max",[^}]*\}\]$/)
  assert.equal(await machine.run(`sudo stat -c '%U %a' ${file}`), owner)
  assert.match(await create('Mia'), / 201$/)
})

test('a backup is restored, also where the file was gone', async () => {
  const restore = line('sudo cp /var/backups').replace('pets-2026-11-24.json', 'pets-$(date +%F).json')
  await machine.run(block('sudo install -d -m 700'))
  assert.match(await create('Late'), / 201$/)
  await machine.run(restore)
  await untilListed(/^(?!.*Late).*Mia/)
  await machine.run(`sudo rm ${file}`)
  await untilSaid(/is missing/)
  await machine.run(restore)
  await machine.run(line('sudo chown'))
  await waitUntil('creations work', async () => (await create('Back')).endsWith(' 201') || undefined)
})

test('a timer backs up, and its backup is checked; a monitor is told of a kept file and of an old backup', async () => {
  for (const end of ['service', 'timer']) {
    const path = `/etc/systemd/system/petstore-backup.${end}`
    await machine.run(`sudo tee ${path} <<'END'\n${fileAt(path)}END`)
  }
  // The folder is root's alone, so that no other shell finds what is in it.
  await machine.run(`sudo sh -c 'rm /var/backups/petstore/*'`)
  const checks = ['curl -sSf', "sudo sh -c '! ls", 'sudo find /var/backups'].map(line)
  const codes = async () => {
    const ran = []
    for (const check of checks) ran.push((await machine.attempt(check)).code === 0)
    return ran
  }
  assert.equal((await codes()).at(-1), false)
  await machine.run(
    block('sudo systemctl daemon-reload && sudo systemctl enable --now petstore-backup.timer'),
  )
  assert.deepEqual([(await codes())[0], (await codes()).at(-1)], [true, true])
})

test('a refused start says why, tries again, and ends when the file is mended', async () => {
  await machine.run(`sudo cp ${file} good.json && sudo systemctl stop petstore`)
  await machine.run(`sudo sh -c 'echo "{ \\"pets\\": [ { \\"name\\": ] }" >${file}'`)
  const started = await machine.attempt('sudo systemctl start petstore')
  assert.notEqual(started.code, 0, 'the refused start is seen')
  await waitUntil('it was tried three times', async () => {
    const tries = await machine.run('systemctl show -P NRestarts petstore')
    return Number(tries) >= 3 || undefined
  })
  assert.match(await readMessages(), /pets\.json:1:23: expected a value/)
  await machine.run(`sudo cp good.json ${file}`)
  await waitUntil('it serves', async () => /"Mia"/.test(await list()) || undefined)
})

test('a start and a restart wait until it serves, and a SIGHUP does not keep it down', async () => {
  for (const command of ['restart', 'stop', 'start']) await machine.run(`sudo systemctl ${command} petstore`)
  await machine.run('curl -sSf http://127.0.0.1:3000/healthz')
  await machine.run('sudo systemctl kill -s HUP petstore')
  await waitUntil('it is started again', async () => {
    const tries = await machine.run('systemctl show -P NRestarts petstore')
    return Number(tries) >= 1 || undefined
  })
  await waitUntil('it serves', async () => /"Mia"/.test(await list()) || undefined)
})

test('others can connect, and it says where', async () => {
  await machine.run(block("sudo sed -i 's/^#Environment=HOST"))
  await untilSaid(/Other machines can reach it too, probably at http:\/\/10\.0\.2\.15:3000/)
  await untilServing()
})

test('an upgrade under load loses nothing', async (t) => {
  const confirmed: Confirmed = new Map()
  const state = { isOver: false }
  const load = (async () => {
    while (!state.isOver) {
      await createUntilDeath(
        machine.url,
        key,
        confirmed,
        () => {},
        () => state.isOver,
      )
      await untilServing()
    }
  })()
  await waitUntil('pets are created', async () => confirmed.size > 20 || undefined)
  await machine.run(block('sudo cp /opt/petstore/server.js'))
  const before = confirmed.size
  await waitUntil('pets are created again', async () => confirmed.size > before + 20 || undefined)
  state.isOver = true
  await load
  assert.deepEqual(await findLost(machine.url, key, confirmed), [])
  t.diagnostic(`${confirmed.size} pets confirmed, 0 lost`)
})

test('a log by hand is rotated while it is written', async () => {
  const [, snippet = ''] = /in `\/etc\/logrotate.d\/petstore`:\n```\n(.*?)```/s.exec(guide) ?? []
  await machine.run(`printf %s '${snippet}' | sudo tee /etc/logrotate.d/petstore`)
  await machine.run(`export PORT=3001 PETSTORE_LOG=requests PETSTORE_API_KEYS=k; ${block('setsid')}`)
  const ask = 'curl -sS -m 60 http://127.0.0.1:3001/v1/pets'
  await waitUntil('it serves', async () => (await machine.attempt(ask)).code === 0 || undefined)
  await machine.run('sudo logrotate --force /etc/logrotate.d/petstore')
  await machine.run(
    `${ask} && zcat petstore.log.1.gz | grep -q 'Petstore listens' && grep -q 'GET /v1/pets' petstore.log`,
  )
  // The first byte would be NUL if the program wrote on where it was.
  assert.match(await machine.run('cat petstore.log; pkill -f "^node server.js"'), /^[^\0]+$/)
})

test('it is there again after a reboot', async () => {
  await machine.reboot()
  await untilServing()
  assert.match(await list(), /"Mia"/)
})

/** Cuts the power under load, again and again, and gives how many confirmed pets were not listed afterwards. */
async function cutPower(t: TestContext, times: number, isKept: () => boolean): Promise<number> {
  let [created, lost] = [0, 0]
  for (let round = 0; round < times; round++) {
    const confirmed: Confirmed = new Map()
    const cutAt = 20 + random(60)
    let cut: Promise<void> | undefined
    await createUntilDeath(machine.url, key, confirmed, () => {
      if (confirmed.size >= cutAt) cut ??= machine.cut(isKept)
    })
    // A slow machine may have been silent for too long before.
    await (cut ?? machine.cut(isKept))
    await machine.start()
    await untilServing()
    created += confirmed.size
    lost += (await findLost(machine.url, key, confirmed)).length
  }
  t.diagnostic(`${times} power cuts, ${created} pets confirmed, ${lost} lost`)
  return lost
}

test('no power cut loses a confirmed pet, when all is lost that was not flushed', async (t) => {
  assert.equal(await cutPower(t, rounds / 2, () => false), 0)
})

test('no power cut loses a confirmed pet, when any half of the sectors is lost', async (t) => {
  assert.equal(await cutPower(t, rounds / 2, () => random(2) === 0), 0)
})

test('the rig sees the loss where the file system does not flush the disk', async (t) => {
  await machine.run('sudo sync && sudo mount -o remount,barrier=0 /')
  assert.ok((await cutPower(t, 1, () => false)) > 0)
})

test('the rig sees the loss where the service does not sync', async (t) => {
  await machine.run(
    `echo "require('fs').fdatasync = (_, done) => setImmediate(done, null)" | sudo tee /opt/petstore/no-sync.cjs &&
      echo NODE_OPTIONS=--require=/opt/petstore/no-sync.cjs | sudo tee -a /etc/petstore.env && sudo sync && sudo systemctl restart petstore`,
  )
  await untilServing()
  assert.ok((await cutPower(t, 1, () => false)) > 0)
})

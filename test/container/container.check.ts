/**
 * The image of src/program/Containerfile, on a base that needs no registry: this Node and its shared libraries. Root starts it, because
 * Debian's Podman needs that here; the service runs as another user.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { build } from '../built.ts'
import { type Confirmed, createUntilDeath, findLost } from '../machine/load.ts'
import { install, makeFolder, waitUntil } from '../postgres/processes.ts'
import { key, root, send } from '../support.ts'

const limits = ['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096']
const names = { image: `petstore-test-${process.pid}`, base: `petstore-test-base-${process.pid}` }
const containers: string[] = []
const volumes: string[] = []

install({
  podman: '/usr/bin/podman',
  runc: '/usr/sbin/runc',
  buildah: '/usr/bin/buildah',
  iptables: '/usr/sbin/iptables',
})

interface Ran {
  readonly code: number | null
  readonly output: string
}

function attempt(...args: readonly string[]): Ran {
  const { status, stdout, stderr } = spawnSync('podman', ['--runtime', 'runc', ...args], { encoding: 'utf8' })
  return { code: status, output: stdout + stderr }
}

function podman(...args: readonly string[]): string {
  const { code, output } = attempt(...args)
  assert.equal(code, 0, `podman ${args.join(' ')}\n${output}`)
  return output.trim()
}

function makeImages(): void {
  const folder = makeFolder()
  const base = join(folder, 'base')
  mkdirSync(base)
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
  execFileSync('cp', ['-L', '--parents', ...libraries, base])
  execFileSync('install', ['-D', process.execPath, join(base, 'usr/bin/node')])
  writeFileSync(join(folder, 'Containerfile'), 'FROM scratch\nCOPY base /\nENV PATH=/usr/bin\n')
  podman('build', '-q', ...limits, '-t', names.base, folder)
  build(folder)
  const file = ['-f', join(root, 'src/program/Containerfile'), '--build-arg', `BASE=localhost/${names.base}`]
  podman('build', '-q', ...limits, '--format', 'docker', ...file, '-t', names.image, folder)
}

/** An empty volume. */
function makeVolume(): string {
  const volume = `${names.image}-${volumes.length}`
  volumes.push(volume)
  podman('volume', 'create', volume)
  return volume
}

/** Creates a container whose root is read-only, and starts it. */
function run(volume: string, ...args: readonly string[]): string {
  const container = `${names.image}-${containers.length}`
  containers.push(container)
  const isolation = ['--read-only', '--read-only-tmpfs=false', '-p', '127.0.0.1::3000', ...limits]
  podman(
    'run',
    '-d',
    '--name',
    container,
    ...isolation,
    '-v',
    `${volume}:/data`,
    '-e',
    `PETSTORE_API_KEYS=${key}`,
    ...args,
    names.image,
  )
  return container
}

/** Resolves with its address when it serves. */
function untilServing(container: string): Promise<string> {
  return waitUntil(`${container} serves`, async () => {
    const [, port] = /:(\d+)$/m.exec(attempt('port', container).output) ?? []
    const url = `http://127.0.0.1:${port}`
    const { status } = await send(url, '/healthz')
    return status === 200 ? url : undefined
  })
}

async function untilExited(container: string): Promise<number> {
  return waitUntil(`${container} has ended`, async () => {
    const [state, code] = podman('inspect', '-f', '{{.State.Status}} {{.State.ExitCode}}', container).split(
      ' ',
    )
    return state === 'exited' ? Number(code) : undefined
  })
}

makeImages()
after(() => {
  for (const container of containers) attempt('rm', '-f', '-t', '0', container)
  for (const volume of volumes) attempt('volume', 'rm', volume)
  attempt('rmi', '-f', names.image, names.base)
})

test('any user stores pets in a volume, a stop is in order, and the next container has them', async () => {
  const volume = makeVolume()
  const first = run(volume, '--user', '12345:54321')
  const body = { name: 'Rex', categoryId: 1 }
  assert.equal((await send(await untilServing(first), '/v1/pets', { body })).status, 201)
  podman('stop', first)
  assert.equal(await untilExited(first), 0)
  assert.match(podman('logs', first), /stopped$/)
  const second = run(volume, '--user', '12345:54321')
  assert.match((await send(await untilServing(second), '/v1/pets')).text, /"Rex"/)
})

test('the health check tells a service that serves from one that does not', async () => {
  const serving = run(makeVolume())
  await untilServing(serving)
  podman('healthcheck', 'run', serving)
  const elsewhere = run(makeVolume(), '-e', 'PORT=3001', '-e', 'HOST=::')
  await waitUntil('it has started', async () => /Page:/.test(podman('logs', elsewhere)) || undefined)
  podman('healthcheck', 'run', elsewhere)
  // It stays, and does not listen where the check asks.
  const silent = run(makeVolume(), '--entrypoint', '["node", "-e", "setInterval(() => {}, 1000)"]')
  const checked = attempt('healthcheck', 'run', silent)
  assert.notEqual(checked.code, 0)
  assert.doesNotMatch(checked.output, /^ +at /m)
})

test('five times SIGKILL under load, and no confirmed pet is lost', async (t) => {
  const confirmed: Confirmed = new Map()
  const container = run(makeVolume())
  for (let round = 1; round <= 5; round++) {
    const url = await untilServing(container)
    const killAt = confirmed.size + 50 + 70 * round
    await createUntilDeath(url, key, confirmed, () => {
      if (confirmed.size === killAt) podman('kill', '--signal', 'KILL', container)
    })
    assert.equal(await untilExited(container), 137)
    podman('start', container)
    assert.deepEqual(await findLost(await untilServing(container), key, confirmed), [])
  }
  t.diagnostic(`5 kills, ${confirmed.size} pets confirmed, 0 lost`)
})

test('a second container on the same volume is refused, whatever network it is in', async () => {
  const volume = makeVolume()
  await untilServing(run(volume))
  const second = run(volume)
  const said = await waitUntil('the second is refused, or serves', async () => {
    const logs = podman('logs', second)
    return /in use|Page:/.test(logs) ? logs : undefined
  })
  assert.match(said, /is in use by another server/)
  assert.equal(await untilExited(second), 1)
})

test('restarts end with on-failure:5, and once the file is mended, it starts', async () => {
  const volume = makeVolume()
  const container = run(volume, '--restart', 'on-failure:5')
  await untilServing(container)
  const file = join(podman('volume', 'inspect', '-f', '{{.Mountpoint}}', volume), 'pets.json')
  writeFileSync(file, '{ "pets": [ { "name": ] }')
  // `podman kill` would count as a wish that it stays down.
  process.kill(Number(podman('inspect', '-f', '{{.State.Pid}}', container)), 'SIGKILL')
  await waitUntil('it has been restarted five times', async () => {
    const [state, count] = podman('inspect', '-f', '{{.State.Status}} {{.RestartCount}}', container).split(
      ' ',
    )
    return (state === 'exited' && count === '5') || undefined
  })
  // What would come now is one more restart, and at once.
  await pause(1_000)
  assert.equal(podman('inspect', '-f', '{{.RestartCount}}', container), '5')
  assert.match(podman('logs', container), /pets\.json:1:\d+/)
  writeFileSync(file, '{ "pets": [ { "name": "Mia", "categoryId": 1 } ] }')
  podman('start', container)
  assert.match((await send(await untilServing(container), '/v1/pets')).text, /"Mia"/)
})

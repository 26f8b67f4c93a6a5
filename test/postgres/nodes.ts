/**
 * A replicated PostgreSQL, as Debian packages it: three nodes, each with PostgreSQL under Patroni, and etcd, on an address and under a
 * user of its own; before them HAProxy, which leads to the primary.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findBinaries, runSql } from './database.ts'
import {
  atExit,
  cleanEnvironment,
  findFreePort,
  install,
  killAll,
  makeFolder,
  signalAll,
  waitUntil,
} from './processes.ts'

/** How long the primary's lock in etcd lasts, unless Patroni renews it. */
export const lockMs = 10_000
const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4']

export interface Node {
  readonly address: string
  /** Starts Patroni, which starts PostgreSQL. */
  startDatabase(): void
  /** Signals Patroni and all processes of PostgreSQL. */
  signalDatabase(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
  startEtcd(): void
  killEtcd(): void
  /** Whether its etcd leads the others. */
  hasLeadingEtcd(): Promise<boolean>
  /** Whether Patroni would make it the primary. */
  mayBePromoted(): Promise<boolean>
}

export interface Cluster {
  /** What is started in it ends with this process. */
  readonly folder: string
  readonly nodes: readonly Node[]
  /** An empty database, by way of HAProxy. */
  readonly url: string
  /** Resolves with the primary when both other nodes follow it, and one of them could take its place. */
  findPrimary(): Promise<Node>
}

/** Installs what is missing, and starts all. */
export async function startCluster(): Promise<Cluster> {
  install({
    'etcd-server': '/usr/bin/etcd',
    haproxy: '/usr/sbin/haproxy',
    patroni: '/usr/bin/patroni',
    'python3-etcd': '/usr/lib/python3/dist-packages/etcd',
  })
  const binaries = findBinaries()
  const users = addresses.map((_, index) => makeUser(`petstore-${process.pid}-${index + 1}`))
  const folder = makeFolder()
  chmodSync(folder, 0o755)
  const places = await Promise.all(addresses.map(findPlace))
  const nodes = places.map((place, index) =>
    createNode(place, { binaries, folder: join(folder, place.address), places, user: users[index] ?? {} }),
  )
  for (const node of nodes) node.startEtcd()
  for (const node of nodes) node.startDatabase()

  const port = await findFreePort('127.0.0.1')
  writeFileSync(join(folder, 'haproxy.cfg'), formatProxySettings(port, places))
  run(folder, 'haproxy', ['-db', '-f', 'haproxy.cfg'])

  const urlOf = (name: string): string => `postgres://petstore@127.0.0.1:${port}/${name}`
  const findPrimary = (): Promise<Node> =>
    waitUntil('a primary has two replicas', async () => {
      const [row] = await runSql(urlOf('postgres'), replication)
      if (row?.['is_whole'] !== true) return undefined
      // PostgreSQL replicates synchronously two seconds before Patroni writes that down in etcd. If the primary freezes in between, Patroni
      // promotes nobody until it goes on: that the other has all pets is not known.
      const successors = await Promise.all(nodes.map((node) => node.mayBePromoted()))
      return successors.includes(true) ? nodes.find(({ address }) => address === row['address']) : undefined
    })
  await findPrimary()
  await runSql(urlOf('postgres'), 'CREATE DATABASE petstore')
  return { folder, nodes, url: urlOf('petstore'), findPrimary }
}

const replication = `
  SELECT host(inet_server_addr()) AS address, count(*) = 2 AND bool_or(sync_state = 'sync') AS is_whole
  FROM pg_stat_replication WHERE state = 'streaming'`

/** Where a node's programs listen. */
interface Place {
  readonly address: string
  readonly client: number
  readonly peer: number
  readonly database: number
  readonly patroni: number
}

async function findPlace(address: string): Promise<Place> {
  const [client, peer, database, patroni] = [
    await findFreePort(address),
    await findFreePort(address),
    await findFreePort(address),
    await findFreePort(address),
  ]
  return { address, client, peer, database, patroni }
}

interface User {
  readonly uid?: number
  readonly gid?: number
}

/** PostgreSQL refuses to run as root. Whoever is not root runs all nodes as himself. */
function makeUser(name: string): User {
  if (process.getuid?.() !== 0) return {}
  // A Ctrl-C goes to all processes of the terminal's session, but it must not end these halfway.
  atExit(() => spawnSync('setsid', ['userdel', name]))
  execFileSync('setsid', ['useradd', '--system', '--user-group', '--no-create-home', name])
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

/** Starts a program in a folder; what it prints is added to a file there. */
function run(folder: string, command: string, args: readonly string[], user: User = {}): void {
  const log = openSync(join(folder, 'log'), 'a')
  const env = { ...cleanEnvironment, HOME: folder }
  spawn(command, args, { cwd: folder, env, stdio: ['ignore', log, log], ...user })
}

interface Surroundings {
  readonly binaries: string
  readonly folder: string
  readonly places: readonly Place[]
  readonly user: User
}

function createNode(place: Place, { binaries, folder, places, user }: Surroundings): Node {
  const { address, client, peer, patroni } = place
  const makeOwnFolder = (name: string): string => {
    const path = join(folder, name)
    mkdirSync(path, { recursive: true })
    if (user.uid !== undefined && user.gid !== undefined) chownSync(path, user.uid, user.gid)
    return path
  }
  const etcd = makeOwnFolder('etcd')
  const database = makeOwnFolder('database')
  writeFileSync(join(database, 'patroni.yml'), formatPatroniSettings(place, { binaries, database, places }))
  const clientUrl = `http://${address}:${client}`
  const peerUrl = `http://${address}:${peer}`
  const members = places.map((each) => `${each.address}=http://${each.address}:${each.peer}`).join()
  const etcdSettings = Object.entries({
    name: address,
    'data-dir': join(etcd, 'data'),
    'listen-client-urls': clientUrl,
    'advertise-client-urls': clientUrl,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': members,
    'heartbeat-interval': 200,
    'election-timeout': 2_000,
  }).map(([name, value]) => `--${name}=${value}`)
  return {
    address,
    startDatabase: () => run(database, 'patroni', ['patroni.yml'], user),
    signalDatabase(signal) {
      if (signal === 'SIGKILL') killAll(database)
      else signalAll(database, signal)
    },
    startEtcd: () => run(etcd, 'etcd', etcdSettings, user),
    killEtcd: () => killAll(etcd),
    async hasLeadingEtcd() {
      const answer = await fetch(`${clientUrl}/v3/maintenance/status`, { method: 'POST', body: '{}' })
      const status: { leader?: string; header?: { member_id?: string } } = JSON.parse(await answer.text())
      return status.leader !== undefined && status.leader === status.header?.member_id
    },
    async mayBePromoted() {
      const answer = await fetch(`http://${address}:${patroni}/sync`, { signal: AbortSignal.timeout(5_000) })
      return answer.status === 200
    },
  }
}

/** JSON is YAML. With Patroni's own times (ttl 30, loop_wait 10, retry_timeout 10), creations fail for 24 s. */
function formatPatroniSettings(
  { address, database: port, patroni }: Place,
  { binaries, database, places }: Pick<Surroundings, 'binaries' | 'places'> & { readonly database: string },
): string {
  return JSON.stringify({
    scope: 'petstore',
    name: address,
    restapi: { listen: `${address}:${patroni}`, connect_address: `${address}:${patroni}` },
    etcd3: { hosts: places.map((each) => `${each.address}:${each.client}`) },
    bootstrap: {
      dcs: {
        synchronous_mode: true,
        ttl: lockMs / 1_000,
        loop_wait: 2,
        retry_timeout: 4,
        postgresql: { use_pg_rewind: true, parameters: { wal_log_hints: true } },
      },
      initdb: [{ encoding: 'UTF8' }, { auth: 'trust' }],
    },
    postgresql: {
      listen: `${address}:${port}`,
      connect_address: `${address}:${port}`,
      bin_dir: binaries,
      data_dir: join(database, 'data'),
      parameters: { unix_socket_directories: database },
      pg_hba: ['host all all 127.0.0.0/8 trust', 'host replication all 127.0.0.0/8 trust'],
      authentication: {
        superuser: { username: 'petstore', password: 'unused' },
        replication: { username: 'replicator', password: 'unused' },
      },
    },
  })
}

/** Asks each Patroni once a second whether its node is the primary, and ends the connections to one that is no more. */
function formatProxySettings(port: number, places: readonly Place[]): string {
  const servers = places.map(
    ({ address, database, patroni }) => `  server ${address} ${address}:${database} check port ${patroni}`,
  )
  return `defaults
  mode tcp
  timeout connect 4s
  timeout client 1h
  timeout server 1h
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`
}

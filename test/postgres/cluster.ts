/**
 * `npm run cluster`: three servers on a replicated PostgreSQL, parts of which are killed and frozen. Prints for how long creations
 * failed. Arguments are the names of faults; without any, all of them.
 */
import assert from 'node:assert/strict'
import { describeMachine } from '../bench/machine.ts'
import { Load } from './load.ts'
import { type Cluster, lockMs, type Node, startCluster } from './nodes.ts'
import { waitUntil } from './processes.ts'
import { assertContract, type Pets, startServer, stopServer, walk } from './service.ts'

/** Makes the fault, waits until there are creations in spite of it, and mends it. */
type Fault = (cluster: Cluster, load: Load) => Promise<void>

const faults: Readonly<Record<string, Fault>> = {
  async 'primary-killed'({ findPrimary }, load) {
    const primary = await findPrimary()
    primary.signalDatabase('SIGKILL')
    await load.untilCreated()
    primary.startDatabase()
  },
  async 'primary-frozen'({ findPrimary }, load) {
    const primary = await findPrimary()
    primary.signalDatabase('SIGSTOP')
    await load.untilCreated()
    // More is created before it goes on where it stopped, as if it still was the primary.
    await load.untilCreated()
    primary.signalDatabase('SIGCONT')
  },
  async 'etcd-killed'({ nodes }, load) {
    const leader = await waitUntil('an etcd leads', () => findEtcdLeader(nodes))
    leader.killEtcd()
    const killedAt = performance.now()
    await waitUntil('another etcd leads', () => findEtcdLeader(nodes))
    // For longer than the primary's lock lasts: Patroni has to renew it with the two that are left.
    while (performance.now() - killedAt < 1.5 * lockMs) await load.untilCreated()
    leader.startEtcd()
    await waitUntil('all etcds have a leader', async () => {
      const leaders = await Promise.all(nodes.map((node) => node.hasLeadingEtcd()))
      return leaders.includes(true) || undefined
    })
  },
}

async function findEtcdLeader(nodes: readonly Node[]): Promise<Node | undefined> {
  // One that was killed does not answer.
  for (const node of nodes) if (await node.hasLeadingEtcd().catch(() => false)) return node
  return undefined
}

function assertHolds(pets: Pets, acknowledged: Pets, who: string): void {
  const missing = [...acknowledged].flatMap(([id, text]) => (pets.get(id) === text ? [] : [id]))
  assert.equal(missing.length, 0, `${who} lacks ${missing.length} of ${acknowledged.size}: ${missing.join()}`)
}

const given = process.argv.slice(2)
const unknown = given.filter((name) => !Object.hasOwn(faults, name))
assert.deepEqual(unknown, [], `the faults are ${Object.keys(faults).join(', ')}`)

const start = performance.now()
const say = (text: string): void =>
  console.log(`${((performance.now() - start) / 1_000).toFixed().padStart(4)} s: ${text}`)

say(describeMachine(process.cwd()))
const cluster = await startCluster()
say('three nodes of PostgreSQL replicate')
const servers = await Promise.all([1, 2, 3].map(() => startServer(cluster.folder, cluster.url)))
await assertContract(servers)
say('the contract suite has passed on three servers at once')

const load = new Load(servers)
await load.untilCreated()
for (const [name, fault] of Object.entries(faults)) {
  if (given.length > 0 && !given.includes(name)) continue
  load.longestGapMs = 0
  const refusedBefore = load.refused
  await fault(cluster, load)
  await cluster.findPrimary()
  await load.untilCreated()
  const seconds = (load.longestGapMs / 1_000).toFixed(1)
  say(`${name}: no creation for ${seconds} s, ${load.refused - refusedBefore} were refused`)
}

const { acknowledged, refused } = load
for (const seen of await load.stop()) assertHolds(seen, acknowledged, 'a walk')
for (const { url } of servers) {
  const stored: Pets = new Map()
  await walk(url, stored)
  assertHolds(stored, acknowledged, 'the database')
}
for (const server of servers) await stopServer(server)
say(
  `${acknowledged.size} pets were acknowledged and are there, once each; no walk missed one; ${refused} refused`,
)
process.exit(0)

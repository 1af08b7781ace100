import { setTimeout as delay } from 'node:timers/promises'
import type { ClusterInfo } from 'nats'
import { ROOT } from '../../apps/platform/base/paths.ts'
import type { Managed } from '../../apps/platform/base/process.ts'
import { connectNats } from '../../apps/shared/events/events.ts'
import { withConnection } from '../../db/connection.ts'
import type { Harm } from '../chaos/kills.ts'
import { until } from '../support/until.ts'
import { replaceWorkers } from './drain.ts'
import type { Cluster } from './site.ts'

const BACK_MS = 120_000
/** Longer than any client waits for a silent server of Redis or NATS. */
const APART_MS = 20_000
/** Shorter: clients wait, and stay connected. */
const SHORT_MS = 5000
const APPS = ['gateway', 'session', 'identity', 'credential', 'token', 'catalog', 'operations', 'worker', 'relay']

/** Refused requests, counted by the fault during which they happened. */
export const createCounts = () => {
  const refused = new Map<string, number>([['before', 0]])
  let fault = 'before'
  return {
    refused,
    begin: (name: string) => {
      fault = name
      refused.set(name, 0)
    },
    count: () => refused.set(fault, (refused.get(fault) ?? 0) + 1),
  }
}
export type Counts = ReturnType<typeof createCounts>

/** One fault; `act` resolves when it is over. */
export type Fault = { name: string; act: () => Promise<void> }

/** Runs each fault in turn, `gap_ms` after the last is over; requests refused in the meantime are counted for it. */
export const inTurn =
  (faults: readonly Fault[], counts: Counts, gap_ms: number): Harm =>
  async ({ say }) => {
    const deaths = new Map<string, number[]>()
    await delay(gap_ms)
    for (const { name, act } of faults) {
      counts.begin(name)
      say(name)
      const began = performance.now()
      await act()
      deaths.set(name, [performance.now() - began])
      await delay(gap_ms)
    }
    return { deaths, stalls: 0, breaks: 0 }
  }

/**
 * One process of each app dies, then each of Temporal, the primary of Postgres, that of Redis, and the leader of
 * a stream.
 */
export const deaths = (cluster: Cluster): Fault[] => [
  ...APPS.map((app) => ({ name: `kill ${app}`, act: () => again(cluster.apps.get(app)?.[0] as Managed) })),
  ...cluster.engine.map((one) => ({ name: `kill ${one.name}`, act: () => again(one) })),
  { name: 'kill postgres', act: () => failOver(cluster) },
  { name: 'kill redis', act: () => loseRedis(cluster) },
  {
    name: 'kill nats',
    act: () =>
      withoutLeader(
        cluster,
        (node) => node.crash('SIGKILL'),
        (node) => node.start(),
      ),
  },
]

/** Servers that leave the network: no connection to them is closed, and they come back as they were. */
export const partitions = (cluster: Cluster): Fault[] => [
  { name: 'cut off the primary of redis', act: () => isolatePrimary(cluster) },
  { name: 'cut off the replicas of redis', act: () => isolateReplicas(cluster) },
  {
    name: 'cut off a leader of nats',
    act: () =>
      withoutLeader(
        cluster,
        (node) => stallFor(APART_MS, [node]),
        () => {},
      ),
  },
  { name: 'cut off two of nats', act: () => isolateMajority(cluster) },
]

/** Stops processes for a while: their kernel accepts connections and bytes, and no one is answered. */
const stallFor = async (ms: number, nodes: readonly Managed[]): Promise<void> => {
  try {
    for (const one of nodes) one.kill('SIGSTOP')
    await delay(ms)
  } finally {
    for (const one of nodes) one.kill('SIGCONT')
  }
}

/** A network that drops everything, one that is slow, and stopped processes: one of the two relays leads. */
export const troubles = ({ link, apps }: Cluster): Fault[] => [
  { name: 'Postgres unreachable for 5 s', act: () => during(5000, link.freeze, link.thaw) },
  { name: 'Postgres 50 ms away for 10 s', act: () => during(10_000, () => link.slow(50), link.mend) },
  ...(apps.get('relay') ?? []).map((one) => ({
    name: `${one.name} stands still for 20 s`,
    act: () => stallFor(APART_MS, [one]),
  })),
]

const during = async (ms: number, begin: () => void, end: () => void): Promise<void> => {
  begin()
  await delay(ms)
  end()
}

/**
 * Replaces every process by one of another build, one after another; first the database, if the build is newer. Workers
 * keep theirs until it is drained.
 */
export const roll = (
  cluster: Cluster,
  to: { name: string; root: string; build: string },
  apps: readonly string[] = APPS,
): Fault => ({
  name: `roll to ${to.name}`,
  act: async () => {
    cluster.build.root = to.root
    if (to.root === ROOT) await cluster.migrate()
    for (const app of apps) {
      if (app === 'worker') await replaceWorkers(cluster, to.build)
      else
        for (const one of cluster.apps.get(app) ?? []) {
          await one.stop()
          await one.start()
        }
    }
  },
})

const again = async (one: Managed): Promise<void> => {
  const before = one.pid
  one.kill('SIGKILL')
  await until(() => one.pid !== before, { timeout_ms: BACK_MS, what: `a new process of ${one.name}` })
  await one.ready()
}

/** The primary is gone for good; the standby takes its place and its address. */
const failOver = async ({ primary, second, link, site }: Cluster): Promise<void> => {
  primary.crash('SIGKILL')
  await second.promote()
  link.turnTo(`postgres://127.0.0.1:${second.port}`)
  const serves = () =>
    withConnection({ connectionString: site.database_url }, async (client) => {
      const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
      return rows[0]?.standby === false
    })
  await until(serves, { timeout_ms: BACK_MS, what: 'the new primary' })
}

/**
 * The Sentinels put a replica in the place of the primary, which is gone for good. On a busy machine they may have done so
 * before: whoever is the primary now dies.
 */
const loseRedis = async ({ redis, apps }: Cluster): Promise<void> => {
  const before = await redis.primary()
  redis.at(before).crash('SIGKILL')
  await until(async () => (await redis.primary()) !== before, { timeout_ms: BACK_MS, what: 'another primary of Redis' })
  await Promise.all((apps.get('session') ?? []).map((one) => one.ready()))
}

/** The Sentinels replace the silent primary, which still takes itself for it when it is back, and has to follow. */
const isolatePrimary = async ({ redis }: Cluster): Promise<void> => {
  const before = await redis.primary()
  await stallFor(APART_MS, [redis.at(before)])
  await until(async () => (await redis.primary()) !== before, { timeout_ms: BACK_MS, what: 'another primary of Redis' })
  await until(() => redis.follows(before).then(() => true), { timeout_ms: BACK_MS, what: 'the former primary' })
}

/** The primary is alone with its clients: what no replica has is not acknowledged. */
const isolateReplicas = async ({ redis }: Cluster): Promise<void> => {
  const primary = await redis.primary()
  const others = redis.ports.filter((port) => port !== primary && redis.at(port).running)
  await stallFor(SHORT_MS, others.map(redis.at))
  for (const port of others)
    await until(() => redis.follows(port).then(() => true), { timeout_ms: BACK_MS, what: 'a replica of Redis' })
}

/** The server that leads a stream goes; the other two continue, and it comes back. */
const withoutLeader = (
  cluster: Cluster,
  go: (node: Managed) => Promise<void>,
  back: (node: Managed) => unknown,
): Promise<void> =>
  withStream(cluster, async (told) => {
    const { leader: first } = await told()
    const node = cluster.nats.nodes.find(({ name }) => name === first)
    if (!node) throw new Error(`no server is called ${first}`)
    await go(node)
    await until(async () => ![first, undefined, ''].includes((await told()).leader), {
      timeout_ms: BACK_MS,
      what: 'another leader',
    })
    await back(node)
    await until(async () => isWhole(await told()), { timeout_ms: BACK_MS, what: 'three servers of NATS in step' })
  })

/** The third server stays connected to its clients, and can neither store a message nor deliver one. */
const isolateMajority = (cluster: Cluster): Promise<void> =>
  withStream(cluster, async (told) => {
    await stallFor(APART_MS, cluster.nats.nodes.slice(1))
    await until(async () => isWhole(await told()), { timeout_ms: BACK_MS, what: 'three servers of NATS in step' })
  })

/** `told` says who leads a stream, and which servers follow. */
const withStream = async ({ nats_url }: Cluster, work: (told: () => Promise<ClusterInfo>) => Promise<void>) => {
  const nc = await connectNats(nats_url, 'test')
  try {
    const jsm = await nc.jetstreamManager()
    await work(async () => (await jsm.streams.info('OPERATIONS')).cluster ?? { leader: '' })
  } finally {
    await nc.close()
  }
}

const isWhole = ({ leader, replicas = [] }: ClusterInfo): boolean =>
  Boolean(leader) && replicas.length === 2 && replicas.every(({ current }) => current)

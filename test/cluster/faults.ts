import { setTimeout as delay } from 'node:timers/promises'
import type { Managed } from '../../apps/platform/base/process.ts'
import { connectNats } from '../../apps/shared/events/events.ts'
import { withConnection } from '../../db/connection.ts'
import type { Harm } from '../chaos/kills.ts'
import { until } from '../support/until.ts'
import type { Cluster } from './site.ts'

const BACK_MS = 120_000
const APPS = ['gateway', 'session', 'identity', 'credential', 'token', 'catalog', 'operations', 'worker', 'relay']

/** Requests that were refused, by the fault during which they were. */
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

/** Kills one of each app, then the primary of Postgres, then the leader of a stream; each `gap_ms` after the last is back. */
export const oneOfEach =
  (cluster: Cluster, counts: Counts, { gap_ms, apps = APPS }: { gap_ms: number; apps?: readonly string[] }): Harm =>
  async ({ dice, say }) => {
    const deaths = new Map<string, number[]>()
    const strike = async (name: string, act: () => Promise<void>) => {
      counts.begin(name)
      say(`kill: ${name}`)
      const died = performance.now()
      await act()
      deaths.set(name, [performance.now() - died])
      await delay(gap_ms)
    }
    await delay(gap_ms)
    for (const app of apps) {
      const one = dice(0).pick(cluster.apps.get(app) ?? []) as Managed
      await strike(app, () => again(one))
    }
    await strike('postgres', () => failOver(cluster))
    await strike('nats', () => loseLeader(cluster))
    return { deaths, stalls: 0 }
  }

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

/** The server that leads a stream dies; the other two go on, and it comes back. */
const loseLeader = async ({ nats, nats_url }: Cluster): Promise<void> => {
  const nc = await connectNats(nats_url, 'test')
  try {
    const jsm = await nc.jetstreamManager()
    const leader = async () => (await jsm.streams.info('OPERATIONS')).cluster?.leader
    const first = await leader()
    const node = nats.nodes.find(({ name }) => name === first)
    if (!node) throw new Error(`no server is called ${first}`)
    node.crash('SIGKILL')
    await until(async () => ![first, undefined, ''].includes(await leader()), {
      timeout_ms: BACK_MS,
      what: 'another leader',
    })
    await node.start()
  } finally {
    await nc.close()
  }
}

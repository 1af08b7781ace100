import { cpus, loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import pg from 'pg'
import { table } from '../../apps/shared/data/print.ts'
import { numbersGiven } from '../support/numbers.ts'
import { startStack } from '../support/stack.ts'
import { type Flow, openFlows } from './capacity/flows.ts'
import { bytesOfSession, openGround, streamsCost } from './capacity/ground.ts'
import { printFigure } from './lib/print.ts'
import { idleCpu, platformCpuSince } from './lib/processes.ts'
import { packFolder } from './operations/hosts.ts'
import { runGraph } from './operations/runs.ts'

/**
 * `npm run bench:capacity -- [--seconds 8] [--busy 60]`: the load model of a large installation. First measures the CPU
 * of each kind of work alone, by process, and multiplies it by its rate at the peak. Then runs all of them together at
 * that share of the peak which should keep this machine's cores busy to `--busy` percent, and prints what they used
 * beside what the sum predicts. Linux only.
 */
const { seconds, busy } = numbersGiven('bench:capacity', { seconds: 8, busy: 60 })
const MIXED_S = 30
const WARM_MS = 5000
/** Nodes of the operation that all streams follow. */
const FOLLOWED = 200

type Cost = Record<string, number>
const sum = (cost: Cost): number => Object.values(cost).reduce((all, ms) => all + ms, 0)
/** The platform's CPU by process while `act` runs, without what it uses idle. */
const costOf = async (idle: Cost, act: () => Promise<void>): Promise<Cost> => {
  const cpu = platformCpuSince()
  const begun = performance.now()
  await act()
  const took_s = (performance.now() - begun) / 1000
  return Object.fromEntries(
    Object.entries(cpu()).map(([name, ms]) => [name, Math.max(0, ms - (idle[name] ?? 0) * took_s)]),
  )
}
const scaled = (cost: Cost, by: number): Cost => Object.fromEntries(Object.entries(cost).map(([k, ms]) => [k, ms * by]))
const added = (costs: Cost[]): Cost => {
  const all: Cost = {}
  for (const cost of costs) for (const [name, ms] of Object.entries(cost)) all[name] = (all[name] ?? 0) + ms
  return all
}

/** Callers that act as fast as they are answered; returns how much they did. */
const closed = async ({ callers, act }: Flow, ms: number): Promise<number> => {
  const end = performance.now() + ms
  let done = 0
  const call = async (caller: number) => {
    while (performance.now() < end) {
      const size = await act(caller)
      done += size
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  return done
}

/** As many as `per_s`, however long each takes; returns how much was done. */
const paced = async ({ callers, act }: Flow, per_s: number, ms: number): Promise<number> => {
  const begun = performance.now()
  let done = 0
  let asked = 0
  const call = async (caller: number) => {
    while (performance.now() - begun < ms) {
      const due = (asked / per_s) * 1000
      const early = due - (performance.now() - begun)
      if (early > 0) await delay(Math.min(early, 50))
      else {
        const size = await act(caller)
        asked += Math.max(size, 1)
        done += size
      }
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  return done
}

const bytesOf = async (url: string): Promise<number> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
  await client.end()
  return Number(rows[0]?.bytes)
}

const stack = await startStack({
  env_overrides: {
    ...{ OPERATIONS__PACKS__DIR: packFolder(), SESSION__CAP__PER_USER: '100', CREDENTIAL__HASH__PER_KEY: '3' },
    ...{ CREDENTIAL__HASH__MEMORY_KIB: '65536', CREDENTIAL__HASH__TIME: '3', CREDENTIAL__HASH__PARALLELISM: '4' },
  },
})
try {
  const { ada: admin, olga: operator, eva: approver } = await stack.people()
  const { address, namespace } = stack.servers.temporal
  const connection = await Connection.connect({ address })
  const operations = { admin, operator, approver, client: new Client({ connection, namespace }), queue: '' }
  const ground = await openGround(stack, admin)
  console.error('people, gates and warm-up')
  const flows = await openFlows(ground, operations)
  for (const flow of flows) await closed(flow, WARM_MS)
  const session_bytes = await bytesOfSession(ground, stack.servers.redis.url('session'))
  const idle = await idleCpu()

  const each: { flow: Flow; cost: Cost }[] = []
  let node_bytes = 0
  for (const flow of flows) {
    console.error(`${flow.name} for ${seconds} s`)
    let done = 0
    const before = await bytesOf(stack.database_url)
    const cost = await costOf(idle, async () => {
      done = await closed(flow, seconds * 1000)
    })
    if (flow.name === 'nodes') node_bytes = ((await bytesOf(stack.database_url)) - before) / done
    each.push({ flow, cost: scaled(cost, 1 / done) })
    printFigure({ figure: flow.name, cpu_ms: sum(cost) / done, by_process: scaled(cost, 1 / done), done })
  }
  const work = () => runGraph(operations, FOLLOWED)
  const alone = await costOf({}, async () => void (await work()))
  console.error('400 streams that follow one operation')
  const streams = await streamsCost(ground, { url: stack.gateway_url, work, alone })

  const cores = added(each.map(({ flow, cost }) => scaled(cost, flow.peak / 1000)))
  const share = (cpus().length * busy) / 100 / sum(cores)
  console.error(`all together at ${(share * 100).toFixed(0)} % of the peak for ${MIXED_S} s`)
  const done = new Map<Flow, number>()
  const begun = performance.now()
  const mixed = await costOf(idle, async () => {
    const each_of = flows.map(async (flow) => done.set(flow, await paced(flow, flow.peak * share, MIXED_S * 1000)))
    await Promise.all(each_of)
  })
  const took_s = (performance.now() - begun) / 1000
  const predicted = added(each.map(({ flow, cost }) => scaled(cost, done.get(flow) ?? 0)))

  const fixed = (value: number, digits = 2) => value.toFixed(digits)
  const rows = each.map(({ flow, cost }) => [
    ...[flow.name, flow.a_day, `${flow.peak}/s`, `${fixed(sum(cost))} ms`],
    ...[fixed((sum(cost) * flow.peak) / 1000), `${fixed((done.get(flow) ?? 0) / took_s, 1)}/s`],
  ])
  console.log(`\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}\n`)
  const heads = ['work', 'a day', 'peak', 'CPU each', 'cores at the peak', 'carried here, mixed']
  for (const line of table(heads, rows)) console.log(line)
  const names = Object.keys(cores).sort((a, b) => (cores[b] ?? 0) - (cores[a] ?? 0))
  const parts = names
    .filter((name) => (cores[name] ?? 0) >= 0.01)
    .map((name) => [
      ...[name, fixed(cores[name] ?? 0), `${fixed((predicted[name] ?? 0) / 1000 / took_s)}`],
      `${fixed((mixed[name] ?? 0) / 1000 / took_s)}`,
    ])
  const totals = [cores, scaled(predicted, 1 / 1000 / took_s), scaled(mixed, 1 / 1000 / took_s)].map((cost) =>
    sum(cost),
  )
  console.log()
  const all = [...parts, ['all', ...totals.map((value) => fixed(value))]]
  for (const line of table(['process', 'cores at the peak', 'mixed, predicted', 'mixed, measured'], all))
    console.log(line)
  console.log(`\nmeasured / predicted ${fixed(sum(mixed) / sum(predicted))} (0.8 to 1.2: the sum may be trusted)`)
  console.log(
    `a node run ${fixed(node_bytes / 1024, 1)} KiB of Postgres, a session ${fixed(session_bytes, 0)} B of Redis`,
  )
  console.log(`an open stream ${fixed(streams.kib, 0)} KiB, a frame of it ${fixed(streams.frame_us, 0)} us of CPU`)
  await ground.close()
  await connection.close()
} finally {
  await stack.stop()
}
